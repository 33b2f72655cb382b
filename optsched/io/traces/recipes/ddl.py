"""Distributed training jobs whose speed depends on the placement: ``ddl-cluster`` and ``ddl-small``."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import Draw, Values, durations, gangs, integer, non_negative, number, recipe
from optsched.io.traces.recipes.classical import uniform_integers
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.profile import Profile, Stage
from optsched.speeds.model_zoo import MODELS, PARALLELISM, zoo_profile
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_max, alpha_min


@recipe(
    "ddl-cluster",
    jobs=integer(300, "number of jobs"),
    nodes=integer(8, "nodes of the cluster", most=10**4),
    gpus_per_node=integer(8, "GPUs of a node", most=10**4),
    nic=number(1.25e9, "bytes/s of a node's network interface (10 Gbit/s)"),
    intra=number(1.5e11, "bytes/s between the GPUs of a node (NVLink)"),
    load=number(0.9, "offered load at alpha_min"),
    duration=durations("lognormal:mean=7200,sigma=1.5", "law of the seconds on the best placement"),
    gpus=gangs("a-srpt"),
)
def ddl_cluster(rng: np.random.Generator, values: Values) -> Draw:
    """Open cluster of distributed training jobs: models of the zoo with data, pipeline and mixed parallelism.

    Models are equally likely (`optsched.speeds.model_zoo`), gang sizes follow ``gpus``, and of the kinds of parallelism that
    a model has on so many GPUs each is equally likely. A duration of law ``duration``, as long as the job would last on its
    best placement, becomes iterations, rounded up. Arrivals are independent (exponential gaps, rounded down to seconds); the
    mean gap follows from the load that this instance offers **at alpha_min**:

        load = sum_j g_j n_j alpha_min_j / (G n gap)

    so where jobs have to spread, the cluster is busier than that. ``nic`` and ``intra`` in bytes/s: of a node, between its
    GPUs.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    group = NodeGroup(
        gpus=values["gpus_per_node"],
        count=values["nodes"],
        nic_bandwidth=values["nic"],
        intra_bandwidth=values["intra"],
    )
    cluster, jobs = Cluster((group,)), int(values["jobs"])
    network = Network.of(cluster)
    size = values["gpus"].at_most(cluster.gpus).draw(rng, jobs)
    duration = values["duration"].draw(rng, jobs)
    models = [list(MODELS)[m] for m in rng.integers(0, len(MODELS), size=jobs)]
    drawn = zip(models, size.tolist(), rng.random(jobs).tolist(), strict=True)
    staged = [some_profile(model, gpus, u) for model, gpus, u in drawn]
    names, used = [name for name, _ in staged], dict(sorted(dict(staged).items()))
    pace = best_paces(names, used, network)
    iterations = np.ceil(duration / pace)
    work = float(np.sum(size * iterations * pace))
    gap = work / (cluster.gpus * values["load"] * jobs)
    table = {
        "arrival": np.floor(np.cumsum(rng.standard_exponential(jobs) * gap)),
        "gpus": size,
        "iterations": iterations,
        "profile": names,
        "model": models,
    }
    return Draw(table, cluster, derived={"gap": gap}, profiles=used)


def some_profile(model: str, gpus: int, u: float) -> tuple[str, Profile]:
    """Return one of the kinds of parallelism that a model has on a number of GPUs, with its name.

    Parameters
    ----------
    model
        Name of the model.
    gpus
        Number of GPUs.
    u
        Number from 0 to 1 that chooses the kind.
    """
    made = _profiles(model, gpus)
    return made[int(u * len(made))]


@lru_cache(maxsize=1024)
def _profiles(model: str, gpus: int) -> list[tuple[str, Profile]]:
    if gpus == 1:
        return [(f"{model}-1", zoo_profile(model, 1))]
    made = []
    for kind in PARALLELISM:
        with contextlib.suppress(InputError):  # a pipeline of more stages than the model has blocks
            made.append((f"{model}-{kind}-{gpus}", zoo_profile(model, gpus, kind)))
    return made


def best_paces(names: list[str], profiles: dict[str, Profile], network: Network) -> Floats:
    """Return alpha_min of the profile of every job, f64[n].

    Parameters
    ----------
    names
        Name of the profile of every job.
    profiles
        Profiles by name.
    network
        Bandwidths of the cluster.
    """
    seconds = {name: alpha_min(profile, network) for name, profile in profiles.items()}
    return np.array([seconds[name] for name in names])


CROSS, FASTER = 1.2e9, 4  # bytes/s from node to node for one GPU; factor inside a node
STEP = 0.125  # s: iteration times are multiples of it
LIGHT = 1.5  # for the other jobs: the threshold from which A-SRPT calls a job communication heavy
ROUNDS = 8  # iterations are multiples of it


