"""The workloads of Hadar's simulations and of HadarE's experiments: ``hadar-60`` and ``hadar-mix``.

Models for jobs of which only GPUs and GPU-hours are known, the four classes of Hadar's simulations:

======  ==========  ==================================================================
class   GPU-hours   model
======  ==========  ==================================================================
S       below 1     ResNet-18 (batch size 128)
M       1 to 10     CycleGAN
L       10 to 50    LM (batch size 80) or Transformer (batch size 128), equally likely
XL      50 to 100   ResNet-50 (batch size 64)
======  ==========  ==================================================================

Classes and models are those generally attributed to the paper (not confirmed; there XL begins at 60). This project's own
choice are:

* the batch sizes, and which of the two models a job of class L trains;
* that jobs from 50 to 60 GPU-hours are XL, and that jobs of more than 100 are left out;
* that a GPU-hour is meant on one V100: a job has 3600 x GPU-hours x (rate on one V100) iterations, rounded up;
* that a gang is cut to the largest of 1, 2, 4, 8 GPUs (what was measured) that it holds and that one GPU type of the cluster
  has, its GPU-hours unchanged;
* that a gang of N GPUs trains CycleGAN, which was measured on one GPU only, N times as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import Draw, Values, choice, cluster, integer, non_negative, number, recipe
from optsched.io.traces.laws import gang_law
from optsched.io.traces.recipes.gavel_recipes import largest_type, rate_on_v100, speeds_on, typed_jobs
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.throughput_sources import built_in, completed

NAMES = ("S", "M", "L", "XL")
FROM = np.array([0.0, 1.0, 10.0, 50.0])  # GPU-hours
MOST = 100.0
MEASURED = (1, 2, 4, 8)
CLASS_MODELS = (
    ("ResNet-18 (batch size 128)",),
    ("CycleGAN",),
    ("LM (batch size 80)", "Transformer (batch size 128)"),
    ("ResNet-50 (batch size 64)",),
)


def classes_of(gpu_hours: Floats) -> Ints:
    """Return the class of every job, an index into `NAMES`, i64[n].

    Parameters
    ----------
    gpu_hours
        GPU-hours of every job, f64[n].
    """
    return np.searchsorted(FROM, gpu_hours, side="right") - 1


def modelled(rng: np.random.Generator, gpus: Ints, gpu_hours: Floats, widest: int) -> dict[str, Any]:
    """Return the columns of `typed_jobs`.

    Parameters
    ----------
    rng
        Random generator.
    gpus
        GPUs of every job, i64[n].
    gpu_hours
        GPU-hours of every job, f64[n].
    widest
        Number of GPUs of the GPU type of which the cluster has most.
    """
    u = rng.random(gpus.size).tolist()
    possible = [CLASS_MODELS[k] for k in classes_of(gpu_hours).tolist()]
    job_type = [names[int(x * len(names))] for names, x in zip(possible, u, strict=True)]
    rate = {name: rate_on_v100(name, 1) for name in set(job_type)}
    iterations = np.ceil(3600.0 * gpu_hours * np.array([rate[name] for name in job_type]))
    legal = np.array([count for count in MEASURED if count <= widest])
    cut = legal[np.searchsorted(legal, gpus, side="right") - 1]
    return typed_jobs(job_type, cut, np.maximum(1.0, iterations))


CLUSTER = "5x4:V100+5x4:P100+5x4:K80"
COUNTS = np.array([63162, 13807, 2850, 725])  # jobs of the trace in the classes
HOURS = np.array([[0.02, 1.0], [1.0, 10.0], [10.0, 50.0], [50.0, 100.0]])
GANGS = (
    "weights:1=60875,2=1504,4=494,8=289",
    "weights:1=13175,2=29,4=282,8=321",
    "weights:1=2025,2=118,4=390,8=317",
    "weights:1=283,2=67,4=243,8=132",
)


@recipe(
    "hadar-60",
    jobs=integer(480, "number of jobs"),
    cluster=cluster(CLUSTER),
    classes=choice("philly", ("philly", "even"), "how often the classes S, M, L, XL are"),
    hours=number(8, "hours in which the jobs arrive"),
)
def hadar_60(rng: np.random.Generator, values: Values) -> Draw:
    """Hadar's simulated cluster: 60 GPUs of three types, jobs of the Philly trace's sizes, models by GPU-hours.

    The paper's simulations (as generally attributed to it, not confirmed) take 480 jobs of the busiest hours of Microsoft's
    Philly trace on 15 nodes of four GPUs: 20 V100, 20 P100, 20 K80. Their models follow from GPU-hours by the
    classes of this module. Here nothing is read from the trace:

    * ``classes=philly``: S, M, L, XL as often as among the 80,544 jobs of the trace of at most 100 GPU-hours (78.4, 17.1,
      3.5, 0.9 %). ``even``: a quarter of the jobs each (rounded down, the rest S), in random order.
    * GPU-hours log-uniform within the class, from `HOURS`: means 0.25, 3.9, 24.9, 72.1 (in the trace 0.26, 2.6, 23.1, 73.3).
    * Gang sizes by class, from `GANGS`: the trace's counts, cut to 1, 2, 4, 8.
    * Arrivals: independent and uniform over ``hours`` hours, the first at 0; whole seconds, rounded down.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where = int(values["jobs"]), values["cluster"]
    if values["classes"] == "philly":
        kind = np.searchsorted(np.cumsum(COUNTS) / COUNTS.sum(), rng.random(jobs), side="right")
    else:
        kind = rng.permutation(even_classes(jobs))
    low, high = HOURS[kind].T
    gpu_hours = low * (high / low) ** rng.random(jobs)
    gpus = np.ones(jobs, dtype=np.int64)
    for k, text in enumerate(GANGS):
        gpus[kind == k] = gang_law(text).draw(rng, int((kind == k).sum()))
    arrival = np.sort(np.floor(rng.random(jobs) * (values["hours"] * 3600.0)))
    table = modelled(rng, gpus, gpu_hours, largest_type(where))
    table |= {"arrival": arrival - arrival[0], "group": [NAMES[k] for k in kind]}
    return Draw(table, where, throughputs=speeds_on(where, table["profile"], table["gpus"]))


