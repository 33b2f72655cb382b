"""Jobs whose profile nobody gives: such an instance can be converted, and runs once it has its profiles."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.problem.arrays import Bools
from optsched.problem.job_speeds import JobSpeeds
from optsched.problem.speed_model import LAST, SPEED_MODELS, SpeedModel


class MissingSpeeds(JobSpeeds):
    """Whatever they are asked, they raise an `InputError` that names the first job."""

    sees_nodes = communicates = True  # as stage profiles would

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        job, known = self.instance.job(int(self.jobs[0])), self.instance.profiles
        raise InputError(
            f"job {job.id!r} has no duration, and nothing gives the speed of its profile",
            field="profile",
            value=job.profile,
            legal=f"profiles of the instance: {', '.join(sorted(known)[:10]) or 'none is given'}; a throughput table and "
            "GPU types (--cluster 8x8:V100); or durations",
        )

    paces = solo = pace = paces_on = rates_by_type = compute_time = compiled = compiled_compute_time = _refuse


@SPEED_MODELS.register("missing")
class Missing(SpeedModel):
    """Has the jobs that no other model has."""

    formulas = MissingSpeeds
    name, rank = "missing", LAST + 1

    def applies_to(self, table: pl.DataFrame) -> Bools:
        return np.ones(table.height, dtype=np.bool_)
