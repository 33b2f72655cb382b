#!/usr/bin/env bash
# CP-SAT: a task of length zero keeps a machine free at its instant under no-overlap, but not under cumulative.
#
# library    OR-Tools 9.12.4544, and PyJobShop 0.0.9 on top of it
# behaviour  A task of length 5 may not run across the instant of a task of length 0 if both are in one `add_no_overlap`. It may
#            if both are in one `add_cumulative` of capacity 1 with demands 1. In PyJobShop the optimal makespan therefore
#            depends on whether the same resource is a machine or a renewable resource of capacity 1.
# seen       earliest start of the long task: no_overlap 2, cumulative 0
#            makespan in PyJobShop: machine 7, renewable 5
# exit       0: as above; 1: both constraints now agree
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check ortools==9.12.4544 pyjobshop==0.0.9
"$folder/env/bin/python" - <<'PYTHON'
import sys

from ortools.sat.python import cp_model
from pyjobshop import Model


def earliest_start(constraint):
    """Start of a task of length 5 on a machine on which a task of length 0 starts at 2."""
    model = cp_model.CpModel()
    start = model.new_int_var(0, 10, "start")
    tasks = [model.new_fixed_size_interval_var(start, 5, "long"), model.new_fixed_size_interval_var(2, 0, "empty")]
    if constraint == "no_overlap":
        model.add_no_overlap(tasks)
    else:
        model.add_cumulative(tasks, [1, 1], 1)
    model.minimize(start)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return solver.value(start)


def makespan(resource):
    """Optimal makespan of the same two tasks in PyJobShop."""
    model = Model()
    place, demands = (model.add_machine(), None) if resource == "machine" else (model.add_renewable(capacity=1), [1])
    model.add_mode(model.add_task(), place, 5, demands=demands)
    model.add_mode(model.add_task(earliest_start=2, latest_end=2), place, 0, demands=demands)
    model.set_objective(weight_makespan=1)
    return int(model.solve(display=False, num_workers=1).objective)


starts = [earliest_start(constraint) for constraint in ("no_overlap", "cumulative")]
makespans = [makespan(resource) for resource in ("machine", "renewable")]
print("earliest start of the long task: no_overlap %d, cumulative %d" % tuple(starts))
print("makespan in PyJobShop: machine %d, renewable %d" % tuple(makespans))
sys.exit((starts, makespans) != ([2, 0], [7, 5]))
PYTHON
