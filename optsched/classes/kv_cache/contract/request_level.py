"""The level of policies for requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

from optsched.contract.levels import LEVELS, Level, Rows
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.simulation.run import Run


def _rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    return sorted((s.job, 0, time(s.start), time(s.end), s.work) for s in run.schedule.segments())


@cache
def _requests(seed: int) -> Instance:
    return generate("kv-paper", seed, online=True)


LEVELS.register(
    "kv-cache",
    Level(
        "requests",
        lambda: tuple(map(_requests, (1, 2, 3))),
        lambda: (_requests(1),),
        lambda: (),
        _requests,
        (4, 5),
        _rows,
        lambda job: dataclasses.replace(job, iterations=3, profile="prompt-2"),
    ),
)
