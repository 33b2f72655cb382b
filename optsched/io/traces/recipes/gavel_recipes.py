"""The workloads of Gavel's generator on the built-in throughput table, and what its measured interference is for."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import (
    Draw,
    Values,
    choice,
    cluster,
    durations,
    gangs,
    integer,
    non_negative,
    number,
    recipe,
    yes_or_no,
)
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.throughputs import Throughputs
from optsched.speeds.interference_sources import built_in_interference, measured_gpus
from optsched.speeds.throughput_sources import built_in, completed

CLUSTER = "36x1:V100+36x1:P100+36x1:K80"
REFERENCE = "V100"  # run times are for this type
DISTRIBUTED = ("ResNet-18", "ResNet-50", "Transformer", "LM")
HEAVY, HEAVY_SHARE = 5.0, 0.2
DEADLINES, DEADLINE_SHARES = np.array([1.2, 2.0, 10.0]), (0.33, 0.34, 0.33)


@recipe(
    "gavel-continuous",
    jobs=integer(100, "number of jobs"),
    cluster=cluster(CLUSTER),
    gap=number(1200, "mean seconds between arrivals"),
    duration=durations("gavel", "law of the seconds on V100s"),
    gpus=gangs("gavel"),
    weights=yes_or_no(False, "one job in five has weight 5"),
    deadlines=yes_or_no(False, "due dates after 1.2, 2 or 10 run times"),
)
def gavel_continuous(rng: np.random.Generator, values: Values) -> Draw:
    """Gavel's open workload: 26 job types, 1 to 8 GPUs, minutes to days on V100s, Poisson arrivals.

    As in stanford-futuredata/gavel (MIT), the distributions; its own random streams are not reproduced:

    * 1, 2, 4 or 8 GPUs with probability .70, .10, .15, .05 (law ``gavel``, cut to the largest GPU type of the cluster).
    * The job type is uniform over the 26 of the table, drawn again until it allows so many GPUs: only ResNet-18, ResNet-50,
      Transformer and LM are trained on several.
    * Run time 60 x 10^U(1.5, 3) s with probability 0.8, else 60 x 10^U(3, 4) s; steps = run time x the rate of the gang on
      V100s of one node, whole and at least one.
    * Poisson arrivals of mean gap ``gap``. With ``weights`` 5 with probability 0.2, else 1. With ``deadlines`` a due date
      1.2, 2 or 10 run times after the arrival with probability .33, .34, .33.

    Job types, gaps, run times and gang sizes come from streams of their own: another law of one leaves the others as they
    are. Gavel's cluster has 36 V100, 36 P100 and 36 K80 and its simulator ignores placement: one-GPU nodes. It measures
    jobs 4000 to 5000 of a longer run; here a workload is run from its first job to its last.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where = values["jobs"], values["cluster"]
    of_type, of_gap, of_duration, of_gang, of_more = rng.spawn(5)
    gpus = values["gpus"].at_most(largest_type(where)).draw(of_gang, jobs)
    # A job type for every gang: uniform over all for one GPU, over the distributed ones for several.
    every = built_in().job_types
    several = [name for name in every if is_distributed(name)]
    u = of_type.random(gpus.size)
    choices = (every if g == 1 else several for g in gpus.tolist())
    job_type = [names[int(x * len(names))] for names, x in zip(choices, u.tolist(), strict=True)]
    seconds = values["duration"].draw(of_duration, jobs)
    columns = typed_jobs(job_type, gpus, steps_on_v100(job_type, gpus, seconds))
    columns["arrival"] = np.cumsum(of_gap.standard_exponential(jobs) * values["gap"])
    if values["weights"]:
        columns["weight"] = np.where(of_more.random(jobs) < HEAVY_SHARE, HEAVY, 1.0)
    if values["deadlines"]:
        factor = of_more.choice(DEADLINES, size=jobs, p=DEADLINE_SHARES)
        columns["due"] = columns["arrival"] + factor * seconds
    return Draw(columns, where, throughputs=speeds_on(where, job_type, gpus))


def largest_type(where: Cluster) -> int:
    """Return the number of GPUs of the GPU type of which a cluster has most.

    Parameters
    ----------
    where
        The cluster.
    """
    return int(np.bincount(where.node_type, weights=where.node_gpus).max())


