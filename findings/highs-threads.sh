#!/usr/bin/env bash
# HiGHS: a second solver object with another number of threads solves nothing and raises nothing.
#
# library    highspy 1.15.1
# behaviour  The pool of threads belongs to the process and is made by the first solve. An object with another value of `threads`
#            returns kError, its model status is kNotset, and its solution is empty; in Python nothing is raised.
# seen       1 thread: kOk, kOptimal
#            2 threads: kError, kNotset
#            2 threads after resetGlobalScheduler: kOk, kOptimal
# exit       0: as above; 1: the second object now solves or raises
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check highspy==1.15.1 numpy==2.2.6
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

import highspy


def solved(threads):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", threads)
    status = solver.minimize(solver.addVariable(lb=2, ub=5))
    return status.name, solver.getModelStatus().name


seen = [solved(1), solved(2)]
highspy.Highs.resetGlobalScheduler(True)
seen.append(solved(2))
for title, (status, model) in zip(("1 thread", "2 threads", "2 threads after resetGlobalScheduler"), seen, strict=True):
    print(f"{title}: {status}, {model}")
sys.exit(seen != [("kOk", "kOptimal"), ("kError", "kNotset"), ("kOk", "kOptimal")])
PYTHON
