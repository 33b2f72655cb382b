"""The figures of a study: its ``[[figure]]`` tables, drawn with `optsched.plot`.

kind = "lines"            # or bars: means with their intervals; jct-cdf, over-time, error-histogram: of the first seed
file = "load.png"
experiments = ["policies-64"]
rows = ["a-srpt"]         # of these; default: all
columns = ["load 0.9"]    # of these; default: all, of the kinds that show one seed: the last
x = "load"                # lines: a parameter of the columns; "column": their labels, where they are numbers; or a table:
                          # label of a row = number, and then a line is a column; xunit: what the axis counts in
y = "mean_jct"            # lines, bars: a measure, or "change": that by which rows are compared, over the reference
title = "..."             # and xlabel, ylabel, logx, logy

The kinds that show single jobs run the policies once more on the first seed, here: a store holds numbers, no schedules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from optsched.errors import InputError
from optsched.plot import bars, error_histogram, jct_cdf, lines, over_time, save
from optsched.policies.simulate import simulate
from optsched.simulation.run import Run
from optsched.studies.experiment import RunOutcome, Workload

Spec = Mapping[str, Any]
SCALES = {"s": (1 / 3600, "h"), "share": (100.0, "%"), "factor": (1.0, "")}


def draw(specs: list[Spec], outcomes: tuple[RunOutcome, ...], folder: Path) -> list[Path]:
    """Draw every figure with an experiment that was run, and return the files.

    Parameters
    ----------
    specs
        ``[[figure]]`` tables of a study.
    outcomes
        Outcomes of its experiments.
    folder
        Folder of the files.
    """
    run, drawn = cache(lambda workload, seed, policy: simulate(workload.make(seed), policy)), list[Path]()
    for spec in specs:
        shown = [each for each in outcomes if each.experiment.name in spec["experiments"]]
        if not shown:
            continue
        kind = spec["kind"]
        if kind in OF_NUMBERS:
            figure = OF_NUMBERS[kind](spec, [row for each in shown for row in _rows(spec, each)], shown[0])
        elif kind in OF_RUNS:
            figure = OF_RUNS[kind](_runs(spec, shown[0], run), title=spec["title"])
        else:
            raise InputError("unknown", field="figure.kind", value=kind, legal=", ".join([*OF_NUMBERS, *OF_RUNS]))
        save(figure, folder / spec["file"])
        drawn.append(folder / spec["file"])
    return drawn


def _rows(spec: Spec, outcome: RunOutcome) -> list[dict[str, Any]]:
    """A row a cell: ``row``, ``column``, ``x``, ``value`` in the unit of `_label`, ``low``, ``high``."""
    e, x, found = outcome.experiment, spec.get("x"), []
    for column in spec.get("columns", e.columns):
        for row in spec.get("rows", e.rows):
            if row not in e.rows or column not in e.columns:
                continue
            place = _place(x, row, column, e.columns[column]) if x is not None else math.nan
            if place is not None:
                place /= spec.get("xunit", 1.0)
                found.append({"row": row, "column": column, "x": place, **_value(spec, outcome, row, column)})
    return found


def _place(x: Any, row: str, column: str, workload: Workload) -> float | None:
    if isinstance(x, Mapping):
        return x.get(row)
    value = column if x == "column" else dict(workload.parameters).get(x)
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _value(spec: Spec, outcome: RunOutcome, row: str, column: str) -> dict[str, float | None]:
    if spec["y"] == "change":
        change = outcome.changes[row, column]
        ends = (None, None, None) if change is None else (change.mean, change.low, change.high)
        return {
            name: None if end is None else 1 + end for name, end in zip(("value", "low", "high"), ends, strict=True)
        }
    found, (scale, _) = outcome.estimate(row, column, spec["y"]), _scale(spec, outcome)
    if found is None:
        return {"value": None, "low": None, "high": None}
    ends = (found.mean, found.low, found.high)
    return {n: None if v is None else v * scale for n, v in zip(("value", "low", "high"), ends, strict=True)}


def _scale(spec: Spec, outcome: RunOutcome) -> tuple[float, str]:
    unit = outcome.experiment.measurement.measures[spec["y"]].unit
    return (1.0, "s") if unit == "s" and outcome.experiment.short else SCALES[unit]


def _label(spec: Spec, outcome: RunOutcome) -> str:
    if "ylabel" in spec:
        return str(spec["ylabel"])
    if spec["y"] == "change":
        return f"{outcome.compared} / that of {outcome.experiment.reference}"
    unit = _scale(spec, outcome)[1]
    return outcome.experiment.measurement.measures[spec["y"]].head + (f" ({unit})" if unit else "")


def _lines(spec: Spec, rows: list[dict[str, Any]], outcome: RunOutcome) -> Figure:
    if len({row["x"] for row in rows}) == 1:  # in the small size
        return _bars(spec, rows, outcome)
    by, xlabel = "column" if isinstance(spec["x"], Mapping) else "row", spec.get("xlabel", outcome.experiment.across)
    more: dict[str, Any] = {key: spec[key] for key in ("logx", "logy") if key in spec}
    labels: dict[str, Any] = {"xlabel": xlabel, "ylabel": _label(spec, outcome), "title": spec["title"]}
    return lines(rows, x="x", y="value", by=by, low="low", high="high", **labels, **more)


def _bars(spec: Spec, rows: list[dict[str, Any]], outcome: RunOutcome) -> Figure:
    group = "column" if len({row["column"] for row in rows}) > 1 else None
    reference = 1.0 if spec["y"] == "change" else None
    labels: dict[str, Any] = {"ylabel": _label(spec, outcome), "title": spec["title"]}
    return bars(rows, value="value", by="row", group=group, low="low", high="high", reference=reference, **labels)


def _runs(spec: Spec, outcome: RunOutcome, run: Callable[[Workload, int, str], Run]) -> dict[str, Run]:
    e = outcome.experiment
    column = spec["columns"][-1] if spec.get("columns", [""])[-1] in e.columns else list(e.columns)[-1]
    return {row: run(e.columns[column], outcome.seeds[0], e.policy(row, column)) for row in spec.get("rows", e.rows)}


OF_NUMBERS: dict[str, Callable[[Spec, list[dict[str, Any]], RunOutcome], Figure]] = {"lines": _lines, "bars": _bars}
OF_RUNS: dict[str, Callable[..., Figure]] = {
    "jct-cdf": jct_cdf,
    "over-time": over_time,
    "error-histogram": error_histogram,
}