def is_distributed(job_type: str) -> bool:
    """Return whether a job of a type may have several GPUs.

    Parameters
    ----------
    job_type
        The job type.
    """
    return job_type.split(" (")[0] in DISTRIBUTED


def rate_on_v100(job_type: str, gpus: int) -> float:
    """Return iterations/s of a gang on V100s of one node, by the built-in table, or its rules if that was not measured.

    Parameters
    ----------
    job_type
        The job type.
    gpus
        Number of GPUs.
    """
    found = built_in().get(job_type, REFERENCE, gpus)
    if found is None:
        found = completed(built_in(), [(job_type, gpus)], [REFERENCE]).get(job_type, REFERENCE, gpus)
    assert found is not None
    return found.together


def steps_on_v100(job_type: list[str], gpus: Ints, seconds: Floats) -> Floats:
    """Return the whole iterations, at least one, that a gang on V100s of one node does in a time, f64[n].

    Parameters
    ----------
    job_type
        Job type of every job.
    gpus
        GPUs of every job, i64[n].
    seconds
        Seconds of every job, f64[n].
    """
    rates = np.array([rate_on_v100(name, g) for name, g in zip(job_type, gpus.tolist(), strict=True)])
    return np.asarray(np.maximum(1.0, np.floor(seconds * rates)))


def speeds_on(where: Cluster, job_type: list[str], gpus: Ints) -> Throughputs:
    """Return rows of the built-in table for gangs on the cluster's GPU types, with gaps filled by its rules.

    Parameters
    ----------
    where
        The cluster.
    job_type
        Job type of every job.
    gpus
        GPUs of every job, i64[n].
    """
    wanted = sorted(set(zip(job_type, gpus.tolist(), strict=True)))
    return completed(built_in(), wanted, where.gpu_types).restricted({name for name, _ in wanted})


def typed_jobs(job_type: list[str], gpus: Ints, iterations: Floats) -> dict[str, Any]:
    """Return columns of jobs of the table; their ``model`` is the job type without its batch size.

    Parameters
    ----------
    job_type
        Job type of every job.
    gpus
        GPUs of every job, i64[n].
    iterations
        Iterations of every job, f64[n].
    """
    model = [name.split(" (")[0] for name in job_type]
    return {"gpus": gpus, "iterations": iterations, "profile": job_type, "model": model}


HOUR = 3600.0


