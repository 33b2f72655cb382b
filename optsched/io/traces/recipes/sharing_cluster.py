"""Recipe ``sharing-cluster``: training jobs with scaling profiles on nodes of four GPUs that two jobs may share.

**Models** are the six of `optsched.speeds.scaling_files`, by name and total batch size.

``mix=pollux`` is made like the workloads of the Pollux artifact (petuum/adaptdl, branch osdi21-artifact, Apache-2.0):

* Models in the numbers of its set of 240 jobs (`MODELS`); of n jobs, in their order, job k = 0 .. n-1 has the model at the
  place (k + 1/2) / n of these numbers.
* Gangs: each model has few configurations there, (GPUs, batch size). One is drawn with the number of gangs of that size in
  the set as its weight. Where none fits the cluster, the smallest is cut to it. With ``widest`` there are no configurations
  of more GPUs, and no models that have no others.
* Iterations: those to completion, `Scaling.iterations`, at the batch size of the configuration.

``mix=testbed`` has the sizes generally attributed to the SJF-BSBF paper's testbed of 16 GPUs (not confirmed):

* Two jobs in three have 1, 2, 4 or 8 GPUs, the others 12 or 16, all equally likely; at most the cluster's, or ``widest``.
* Models equally likely; the batch size is one of the powers of two times the model's first one, up to its largest, equally
  likely among those whose part on a GPU was measured; where there is none, that with the nearest part.
* 100 to 5000 iterations, every number equally likely.

**Arrivals** are uniform over a window and rounded down to seconds. Load is the work over what the cluster does in it,

    load = sum_j g_j e_j / (G window),   e_j = seconds alone at best.

``hours`` alone: the window; nothing: 8. ``load`` alone: the window that gives it. Both: all iterations are multiplied by
one factor, rounded up, to give it (up to the rounding).

**Memory**, a design of this project: a GPU has ``memory`` bytes (16e9: T4, where the profiles were measured). On each GPU a
job takes 1.6e9 and in proportion to its sub-batch up to 9.6e9 at the model's largest. So every job fits alone, any two fit
at small sub-batches, and two at the largest do not: the second has to accumulate gradients.

**xi**: one number, or ``exp``, drawn for every ordered pair of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import Draw, Values, choice, in_proportion, integer, number, recipe
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.scaling import Scaling
from optsched.speeds.iteration_times import iteration_seconds
from optsched.speeds.scaling_files import built_in_scalings

GPUS = 4  # of a node
HOURS = 8.0
FIXED, LARGEST = 1.6e9, 9.6e9  # bytes of any job, bytes at the largest sub-batch
# of the set of 240 jobs: jobs of each model, and gangs of each size
MODELS = {"ncf": 102, "cifar10": 94, "deepspeech2": 17, "bert": 15, "imagenet": 7, "yolov3": 5}
GANGS = {1: 102, 4: 5, 6: 33, 8: 30, 12: 40, 16: 23, 24: 2, 32: 5}
# (GPUs, total batch size) that occur in the artifact's workloads
CONFIGURATIONS = {
    "ncf": ((1, 32768),),
    "cifar10": ((6, 2048), (8, 2048), (12, 4096), (16, 4096)),
    "deepspeech2": ((6, 320), (8, 320), (12, 640)),
    "bert": ((6, 384), (8, 384), (12, 384), (16, 384)),
    "imagenet": ((24, 3200), (32, 6400)),
    "yolov3": ((4, 64),),
}
# local batch sizes that were measured, least; first total batch size
MEASURED_FROM = {"ncf": 32, "cifar10": 32, "deepspeech2": 10, "bert": 4, "imagenet": 20, "yolov3": 4}
FIRST_BATCH = {"ncf": 256, "cifar10": 128, "deepspeech2": 20, "bert": 12, "imagenet": 200, "yolov3": 8}
NARROW, WIDE = (1, 2, 4, 8), (12, 16)
ITERATIONS = (100, 5000)

Random = np.random.Generator
Choice = tuple[list[str], Ints, Ints, Floats]  # models, gangs, total batch sizes, iterations


@recipe(
    "sharing-cluster",
    jobs=integer(240, "number of jobs"),
    nodes=integer(16, "nodes of four GPUs", most=10**4),
    hours=number(None, "hours in which the jobs arrive; not given: 8, or what gives the load"),
    load=number(None, "offered load; not given: what comes out"),
    mix=choice("pollux", ("pollux", "testbed"), "which models, gangs, batch sizes and iterations"),
    widest=integer(None, "most GPUs of a job; not given: those of the mix"),
    memory=number(16e9, "bytes of a GPU, at least 9.6e9"),
    xi=slowdowns("1.3"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Training jobs with batch sizes on nodes of four GPUs that two jobs may share, after Pollux or a small testbed.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    if values["memory"] < LARGEST:
        legal = f"at least {LARGEST:g} bytes, what the largest sub-batches need"
        raise InputError("too small", field="sharing-cluster: memory", value=values["memory"], legal=legal)
    of_jobs, of_arrivals, of_xi = rng.spawn(3)
    group = NodeGroup(gpus=GPUS, count=values["nodes"], gpu_memory=values["memory"])
    cluster, jobs = Cluster((group,)), values["jobs"]
    scalings = with_memory(built_in_scalings())
    drawn = {"pollux": _pollux, "testbed": _testbed}[values["mix"]]
    model, gpus, batch, iterations = drawn(of_jobs, jobs, cluster.gpus, values["widest"], scalings)
    seconds = _seconds(model, gpus, batch, scalings)
    work = float(np.sum(gpus * iterations * seconds))
    hours, load = values["hours"], values["load"]
    if hours is None:
        hours = HOURS if load is None else work / (3600.0 * cluster.gpus * load)
    elif load is not None:
        iterations = np.ceil(iterations * (3600.0 * hours * cluster.gpus * load / work))
        work = float(np.sum(gpus * iterations * seconds))
    table = {
        "arrival": np.sort(np.floor(of_arrivals.random(jobs) * (3600.0 * hours))),
        "gpus": gpus,
        "iterations": iterations,
        "batch_size": batch,
        "profile": model,
        "model": model,
    }
    kinds = sorted(set(model))
    derived = {"hours": hours, "load": work / (3600.0 * hours * cluster.gpus)}
    interference, used = interference_of(values["xi"], sorted(MODELS), of_xi), {name: scalings[name] for name in kinds}
    return Draw(table, cluster, "total_flow_time", derived, scalings=used, interference=interference)


def with_memory(scalings: Mapping[str, Scaling]) -> dict[str, Scaling]:
    """Return the models of the mix with the memory that a sub-batch takes on a GPU.

    Parameters
    ----------
    scalings
        Scaling profiles by model.
    """
    return {
        name: replace(each, memory=FIXED, memory_per_sample=(LARGEST - FIXED) / (each.most_local or 1))
        for name, each in scalings.items()
        if name in MODELS
    }


def _seconds(model: list[str], gpus: Ints, batch: Ints, scalings: Mapping[str, Scaling]) -> Floats:
    """Return seconds of an iteration alone at best: on one node if the gang fits one, f64[n]."""
    known: dict[tuple[str, int, int], float] = {}
    rows = list(zip(model, gpus.tolist(), batch.tolist(), strict=True))
    for name, g, b in dict.fromkeys(rows):
        first, places = scalings[name].sub_batches(b, g)[0], {g > GPUS, g > 1}  # a small gang can be placed either way
        known[name, g, b] = min(
            iteration_seconds(scalings[name], first.size, first.steps, g, spans) for spans in places
        )
    return np.array([known[row] for row in rows])


def _pollux(rng: Random, jobs: int, most: int, widest: int | None, scalings: Mapping[str, Scaling]) -> Choice:
    known = {}
    for name, rows in CONFIGURATIONS.items():
        legal = [row for row in rows if widest is None or row[0] <= widest]
        if legal:
            known[name] = [row for row in legal if row[0] <= most] or [(most, legal[0][1])]
    model = rng.permutation(in_proportion(jobs, {name: MODELS[name] for name in MODELS if name in known})).tolist()
    gpus, batch = np.empty(jobs, dtype=np.int64), np.empty(jobs, dtype=np.int64)
    for j, (name, u) in enumerate(zip(model, rng.random(jobs).tolist(), strict=True)):
        upper = np.cumsum([GANGS.get(g, 1) for g, _ in known[name]])
        gpus[j], batch[j] = known[name][int(np.searchsorted(upper / upper[-1], u, side="right"))]
    batches = zip(model, batch.tolist(), strict=True)
    iterations = [float(np.interp(b, *np.array(scalings[name].iterations).T)) for name, b in batches]
    return model, gpus, batch, np.ceil(iterations)


def _testbed(rng: Random, jobs: int, most: int, widest: int | None, scalings: Mapping[str, Scaling]) -> Choice:
    narrow = rng.permutation(jobs) < (2 * jobs + 1) // 3
    gpus = np.where(narrow, rng.choice(NARROW, jobs), rng.choice(WIDE, jobs))
    gpus = np.minimum(gpus, min(most, widest or most)).astype(np.int64)
    model = [list(MODELS)[k] for k in rng.integers(len(MODELS), size=jobs)]
    u = rng.random(jobs).tolist()
    rows = zip(model, gpus.tolist(), u, strict=True)
    batch = np.array([some_batch(name, g, x, scalings[name]) for name, g, x in rows], dtype=np.int64)
    low, high = ITERATIONS
    return model, gpus, batch, rng.integers(low, high, jobs, endpoint=True).astype(np.float64)


def some_batch(model: str, gpus: int, u: float, scaling: Scaling) -> int:
    """Return a measured batch size for a number of GPUs.

    Parameters
    ----------
    model
        Name of the model.
    gpus
        Number of GPUs.
    u
        Number from 0 to 1 that chooses the size.
    scaling
        Scaling profile of the model.
    """
    largest = scaling.iterations[-1][0]
    sizes = [FIRST_BATCH[model] << k for k in range(40) if FIRST_BATCH[model] << k <= largest]
    least, most = MEASURED_FROM[model], scaling.most_local or largest
    inside = [size for size in sizes if least <= -(-size // gpus) <= most]
    if not inside:
        inside = [min(sizes, key=lambda size: abs(np.log(size / gpus / np.clip(size / gpus, least, most))))]
    return inside[int(u * len(inside))]
