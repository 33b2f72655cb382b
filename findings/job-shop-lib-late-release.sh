#!/usr/bin/env bash
# job-shop-lib: the solver finds no solution of an instance with a late release date, which has one.
#
# library    job-shop-lib 1.7.2 with OR-Tools 9.12.4544
# behaviour  The horizon of the CP-SAT model is the sum of all durations; release dates are not added. If every schedule is longer
#            than that, a feasible instance is reported as one without a solution. The dispatching rules do find a schedule.
# seen       durations 2 and 3, the first from 100 on
#            rule: makespan 102
#            solver: NoSolutionFoundError
# exit       0: as above; 1: the solver now finds the schedule
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check job-shop-lib==1.7.2 ortools==9.12.4544
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

from job_shop_lib import JobShopInstance, Operation
from job_shop_lib.constraint_programming import ORToolsSolver
from job_shop_lib.dispatching.rules import DispatchingRuleSolver
from job_shop_lib.exceptions import NoSolutionFoundError


def jobs():
    return JobShopInstance([[Operation(0, 2, release_date=100)], [Operation(0, 3)]])


print("durations 2 and 3, the first from 100 on")
rule = DispatchingRuleSolver("most_work_remaining").solve(jobs()).makespan()
print("rule: makespan", rule)
try:
    solver = ORToolsSolver().solve(jobs()).makespan()
except NoSolutionFoundError as error:
    solver = type(error).__name__
print("solver:", solver)
sys.exit((rule, solver) != (102, "NoSolutionFoundError"))
PYTHON
