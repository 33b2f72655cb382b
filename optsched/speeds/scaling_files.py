"""Files of measured scaling: ``APP/placements.csv``, ``APP/scalability.csv`` and ``iterations.csv``.

===================  ==================================================================================================
file                 columns
===================  ==================================================================================================
APP/placements.csv   placement (one digit for each node), local_bsz samples, step_time s, sync_time s
APP/scalability.csv  num_nodes, num_replicas, local_bsz, step_time, sync_time
iterations.csv       application, batch_size samples in all, iterations to completion; optional, no file of the artifact
===================  ==================================================================================================

Original: the folder ``simulator/traces`` of petuum/adaptdl, branch osdi21-artifact (Apache-2.0), with APP one of its six
applications; their files were read whole. A copy in one folder has ``traces__APP__placements.csv`` and
``traces__APP__scalability.csv``. Others of the same layout are read alike.
"""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from optsched.errors import InputError, RowErrors, RowProblem, naming
from optsched.problem.contention import LARGEST
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.built_in_scalings import APPLICATIONS
from optsched.speeds.scaling_fit import joint_fit

PLACEMENTS, SCALABILITY, ITERATIONS = "placements.csv", "scalability.csv", "iterations.csv"
LEGAL = f"a folder with APP/{PLACEMENTS} or traces__APP__{PLACEMENTS} files"


def read_scalings(folder: str | os.PathLike[str]) -> dict[str, Scaling]:
    """The measured scalings of a folder by application.

    The measurements decide; the formula beside them, for placements outside of what was measured, is the joint fit of
    `optsched.speeds.scaling_fit`. ``most_local`` is the largest local batch that was measured, for yolov3 the 8 to which the
    artifact limits it.

    Raises
    ------
    InputError
        No such folder, no application in it, or one of two files of an application.
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
    beside = file.with_name(file.name.removesuffix(PLACEMENTS) + SCALABILITY)
    scaled = [row for _, row in _rows(beside, {"num_nodes": 1, "num_replicas": 1, **numbers})]
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
