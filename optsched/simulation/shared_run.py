"""`SharedRun`: what a policy made of an instance whose jobs may share GPUs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from optsched.errors import InputError, SimulationError
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule, node_first
from optsched.simulation.metrics import sharing_metrics
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run, RunLog, check_conservation, logged
from optsched.simulation.state import Company, Site
from optsched.speeds.gpu_sharing import SharingRates, sharing_rates
from optsched.speeds.interference_sources import unmeasured_note


@dataclass(frozen=True, eq=False, repr=False)
class SharedRun(Run):
    """A `Run` in which two jobs may be on a GPU; its schedule is a `SharedSchedule`."""

    @property
    def schedule_class(self) -> str:
        """``gpu-sharing``."""
        return "gpu-sharing"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.sharing_metrics`."""
        return sharing_metrics(cast(SharedSchedule, self.schedule))


def rates_of(instance: Instance, name: str) -> SharingRates:
    """What sharing costs the jobs of an instance; a warning says, once, which jobs nobody measured.

    `InputError` where the instance does not say what sharing costs; ``name``: the policy that asks.
    """
    if instance.interference is None:
        legal = "Instance(interference=...), or --interference XI|TABLE"
        raise InputError(f"{name} shares GPUs, and nothing says what that costs", field="interference", legal=legal)
    note = unmeasured_note(instance)
    if note:
        warnings.warn(note, UserWarning, stacklevel=5)
    return sharing_rates(instance)


def shared_result(
    run: RunLog,
    site: Site,
    instance: Instance,
    rates: SharingRates,
    name: str,
    knowledge: Knowledge,
    seconds: float,
    **told: Any,
) -> SharedRun:
    """The run of a run that has ended, after its conservation checks; ``told``: its ``predicted`` and ``notes``."""
    gpus = cast(Company, site.company).neighbours.gpus
    if gpus["jobs"].any() or (gpus["one"] >= 0).any() or (gpus["other"] >= 0).any():
        raise SimulationError("GPUs are still held after the last event")
    schedule = _schedule(run, instance, rates, name)
    check_conservation(run, schedule)
    events, stops = int(run.world[0].events), int(run.world[0].stops)
    return SharedRun(schedule, name, knowledge, stops > 0, events, stops, seconds, **told)


def _schedule(run: RunLog, instance: Instance, rates: SharingRates, name: str) -> SharedSchedule:
    log, offset, parts = logged(run, by_start=True)
    job, gpu = np.ascontiguousarray(log["job"]), run.parts["pool"][parts]
    first = node_first(instance)
    node = np.searchsorted(first, gpu, side="right") - 1
    start, end, work = (np.ascontiguousarray(log[field]) for field in ("start", "end", "work"))
    steps = rates.steps[job, log["option"]]
    return SharedSchedule(instance, job, start, end, work, offset, node, gpu - first[node], name, steps)
