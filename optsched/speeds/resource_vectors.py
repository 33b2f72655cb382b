"""Interference that was not measured: guessed from how long a job keeps each resource busy in an iteration.

**Model** (a design of this project, not a measurement): job A alone uses resource r for the share
u_{A,r} = (time on r in an iteration) / (time of the iteration); jobs on one GPU share all resources, the busiest decides:

    xi_{A|B} = max(1, max over r of (u_{A,r} + u_{B,r})),   the same for both.

Hence 1/xi + 1/xi < 1 only where a resource is asked for more than twice over. A share above 1 (vgg16: 117 ms of input for an
iteration of 107 ms) is kept as it was printed.

Built-in figures: the traces of Rivendile/Muri (Apache-2.0), Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning
Training", SIGCOMM 2022; the same eight rows are in the authors' public code of the paper on SJF-BSBF, Lai-JX/Scheduler (no
licence: figures only). Columns resource_time_0, 1, 2 are read as input (CPU), GPU and network: an interpretation.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence

from optsched.errors import InputError, RowErrors, RowProblem, check_legal
from optsched.problem.files import read_bytes
from optsched.problem.interference import TURNS, Interference

# model: iteration, input (CPU), GPU, network; milliseconds on one GPU
RESOURCE_TIMES: dict[str, tuple[float, ...]] = {
    "resnet18": (779, 711, 110, 0),
    "shufflenet_v2_x1_0": (798, 706, 59, 0),
    "vgg16": (107, 117, 68, 0),
    "vgg19": (109, 114, 80, 0),
    "bert": (178, 0.5, 160, 0),
    "gpt2": (426, 0.6, 410, 0),
    "a2c": (517, 514, 14, 0),
    "dqn": (490, 446, 8, 0),
}
MODEL, GANG, ITERATION = "model_name", "num_gpu", "iteration_time"
TIMES = (ITERATION, "resource_time_0", "resource_time_1", "resource_time_2")
LEGAL = "a finite time: > 0 of the iteration, >= 0 of a resource"


def resource_interference(
    times: Mapping[str, Sequence[float]] = RESOURCE_TIMES, source: str = "resource vectors"
) -> Interference:
    """xi of every pair of models by the formula of the module.

    ``times``: (iteration, resource 1, resource 2, ...) of each model alone on one GPU, in any one unit, as many resources
    for all; xi is 2 beside models that are not there. O(K^2 R). `InputError` for times that are invalid.
    """
    width = {len(row) for row in times.values()}
    if len(width) > 1 or (width and min(width) < 2):
        legal = "for all models the time of an iteration, then those of the same resources"
        raise InputError("not a table", field="times", legal=legal)
    shares: dict[str, list[float]] = {}
    for model, (iteration, *used) in times.items():
        finite = 0 < iteration < math.inf and all(0 <= each < math.inf for each in used)
        legal = "an iteration > 0 and resources >= 0, all finite"
        check_legal(finite, f"times.{model}", (iteration, *used), legal)
        shares[model] = [each / iteration for each in used]
    ratios = [
        [max(1.0, *(u + v for u, v in zip(mine, its, strict=True))) for its in shares.values()]
        for mine in shares.values()
    ]
    return Interference(TURNS, tuple(shares), tuple(map(tuple, ratios)), source)


def read_resource_times(path: str | os.PathLike[str]) -> dict[str, tuple[float, ...]]:
    """`RESOURCE_TIMES` of the models in a trace of Muri's columns: means over their jobs of one GPU.

    Raises
    ------
    RowErrors
        Every row of one GPU whose times are no numbers, or invalid.
    InputError
        No such file, columns that are missing, no job of one GPU.
    """
    rows = csv.DictReader(io.StringIO(read_bytes(path).decode("utf-8-sig", "replace")), skipinitialspace=True)
    named = [name for name in (MODEL, GANG, *TIMES) if name not in (rows.fieldnames or ())]
    if named:
        raise InputError(f"no column {named[0]}", file=path, legal=f"the columns {', '.join((MODEL, GANG, *TIMES))}")
    found: dict[str, list[list[float]]] = {}
    problems, read = [], 0
    for read, row in enumerate(rows, 1):  # noqa: B007 (their number is reported below)
        if (row[GANG] or "").strip() != "1":
            continue
        wrong = [name for name in TIMES if not _legal(row[name], name == ITERATION)]
        problems += [RowProblem(rows.line_num, name, row[name], LEGAL) for name in wrong]
        if not wrong:
            found.setdefault(row[MODEL].strip(), []).append([float(row[name]) for name in TIMES])
    if problems:
        raise RowErrors(path, problems, read)
    if not found:
        raise InputError("no job of one GPU", file=path, field=GANG, legal="at least one, for its times alone")
    return {model: tuple(sum(each) / len(each) for each in zip(*times, strict=True)) for model, times in found.items()}


def _legal(text: str | None, positive: bool) -> bool:
    try:
        value = float(text or "")
    except ValueError:
        return False
    return 0 <= value < math.inf and (value > 0 or not positive)
