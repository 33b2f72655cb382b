#!/usr/bin/env bash
# CVXPY: the dual of an equality is minus the shadow price in a minimisation and plus in a maximisation.
#
# library    CVXPY 1.9.3 with highspy 1.15.1; Pyomo 6.10.1 for comparison
# behaviour  Duals of inequalities are nonnegative in both senses, so that they are shadow prices up to the direction of the row.
#            Those of equalities change their sign with the sense: whoever reads prices of capacities from `dual_value` must know it.
#            HiGHS itself and Pyomo report the change of the objective for one more unit of the right-hand side in both.
# seen       minimise 3 x: one unit more costs 3; CVXPY -3, Pyomo 3
#            maximise 3 x: one unit more brings 3; CVXPY 3, Pyomo 3
# exit       0: as above; 1: the signs have changed
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check cvxpy==1.9.3 highspy==1.15.1 numpy==2.2.6 pyomo==6.10.1
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

import cvxpy as cp
import pyomo.environ as pyo

seen = []
for sense in ("minimise", "maximise"):
    x = cp.Variable()
    fixed = x == 2
    cp.Problem((cp.Minimize if sense == "minimise" else cp.Maximize)(3 * x), [fixed]).solve(solver="HIGHS")
    model = pyo.ConcreteModel()
    model.x = pyo.Var()
    model.cost = pyo.Objective(expr=3 * model.x, sense=pyo.minimize if sense == "minimise" else pyo.maximize)
    model.fixed = pyo.Constraint(expr=model.x == 2)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    pyo.SolverFactory("highs").solve(model)
    seen.append((round(float(fixed.dual_value)), round(model.dual[model.fixed])))
    verb = "costs" if sense == "minimise" else "brings"
    print(f"{sense} 3 x: one unit more {verb} 3; CVXPY {seen[-1][0]}, Pyomo {seen[-1][1]}")
sys.exit(seen != [(-3, 3), (3, 3)])
PYTHON
