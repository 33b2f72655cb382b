#!/usr/bin/env bash
# CVXPY: a MIP that HiGHS left without a solution gets x = 0 and a value, although x = 0 is infeasible.
#
# library    CVXPY 1.9.3 with highspy 1.15.1
# behaviour  At a time limit without any solution HiGHS has none to return. CVXPY reads its array of zeros: the status is
#            `user_limit`, as for a limit with a good solution, the value is that of x = 0, and a warning says "may be inaccurate".
# seen       status user_limit, value 0.0, x = 0: True, largest violation above 1000: True
# exit       0: as above; 1: CVXPY now says that there is no solution
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check cvxpy==1.9.3 highspy==1.15.1 numpy==2.2.6
cd "$folder"
env/bin/python - <<'PYTHON'
import sys
import warnings

import cvxpy as cp
import numpy as np

warnings.simplefilter("ignore")
random = np.random.default_rng(1)
sizes, costs = random.integers(10, 1000, size=(3, 30)), random.integers(1, 100, 30)
x = cp.Variable(30, boolean=True)
halves = sizes @ x == sizes.sum(axis=1) // 2
problem = cp.Problem(cp.Minimize(costs @ x), [halves])
problem.solve(solver="HIGHS", time_limit=0.0)
zero, violated = x.value is not None and not np.any(x.value), bool(np.max(halves.violation()) > 1000)
print(f"status {problem.status}, value {problem.value}, x = 0: {zero}, largest violation above 1000: {violated}")
sys.exit((problem.status, problem.value, zero, violated) != ("user_limit", 0.0, True, True))
PYTHON
