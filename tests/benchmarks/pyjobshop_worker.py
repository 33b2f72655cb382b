"""Solve one problem by PyJobShop, and print the interval; a process that imports nothing of optsched.

It reads the problem that `optsched.solvers.methods.cpsat_worker` reads, as JSON from stdin, and prints its last line:
``value``, ``bound`` and ``done``. The interpreter needs ``pip install pyjobshop``. Ctrl-C ends the search with the interval.

**Model** A task a job with one mode; GPUs are one renewable resource (a machine if there is one GPU). Linear costs are
weighted flow times, the others weighted tardiness, which are objectives of PyJobShop.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def build(problem: dict[str, Any]) -> tuple[Any, int]:
    """Return PyJobShop's model, and the constant that its objective leaves out.

    Parameters
    ----------
    problem
        The problem, with costs ``max(0, slope C - kink)``.

    Raises
    ------
    ValueError
        If a due date is no integer.
    """
    from pyjobshop import Model

    model = Model()
    resource = model.add_machine() if problem["capacity"] == 1 else model.add_renewable(problem["capacity"])
    columns = [problem[name] for name in ("release", "duration", "gpus", "slope", "kink")]
    jobs = list(zip(*columns, strict=True))
    linear = all(slope * (release + duration) >= kink for release, duration, _, slope, kink in jobs)
    constant = 0
    for release, duration, gpus, slope, kink in jobs:
        if slope and kink % slope:
            raise ValueError("a due date is no integer")
        due = kink // slope if slope else problem["horizon"]
        job = model.add_job(weight=slope, release_date=release, due_date=None if linear else due)
        task = model.add_task(job, earliest_start=release)
        model.add_mode(task, resource, duration, None if problem["capacity"] == 1 else gpus)
        constant += slope * release - kink if linear else 0
    if linear:
        model.set_objective(weight_total_flow_time=1)
    else:
        model.set_objective(weight_total_tardiness=1)
    return model, constant


def main() -> None:
    """Solve the problem on stdin with one thread."""
    model, constant = build(json.load(sys.stdin))
    result = model.solve(display=False, num_workers=1)
    found = math.isfinite(result.objective)
    value = round(result.objective) + constant if found else None
    bound = math.ceil(result.lower_bound - 1e-6) + constant if found else None
    print(json.dumps({"value": value, "bound": bound, "done": True}), flush=True)


if __name__ == "__main__":
    main()