@recipe(
    "gavel-static",
    jobs=integer(100, "number of jobs"),
    cluster=cluster(CLUSTER),
    gap=non_negative(0, "mean seconds between arrivals; 0: all at 0"),
    shortest=number(HOUR, "least seconds on V100s"),
    longest=number(4 * HOUR, "most seconds on V100s"),
    values=integer(4, "number of different run times", most=10**6),
    gpus=gangs("weights:1=7,2=1,4=2", "law of the gangs of models that several GPUs train"),
)
def gavel_static(rng: np.random.Generator, values: Values) -> Draw:
    """Gavel's static workload: 26 job types, 1 to 4 GPUs, 1 to 4 hours on V100s, all released at the beginning.

    As in stanford-futuredata/gavel (MIT), the distributions; its own random streams are not reproduced:

    * The job type is uniform over the 26 of the table. Only ResNet-18, ResNet-50, Transformer and LM are trained on several
      GPUs: 1, 2 or 4 with probability .7, .1, .2; the others have one.
    * Run times are uniform over ``values`` evenly spaced ones from ``shortest`` to ``longest`` (1, 2, 3, 4 h); steps = run
      time x the rate of the gang on V100s of one node.
    * All arrive at 0, or with Poisson arrivals of mean gap ``gap``.

    Job types, gaps, run times and gang sizes come from streams of their own. The cluster is as in `gavel_continuous`.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where = int(values["jobs"]), values["cluster"]
    if values["longest"] < values["shortest"]:
        raise InputError("recipe gavel-static", field="longest", value=values["longest"], legal="at least shortest")
    of_type, of_gap, of_duration, of_gang = rng.spawn(4)
    every = built_in().job_types
    job_type = [every[k] for k in of_type.integers(len(every), size=jobs)]
    several = np.array([is_distributed(name) for name in job_type])
    gpus = np.where(several, values["gpus"].at_most(largest_type(where)).draw(of_gang, jobs), 1)
    possible = np.linspace(values["shortest"], values["longest"], values["values"])
    table = typed_jobs(job_type, gpus, steps_on_v100(job_type, gpus, of_duration.choice(possible, size=jobs)))
    table["arrival"] = np.cumsum(of_gap.standard_exponential(jobs) * values["gap"])
    return Draw(table, where, throughputs=speeds_on(where, job_type, gpus))


NODE = 4  # GPUs


@recipe(
    "sharing-gavel",
    jobs=integer(240, "number of jobs"),
    nodes=integer(16, "nodes of four GPUs", most=10**4),
    gpu=choice("P100", measured_gpus(), "the GPU type"),
    load=number(1.0, "offered load"),
    duration=durations("gavel", "law of the seconds on V100s"),
    gpus=gangs("gavel"),
    xi=slowdowns("measured", "measured"),
)
def sharing_gavel(rng: np.random.Generator, values: Values) -> Draw:
    """Gavel's job types on one GPU type, two to a GPU, with the interference that was measured on it.

    As in `gavel_continuous`: 1, 2, 4 or 8 GPUs, a job type that may have so many and runs on this GPU type, a run time on
    V100s that becomes steps. Nodes of four GPUs ``gpu``. Gaps between arrivals are exponential, scaled so that the instance
    offers the load

        load = sum_j g_j e_j / (G t),   t: the last arrival, e_j = seconds alone at best on this GPU type.

    **xi** ``measured``: co-located throughputs on one such GPU (`optsched.speeds.interference_sources`). Gangs were not
    measured: the ratio of one GPU stands for them. One number, or ``exp``, drawn for every ordered pair of job types, stand
    in its place.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, gpu = values["jobs"], values["gpu"]
    cluster = Cluster.parse(f"{values['nodes']}x{NODE}:{gpu}")
    of_type, of_gap, of_duration, of_gang, of_xi = rng.spawn(5)
    gang = values["gpus"].at_most(cluster.gpus).draw(of_gang, jobs)
    # Rates of all job types in these gangs, but for those that were measured not to fit this GPU type.
    sizes = sorted(set(gang.tolist()))
    rows = [(name, g, built_in().get(name, gpu, g)) for name in built_in().job_types for g in sizes]
    speeds = completed(built_in(), [(name, g) for name, g, row in rows if row is None or row.together > 0], [gpu])
    # A job type for every gang, uniform over those that may have so many GPUs and run on them.
    possible = {
        g: [name for name in speeds.job_types if (g == 1 or is_distributed(name)) and _rate(speeds, name, gpu, g) > 0]
        for g in set(gang.tolist())
    }
    choices = [possible[g] for g in gang.tolist()]
    job_type = [
        names[int(x * len(names))] for names, x in zip(choices, of_type.random(gang.size).tolist(), strict=True)
    ]
    iterations = steps_on_v100(job_type, gang, values["duration"].draw(of_duration, jobs))
    rates = [_rate(speeds, name, gpu, g) for name, g in zip(job_type, gang.tolist(), strict=True)]
    work = float(np.sum(gang * iterations / np.array(rates)))
    arrival = np.cumsum(of_gap.standard_exponential(jobs))
    last = work / (cluster.gpus * values["load"])
    table = typed_jobs(job_type, gang, iterations)
    table["arrival"] = arrival * (last / arrival[-1])
    kinds = sorted(set(job_type))
    xi = interference_of(values["xi"], built_in().job_types, of_xi, {"measured": built_in_interference(gpu)})
    used, gap = speeds.restricted(set(kinds)), {"gap": last / jobs}
    return Draw(table, cluster, "total_flow_time", gap, throughputs=used, interference=xi.restricted(kinds))


def _rate(speeds: Throughputs, job_type: str, gpu: str, gpus: int) -> float:
    found = speeds.get(job_type, gpu, gpus)
    if found is None:
        return 0.0
    return max(found.together, found.over_nodes) if gpus <= NODE else found.over_nodes  # some were faster spread
