"""Jobs with a duration run at rate 1, wherever they are. Those whose profile nobody gives run once they have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.job_speeds import JobSpeeds, Nodes
from optsched.problem.speed_model import LAST, SPEED_MODELS, SpeedModel


class DurationSpeeds(JobSpeeds):
    """What `JobSpeeds` are unless they say otherwise."""

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        return np.ones(jobs.size)  # also on GPUs that are no placement: a rule of its own says so


@SPEED_MODELS.register("duration")
class Durations(SpeedModel):
    """Nothing is given: the jobs say it."""

    formulas = DurationSpeeds
    name, rank = "duration", 0

    def applies_to(self, table: pl.DataFrame) -> Bools:
        return table["duration"].is_not_null().to_numpy()


class MissingSpeeds(JobSpeeds):
    """Whatever they are asked, they raise an `InputError` that names the first job."""

    sees_nodes = communicates = True  # as stage profiles would

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        job, known = self.instance.ids[int(self.jobs[0])], self.instance.profiles
        raise InputError(
            f"job {job!r} has no duration, and nothing gives the speed of its profile",
            field="profile",
            value=self.names[0],
            legal=f"profiles of the instance: {', '.join(sorted(known)[:10]) or 'none is given'}; a throughput table and "
            "GPU types (--cluster 8x8:V100); or durations",
        )

    paces = solo = pace = paces_on = rates_by_type = compute_time = compiled = compiled_compute_time = _refuse


@SPEED_MODELS.register("missing")
class Missing(SpeedModel):
    """Has the jobs that no other model has: such an instance can be converted, but not run."""

    formulas = MissingSpeeds
    name, rank = "missing", LAST + 1

    def applies_to(self, table: pl.DataFrame) -> Bools:
        return np.ones(table.height, dtype=np.bool_)
