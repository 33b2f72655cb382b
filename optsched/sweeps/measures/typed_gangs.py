"""``typed-gangs`` and ``fork-mixes``: runs on GPUs of several types, with the bounds of their class (gang or forking).

TTD, total time duration = last completion - first arrival.
"""

from __future__ import annotations

import math

import numpy as np

from optsched.classes import CLASSES
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judgements
from optsched.policies.simulate import specify
from optsched.simulation.metrics import cluster_utilization, first_starts
from optsched.simulation.run import Run
from optsched.sweeps.measurement import Measure, kept, measurement

MEASURES = {
    "total_time": Measure("total time", "s", "TTD: last completion less first arrival"),
    "total_time_ratio": Measure(
        "total time / bound", "factor", "TTD over the certified lower bound on it", at_most=True
    ),
    "mean_jct": Measure("mean JCT", "s", "mean of completion less arrival"),
    "jct_ratio": Measure("mean JCT / bound", "factor", "mean JCT over the certified lower bound on it", at_most=True),
    "p99_jct": Measure("p99 JCT", "s", "99th percentile of completion less arrival"),
    "first_wait": Measure("queueing", "s", "mean of first start less arrival"),
    "mean_queueing": Measure("waiting", "s", "mean time arrived and not running, also between two runs"),
    "occupied": Measure("CRU, occupied", "share", "GPU-seconds held over GPUs x TTD"),
    "productive": Measure("CRU, productive", "share", "GPU-seconds held, less restarts and overheads, over GPUs x TTD"),
    "mean_ftf": Measure(
        "finish-time fairness",
        "factor",
        "mean of JCT / (time alone x max(1, n g / G)), n = mean number of active jobs in the job's stay; less is fairer",
    ),
    "max_ftf": Measure("unfairest job", "factor", "the largest of the same"),
    "preemptions": Measure("preemptions", "factor", "stops before the end, or moves, a job"),
    "mixed": Measure("on several types", "share", "share of the GPU-seconds held by gangs on several GPU types"),
}
MIX_MEASURES = {
    **{name: MEASURES[name] for name in ("total_time", "mean_jct", "occupied", "productive")},
    "fork_ratio": Measure(
        "total time / fork bound", "factor", "TTD over the certified bound for schedules that may fork", at_most=True
    ),
    "total_time_ratio": MEASURES["total_time_ratio"],
    "most": Measure(
        "bound without / with forking",
        "factor",
        "the most that forking can shorten the total time of the best schedule without it: the ratio of the two LPs",
        of_workload=True,
        never_below_one=True,
    ),
}


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MEASURES`, and ``kept``; nan if a job did not finish.

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    run = refereed(proven.instance, specify(policy))
    if run.unfinished:
        return dict.fromkeys((*MEASURES, "kept"), math.nan)
    metrics, instance = run.metrics, run.instance
    jct_bound = float(proven.lower("total_completion_time", run.schedule_class) or 0) - float(instance.arrival.sum())
    found = {name: float(metrics[name]) for name in ("mean_jct", "p99_jct", "mean_queueing", "mean_ftf", "max_ftf")}
    schedule = run.schedule
    kind = run.instance.cluster.node_type[schedule.gpu_node]
    begin = schedule.gpu_offset[:-1]
    several = np.maximum.reduceat(kind, begin) != np.minimum.reduceat(kind, begin)
    held = schedule.gangs * (schedule.end - schedule.start)
    return found | {
        "total_time": _total_time(run),
        "total_time_ratio": _total_time(run) / _least_total_time(proven, run.schedule_class),
        "jct_ratio": found["mean_jct"] * instance.n / jct_bound if jct_bound > 0 else math.nan,
        "first_wait": float((first_starts(run.schedule) - instance.arrival).mean()),
        **dict(zip(("occupied", "productive"), cluster_utilization(run.schedule), strict=True)),
        "preemptions": len(run.schedule) / instance.n - 1,
        "mixed": float(held[several].sum() / held.sum()),
        "kept": _kept(policy, run, proven),
    }


def measure_mix(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MIX_MEASURES` on a mix; nan if a job did not finish.

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    run = refereed(proven.instance, specify(policy))
    if run.unfinished:
        return dict.fromkeys((*MIX_MEASURES, "kept"), math.nan)
    total, fork, no_fork = _total_time(run), _least_total_time(proven, "forking"), _least_total_time(proven, "gang")
    return {
        "total_time": total,
        "mean_jct": float(run.metrics["mean_jct"]),
        **dict(zip(("occupied", "productive"), cluster_utilization(run.schedule), strict=True)),
        "fork_ratio": total / fork,
        "total_time_ratio": total / (fork if CLASSES.get(run.schedule_class).copies else no_fork),
        "most": no_fork / fork,
        "kept": _kept(policy, run, proven),
    }


def _kept(policy: str, run: Run, proven: OptimumBounds) -> float:
    return kept(judgements(specify(policy), run, proven))


def _total_time(run: Run) -> float:
    return float(run.schedule.end.max()) - float(run.instance.arrival.min())


def _least_total_time(proven: OptimumBounds, schedule_class: str) -> float:
    # the makespan counts from 0
    return float(proven.lower("makespan", schedule_class) or 0) - float(proven.instance.arrival.min())


TYPED_GANGS = measurement("typed-gangs", measure, MEASURES, "mean_jct")
FORK_MIXES = measurement("fork-mixes", measure_mix, MIX_MEASURES, "total_time")
