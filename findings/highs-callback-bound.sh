#!/usr/bin/env bash
# HiGHS: under a partial start the bounds told by callbacks may lie above the optimum of a minimisation.
#
# library    highspy 1.15.1 (also seen with 1.14.0)
# behaviour  A start that gives values to some integer columns is completed by a MIP in which these are fixed. The callbacks
#            (kMipLogging, kMipImprovingSolution) are called for that MIP, too, and its mip_dual_bound is no bound of the
#            model: there is no mark by which a listener could tell. The bound of getInfo() after the run is right.
# seen       HiGHS 1.15.1
#            optimum (all orders tried): 35
#            largest bound told by a callback: 44
#            bound after the run: 35
# exit       0: as above; 1: no callback tells a bound above the optimum any more
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check highspy==1.15.1 numpy==2.3.5
"$folder/env/bin/python" - <<'PYTHON'
from itertools import combinations, permutations

import highspy
import numpy as np

# one machine, jobs with a release and a duration, least sum of completion times; before[i, j] is binary
RELEASE, DURATION = (7, 1, 6, 2), (11, 1, 3, 2)
n = len(RELEASE)
pairs = list(combinations(range(n), 2))
M = float(max(RELEASE) + sum(DURATION))


def total(order: tuple[int, ...]) -> int:
    now = value = 0
    for j in order:
        now = max(now, RELEASE[j]) + DURATION[j]
        value += now
    return value


optimum = min(map(total, permutations(range(n))))
A, low = np.zeros((2 * len(pairs), n + len(pairs))), []
for k, (i, j) in enumerate(pairs):
    A[2 * k, [i, j, n + k]] = -1, 1, -M  # C_j >= C_i + p_j where before[i, j]
    A[2 * k + 1, [i, j, n + k]] = 1, -1, M
    low += [DURATION[j] - M, DURATION[i]]
m, columns = A.shape
model = highspy.Highs()
model.silent()
model.setOptionValue("threads", 1)
first = np.array([r + p for r, p in zip(RELEASE, DURATION)] + [0] * len(pairs), dtype=float)
last = np.array([M] * n + [1] * len(pairs))
model.passModel(
    columns, m, A.size, 2, 1, 0.0, np.array([1.0] * n + [0.0] * len(pairs)), first, last, np.array(low, dtype=float),
    np.full(m, np.inf), np.arange(0, A.size + 1, columns, dtype=np.int32), np.tile(np.arange(columns, dtype=np.int32), m),
    A.ravel(), np.array([0] * n + [1] * len(pairs), dtype=np.int32),
)  # fmt: skip
told = []
for source in (model.cbMipLogging, model.cbMipImprovingSolution):
    source.subscribe(lambda event: told.append(event.data_out.mip_dual_bound))
known = np.arange(n, n + 4, dtype=np.int32)
model.setSolution(len(known), known, np.zeros(4))  # job 0 after all others, job 1 after job 2
model.run()
largest = max(bound for bound in told if np.isfinite(bound))
print("HiGHS", model.version())
print("optimum (all orders tried):", optimum)
print(f"largest bound told by a callback: {largest:.6g}")
print(f"bound after the run: {model.getInfo().mip_dual_bound:.6g}")
raise SystemExit(not largest > optimum + 1e-3 or abs(model.getInfo().mip_dual_bound - optimum) > 1e-3)
PYTHON
