"""Recipe ``all-four``: jobs of all four speed models on three GPU types, which share GPUs in pairs and the network.

A quarter of the jobs each, in random order:

* **duration**: so many seconds on any GPU;
* **stage graph** (A-SRPT): a network of the zoo, `optsched.speeds.model_zoo`, its speed depends on its nodes;
* **table** (Hadar, Gavel): one of `TYPES` at the measured speeds of its GPU type, gangs of at most 8;
* **scaling** (SJF-BSBF, Pollux): a model with a batch size, `optsched.speeds.scaling_files`, which may be split into
  sub-batches, or resized.

Gangs follow ``gpus``. A number of law ``duration`` is the seconds that a job takes alone: the whole gang on one node of the
first GPU type, or where it fits; it becomes iterations, rounded up. Arrivals have exponential gaps, rounded down to seconds;
the mean gap gives the ``load``: sum_j g_j seconds_j / (G n gap). A job without a scaling profile takes one of `BYTES` on
each of its GPUs, and a GPU has what `MEMORY` says of its type: not all pairs fit. ``xi``: slow-down of two jobs on a GPU.
Jobs that span nodes contend for the network (`optsched.speeds.interface_sharing`): b = 1 / ``nic``, eta = ``penalty`` b.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from optsched.io.traces.generate import Draw, Values, cluster, durations, gangs, integer, non_negative, number, recipe
from optsched.io.traces.recipes.ddl import some_profile
from optsched.io.traces.recipes.gavel_recipes import speeds_on
from optsched.io.traces.recipes.sharing_cluster import some_batch, with_memory
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.cluster import Cluster
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.problem.profile import Profile
from optsched.speeds.iteration_times import iteration_seconds
from optsched.speeds.model_zoo import MODELS
from optsched.speeds.network import Network
from optsched.speeds.scaling_files import built_in_scalings
from optsched.speeds.stage_graph import alpha_min
from optsched.speeds.throughput_sources import built_in

TYPES = (
    "ResNet-18 (batch size 128)",
    "LM (batch size 80)",
    "Transformer (batch size 128)",
    "ResNet-50 (batch size 64)",
)
SCALED = ("cifar10", "bert", "deepspeech2", "imagenet")
WIDEST_MEASURED = 8  # of the table
MEMORY = {"V100": 32e9, "P100": 16e9, "K80": 12e9}
BYTES = (4e9, 6e9, 10e9)
KINDS = 4
PENALTY = round(ETHERNET_10G.penalty / ETHERNET_10G.seconds_per_byte, 4)

Row = dict[str, Any]


@recipe(
    "all-four",
    jobs=integer(160, "number of jobs"),
    cluster=cluster("8x4:V100+4x4:P100+4x4:K80"),
    nic=number(12.5e9, "bytes/s of a node's network interface (100 Gbit/s)"),
    intra=number(1.5e11, "bytes/s between the GPUs of a node (NVLink)"),
    load=number(1.2, "offered load of jobs alone at their best"),
    duration=durations("lognormal:mean=3600,sigma=1.2", "law of the seconds alone"),
    gpus=gangs("weights:1=40,2=20,4=20,8=15,16=5"),
    xi=slowdowns("1.3"),
    penalty=non_negative(PENALTY, "eta / b: what every other transfer on an interface costs on top of its share"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Stage graphs, table speeds, scalings and durations together, on GPUs of three types and a network that jobs share.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    of_jobs, of_arrivals, of_xi = rng.spawn(3)
    links, groups = {"nic_bandwidth": values["nic"], "intra_bandwidth": values["intra"]}, values["cluster"].nodes
    where = Cluster(tuple(replace(group, gpu_memory=MEMORY.get(group.gpu, 16e9), **links) for group in groups))
    jobs = values["jobs"]
    gang = values["gpus"].at_most(where.gpus).draw(of_jobs, jobs)
    seconds = values["duration"].draw(of_jobs, jobs)
    kind = of_jobs.permutation(np.arange(jobs) % KINDS)
    u = of_jobs.random((jobs, 2))
    profiles: dict[str, Profile] = {}
    makers = (_timed, lambda *row: _staged(profiles, Network.of(where), *row), _tabled, _scaled)
    rows = [makers[kind[j]](int(gang[j]), float(seconds[j]), *u[j].tolist()) for j in range(jobs)]
    work = sum(row["gpus"] * float(s) for row, s in zip(rows, seconds, strict=True))
    gap = work / (where.gpus * values["load"] * jobs)
    schema = {"gpus": pl.Int64, "duration": pl.Float64, "iterations": pl.Float64, "profile": pl.String}
    table = pl.DataFrame(rows, schema={**schema, "model": pl.String, "batch_size": pl.Int64, "gpu_memory": pl.Float64})
    arrival = np.floor(np.cumsum(of_arrivals.standard_exponential(jobs) * gap))
    tabled = [row for row in rows if row.get("profile") in TYPES]
    models = sorted({row["model"] for row in rows if row.get("model")})
    scalings = with_memory(built_in_scalings())
    return Draw(
        table.with_columns(arrival=pl.Series(arrival - arrival[0])),
        where,
        "total_flow_time",
        {"gap": gap},
        profiles=profiles,
        throughputs=speeds_on(where, [row["profile"] for row in tabled], np.array([row["gpus"] for row in tabled]))
        if tabled
        else None,
        scalings={name: scalings[name] for name in SCALED if name in models},
        interference=interference_of(values["xi"], models, of_xi),
        contention=Contention(1 / values["nic"], values["penalty"] / values["nic"]),
    )


def _bytes(u: float) -> float:
    return BYTES[int(u * len(BYTES))]


def _timed(gang: int, seconds: float, u: float, v: float) -> Row:
    return {"gpus": gang, "duration": float(np.ceil(seconds)), "gpu_memory": _bytes(v)}


def _staged(profiles: dict[str, Profile], network: Network, gang: int, seconds: float, u: float, v: float) -> Row:
    model = list(MODELS)[int(u * len(MODELS))]
    name, profiles[name] = some_profile(model, gang, v)
    iterations = float(np.ceil(seconds / alpha_min(profiles[name], network)))
    return {"gpus": gang, "iterations": iterations, "profile": name, "model": model, "gpu_memory": _bytes(v)}


def _tabled(gang: int, seconds: float, u: float, v: float) -> Row:
    name, gang = TYPES[int(u * len(TYPES))], min(gang, WIDEST_MEASURED)
    rate = built_in().get(name, next(iter(MEMORY)), gang)
    assert rate is not None  # all these types and gangs were measured
    iterations = float(np.ceil(seconds * rate.together))
    return {"gpus": gang, "iterations": iterations, "profile": name, "model": name, "gpu_memory": _bytes(v)}


def _scaled(gang: int, seconds: float, u: float, v: float) -> Row:
    name = SCALED[int(u * len(SCALED))]
    scaling = with_memory(built_in_scalings())[name]
    batch = some_batch(name, gang, v, scaling)
    first = scaling.sub_batches(batch, gang)[0]
    iterations = float(np.ceil(seconds / iteration_seconds(scaling, first.size, first.steps, gang, gang > 1)))
    return {"gpus": gang, "iterations": iterations, "profile": name, "model": name, "batch_size": batch}
