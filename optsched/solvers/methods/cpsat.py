"""The method ``cp-sat``: OR-Tools' constraint solver in a worker process (extra ``optsched[cpsat]``).

A second opinion that shares no formulation with the others: an interval a job, one cumulative resource of G GPUs, on an
integer grid of times and costs. Strong on rigid gangs and long horizons up to about 15 jobs. ortools and highspy 1.15.x
cannot be imported in one process, in either order, since one finds functions of the other's HiGHS; 1.14.0 and 1.16.0 can.
This is why there is a worker.
"""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optsched.errors import NotInstalledError, OptschedError
from optsched.models.latest_starts import starts_of
from optsched.solvers.linear_program import Size
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.solve_state import SolveState

NAME = "cp-sat"
LARGEST = 2**50  # largest sum of costs: the solver works in 64-bit integers
_WORKER = Path(__file__).with_name("cpsat_worker.py")


def _applies(state: SolveState) -> str | None:
    if reason := state.misfit(maximum=True):
        return reason
    if state.grid is None or state.step is None:
        return "the times or the values have no useful common unit"
    if state.value is not None and state.value / state.step >= LARGEST:
        return "values are too large for 64-bit arithmetic"
    return None


def _problem(state: SolveState) -> dict[str, Any]:
    """Return the instance in integers: times in slots, costs in steps."""
    grid, step = there(state.grid), there(state.step)
    horizon = int(grid.release.max() + grid.duration.sum())
    slope, kink, base = [], [], []  # base: only for a maximum; in a sum it is a constant
    for cost in state.costs:
        # slope (origin + unit C - kink) / step: the slope in steps a slot, the kink in steps
        slope.append(_integer(cost.slope * grid.unit / step))
        shift = cost.slope * (cost.kink - Fraction(grid.origin)) / step
        kink.append(_integer(shift))
        base.append(_integer(cost.base / step) if state.goal.maximum else 0)
    return {
        "release": grid.release.tolist(),
        "duration": grid.duration.tolist(),
        "gpus": state.instance.gpus.tolist(),
        "capacity": state.instance.cluster.gpus,
        "slope": slope,
        "kink": kink,
        "base": base,
        "maximum": state.goal.maximum,
        "horizon": horizon,
        "largest": max((b + max(0, s * horizon - k) for s, k, b in zip(slope, kink, base, strict=True)), default=0),
        "hint": grid.slots(starts_of(there(state.schedule))).tolist(),
        "time_limit": None if state.left == math.inf else state.left,
    }


def _integer(value: Fraction) -> int:
    if value.denominator != 1:
        raise AssertionError("values are multiples of the step")
    return int(value)


def _run(state: SolveState) -> MethodReport:
    if importlib.util.find_spec("ortools") is None:
        raise NotInstalledError(
            "CP-SAT is not installed",
            field="model",
            value=NAME,
            legal="pip install 'optsched[cpsat]', or another model",
        )
    problem = _problem(state)
    worker = subprocess.Popen(
        [sys.executable, str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if worker.stdin is None or worker.stdout is None or worker.stderr is None:
        raise AssertionError("the pipes were asked for")
    try:
        json.dump(problem, worker.stdin)
        worker.stdin.close()
        last: dict[str, Any] = {}
        for line in worker.stdout:
            last = json.loads(line)
            if last["starts"] is not None:
                state.offer_starts(there(state.grid).seconds(np.array(last["starts"], dtype=np.int64)), NAME)
            if last["bound"] is not None:
                bound = state.values_from + math.ceil(last["bound"] - 1e-6) * there(state.step)
                state.raise_bound(bound, "solver")
        failed = worker.stderr.read()
        if not last.get("done"):
            raise OptschedError(f"the CP-SAT worker ended without an answer: {failed.strip()[-300:]}")
    finally:
        worker.kill()
        worker.wait()
        for pipe in (worker.stdout, worker.stderr):
            pipe.close()
    note = "" if last["status"] == "OPTIMAL" else "the time limit came first"
    return MethodReport("CP-SAT", Size(columns=state.instance.n, rows=1), note=note)


add_method(NAME, _applies, _run)