@recipe(
    "ddl-small",
    jobs=integer(6, "number of jobs"),
    nodes=integer(2, "nodes of the cluster", most=10**4),
    gpus=integer(4, "GPUs of a node", most=10**4),
    widest=integer(6, "largest gang, cut to the GPUs of the cluster", most=16),
    heavy=non_negative(0.6, "share of the jobs that are communication heavy"),
    rho=number(3.0, "largest alpha_max / alpha_min of those, at least 1.5 is sensible"),
    span=non_negative(0.5, "releases fill this share of the cluster's total work; 0: all at 0"),
)
def ddl_small(rng: np.random.Generator, values: Values) -> Draw:
    """Small distributed training jobs with integer durations on every placement: data, pipeline and mixed parallelism.

    A job has a profile of its own: data-parallel (one stage of g replicas), pipeline (at most four stages of one) or
    mixed (two stages that share g replicas), on at most ``widest`` GPUs, so that some gangs are larger than a node. A
    GPU's share of the NIC is `CROSS` bytes/s, the links inside a node are `FASTER` times as fast, and traffic and compute
    times are such that **every iteration time is a multiple of 1/8 s** on every placement; jobs have 8 or 16 iterations,
    so all durations are integers. The share ``heavy`` of the jobs is communication heavy, with alpha_max / alpha_min up
    to ``rho``; for the others it is at most `LIGHT`. Releases are uniform integers in 0..floor(span x sum g_j d_j / G),
    d_j the duration at alpha_min.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    group = NodeGroup(
        gpus=values["gpus"], count=values["nodes"], nic_bandwidth=CROSS * values["gpus"], intra_bandwidth=CROSS * FASTER
    )
    cluster, jobs = Cluster((group,)), values["jobs"]
    network, widest = Network.of(cluster), min(values["widest"], cluster.gpus)
    profiles, names, seconds = {}, [], []
    iterations = ROUNDS * uniform_integers(rng, 1, 2, jobs)
    for j in range(jobs):
        kind = PARALLELISM[int(rng.integers(len(PARALLELISM)))]
        gpus = int(rng.integers(1, widest + 1))
        limit = max(values["rho"], LIGHT) if rng.random() < values["heavy"] else LIGHT
        profile = _profile(rng, _replicas(rng, kind, gpus), limit, network)
        names.append(f"{kind}-{j + 1}")
        profiles[names[-1]] = profile
        seconds.append(alpha_min(profile, network))
    size = np.array([profiles[name].gpus for name in names], dtype=np.int64)
    work = float(np.sum(size * iterations * np.array(seconds)))
    table = {
        "arrival": uniform_integers(rng, 0, np.floor(values["span"] * work / cluster.gpus), jobs),
        "gpus": size,
        "iterations": iterations,
        "profile": names,
    }
    return Draw(table, cluster, "total_completion_time", profiles=profiles)


def _replicas(rng: np.random.Generator, kind: str, gpus: int) -> list[int]:
    """Return the replicas of the stages of a gang."""
    if kind == "data":
        return [gpus]
    if kind == "pipeline":
        return [1] * min(gpus, 4)
    first = int(rng.integers(1, gpus + 1))
    return [first, gpus - first] if gpus > first else [first]


def _profile(rng: np.random.Generator, replicas: list[int], limit: float, network: Network) -> Profile:
    """Return a profile with drawn traffic, and enough compute to keep alpha_max / alpha_min within ``limit``."""
    traffic = [
        0.5 * int(rng.integers(1, 3)) for _ in replicas
    ]  # s between nodes: of every ring, of every pair of replicas
    micro_batches = len(replicas) - 1 if len(replicas) > 1 and rng.random() < 0.3 else None  # pipeline factor 2, or 1
    base = int(rng.integers(1, 5))
    while True:
        profile = _with_compute(replicas, traffic, base * STEP, micro_batches)
        if alpha_max(profile, network) <= limit * alpha_min(profile, network):
            return profile
        base += 1


def _with_compute(replicas: list[int], traffic: list[float], compute: float, micro_batches: int | None) -> Profile:
    stages = []
    for s, (k, seconds) in enumerate(zip(replicas, traffic, strict=True)):
        after = replicas[s + 1] if s + 1 < len(replicas) else 0
        # V = 2 (k-1)/k h bytes of a ring and w = 2 a / (k k') of a pair take `seconds` from node to node
        ring = seconds * CROSS * k / (2 * (k - 1)) if k > 1 else 0.0
        stages.append(Stage(k, compute / 2, compute / 2, ring, seconds * CROSS * k * after / 2))
    return Profile.of_stages(stages, micro_batches=micro_batches)
