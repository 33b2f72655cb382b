"""Mapping of the replicas of one training job to servers with the shortest iteration, as a mixed-integer program.

Sets: replicas v = (s, q) of stage s, q = 1..k_s; servers m with free GPUs; pairs E of replicas of neighbouring stages.
Data: t_s seconds of computing; w_uv = 2 a / (k_s k_u) bytes between a pair (activations, gradients back); V_s = 2 h_s
(k_s-1)/k_s bytes of the ring of stage s; f_m free GPUs; B_m bytes/s inside server m, b bytes/s between servers; phi the
factor for filling the pipeline.
Variables: x[v, m] = 1 if replica v is on server m; together[u, v, m] <= 1 if both ends of a pair are; whole[s, m] <= 1 if
all of stage s is; T seconds of the slowest replica, A of the slowest ring.

    min  phi T + A                                                                                         (0)
    s.t. sum_m x[v, m] = 1                                               every replica v                  (1)  once
         sum_v x[v, m] <= f_m                                            every server m                   (2)  capacity
         together[u, v, m] <= x[u, m], x[v, m]                           every pair, server               (3)  both_ends
         T >= t_s + sum_u w_uv (1/b - sum_m (1/b - 1/B_m) together[u, v, m])      every v of s            (4)  pace
         whole[s, m] <= x[v, m]                                          every v of s with k_s > 1, m     (5)  whole_ring
         A >= V_s (1/b - sum_m (1/b - 1/B_m) whole[s, m])                every s with k_s > 1             (6)  ring

together and whole need not be integers: they are as large as (3) and (5) allow. The program is for one job, so it is no
`Formulation` of an instance. Servers may have different bandwidths inside (B_m), but must have the same bandwidth b
between servers: with different b the cost of a pair depends on both ends.

Optimum: alpha of the best mapping on these free GPUs, exact.
Size, g replicas, M servers: g M binaries, at most (|E| + S) M more columns, 2 |E| M + g (M + 2) + M + S rows.
Reference: own formulation, for A-SRPT's mapping (Luo et al., INFOCOM 2025); `optsched.speeds.stage_graph` has the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo

from optsched.errors import InputError
from optsched.models.fast_building import collector_paused
from optsched.models.program import add_program
from optsched.problem.instance import Instance
from optsched.problem.profile import Profile
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import pair_bytes, pipeline_factor, ring_bytes

NAME = "gpu-mapping"


@collector_paused
def build(profile: Profile, network: Network, free: Sequence[int]) -> pyo.ConcreteModel:
    """Build the model of one job on the free GPUs of the servers.

    Parameters
    ----------
    profile
        Stages of the job.
    network
        Bandwidths of the servers.
    free
        Number of free GPUs of each server m.

    Raises
    ------
    InputError
        If fewer GPUs are free than the job has replicas, or if servers with free GPUs differ in their bandwidth to
        other servers.
    """
    servers = [m for m, gpus in enumerate(free) if gpus > 0]
    if sum(free[m] for m in servers) < profile.gpus:
        legal = f"at least {profile.gpus} free GPUs, one for each replica"
        raise InputError("too few free GPUs", field="free", value=list(free), legal=legal)
    across = _seconds_per_byte_across(network, servers)
    # seconds saved for a byte that stays on server m
    saved = {m: across - 1.0 / float(network.intra[m]) for m in servers}
    stages = dict(enumerate(profile.stages))
    replicas = [(s, q) for s, stage in stages.items() for q in range(stage.replicas)]
    rings = [s for s, stage in stages.items() if stage.replicas > 1]
    weight = _weights(profile)

    model = pyo.ConcreteModel(NAME)
    model.replicas, model.servers = replicas, servers
    model.x = pyo.Var(replicas, servers, domain=pyo.Binary)
    model.together = pyo.Var(list(weight), servers, bounds=(0, 1))
    model.whole = pyo.Var(rings, servers, bounds=(0, 1))
    model.T, model.A = pyo.Var(domain=pyo.NonNegativeReals), pyo.Var(domain=pyo.NonNegativeReals)
    x, together, whole = model.x, model.together, model.whole

    # (0)
    model.objective = pyo.Objective(expr=pipeline_factor(profile.depth, profile.micro_batches) * model.T + model.A)

    # (1)
    @model.Constraint(replicas)
    def once(_: Any, s: int, q: int) -> Any:
        return sum(x[s, q, m] for m in servers) == 1

    # (2)
    @model.Constraint(servers)
    def capacity(_: Any, m: int) -> Any:
        return sum(x[v, m] for v in replicas) <= free[m]

    # (3)
    @model.Constraint(list(weight), servers, [0, 1])
    def both_ends(_: Any, s: int, q: int, u: int, r: int, m: int, end: int) -> Any:
        return together[s, q, u, r, m] <= x[((s, q), (u, r))[end], m]

    # (4)
    @model.Constraint(replicas)
    def pace(_: Any, s: int, q: int) -> Any:
        wait = sum(
            w * (across - sum(saved[m] * together[pair, m] for m in servers))
            for pair, w in weight.items()
            if (s, q) in (pair[:2], pair[2:])
        )
        return stages[s].compute + wait <= model.T

    # (5)
    @model.Constraint([(s, q) for s, q in replicas if s in rings], servers)
    def whole_ring(_: Any, s: int, q: int, m: int) -> Any:
        return whole[s, m] <= x[s, q, m]

    # (6)
    @model.Constraint(rings)
    def ring(_: Any, s: int) -> Any:
        volume = ring_bytes(stages[s].parameters, stages[s].replicas)
        return volume * (across - sum(saved[m] * whole[s, m] for m in servers)) <= model.A

    return model


def mapping(model: Any) -> list[int]:
    """Return the server of every replica, stage after stage, from the values loaded in the model.

    Parameters
    ----------
    model
        The model, with values loaded.
    """
    return [max(model.servers, key=lambda m: model.x[v, m].value) for v in model.replicas]


def _seconds_per_byte_across(network: Network, servers: Sequence[int]) -> float:
    cross = network.cross[list(servers)]
    if np.unique(cross).size > 1:
        legal = "servers with free GPUs that are alike in it"
        raise InputError(f"{NAME}: bandwidths between servers differ", field="cross", value=cross.tolist(), legal=legal)
    return 1.0 / float(cross[0])


def _weights(profile: Profile) -> dict[tuple[int, int, int, int], float]:
    # w_uv of every pair of replicas of neighbouring stages
    weight = {}
    for s, u, activations in profile.edges:
        here, there = profile.stages[s].replicas, profile.stages[u].replicas
        for q, r in product(range(here), range(there)):
            weight[s, q, u, r] = pair_bytes(activations, here, there)
    return weight


def job_on_an_empty_cluster(instance: Instance, job: str = "") -> tuple[Profile, Network, list[int]]:
    """Return the stages of a job, the network, and the number of GPUs of every node.

    Parameters
    ----------
    instance
        Jobs and cluster.
    job
        Id of the job; "": the first job with stages.

    Raises
    ------
    InputError
        If no such job has stages.
    """
    staged = instance.jobs_at("profiles").tolist()
    chosen = [j for j in staged if job in ("", instance.ids[j])]
    if not chosen:
        legal = ", ".join(instance.ids[j] for j in staged[:10]) or "an instance with stage profiles"
        raise InputError("no job with stages", field="job", value=job or None, legal=legal)
    profile = instance.profiles[str(instance.jobs[chosen[0]].profile)]
    return profile, Network.of(instance.cluster), instance.cluster.node_gpus.tolist()


add_program(
    NAME,
    "min alpha(placement) of one job: which replica runs on which server",
    "seconds of an iteration on the best placement of an empty cluster",
    "one job",
    job_on_an_empty_cluster,
    lambda data: build(*data),
)
