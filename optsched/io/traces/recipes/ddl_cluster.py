"""Recipe ``ddl-cluster``: an open cluster that trains well-known networks; speed depends on the placement.

Models are equally likely (`optsched.speeds.model_zoo`), gang sizes follow ``gpus``, and of the kinds of parallelism that a
model has on so many GPUs each is equally likely. A duration of law ``duration``, as long as the job would last on its best
placement, becomes iterations, rounded up. Arrivals are independent (exponential gaps, rounded down to seconds); the mean
gap follows from the load that this instance offers **at alpha_min**:

    load = sum_j g_j n_j alpha_min_j / (G n gap)

so where jobs have to spread, the cluster is busier than that. ``nic`` and ``intra`` in bytes/s: of a node, between its GPUs.
"""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.recipe import Draw, Values, durations, gangs, integer, number, recipe
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.profile import Profile
from optsched.speeds.model_zoo import MODELS, PARALLELISM, zoo_profile
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_min


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
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Open cluster of distributed training jobs: models of the zoo with data, pipeline and mixed parallelism."""
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
    models = rng.integers(0, len(MODELS), size=jobs)
    kinds = rng.random(jobs)
    profiles: dict[str, Profile] = {}
    seconds: dict[str, float] = {}
    known: dict[tuple[str, int], list[str]] = {}
    names, every = [], list(MODELS)
    for model, gpus, kind in zip((every[m] for m in models), size.tolist(), kinds.tolist(), strict=True):
        if (model, gpus) not in known:
            made = profiles_of(model, gpus)
            known[model, gpus] = list(made)
            profiles.update(made)
            seconds.update({name: alpha_min(profile, network) for name, profile in made.items()})
        choices = known[model, gpus]
        names.append(choices[int(kind * len(choices))])
    pace = np.array([seconds[name] for name in names])
    iterations = np.ceil(duration / pace)
    work = float(np.sum(size * iterations * pace))
    gap = work / (cluster.gpus * values["load"] * jobs)
    table = {
        "arrival": np.floor(np.cumsum(rng.standard_exponential(jobs) * gap)),
        "gpus": size,
        "iterations": iterations,
        "profile": names,
        "model": [every[m] for m in models],
    }
    used = {name: profiles[name] for name in sorted(set(names))}
    return Draw(table, cluster, derived={"gap": gap}, profiles=used)


def profiles_of(model: str, gpus: int) -> dict[str, Profile]:
    """The kinds of parallelism that a model has on so many GPUs, by the name of the profile."""
    if gpus == 1:
        return {f"{model}-1": zoo_profile(model, 1)}
    made = {}
    for kind in PARALLELISM:
        try:
            made[f"{model}-{kind}-{gpus}"] = zoo_profile(model, gpus, kind)
        except InputError:  # a pipeline of more stages than the model has blocks
            continue
    return made
