"""Execution of one cell of a sweep: run, referee, bound, numbers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from optsched.errors import OptschedError
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.evaluate import measured_run
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.simulate import specify
from optsched.problem.objectives import objective_of
from optsched.sweeps.grid import Cell
from optsched.sweeps.measurement import measurement_of


@dataclass(frozen=True)
class CellResult:
    """Numbers of a cell by name, or its ``error`` in one line, and the instance (JSON) if it could be made.

    ``cpu_seconds`` of the process include reading, bounds and compilation.
    """

    key: str
    numbers: dict[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    error: str | None = None
    instance: dict[str, Any] | None = None


@lru_cache(maxsize=2)
def _proven(key: str) -> OptimumBounds:
    # the policies of an instance follow each other: its bounds are proved once a process
    return OptimumBounds(Cell.of_key(key).instance())


def run_cell(key: str) -> CellResult:
    """Run a cell; any error is stored in the result and stops no other cell.

    The numbers are the metrics of `optsched.simulation.metrics` (``gpu_hours`` as ``gpu_hours_busy``, ...), and for
    every objective its value, ``_bound`` (certified, of the class of the run, or the optimum) and ``_ratio``; or those
    of the cell's measurement. Unknown numbers are absent.

    Parameters
    ----------
    key
        Key of the cell (`Cell.key`).
    """
    began, cell, proven = time.process_time(), Cell.of_key(key), None
    try:
        proven = _proven(cell.on)
        numbers = measurement_of(cell.measure).take(cell.policy, proven) if cell.measure else _numbers(cell, proven)
        known = {name: float(x) for name, x in numbers.items() if x is not None and math.isfinite(x)}
        return CellResult(key, known, time.process_time() - began)
    except Exception as error:
        said = " ".join(str(error).split())
        text = said if isinstance(error, OptschedError) else f"{type(error).__name__}: {said}"
        instance = None if proven is None else proven.instance.to_json()
        return CellResult(key, {}, time.process_time() - began, text, instance)


def _numbers(cell: Cell, proven: OptimumBounds) -> dict[str, Any]:
    run = refereed(proven.instance, specify(cell.policy))
    numbers = _flat(run.metrics)
    for name in cell.objectives or (objective_of(proven.instance, None).name,):
        found = measured_run(run, proven, name)
        bound = None if found.bound is None else found.bound.value
        numbers |= {name: found.value, f"{name}_bound": bound, f"{name}_ratio": found.ratio}
    return numbers


def _flat(metrics: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}_")
        elif value is None or isinstance(value, int | float):
            found[f"{prefix}{name}"] = value
    return found
