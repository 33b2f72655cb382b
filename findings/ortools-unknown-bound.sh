#!/usr/bin/env bash
# OR-Tools: CP-SAT's best_objective_bound is 0.0 as long as there is none, whatever the objective.
#
# library    ortools 9.15.6755
# behaviour  A minimisation whose optimum is negative is stopped before anything is proved: the status is UNKNOWN, and
#            best_objective_bound is 0.0, above the optimum. A maximisation of a positive sum says 0.0 as well, below it.
#            Only the status tells that this is no bound, and not always: UNKNOWN also comes with bounds that are proved.
# seen       OR-Tools 9.15.6755
#            minimise, optimum -100: UNKNOWN, bound 0.0
#            maximise, optimum 100: UNKNOWN, bound 0.0
# exit       0: as above; 1: an unknown bound is now told otherwise
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check ortools==9.15.6755
"$folder/env/bin/python" - <<'PYTHON'
import ortools
from ortools.sat.python import cp_model


def stopped(sense: int) -> tuple[str, float]:
    """x + y <= 100 in 0..100: the least -x - y, or the largest x + y, with no time to find it."""
    model = cp_model.CpModel()
    x, y = (model.new_int_var(0, 100, name) for name in "xy")
    model.add(x + y <= 100)
    if sense == 1:
        model.minimize(-x - y)
    else:
        model.maximize(x + y)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 0.0
    return solver.status_name(solver.solve(model)), solver.best_objective_bound


print("OR-Tools", ortools.__version__)
least, largest = stopped(1), stopped(-1)
print(f"minimise, optimum -100: {least[0]}, bound {least[1]}")
print(f"maximise, optimum 100: {largest[0]}, bound {largest[1]}")
raise SystemExit((least, largest) != (("UNKNOWN", 0.0), ("UNKNOWN", 0.0)))
PYTHON
