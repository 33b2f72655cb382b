"""What forking can gain, and what HadarE gains by rule ``work``: five unlike nodes, few and many jobs (5.4 of the sheet).

Nodes of relative speed 1, .9, .55, .35, .12 (each x U(0.8, 1.2), and each pair of job and node x U(0.8, 1.2)), jobs of
U(5, 50) steps/s at speed 1 and U(600, 6000) s on their fastest node, all there at 0. Beside every measured total time stands
the LP: the optimum with forking, and without. Forking pays when there are fewer jobs than nodes (and in every tail); with
J >= n an ideal preemptive schedule without forking is as short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from optsched.models.hadar_e_forking import fork_jobs
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.metrics import cluster_utilization
from optsched.solvers.mode_makespan import makespan_interval
from optsched.speeds.group_rates import group_rates

NODE_SPEEDS = (1.0, 0.9, 0.55, 0.35, 0.12)
JOBS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
COPIES = (1, 2, 5)
UNEVEN = (0.8, 1.2)


@dataclass(frozen=True)
class Forked:
    """HadarE with some number of copies on one instance: ``total_time`` TTD in seconds, CRU ``occupied``, ``productive``."""

    total_time: float
    occupied: float
    productive: float


@dataclass(frozen=True)
class ForkGain:
    """One instance: the optima of the two LPs in seconds (proven lower bounds), and HadarE by its number of copies."""

    instance: Instance
    fork: float
    no_fork: float
    runs: Mapping[int, Forked]

    @property
    def most(self) -> float:
        """The most that any forking scheme can gain in total time: optimum without / with forking."""
        return self.no_fork / self.fork


@dataclass(frozen=True)
class ForkGainRow:
    """Means over the instances of a row of the table, J = ``jobs``; dictionaries by number of copies.

    ``most`` is no-fork / fork optimum, ``ratio`` TTD / fork optimum; ``error`` the standard error of ``most``, of
    ``ratio_error`` that of ``ratio``.
    """

    jobs: int
    most: float
    error: float
    occupied: Mapping[int, float]
    productive: Mapping[int, float]
    ratio: Mapping[int, float]
    ratio_error: Mapping[int, float]


def fork_instance(jobs: int, seed: int) -> Instance:
    """An instance of the table: ``jobs`` one-GPU jobs on five one-GPU nodes, each of a type of its own."""
    rng = np.random.default_rng([seed, jobs])
    nodes = len(NODE_SPEEDS)
    speed = np.array(NODE_SPEEDS) * rng.uniform(*UNEVEN, nodes)
    rate = rng.uniform(5, 50, jobs)[:, None] * speed * rng.uniform(*UNEVEN, (jobs, nodes))
    steps = rng.uniform(600, 6000, jobs) * rate.max(axis=1)
    table = {
        (f"model-{j}", f"type-{h}", 1): Throughput(x) for j, row in enumerate(rate.tolist()) for h, x in enumerate(row)
    }
    return Instance(
        [Job(f"{j}", iterations=count, profile=f"model-{j}") for j, count in enumerate(steps.tolist())],
        Cluster(tuple(NodeGroup(gpus=1, gpu=f"type-{h}") for h in range(nodes))),
        name=f"fork-{jobs}-{seed}",
        objective="makespan",
        throughputs=Throughputs(table),
    )


def fork_gain(
    instance: Instance,
    copies: Iterable[int] = COPIES,
    policy: Callable[[int], str] = "hadar-e:rule=work,copies={}".format,
) -> ForkGain:
    """The two optima and HadarE's runs on an instance with one-GPU jobs on one-GPU nodes.

    ``policy(copies)`` is the policy to run. Complexity: two LPs of J x n columns, proved in fractions, and the runs.
    """
    rates = group_rates(instance)[:, instance.cluster.node_group]
    fork, no_fork = (float(makespan_interval(fork_jobs(instance.work, rates, fork=f)).lower) for f in (True, False))
    runs = {}
    for x in copies:
        schedule = simulate(instance, policy(x)).schedule
        total = float(schedule.end.max() - instance.arrival.min())
        runs[x] = Forked(total, *cluster_utilization(schedule))
    return ForkGain(instance, fork, no_fork, runs)


def fork_gain_table(
    jobs: Iterable[int] = JOBS, instances: int = 20, *, seed: int = 0, copies: tuple[int, ...] = COPIES
) -> list[ForkGainRow]:
    """The table of 5.4: a row for each number of jobs, over the seeds ``seed`` .. ``seed + instances - 1``.

    Deterministic; about 0.1 s an instance.
    """
    return [
        _row(count, [fork_gain(fork_instance(count, seed + k), copies) for k in range(instances)]) for count in jobs
    ]


def _row(jobs: int, measured: list[ForkGain]) -> ForkGainRow:
    copies = list(measured[0].runs)
    most = [each.most for each in measured]
    ratios = {x: [each.runs[x].total_time / each.fork for each in measured] for x in copies}
    return ForkGainRow(
        jobs,
        float(np.mean(most)),
        _standard_error(most),
        {x: float(np.mean([each.runs[x].occupied for each in measured])) for x in copies},
        {x: float(np.mean([each.runs[x].productive for each in measured])) for x in copies},
        {x: float(np.mean(values)) for x, values in ratios.items()},
        {x: _standard_error(values) for x, values in ratios.items()},
    )


def _standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
