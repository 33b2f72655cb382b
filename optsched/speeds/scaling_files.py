"""The built-in scaling profiles, and a reader of files of measurements.

**Built in**: six applications of the Pollux artifact, as formulas. Names as in its workloads: ``bert``, ``cifar10``
(ResNet-18), ``deepspeech2``, ``imagenet`` (ResNet-50), ``ncf``, ``yolov3``. Seconds and samples, on nodes of four
GPUs, up to 16 of them.

Source: measurements of petuum/adaptdl, branch osdi21-artifact (Apache-2.0): A. Qiao et al., "Pollux: Co-adaptive
Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021. The parameters are a fit of the formula of
`optsched.problem.scaling` to them, to three or four digits. `optsched.speeds.scaling_fit` reproduces those of bert,
deepspeech2 and yolov3, and those of imagenet but for ``within``; those of cifar10 and ncf are not the best by the same
loss (12 % and 1 % above). The formula is coarse: half of the measured steps differ by more than 4 % (bert) to 9 %
(cifar10) from it, one in ten by more than 16 % to 22 %, the worst by 37 % to 48 %. `read_scalings` uses the
measurements themselves, from their files.

**Files** (`read_scalings`): ``APP/placements.csv``, ``APP/scalability.csv`` and ``iterations.csv``.

===================  ==================================================================================================
file                 columns
===================  ==================================================================================================
APP/placements.csv   placement (one digit for each node), local_bsz samples, step_time s, sync_time s
APP/scalability.csv  num_nodes, num_replicas, local_bsz, step_time, sync_time
iterations.csv       application, batch_size samples in all, iterations to completion; optional, no file of the artifact
===================  ==================================================================================================

Original: the folder ``simulator/traces`` of petuum/adaptdl, branch osdi21-artifact (Apache-2.0), with APP one of its
six applications; their files were read whole. A copy in one folder has ``traces__APP__placements.csv`` and
``traces__APP__scalability.csv``. Others of the same layout are read alike.
"""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from optsched.errors import InputError, RowErrors, RowProblem, naming
from optsched.problem.atomic_files import note_source
from optsched.problem.contention import LARGEST
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.scaling_fit import joint_fit


class Application(NamedTuple):
    """A row of the table: joint fit, largest sub-batch, batches, epochs and iterations of an epoch at ``initial``."""

    compute: float
    per_sample: float
    within: float
    within_growth: float
    across: float
    across_growth: float
    overlap: float
    most_local: int
    initial: int
    largest: int
    epochs: int
    iterations: int


APPLICATIONS = {
    "bert": Application(0.1719, 0.05861, 0.2842, 0.00962, 1.386, 0.00943, 1.90, 12, 12, 384, 2, 7387),
    "cifar10": Application(0.01866, 0.000680, 0.0154, 4.7e-8, 0.0915, 0.00253, 1.28, 1024, 128, 4096, 100, 390),
    "deepspeech2": Application(0.3111, 0.02384, 0.0839, 0.00137, 0.487, 0.00982, 1.41, 80, 20, 640, 80, 357),
    "imagenet": Application(0.06417, 0.00448, 0.0265, 0.00005, 0.299, 0.00664, 2.47, 200, 200, 12800, 90, 6405),
    "ncf": Application(0.00696, 6.35e-7, 0.0060, 4.4e-8, 0.0175, 0.00056, 1.25, 32768, 256, 32768, 10, 19418),
    "yolov3": Application(0.1871, 0.02538, 0.1283, 0.0174, 0.749, 0.0107, 1.11, 8, 8, 512, 50, 2069),
}


@cache
def built_in_scalings() -> dict[str, Scaling]:
    """Return the built-in profiles by application.

    ``iterations`` at batches of initial x 1, 2, 4, ... up to the largest: epochs x iterations of an epoch x initial /
    batch, without a loss of statistical efficiency (larger batches do need more samples; ``iterations.csv`` in a folder
    of measurements states their number). Memory is not stated. The dictionary is shared: copy it before you change it.
    """
    scalings = {}
    for name, scaling in APPLICATIONS.items():
        batches = [scaling.initial]
        while 2 * batches[-1] < scaling.largest:
            batches.append(2 * batches[-1])
        whole = scaling.epochs * scaling.iterations
        iterations = tuple((batch, whole * scaling.initial / batch) for batch in (*batches, scaling.largest))
        scalings[name] = Scaling(*scaling[:8], iterations=iterations)
    return scalings


