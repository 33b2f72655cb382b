"""``requests``: latency, time to first token, and the ratio to a certified interval of the optimum.

Loads of at most `MOST` requests in rounds of length 1 are solved by prices and a narrow search over states of the cache,
which takes the same steps on every machine; others have the best certificate of theorems.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.classes.kv_cache.solvers.methods.cache_states import RequestSearch
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.solve_state import SolveState
from optsched.sweeps.measurement import Measure, certified_mean, measurement, over

MOST = 100  # requests of a load that is solved
MEASURES = {
    "mean_jct": Measure("mean latency", "s", "mean of completion less arrival, in rounds"),
    "p95_jct": Measure("p95 latency", "s", "95th percentile of completion less arrival, in rounds"),
    "mean_ttft": Measure("mean time to first token", "s", "mean of the first token less arrival, in rounds"),
    "jct_ratio": Measure(
        "latency / bound", "factor", "mean latency over the certified lower bound on it", at_most=True
    ),
    "over_best": Measure(
        "latency / best schedule", "factor", "mean latency over that of the best schedule that is known"
    ),
    "thrown_out": Measure("thrown out", "factor", "requests that were thrown out, a request"),
}


@lru_cache(maxsize=4)
def interval(instance: Instance) -> tuple[float, float]:
    """Return the bound on the mean latency and the value of the best schedule, in rounds; nan for large loads.

    Parameters
    ----------
    instance
        Requests.
    """
    if instance.n > MOST or requests_of(instance).affine:
        return math.nan, math.nan
    state = SolveState(instance.relative, get_objective("total_flow_time"), schedule_class="kv-cache")
    RequestSearch(state, prove=False).run()
    return float(state.bound or 0) / instance.n, float(state.value or math.nan) / instance.n


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MEASURES`, and ``kept``, which is nan: theorems are judged by `optsched.evaluate`.

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    run = refereed(proven.instance, specify(policy))
    found = {name: float(run.metrics[name]) for name in ("mean_jct", "p95_jct", "mean_ttft")}
    least, best = interval(proven.instance)
    return found | {
        "jct_ratio": over(found["mean_jct"], float(np.fmax(least, certified_mean(proven, "kv-cache")))),
        "over_best": found["mean_jct"] / best,
        "thrown_out": run.preemptions / proven.instance.n,
        "kept": math.nan,
    }


REQUESTS = measurement("requests", measure, MEASURES, "mean_jct")
