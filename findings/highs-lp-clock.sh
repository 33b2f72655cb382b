#!/usr/bin/env bash
# HiGHS: `time_limit` of LPs counts the seconds of all solves of one object together.
#
# library    highspy 1.15.1 (also seen with 1.14.0 and 1.16.0)
# behaviour  Many small LPs, all solved by one Highs object, take a second together. The next one, with a time_limit of half a
#            second, ends "Time limit reached" at once; a new object solves it in some milliseconds. Of MIPs each run is
#            counted anew. A program that solves many LPs under a limit for each must add getRunTime() to it.
# seen       HiGHS 1.15.1
#            after 1.0 s of solves, limit 0.5 s: Time limit reached
#            limit 0.5 s more than getRunTime(): Optimal
#            a MIP after 1.0 s of solves, limit 0.5 s: Optimal
# exit       0: as above; 1: HiGHS now counts otherwise
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check highspy==1.15.1 numpy==2.3.5
"$folder/env/bin/python" - <<'PYTHON'
import highspy
import numpy as np

rng = np.random.default_rng(0)


def made(integer: bool) -> highspy.Highs:
    """min c x, A x >= b, x >= 0: an LP of 80 columns, or a MIP of 6."""
    m, n = (3, 6) if integer else (40, 80)
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("threads", 1)
    starts, index = np.arange(0, m * n + 1, n, dtype=np.int32), np.tile(np.arange(n, dtype=np.int32), m)
    model.passModel(
        n, m, m * n, 2, 1, 0.0, rng.random(n) + 1, np.zeros(n), np.full(n, np.inf), rng.random(m) + 1, np.full(m, np.inf),
        starts, index, rng.random(m * n), np.full(n, int(integer), dtype=np.int32),
    )  # fmt: skip
    return model


def change(model: highspy.Highs) -> None:
    n = model.getNumCol()
    model.changeColsCost(n, np.arange(n, dtype=np.int32), rng.random(n) + 1)


def ended(model: highspy.Highs, limit: float) -> str:
    change(model)
    model.setOptionValue("time_limit", limit)
    model.run()
    return str(model.modelStatusToString(model.getModelStatus()))


print("HiGHS", made(False).version())
lp, mip = made(False), made(True)
for model in (lp, mip):
    while model.getRunTime() < 1.0:
        change(model)
        model.run()
of_sum, more = ended(lp, 0.5), ended(lp, lp.getRunTime() + 0.5)
of_mip = ended(mip, 0.5)
print("after 1.0 s of solves, limit 0.5 s:", of_sum)
print("limit 0.5 s more than getRunTime():", more)
print("a MIP after 1.0 s of solves, limit 0.5 s:", of_mip)
raise SystemExit((of_sum, more, of_mip) != ("Time limit reached", "Optimal", "Optimal"))
PYTHON