# --- files --------------------------------------------------------------------------------------------------------------

PLACEMENTS, SCALABILITY, ITERATIONS = "placements.csv", "scalability.csv", "iterations.csv"
LEGAL = f"a folder with APP/{PLACEMENTS} or traces__APP__{PLACEMENTS} files"


def read_scalings(folder: str | os.PathLike[str]) -> dict[str, Scaling]:
    """Return the measured scalings of a folder by application.

    Placements that were not measured use a formula, the joint fit of `optsched.speeds.scaling_fit`. ``most_local`` is
    the largest local batch that was measured; for yolov3 it is 8, the limit of the artifact.

    Parameters
    ----------
    folder
        Folder with the files that the module describes.

    Raises
    ------
    InputError
        No such folder, no application in it, or only one of the two files of an application.
    RowErrors
        All bad rows of a file at once.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError("no such folder", file=str(folder), legal=LEGAL)
    flat = {
        path.name.split("__", 1)[1].removesuffix(f"__{PLACEMENTS}"): path
        for path in place.glob(f"traces__*__{PLACEMENTS}")
    }
    files = {path.parent.name: path for path in place.glob(f"*/{PLACEMENTS}")} | flat
    if not files:
        raise InputError("no measurements in it", file=str(folder), legal=LEGAL)
    iterations = _iterations(place / ITERATIONS) if (place / ITERATIONS).is_file() else {}
    return {name: _scaling(files[name], name, iterations.get(name, ())) for name in sorted(files)}


def _scaling(file: Path, name: str, iterations: tuple[tuple[int, float], ...]) -> Scaling:
    numbers = {"local_bsz": 0, "step_time": 0, "sync_time": 0}
    placed = [row for _, row in _rows(file, {"placement": 1, **numbers})]
    other_file = file.with_name(file.name.removesuffix(PLACEMENTS) + SCALABILITY)
    scaled = [row for _, row in _rows(other_file, {"num_nodes": 1, "num_replicas": 1, **numbers})]
    with naming(file):
        measured = MeasuredSteps(
            tuple((int(row[0]), *row[1:]) for row in placed),  # type: ignore[misc]
            tuple((int(row[0]), int(row[1]), *row[2:]) for row in scaled),  # type: ignore[misc]
        )
        fitted = joint_fit(measured)
    most = int(max(row[1] for row in placed))
    if name in APPLICATIONS:
        most = min(most, APPLICATIONS[name].most_local)
    return replace(fitted, most_local=most, iterations=iterations, measured=measured)


def _iterations(file: Path) -> dict[str, tuple[tuple[int, float], ...]]:
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for name, row in _rows(file, {"batch_size": 1, "iterations": 0}, "application"):
        found[name][int(row[0])] = row[1]
    return {name: tuple(sorted(rows.items())) for name, rows in found.items()}


def _rows(file: Path, columns: dict[str, int], named: str | None = None) -> list[tuple[str, list[float]]]:
    # (name, or "" without such a column; positive numbers); columns marked 1 hold integers. All bad rows are raised together
    note_source(file)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(csv.DictReader(stream))
            header = list(lines[0]) if lines else []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", file=str(file)) from None
    wanted = [*([named] if named else []), *columns]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise InputError("missing columns" if lines else "no rows", file=str(file), legal=", ".join(wanted))
    rows: list[tuple[str, list[float]]] = []
    problems: list[RowProblem] = []
    seen: dict[tuple[object, ...], int] = {}
    for number, line in enumerate(lines, 2):
        values = []
        for column, whole in columns.items():
            value = _number(line[column])
            if value is None or (whole and value != int(value)) or (column != "sync_time" and value == 0):
                legal = f"{'an integer' if whole else 'a number'} {'>= 0' if column == 'sync_time' else '> 0'}"
                problems.append(RowProblem(number, column, line[column], legal))
                break
            values.append(value)
        else:
            key = (line[named] if named else "", *values[: len(columns) - (1 if named else 2)])
            if key in seen:
                problems.append(
                    RowProblem(number, wanted[0], line[wanted[0]], f"one row each, see row {seen[key]}", "twice")
                )
            elif "sync_time" in columns and values[-1] >= values[-2]:
                problems.append(RowProblem(number, "sync_time", line["sync_time"], "less than step_time"))
            else:
                seen[key] = number
                rows.append((line[named] if named else "", values))
    if problems:
        raise RowErrors(str(file), problems, len(lines))
    return rows


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= LARGEST else None
