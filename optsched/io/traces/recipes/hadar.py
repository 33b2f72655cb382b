"""The workloads of Hadar's simulations and of HadarE's experiments: ``hadar-60`` and ``hadar-mix``."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.gpu_hour_classes import NAMES, modelled
from optsched.io.traces.laws import gang_law
from optsched.io.traces.recipe import Draw, Values, choice, cluster, integer, non_negative, number, recipe
from optsched.io.traces.recipes.gavel import largest_type, model_names, speeds_on
from optsched.problem.arrays import Ints
from optsched.problem.cluster import Cluster
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.throughput_table import built_in, completed

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
    Philly trace on 15 nodes of four GPUs: 20 V100, 20 P100, 20 K80. Their models follow from GPU-hours as in
    `optsched.io.traces.gpu_hour_classes`, which says what of that is this project's own choice. Here nothing is read from
    the trace:

    * ``classes=philly``: S, M, L, XL as often as among the 80,544 jobs of the trace of at most 100 GPU-hours (78.4, 17.1,
      3.5, 0.9 %). ``even``: a quarter of the jobs each (rounded down, the rest S), in random order.
    * GPU-hours log-uniform within the class, from `HOURS`: means 0.25, 3.9, 24.9, 72.1 (in the trace 0.26, 2.6, 23.1, 73.3).
    * Gang sizes by class, from `GANGS`: the trace's counts, cut to 1, 2, 4, 8.
    * Arrivals: independent and uniform over ``hours`` hours, the first at 0; whole seconds, rounded down.
    """
    jobs, where = values["jobs"], values["cluster"]
    kind = _classes(rng, jobs, values["classes"])
    low, high = HOURS[kind].T
    gpu_hours = low * (high / low) ** rng.random(jobs)
    gpus = _gangs(rng, kind)
    arrival = np.sort(np.floor(rng.random(jobs) * (values["hours"] * 3600.0)))
    made = modelled(rng, gpus, gpu_hours, largest_type(where))
    table = {
        "arrival": arrival - arrival[0],
        "gpus": made.gpus,
        "iterations": made.iterations,
        "profile": made.job_type,
        "model": model_names(made.job_type),
        "group": [NAMES[k] for k in kind],
    }
    return Draw(table, where, throughputs=speeds_on(where, made.job_type, made.gpus))


def _classes(rng: np.random.Generator, jobs: int, how: str) -> Ints:
    if how == "philly":
        upper = np.cumsum(COUNTS) / COUNTS.sum()
        return np.searchsorted(upper, rng.random(jobs), side="right").astype(np.int64)
    return rng.permutation(even_classes(jobs))


def even_classes(jobs: int) -> Ints:
    """A quarter of the jobs in each class, rounded down; the rest in the first."""
    each = jobs // len(NAMES)
    return np.repeat(np.arange(len(NAMES)), [jobs - each * (len(NAMES) - 1), *[each] * (len(NAMES) - 1)])


def _gangs(rng: np.random.Generator, kind: Ints) -> Ints:
    gpus = np.ones(kind.size, dtype=np.int64)
    for k, text in enumerate(GANGS):
        mine = kind == k
        gpus[mine] = gang_law(text).draw(rng, int(mine.sum()))
    return gpus


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
    """HadarE's mixes: a few jobs of five models on unlike one-GPU nodes, all there at the beginning.

    The five models are those generally attributed to the paper: ResNet-18/CIFAR-10, LSTM/Wikitext-2, Transformer/Multi30k,
    an autoencoder/ML-20M and a weather model; so are the nodes: a lab's Titan RTX, T4, T400, RTX 3090 and RTX A2000
    (`LAB`), and on AWS V100, K80 and T4 (`AWS`: one of each; how many there were is not known). Its measured throughputs
    are not public, and what a mix consists of is not known. This project's own choice:

    * Job k trains model k modulo five, in the order above; all jobs are there at 0.
    * Rates: of the built-in table where it has the GPU type, else scaled by FP32 peak from the type nearest in peak; the
      weather model, of which nothing is known, 1 step/s on a V100, scaled by FP32 peak. Rates that are not measured are
      multiplied by a factor of their own, uniform in [1 - uneven, 1 + uneven]: the peak is a poor guide to real ones.
    * A job lasts U(``shortest``, ``longest``) seconds on its fastest node (600 to 6000 s: as where forks are measured).
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
    jobs_table = {
        "gpus": np.ones(jobs, dtype=np.int64),
        "iterations": iterations,
        "profile": job_type,
        "model": model_names(job_type),
    }
    return Draw(jobs_table, where, "makespan", throughputs=table.restricted(set(job_type)))


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
