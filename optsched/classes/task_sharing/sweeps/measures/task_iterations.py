"""``iterations``: jobs whose iterations run task by task, compared with the certified bound."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.simulate import specify
from optsched.speeds.duration import solo_times
from optsched.sweeps.measurement import Measure, certified_mean, measurement, over

MEASURES = {
    "mean_jct": Measure("mean JCT", "s", "mean of completion less arrival"),
    "long_jct": Measure("long jobs", "s", "mean JCT of jobs that alone take longer than the median"),
    "short_jct": Measure("short jobs", "s", "mean JCT of the others"),
    "p50_jct": Measure("median JCT", "s", "median of completion less arrival"),
    "p95_jct": Measure("p95 JCT", "s", "95th percentile of completion less arrival"),
    "utilization": Measure("GPU utilisation", "share", "GPU-seconds of forwards and backwards over GPUs x makespan"),
    "jct_ratio": Measure("mean JCT / bound", "factor", "mean JCT over the certified lower bound on it", at_most=True),
    "spanning": Measure("on several nodes", "share", "share of the gangs of several GPUs that lie on several nodes"),
    "contended": Measure(
        "contended", "share", "share of the all-reduces over the network that began beside another one"
    ),
}


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MEASURES`, and ``kept``, which is nan: no theorem applies.

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    instance = proven.instance
    run = cast(TaskRun, refereed(instance, specify(policy)))
    jct, alone = run.schedule.completion - instance.arrival, solo_times(instance).seconds
    long = alone > np.median(alone)
    means = {"mean_jct": jct, "long_jct": jct[long], "short_jct": jct[~long]}
    found = {name: over(float(each.sum()), each.size) for name, each in means.items()}
    return found | {
        "p50_jct": float(np.percentile(jct, 50)),
        "p95_jct": float(np.percentile(jct, 95)),
        "utilization": float(run.metrics["utilization"]),
        "jct_ratio": found["mean_jct"] / certified_mean(proven),
        "spanning": over(run.spanning, int((instance.gpus > 1).sum())),
        "contended": over(run.contended, run.transfers),
        "kept": math.nan,
    }


ITERATIONS = measurement("iterations", measure, MEASURES, "mean_jct")
