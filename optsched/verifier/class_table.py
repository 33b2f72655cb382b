"""The table of the classes of schedules: the rules of each, and the theorems that hold for it.

A theorem for one machine holds for every class whose schedules the machine contains; the first part of a kind says which
machine it is.
"""

from __future__ import annotations

from typing import NamedTuple

from .alone_proof import alone
from .certified_case import Case, Theorem
from .elastic_case import ElasticCase
from .fair_share_proof import fair_alone, fair_share
from .first_come_proof import first_come
from .forking_case import ForkingCase
from .gang_case import GangCase, NonpreemptiveGangCase
from .gpu_sharing_case import GpuSharingCase
from .kv_cache_case import KvCacheCase
from .kv_cache_proof import kv_priced
from .lp_dual_proof import lp_dual
from .mean_busy_time_proof import busy_time, busy_time_of_resources, busy_time_or_weights, mean_busy_time
from .priced_deadlines_proof import priced_deadlines
from .priced_gangs_proof import priced_gangs
from .priced_log_proof import priced_log
from .priced_makespan_proof import priced_makespan
from .priced_time_proof import priced_time
from .srpt_proof import srpt
from .task_sharing_case import TaskSharingCase
from .task_volume_proof import task_volume
from .volume_proof import volume

Theorems = dict[str, dict[str, Theorem]]  # by objective and kind

UNIFORM = tuple(f"total_{weighted}{name}_time" for weighted in ("", "weighted_") for name in ("completion", "flow"))
LATE, GAIN, FAIR = "total_weighted_tardiness", "total_utility", "max_fair_slowdown"
SUMS = (*UNIFORM, LATE)
MAKESPAN, LARGEST_FLOW = "makespan", "max_flow_time"
OBJECTIVES = (*SUMS, MAKESPAN, LARGEST_FLOW, FAIR, GAIN)


class ScheduleRules(NamedTuple):
    """A class of schedules: the case that has its rules, and its theorems by objective and kind."""

    case: type[Case]
    theorems: Theorems


def kinds(objectives: str | tuple[str, ...], **theorems: Theorem) -> Theorems:
    """Return theorems for objectives; an underscore in the name of a kind stands for a hyphen.

    Parameters
    ----------
    objectives
        Name of an objective, or several.
    **theorems
        Theorem by kind.
    """
    named = {kind.replace("_", "-"): theorem for kind, theorem in theorems.items()}
    return dict.fromkeys((objectives,) if isinstance(objectives, str) else objectives, named)


def joined(*parts: Theorems) -> Theorems:
    """Return all theorems of several tables.

    Parameters
    ----------
    *parts
        Tables.
    """
    return {
        objective: {kind: theorem for part in parts for kind, theorem in part.get(objective, {}).items()}
        for objective in OBJECTIVES
    }


def alone_as(kind: str) -> Theorems:
    """Return the theorem that nobody waits, for every objective under one kind.

    Parameters
    ----------
    kind
        Kind of the certificates.
    """
    every: Theorems = {objective: {kind: alone} for objective in OBJECTIVES}
    every[FAIR] = {kind: fair_alone}
    return every


def on_machine(name: str, busy: Theorem | None = None) -> Theorems:
    """Return the theorems for one machine.

    Parameters
    ----------
    name
        First part of their kinds.
    busy
        Theorem of the kind ``name-busy-time``, if any.
    """
    table: Theorems = {objective: {f"{name}-srpt": srpt} for objective in UNIFORM}
    table |= {LATE: {f"{name}-due-dates": srpt}, LARGEST_FLOW: {f"{name}-first-come": first_come}}
    table |= {FAIR: {f"{name}-fair-share": fair_share}}
    return table if busy is None else joined(table, {objective: {f"{name}-busy-time": busy} for objective in SUMS})


def at_prices(name: str, busy: Theorem = busy_time) -> Theorems:
    """Return the theorems for machines by prices of GPU types, and for prices over time.

    Parameters
    ----------
    name
        First part of the kinds for machines.
    busy
        Theorem of the kind ``name-busy-time``.
    """
    over_time = joined(kinds((*SUMS, GAIN), priced_time=priced_time), kinds(FAIR, priced_deadlines=priced_deadlines))
    return joined(on_machine(name, busy), {MAKESPAN: {f"{name}-makespan": priced_makespan}}, over_time)


RIGID = joined(
    kinds(SUMS, release_plus_duration=alone),
    kinds((MAKESPAN, LARGEST_FLOW), critical_job=alone),
    kinds(FAIR, fair_alone=fair_alone),
    kinds(GAIN, utility_alone=alone),
)
GANGS = joined(
    RIGID,
    kinds(UNIFORM, srpt=srpt, mean_busy_time=mean_busy_time),
    kinds(LATE, srpt_due_dates=srpt),
    kinds(SUMS, split_busy_time=busy_time, lp_dual=lp_dual, priced_gangs=priced_gangs, priced_log=priced_log),
    kinds(MAKESPAN, volume=volume),
    kinds(LARGEST_FLOW, first_come=first_come),
    kinds(FAIR, fair_share=fair_share),
    at_prices("typed"),
)
TASKS = joined(
    alone_as("task-path"),
    on_machine("task"),
    on_machine("link"),
    kinds(
        SUMS,
        task_busy_time=busy_time_of_resources,
        link_busy_time=busy_time_of_resources,
        split_task_busy_time=busy_time_of_resources,
    ),
    kinds(MAKESPAN, task_volume=task_volume),
    kinds((*SUMS, GAIN), priced_time=priced_time),
)
ELASTIC = joined(
    alone_as("elastic-alone"), at_prices("elastic", busy_time_or_weights), kinds(MAKESPAN, elastic_volume=volume)
)
REQUESTS = joined(
    kinds((*SUMS, MAKESPAN, LARGEST_FLOW, GAIN), kv_alone=alone),
    on_machine("kv", busy_time),
    kinds(UNIFORM, kv_mean_busy_time=mean_busy_time, kv_priced=kv_priced, kv_priced_strong=kv_priced),
    kinds(MAKESPAN, kv_volume=volume),
)
CLASSES = {
    "gang": ScheduleRules(GangCase, GANGS),
    "gang-nonpreemptive": ScheduleRules(NonpreemptiveGangCase, GANGS),
    "forking": ScheduleRules(ForkingCase, joined(alone_as("forking-alone"), at_prices("typed"))),
    "gpu-sharing": ScheduleRules(GpuSharingCase, joined(RIGID, at_prices("shared"))),
    "elastic": ScheduleRules(ElasticCase, ELASTIC),
    "task-sharing": ScheduleRules(TaskSharingCase, TASKS),
    "kv-cache": ScheduleRules(KvCacheCase, REQUESTS),
}
ON_ANY_MACHINE: dict[str, Theorem] = {  # by the names that optsched.bounds has for them
    "alone": alone,
    "volume": volume,
    "first-come": first_come,
    "fair-share": fair_share,
    "makespan": priced_makespan,
    "srpt": srpt,
    "due-dates": srpt,
    "mean-busy-time": mean_busy_time,
    "busy-time": busy_time,
}