def even_classes(jobs: int) -> Ints:
    """Return classes with a quarter of the jobs in each, rounded down, and the rest in the first.

    Parameters
    ----------
    jobs
        Number of jobs.
    """
    each = jobs // len(NAMES)
    return np.repeat(np.arange(len(NAMES)), [jobs - each * (len(NAMES) - 1), *[each] * (len(NAMES) - 1)])


LAB = "1x1:Titan RTX+1x1:T4+1x1:T400+1x1:RTX 3090+1x1:RTX A2000"
AWS = "1x1:V100+1x1:K80+1x1:T4"
WEATHER = "weather model"
MODELS = (
    "ResNet-18 (batch size 128)",
    "LM (batch size 80)",
    "Transformer (batch size 128)",
    "Recommendation (batch size 2048)",
    WEATHER,
)


@recipe(
    "hadar-mix",
    jobs=integer(5, "number of jobs", most=10**4),
    cluster=cluster(LAB, "one-GPU nodes"),
    uneven=non_negative(0.2, "relative error of rates that are not measured, below 1"),
    shortest=number(600, "least seconds on the fastest node"),
    longest=number(6000, "most seconds on the fastest node"),
)
def hadar_mix(rng: np.random.Generator, values: Values) -> Draw:
    """HadarE's mixes: a few jobs of five models on unlike one-GPU nodes, all released at the beginning.

    The five models are those generally attributed to the paper: ResNet-18/CIFAR-10, LSTM/Wikitext-2, Transformer/Multi30k,
    an autoencoder/ML-20M and a weather model; so are the nodes: a lab's Titan RTX, T4, T400, RTX 3090 and RTX A2000
    (`LAB`), and on AWS V100, K80 and T4 (`AWS`: one of each; how many there were is not known). Its measured throughputs
    are not public, and what a mix consists of is not known. This project's own choice:

    * Job k trains model k modulo five, in the order above; all jobs are there at 0.
    * Rates: of the built-in table where it has the GPU type, else scaled by FP32 peak from the type nearest in peak; the
      weather model, of which nothing is known, 1 step/s on a V100, scaled by FP32 peak. Rates that are not measured are
      multiplied by a factor of their own, uniform in [1 - uneven, 1 + uneven]: the peak is a poor guide to real ones.
    * A job lasts U(``shortest``, ``longest``) seconds on its fastest node (600 to 6000 s: as where forks are measured).

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where, uneven = values["jobs"], values["cluster"], values["uneven"]
    for field, value, legal in (
        ("uneven", uneven, uneven < 1),
        ("longest", values["longest"], values["longest"] >= values["shortest"]),
    ):
        if not legal:
            raise InputError("invalid for recipe hadar-mix", field=field, value=value)
    table = _speeds(rng, where, uneven)
    job_type = [MODELS[k % len(MODELS)] for k in range(jobs)]
    fastest = {name: max(table.entries[name, gpu, 1].together for gpu in where.gpu_types) for name in MODELS}
    seconds = rng.uniform(values["shortest"], values["longest"], jobs)
    iterations = np.ceil(seconds * np.array([fastest[name] for name in job_type]))
    columns = typed_jobs(job_type, np.ones(jobs, dtype=np.int64), iterations)
    return Draw(columns, where, "makespan", throughputs=table.restricted(set(job_type)))


def _speeds(rng: np.random.Generator, where: Cluster, uneven: float) -> Throughputs:
    known = built_in().restricted(set(MODELS))
    weather = {(WEATHER, "V100", 1): Throughput(1.0, measured=False)}
    every = completed(Throughputs({**known.entries, **weather}), [(name, 1) for name in MODELS], where.gpu_types)
    factors = rng.uniform(1 - uneven, 1 + uneven, (len(MODELS), len(where.gpu_types)))
    rows = {}
    for m, name in enumerate(MODELS):
        for t, gpu in enumerate(where.gpu_types):
            found = every.get(name, gpu, 1)
            assert found is not None
            rate = found.together if found.measured else found.together * float(factors[m, t])
            rows[name, gpu, 1] = Throughput(rate, measured=found.measured)
    return Throughputs(rows)
