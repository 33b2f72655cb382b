#!/usr/bin/env bash
# HiGHS: `mip_dual_bound` of a linear program that was solved to optimality is 0, not its value.
#
# library    highspy 1.15.1
# behaviour  The record of a solve has one field for a bound. For a MIP it is the proved bound; for an LP it keeps 0.0 (and `mip_gap` inf),
#            a number that looks like a bound and lies on the wrong side of the optimum if that is negative in a minimisation.
# seen       linear program: optimal, value -2.0, mip_dual_bound 0.0
#            the same with integers: optimal, value -2.0, mip_dual_bound -2.0
# exit       0: as above; 1: the field of an LP is now another
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check highspy==1.15.1 numpy==2.2.6
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

import highspy

seen = []
for kind in ("linear program", "the same with integers"):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    x = solver.addVariable(lb=-2, ub=5) if kind == "linear program" else solver.addIntegral(lb=-2, ub=5)
    solver.minimize(x)
    info = solver.getInfo()
    seen.append((solver.getModelStatus().name, info.objective_function_value, info.mip_dual_bound))
    print(f"{kind}: {seen[-1][0][1:].lower()}, value {seen[-1][1]}, mip_dual_bound {seen[-1][2]}")
sys.exit(seen != [("kOptimal", -2.0, 0.0), ("kOptimal", -2.0, -2.0)])
PYTHON
