"""`SharedRun`: a run in which two jobs may be on a GPU, and its metrics."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.simulation.metrics import HOUR, mean_of, metrics, offered_hours, presence, without_overhead
from optsched.simulation.run import RUNS, Run, RunKind
from optsched.speeds.duration import segment_paces, segment_sub_steps
from optsched.speeds.interference_sources import unmeasured_note
from optsched.speeds.partner_rates import SharingRates, sharing_rates


@dataclass(frozen=True, eq=False, repr=False)
class SharedRun(Run):
    """A `Run` in which two jobs may be on a GPU; its schedule is a `SharedSchedule`."""

    @property
    def schedule_class(self) -> str:
        """``gpu-sharing``."""
        return "gpu-sharing"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `sharing_metrics`."""
        return sharing_metrics(cast(SharedSchedule, self.schedule))


def sharing_metrics(schedule: SharedSchedule) -> dict[str, Any]:
    """Compute the metrics of a run in which two jobs may be on a GPU: those of `metrics`, and three more.

    Parameters
    ----------
    schedule
        Schedule of the run.

    Returns
    -------
    dict
        ``utilization`` is GPU-seconds with a job / (G x T). A GPU counts once however many jobs are on it, as in
        the busy GPU-hours. These include the cost of partners and restarts, so there is no overhead.
        ``shared_jobs`` is the share of jobs that ever had a partner. ``mean_slowdown`` is the mean of stay /
        seconds alone with the same GPUs and sub-steps. ``effective_utilization`` is the sum of gang x seconds
        alone with the whole batch / (G x T). `metrics` calls this utilization where jobs run alone. It exceeds 1
        where sharing does more than G GPUs could with one job at a time.

    Notes
    -----
    Complexity: O(n log n + K log K) for K (segment, GPU) pairs.
    """
    found = metrics(schedule)
    schedule = schedule.relative
    instance = schedule.instance
    held, partnered = presence(schedule)
    hours = offered_hours(schedule)
    pace = segment_paces(instance, schedule.job, schedule.gpu_offset, schedule.gpu_node)
    placed = schedule.job, schedule.steps, schedule.gpu_offset, schedule.gpu_node
    alone = schedule.work * pace
    stretched = alone * segment_sub_steps(instance, *placed).stretch
    slowdown = np.divide(schedule.end - schedule.start, stretched, out=np.ones_like(alone), where=stretched > 0)
    return {
        **found,
        **without_overhead(schedule, held / HOUR, found["gpu_hours"]["waiting"]),
        "effective_utilization": float(np.dot(schedule.gangs, alone)) / HOUR / hours if hours > 0 else 0.0,
        "shared_jobs": np.unique(schedule.job[partnered]).size / instance.n if instance.n else 0.0,
        "mean_slowdown": mean_of(np.maximum(slowdown, 1.0)),  # below 1 only by the rounding of a large clock
    }


def rates_of(instance: Instance, name: str) -> SharingRates:
    """Return the rates at which the jobs of an instance share GPUs.

    A warning lists the jobs whose sharing has not been measured.

    Parameters
    ----------
    instance
        The instance.
    name
        Name of the policy, for the error.

    Raises
    ------
    InputError
        If the instance has no interference model.
    """
    if instance.interference is None:
        legal = "Instance(interference=...), or --interference XI|TABLE"
        raise InputError(f"{name} shares GPUs, and nothing says what that costs", field="interference", legal=legal)
    note = unmeasured_note(instance)
    if note:
        warnings.warn(note, UserWarning, stacklevel=4)
    return sharing_rates(instance)


RUNS.register("gpu-sharing", RunKind(run=SharedRun, rates=rates_of))
