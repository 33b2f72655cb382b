"""``placed-gangs``: completion times compared with bound and theorem, placements of gangs, errors of predictions."""

from __future__ import annotations

import math

import numpy as np

from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judgements
from optsched.policies.simulate import specify
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from optsched.speeds.stage_graph import pipeline_factor
from optsched.sweeps.measurement import Measure, kept, measurement, over

OBJECTIVE = "total_completion_time"


MEASURES = {
    "total_completion_time": Measure("sum C", "s", "sum of completion times, from time 0"),
    "ratio": Measure("sum C / bound", "factor", "sum of completion times over the certified lower bound", at_most=True),
    "mean_jct": Measure("mean JCT", "s", "mean of completion less arrival"),
    "jct_ratio": Measure("mean JCT / bound", "factor", "mean JCT over the same bound less the arrivals", at_most=True),
    "p99_jct": Measure("p99 JCT", "s", "99th percentile of completion less arrival"),
    "utilization": Measure("utilisation", "share", "GPU-seconds of running jobs over GPUs x makespan"),
    "slowdown": Measure(
        "alpha / alpha_min",
        "factor",
        "mean over gangs of several GPUs of iteration time over alpha_min (a lower bound for gangs larger than a node)",
        never_below_one=True,
    ),
    "consolidated": Measure(
        "on one node", "share", "share of the gangs of several GPUs whose GPUs are all on one node"
    ),
    "communication": Measure(
        "communication", "share", "share of the GPU-seconds in which jobs wait for data, not compute"
    ),
    "guarantee": Measure(
        "guarantee",
        "factor",
        "the theorem's factor on sum C for this run, with the measured lam and rho",
        never_below_one=True,
    ),
    "lam_o": Measure("lam_o", "factor", "largest predicted / true length"),
    "lam_u": Measure("lam_u", "factor", "largest true / predicted length"),
    "error_p50": Measure(
        "error p50", "factor", "median of the larger of predicted / true and true / predicted", never_below_one=True
    ),
    "error_p95": Measure("error p95", "factor", "95th percentile of the same", never_below_one=True),
    "error_p99": Measure("error p99", "factor", "99th percentile of the same", never_below_one=True),
    "error_worst": Measure("error max", "factor", "largest of the same", never_below_one=True),
}


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Return the numbers of `MEASURES`, and ``kept``.

    Parameters
    ----------
    policy
        Policy to run.
    proven
        Instance and its proven bounds.
    """
    specification = specify(policy)
    run = refereed(proven.instance, specification)
    metrics, value = run.metrics, run.value(OBJECTIVE)
    bound = float(proven.lower(OBJECTIVE) or 0)
    arrivals = float(run.instance.arrival.sum())
    found = {name: float(metrics[name]) for name in ("mean_jct", "p99_jct", "utilization")}
    found |= {
        "total_completion_time": value,
        "ratio": over(value, bound),
        "jct_ratio": over(value - arrivals, bound - arrivals),
    }
    judged = [each for each in judgements(specification, run, proven) if each.objective == OBJECTIVE]
    found["guarantee"] = min((each.ratio for each in judged), default=math.nan)
    found["kept"] = kept(judged)
    return found | _placed(run) | _predicted(run)


def _placed(run: Run) -> dict[str, float]:
    """Return measures of the placements of gangs; a job of these studies runs once, without a stop."""
    names = ("slowdown", "consolidated", "communication")
    instance, schedule = run.instance, run.schedule
    if run.preemptive or run.unfinished or instance.jobs_at("profiles").size < instance.n:
        return dict.fromkeys(names, math.nan)
    job, held = schedule.job, schedule.end - schedule.start
    alone = instance.work[job] * paces(instance)[0][job]
    gangs = instance.gpus[job]
    several = gangs > 1
    first = schedule.gpu_offset[:-1]
    spread = np.maximum.reduceat(schedule.gpu_node, first) != np.minimum.reduceat(schedule.gpu_node, first)
    # seconds an iteration takes without any communication
    seconds = {
        name: pipeline_factor(each.depth, each.micro_batches) * max(stage.compute for stage in each.stages)
        for name, each in instance.profiles.items()
    }
    compute = np.array([seconds[name] for name in instance.table["profile"].to_list()])
    computing = float(gangs @ (instance.work[job] * compute[job]))
    return {
        "slowdown": float((held / alone)[several].mean()) if several.any() else math.nan,
        "consolidated": float(1 - spread[several].mean()) if several.any() else math.nan,
        "communication": 1 - computing / float(gangs @ held),
    }


def _predicted(run: Run) -> dict[str, float]:
    names = ("lam_o", "lam_u", "error_p50", "error_p95", "error_p99", "error_worst")
    if run.predicted is None:
        return dict.fromkeys(names, math.nan)
    over, under = run.predicted / run.instance.work, run.instance.work / run.predicted
    errors = np.quantile(np.maximum(over, under), [0.5, 0.95, 0.99, 1.0])
    return dict(zip(names, [max(1.0, over.max()), max(1.0, under.max()), *errors.tolist()], strict=True))


PLACED_GANGS = measurement("placed-gangs", measure, MEASURES, "mean_jct")
