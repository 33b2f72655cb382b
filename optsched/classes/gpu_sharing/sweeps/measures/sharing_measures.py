"""``sharing``: JCT and its certified bound, shares of jobs that share GPUs, their cost, use of GPUs; ``sharing-optimum``.

G GPUs, g_j gang, e_j best seconds alone, all from time 0 to the makespan. The bound is that of the class ``gpu-sharing``, to
which exclusive schedules also belong, since a job may be alone on its GPUs; elastic runs have a class of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.errors import SimulationError
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, SharedSchedule
from optsched.simulation.metrics import first_starts
from optsched.speeds.duration import seconds_alone
from optsched.sweeps.measurement import Measure, certified_mean, measurement

MEASURES = {
    "mean_jct": Measure("mean JCT", "s", "mean of completion less arrival"),
    "small_jct": Measure("JCT of small jobs", "s", "mean of completion less arrival of the half with least g_j e_j"),
    "large_jct": Measure("JCT of large jobs", "s", "mean of completion less arrival of the other half"),
    "p50_jct": Measure("median JCT", "s", "median of completion less arrival"),
    "p95_jct": Measure("p95 JCT", "s", "95th percentile of completion less arrival"),
    "jct_ratio": Measure(
        "mean JCT / bound",
        "factor",
        "mean JCT over the certified lower bound for jobs that share GPUs (elastic: for elastic ones)",
        at_most=True,
    ),
    "queueing": Measure("queueing", "s", "mean of first start less arrival"),
    "shared": Measure("jobs that shared", "share", "share of the jobs that were on a GPU with another one"),
    "accumulated": Measure(
        "smaller sub-batch", "share", "share of the jobs that ran in more sub-steps than they would alone"
    ),
    "stretch": Measure(
        "held / alone", "factor", "mean over jobs of the time on GPUs over e_j: what sharing or restarts cost"
    ),
    "makespan": Measure("makespan", "s", "last completion"),
    "utilization": Measure("GPUs held", "share", "GPU-seconds in which a GPU is held by some job, over G x makespan"),
    "effective": Measure("effective", "factor", "sum of g_j e_j over G x makespan: above 1 where sharing gains work"),
    "preemptions": Measure("preemptions", "factor", "stops before the end, a job"),
}


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MEASURES`, and ``kept`` (nan: no theorem applies).

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    run = refereed(proven.instance, specify(policy))
    instance, schedule = proven.instance, run.schedule
    names = ("mean_jct", "p50_jct", "p95_jct", "makespan")
    found = {name: float(run.metrics[name]) for name in names}
    alone = seconds_alone(instance)
    total = instance.cluster.gpus * found["makespan"]
    held, jct = held_gpus(schedule), schedule.completion - instance.arrival
    by_size = np.argsort(instance.gpus * alone, kind="stable")
    small, large = by_size[: (instance.n + 1) // 2], by_size[instance.n // 2 :]
    on_gpus = np.bincount(schedule.job, weights=schedule.end - schedule.start, minlength=instance.n)
    return found | {
        "jct_ratio": found["mean_jct"]
        / certified_mean(proven, "elastic" if run.schedule_class == "elastic" else "gpu-sharing"),
        "small_jct": float(jct[small].mean()),
        "large_jct": float(jct[large].mean()),
        "queueing": float((first_starts(schedule) - instance.arrival).mean()),
        "shared": float(held.shared.mean()),
        "accumulated": accumulated(schedule),
        "stretch": float((on_gpus / alone).mean()),
        "utilization": held.seconds / total,
        "effective": float(instance.gpus @ alone) / total,
        "preemptions": run.preemptions / instance.n,
        "kept": np.nan,
    }


SMALL_MEASURES = {
    "ratio": Measure("sum of flow times / optimum", "factor", "over the best schedule that starts jobs at events"),
    "optimum_ratio": Measure(
        "optimum / bound",
        "factor",
        "that optimum over the certified lower bound",
        of_workload=True,
        at_most=True,
    ),
    "shared": MEASURES["shared"],
}


def measure_small(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `SMALL_MEASURES` on an instance small enough for an exact search.

    The optimum is that of schedules that start jobs at arrivals and completions. On one GPU no better start times are known;
    on several GPUs it is the best known value (`sharing_search`).

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    run = refereed(proven.instance, specify(policy))
    best = _optimum(proven.instance)
    value = float(run.metrics["total_flow_time"])
    return {
        "ratio": value / best,
        "optimum_ratio": best / (certified_mean(proven, "gpu-sharing") * proven.instance.n),
        "shared": float(held_gpus(run.schedule).shared.mean()),
        "kept": np.nan,
    }


@lru_cache(maxsize=2)  # the policies of an instance follow each other
def _optimum(instance: Instance) -> float:
    found = sharing_optimum(instance)
    if not found.complete:
        raise SimulationError(f"{instance.name}: the search for the optimum was not complete")
    return float(found.value) - float(instance.arrival.sum())


class Held(NamedTuple):
    """Use of GPUs: ``seconds`` of GPUs with at least one job; ``shared`` bool[n]: jobs that shared a GPU."""

    seconds: float
    shared: np.ndarray


def held_gpus(schedule: Schedule) -> Held:
    """Compute the use of GPUs by a sweep over the intervals of every GPU, in O(K log K) for K (segment, GPU) pairs.

    Parameters
    ----------
    schedule
        The schedule.
    """
    segment = np.repeat(np.arange(len(schedule)), np.diff(schedule.gpu_offset))
    start, end = schedule.start[segment], schedule.end[segment]
    shared = np.zeros(schedule.instance.n, dtype=bool)
    seconds, here, until, last = 0.0, (-1, -1), -np.inf, -1
    for k in np.lexsort((start, schedule.gpu_index, schedule.gpu_node)).tolist():
        gpu, job = (int(schedule.gpu_node[k]), int(schedule.gpu_index[k])), int(schedule.job[segment[k]])
        if gpu != here:
            here, until, last = gpu, -np.inf, -1
        if start[k] < until and end[k] > start[k]:
            shared[job] = shared[last] = True
        seconds += max(0.0, end[k] - max(start[k], until))
        if end[k] > until:
            until, last = end[k], job
    return Held(float(seconds), shared)


def accumulated(schedule: Schedule) -> float:
    """Return the share of jobs that run in more sub-steps than the whole batch needs; 0 if no job shares GPUs.

    Parameters
    ----------
    schedule
        The schedule.
    """
    if not isinstance(schedule, SharedSchedule):
        return 0.0
    chains = map(schedule.instance.sub_batches, schedule.job.tolist())
    whole = np.array([chain[0].steps if chain else 1 for chain in chains])
    return float((schedule.steps > whole).mean())


SHARING = measurement("sharing", measure, MEASURES, "mean_jct")
SHARING_OPTIMUM = measurement("sharing-optimum", measure_small, SMALL_MEASURES, "ratio")
