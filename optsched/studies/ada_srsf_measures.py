"""What the study of Ada-SRSF measures: JCT, utilisation of the GPUs, how gangs lie and transfers meet, and the bound.

A policy is run by the event simulator, unless its text begins with the name of an accounting of the simulator with ticks
(`optsched.studies.published_ticks`): ``published_simulator ada-srsf+lwf:kappa=1``. Those runs make no schedule, so that no
referee sees them; with the published accounting no bound applies either.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from optsched.guarantees.proven import Proven, refereed
from optsched.policies.specification import specify
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.iterations import TaskRun
from optsched.speeds.duration import solo_times
from optsched.studies.measures import Measure, Measurement, certified_mean, over
from optsched.studies.published_ticks import ACCOUNTINGS, TickedRun, ticked

FAITHFUL = ACCOUNTINGS[0]
ESTIMATE = ",seconds_per_byte="  # of lwf, as the event simulator takes it

MEASURES = {
    "mean_jct": Measure("mean JCT", "s", "mean of completion less arrival", short=True),
    "long_jct": Measure("long jobs", "s", "mean JCT of jobs that alone take longer than the median", short=True),
    "short_jct": Measure("short jobs", "s", "mean JCT of the others", short=True),
    "p50_jct": Measure("median JCT", "s", "median of completion less arrival", short=True),
    "p95_jct": Measure("p95 JCT", "s", "95th percentile of completion less arrival", short=True),
    "utilization": Measure("GPU utilisation", "share", "GPU-seconds of forwards and backwards over GPUs x makespan"),
    "jct_ratio": Measure("mean JCT / bound", "factor", "mean JCT over the certified lower bound on it", at_most=True),
    "spanning": Measure("on several nodes", "share", "share of the gangs of several GPUs that lie on several nodes"),
    "contended": Measure(
        "contended", "share", "share of the all-reduces over the network that began beside another one"
    ),
}


def measure(policy: str, proven: Proven) -> dict[str, float]:
    """Run a policy and measure: the names of `MEASURES`, and ``kept`` (no theorem applies: nan).

    The referee accepts the schedule task by task, the bound is proved again, or an error is raised.
    """
    accounting, _, rest = policy.partition(" ")
    if accounting in ACCOUNTINGS:
        return _of_ticks(accounting, rest, proven)
    run = cast(TaskRun, refereed(proven.instance, specify(policy)))
    found = _jct(proven.instance, run.schedule.completion)
    return found | {
        "utilization": float(run.metrics["utilization"]),
        "jct_ratio": found["mean_jct"] / certified_mean(proven),
        "spanning": over(run.spanning, _gangs(proven.instance)),
        "contended": over(run.contended, run.transfers),
        "kept": math.nan,
    }


def _of_ticks(accounting: str, policy: str, proven: Proven) -> dict[str, float]:
    instance = proven.instance
    run = run_ticks(instance, accounting, policy)
    found = _jct(instance, run.completion)
    transfers = float(instance.iterations[run.spanning & (instance.message > 0)].sum())
    return found | {
        "utilization": run.utilization,
        "jct_ratio": found["mean_jct"] / certified_mean(proven) if accounting == FAITHFUL else math.nan,
        "spanning": over(float(run.spanning.sum()), _gangs(instance)),
        "contended": over(run.contended, transfers),
        "kept": math.nan,
    }


def _jct(instance: Instance, completion: Floats) -> dict[str, float]:
    jct, alone = completion - instance.arrival, solo_times(instance).seconds
    long = alone > np.median(alone)
    means = {"mean_jct": jct, "long_jct": jct[long], "short_jct": jct[~long]}
    found = {name: over(float(each.sum()), each.size) for name, each in means.items()}
    return found | dict(zip(("p50_jct", "p95_jct"), np.percentile(jct, (50, 95)).tolist(), strict=True))


def run_ticks(instance: Instance, accounting: str, policy: str) -> TickedRun:
    """The simulator with ticks on ``RULE+PLACEMENT`` in the words of the event simulator."""
    rule, _, placement = policy.partition("+")
    placement, _, given = placement.partition(ESTIMATE)
    assert instance.contention is not None
    cost = float(given) if given else instance.contention.seconds_per_byte
    return ticked(instance, rule, placement, accounting, load_comm_cost=cost)


def _gangs(instance: Instance) -> int:
    return int((instance.gpus > 1).sum())


ITERATIONS = Measurement(MEASURES, measure, "mean_jct")
