"""Jobs with a duration run at rate 1, wherever they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.job_speeds import JobSpeeds, Nodes
from optsched.problem.speed_model import SPEED_MODELS, SpeedModel


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
