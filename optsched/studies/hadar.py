"""Study ``hadar``: Hadar against Gavel, Tiresias and YARN-CS on 60 GPUs of three types, and HadarE on its mixes.

**Workloads.** 480 jobs on 15 nodes of four GPUs (20 V100, 20 P100, 20 K80). Where OPTSCHED_DATA leads to the Philly file
they come from its busiest hours (`optsched.studies.philly_hours`), else from the recipe ``hadar-60``; models by GPU-hours
(`optsched.io.traces.gpu_hour_classes`). That the paper used such a cluster and trace is generally attributed to it, not
confirmed; the mapping in detail is this project's own, so that figures of the paper cannot be expected to come out: they
stand beside what is measured. HadarE's mixes: recipe ``hadar-mix``, with the same reservation.

**Policies.** Rounds of 360 s everywhere but in YARN-CS and FIFO, which preempt nobody; 10 s for every resumption. Speeds are
those of Gavel's table: on one node, or spread. Hadar knows the work that is left, as Gavel's finish-time fairness and
makespan policies do; Gavel's max-min policies, Tiresias, YARN-CS and FIFO do not.

**Published.** Mean JCT 2.5 x better than Gavel's and 3 x than YARN-CS', queueing delay -13 %, finish-time fairness +1.5 %
(IPDPS 2024, abstract); total time 1.20 x (arXiv 2503.10918); HadarE: utilisation 1.45 x, total time -50 % on AWS, -80 % on a
lab cluster, the baseline of these three not named. The policy of Gavel is not named either: all four here are compared.

**Measured.** TTD, total time duration = last completion - first arrival. Bounds are those of the class of the run (gang, or
forking).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optsched.guarantees.judge import judgements
from optsched.guarantees.optimum_bounds import OptimumBounds, refereed
from optsched.io.traces.recipes.hadar import AWS, CLUSTER, LAB
from optsched.parameters import parameters_of
from optsched.policies.hadar import AIMS, Hadar
from optsched.policies.specification import specify
from optsched.simulation.metrics import cluster_utilization
from optsched.simulation.run import Run
from optsched.simulation.schedule_tables import first_starts
from optsched.studies.experiment import Experiment, Workload
from optsched.studies.measures import Measure, Measurement, kept
from optsched.studies.philly_hours import PhillyHours, philly_file
from optsched.studies.published import Published
from optsched.studies.study import study

METHOD = (
    "each seed is one workload, shared by all rows of a column; intervals: 95 % of Student's t over the seeds; rows are "
    "compared on the same workloads, by the geometric mean of their ratios of mean JCT (in the mixes: of total time) and "
    "its interval, not corrected for the number of comparisons; every schedule was accepted by the referee, every bound was "
    "proved again; published ratios stand beside the same ratio here, of workloads that are not those of the paper; "
    "clairvoyant are Hadar, HadarE, and Gavel's fairness and makespan policies, the others do not know the work that is left"
)

GAVEL = {
    "gavel max-min": "gavel:policy=max_min_fairness_perf,restart=10",
    "gavel fairness": "gavel:policy=finish_time_fairness_perf,restart=10",
    "gavel makespan": "gavel:policy=min_total_duration_perf,restart=10",
    "gavel max-min, types alike": "gavel:policy=max_min_fairness,restart=10",
}
POLICIES = {
    "hadar": "hadar",
    "hadar, window": "hadar:queue=window",
    "hadar, makespan": "hadar:utility=makespan",
    "hadar, fairness": "hadar:utility=fairness",
    "hadar, commit": "hadar-commit:restart=10",
    **GAVEL,
    "tiresias": "tiresias:round=360,restart=10+one-type",
    "yarn-cs": "yarn-cs",
    "fifo": "fifo",
}
UTILITY, ROUND = parameters_of(Hadar)["utility"], parameters_of(Hadar)["round"]
UTILITY_ROWS = {f"utility {u}": "hadar" if u == UTILITY else f"hadar:utility={u}" for u in AIMS}
ROUND_ROWS = {f"round {s:g} s": "hadar" if s == ROUND else f"hadar:round={s:g}" for s in (90.0, 180.0, 360.0, 720.0)}
SHOWN = (
    "total_time",
    "total_time_ratio",
    "mean_jct",
    "jct_ratio",
    "first_wait",
    "mean_queueing",
    "occupied",
    "productive",
    "mean_ftf",
    "max_ftf",
    "preemptions",
    "mixed",
)
OF_GAVEL = (
    Published("total time", "total_time", "hadar", tuple(GAVEL), 1.20),
    Published("mean JCT", "mean_jct", "hadar", tuple(GAVEL), 2.5),
    Published(
        "queueing delay, -13 %", "first_wait", "hadar", tuple(GAVEL), 1 / 0.87, note="read as until the first start"
    ),
    Published(
        "queueing delay, -13 %", "mean_queueing", "hadar", tuple(GAVEL), 1 / 0.87, note="read as all time waiting"
    ),
    Published(
        "finish-time fairness, +1.5 %", "mean_ftf", "hadar", tuple(GAVEL), 1.015, note="its definition is not known"
    ),
)
OF_YARN = (Published("mean JCT", "mean_jct", "hadar", ("yarn-cs",), 3.0),)

MIX_POLICIES = {
    "hadar-e": "hadar-e",
    **{f"hadar-e, rounds of {s:g} s": f"hadar-e:round={s:g}" for s in (90.0, 180.0, 720.0)},
    "hadar-e, by work": "hadar-e:rule=work",
    "hadar-e, 2 copies": "hadar-e:copies=2",
    "hadar-e, 1 copy": "hadar-e:copies=1",
    "hadar": "hadar",
}
BASELINES = ("hadar", "gavel max-min", "gavel makespan")
UNNAMED = "baseline not named"
FORKING = ("forking itself", "most")  # the rest is what the baseline loses


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
        "total time / fork bound", "factor", "TTD over the certified bound for schedules that may fork"
    ),
    "total_time_ratio": MEASURES["total_time_ratio"],
    "most": Measure(
        "bound without / with forking",
        "factor",
        "the most that forking can shorten the total time of the best schedule without it: the ratio of the two LPs",
        of_workload=True,
    ),
}


def measure(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """Run a policy and measure: the names of `MEASURES`, and ``kept``; nan where not every job finished.

    The referee accepts the schedule, the bound is proved again, or an error is raised.
    """
    run = _run(policy, proven)
    if run.unfinished:
        return dict.fromkeys((*MEASURES, "kept"), math.nan)
    metrics, instance = run.metrics, run.instance
    jct_bound = _less_arrivals(proven, run)
    found = {name: float(metrics[name]) for name in ("mean_jct", "p99_jct", "mean_queueing", "mean_ftf", "max_ftf")}
    return found | {
        "total_time": _total_time(run),
        "total_time_ratio": _total_time(run) / _least_total_time(proven, run.schedule_class),
        "jct_ratio": found["mean_jct"] * instance.n / jct_bound if jct_bound > 0 else math.nan,
        "first_wait": float((first_starts(run.schedule) - instance.arrival).mean()),
        **dict(zip(("occupied", "productive"), cluster_utilization(run.schedule), strict=True)),
        "preemptions": len(run.schedule) / instance.n - 1,
        "mixed": _mixed(run),
        "kept": _kept(policy, run, proven),
    }


def measure_mix(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """The same for `MIX_MEASURES` on a mix."""
    run = _run(policy, proven)
    if run.unfinished:
        return dict.fromkeys((*MIX_MEASURES, "kept"), math.nan)
    total, fork, no_fork = _total_time(run), _least_total_time(proven, "forking"), _least_total_time(proven, "gang")
    return {
        "total_time": total,
        "mean_jct": float(run.metrics["mean_jct"]),
        **dict(zip(("occupied", "productive"), cluster_utilization(run.schedule), strict=True)),
        "fork_ratio": total / fork,
        "total_time_ratio": total / (fork if run.schedule_class == "forking" else no_fork),
        "most": no_fork / fork,
        "kept": _kept(policy, run, proven),
    }


TYPED_GANGS = Measurement(MEASURES, measure, "mean_jct")
MIXES = Measurement(MIX_MEASURES, measure_mix, "total_time")


def _run(policy: str, proven: OptimumBounds) -> Run:
    return refereed(proven.instance, specify(policy))


def _kept(policy: str, run: Run, proven: OptimumBounds) -> float:
    return kept(judgements(specify(policy), run, proven))


def _total_time(run: Run) -> float:
    return float(run.schedule.end.max()) - float(run.instance.arrival.min())


def _least_total_time(proven: OptimumBounds, schedule_class: str) -> float:
    # the makespan counts from 0
    return float(proven.lower("makespan", schedule_class) or 0) - float(proven.instance.arrival.min())


def _less_arrivals(proven: OptimumBounds, run: Run) -> float:
    lower = proven.lower("total_completion_time", run.schedule_class)
    return float(lower or 0) - float(run.instance.arrival.sum())


def _mixed(run: Run) -> float:
    schedule = run.schedule
    kind = run.instance.cluster.node_type[schedule.gpu_node]
    begin = schedule.gpu_offset[:-1]
    several = np.maximum.reduceat(kind, begin) != np.minimum.reduceat(kind, begin)
    held = schedule.gangs * (schedule.end - schedule.start)
    return float(held[several].sum() / held.sum())


@dataclass(frozen=True)
class HadarSize:
    """How much is run."""

    jobs: int
    cluster: str
    classes: tuple[str, ...]
    mixes: tuple[int, ...]
    ablations: bool


DEFAULT = HadarSize(480, CLUSTER, ("philly", "even"), (1, 3, 4, 5, 8, 10, 12), True)
SMALL = HadarSize(24, "1x4:V100+1x4:P100+1x4:K80", ("philly",), (1, 5), False)


def declare(small: bool = False) -> tuple[Experiment, ...]:
    """The tables of the study. The small size never reads the trace, so that its numbers are the same everywhere."""
    size = SMALL if small else DEFAULT
    return (*_trace(size, real=not small and philly_file() is not None), *_mixes(size))


def _trace(size: HadarSize, real: bool) -> Iterable[Experiment]:
    source = "busiest hours of the Philly trace" if real else "a generated stand-in for the Philly trace"
    columns = {_label(classes, real): _workload(size, classes, real) for classes in size.classes}
    gpus = f"{size.jobs} jobs, {size.cluster}; {source}"
    yield Experiment(
        "policies",
        f"How does Hadar compare with Gavel, Tiresias and YARN-CS? {gpus}",
        "how often the classes S, M, L, XL are",
        columns,
        POLICIES,
        "hadar",
        SHOWN,
        TYPED_GANGS,
        OF_GAVEL + OF_YARN,
    )
    if size.ablations:
        shown = ("total_time", "mean_jct", "mean_queueing", "mean_ftf", "max_ftf", "preemptions")
        first = dict([next(iter(columns.items()))])  # short rounds of many long jobs take long
        for name, question, where, rows, reference in (
            ("utilities", "What does the utility of Hadar change?", columns, UTILITY_ROWS, f"utility {UTILITY}"),
            ("rounds", "How long should a round of Hadar be?", first, ROUND_ROWS, f"round {ROUND:g} s"),
        ):
            yield Experiment(
                name, f"{question} {gpus}", "how often the classes are", where, rows, reference, shown, TYPED_GANGS
            )


def _workload(size: HadarSize, classes: str, real: bool) -> Workload:
    if real:
        return PhillyHours.of(jobs=size.jobs, cluster=size.cluster, classes=classes)
    return Workload.of("hadar-60", jobs=size.jobs, cluster=size.cluster, classes=classes, hours=8.0 * size.jobs / 480)


def _label(classes: str, real: bool) -> str:
    return {"philly": "as in the trace" if real else "as often as in the trace", "even": "a quarter each"}[classes]


def _mixes(size: HadarSize) -> Iterable[Experiment]:
    for name, cluster, order, ratio, less in (
        ("lab", LAB, "rtx 3090/titan rtx/t4/rtx a2000/t400", 5.0, "-80 %"),
        ("aws", AWS, "v100/t4/k80", 2.0, "-50 %"),
    ):
        # Gavel serves the types in a given order; as in its own cluster, the fastest first.
        gavel = {row: f"{GAVEL[row]},type_order={order}" for row in ("gavel max-min", "gavel makespan")}
        yield Experiment(
            f"mixes-{name}",
            f"What does forking gain on few jobs, and how much could it? {cluster}",
            "jobs",
            {f"M-{jobs}": Workload.of("hadar-mix", jobs=jobs, cluster=cluster) for jobs in size.mixes},
            MIX_POLICIES | gavel,
            "hadar-e",
            ("total_time", "fork_ratio", "most", "occupied", "productive", "mean_jct"),
            MIXES,
            (
                Published(f"total time, {less}", "total_time", "hadar-e", BASELINES, ratio, most=FORKING, note=UNNAMED),
                Published("utilisation", "occupied", "hadar-e", BASELINES, 1.45, gain=True, note=UNNAMED),
            ),
        )


HADAR = study(
    "hadar",
    "Hadar and HadarE against Gavel, Tiresias and YARN-CS on GPUs of several types, with the certified bounds",
    declare,
    METHOD,
    seeds=3,
)
