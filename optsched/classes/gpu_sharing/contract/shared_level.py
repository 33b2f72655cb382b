"""The level of policies that share GPUs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

from optsched.contract.instances import random_sharing_instance
from optsched.contract.levels import LEVELS, Level, Rows
from optsched.problem.instance import Instance
from optsched.simulation.run import Run


def shared_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Return every segment of a run, sorted, with times to 1e-8 s because slow-downs are no powers of two.

    Parameters
    ----------
    run
        The run.
    time
        Function that is applied to every time before it is rounded.
    """
    return sorted((s.job, round(time(s.start), 8), round(time(s.end), 8), s.gpus) for s in run.schedule.segments())


@cache
def _sharing() -> tuple[Instance, ...]:
    return tuple(map(random_sharing_instance, range(3)))


SHARING = Level(
    "jobs that may share GPUs",
    _sharing,
    cache(lambda: (random_sharing_instance(5),)),
    cache(lambda: (random_sharing_instance(5),)),
    random_sharing_instance,
    (4,),
    shared_rows,
    lambda job: dataclasses.replace(job, gpus=1, duration=0.5),
    preferred=True,
)
LEVELS.register("gpu-sharing", SHARING)
