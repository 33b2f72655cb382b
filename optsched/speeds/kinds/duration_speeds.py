"""Jobs with a duration run at rate 1 on any GPUs; jobs whose profile is not given cannot run."""

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
    """Speeds of jobs with a duration: the defaults of `JobSpeeds`."""

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        """Return the seconds of a unit of work of many jobs, f64[S].

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[S].
        nodes
            Function that returns the nodes of the k-th one.
        """
        return np.ones(jobs.size)  # also on GPUs that are no placement, which another rule of the referee reports


@SPEED_MODELS.register("duration")
class Durations(SpeedModel):
    """The model of jobs with a duration; an instance gives it no data."""

    formulas = DurationSpeeds
    name, rank = "duration", 0

    def applies_to(self, table: pl.DataFrame) -> Bools:
        """Return which jobs have their speed from the model, bool[n].

        Parameters
        ----------
        table
            Table of the jobs.
        """
        return table["duration"].is_not_null().to_numpy()


class MissingSpeeds(JobSpeeds):
    """Speeds that are not given: every method raises an `InputError` that names the first job."""

    sees_nodes = communicates = True  # as stage profiles would

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        job, profiles = self.instance.ids[int(self.jobs[0])], self.instance.profiles
        raise InputError(
            f"job {job!r} has no duration, and nothing gives the speed of its profile",
            field="profile",
            value=self.names[0],
            legal=f"profiles of the instance: {', '.join(sorted(profiles)[:10]) or 'none is given'}; a throughput table and "
            "GPU types (--cluster 8x8:V100); or durations",
        )

    paces = solo = pace = paces_on = rates_by_type = compute_time = compiled = compiled_compute_time = _refuse


@SPEED_MODELS.register("missing")
class Missing(SpeedModel):
    """The model of the jobs that no other model has: such an instance can be converted, but not run."""

    formulas = MissingSpeeds
    name, rank = "missing", LAST + 1

    def applies_to(self, table: pl.DataFrame) -> Bools:
        """Return which jobs have their speed from the model, bool[n].

        Parameters
        ----------
        table
            Table of the jobs.
        """
        return np.ones(table.height, dtype=np.bool_)
