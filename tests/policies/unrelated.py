"""Unrelated machines: one GPU each, on which every job has a rate of its own."""

from __future__ import annotations

from itertools import product

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs

WORK = 12  # units, of which the seconds are divisors
Row = tuple[int, int, tuple[int, ...]]  # arrival, weight, seconds by machine; 0: not for it


def unrelated(rows: list[Row], objective: str) -> Instance:
    """The instance of these jobs, at least one."""
    machines = len(rows[0][2])
    rates = {
        (f"{j}", f"m{i}", 1): Throughput(WORK / p if p else 0.0)
        for j, (_, _, seconds) in enumerate(rows)
        for i, p in enumerate(seconds)
    }
    jobs = [Job(f"{j}", arrival=r, iterations=WORK, profile=f"{j}", weight=w) for j, (r, w, _) in enumerate(rows)]
    cluster = Cluster(tuple(NodeGroup(1, gpu=f"m{i}") for i in range(machines)))
    return Instance(jobs, cluster, objective=objective, throughputs=Throughputs(rates))


def shortest(table: list[tuple[int, ...]], busy: tuple[int, ...] = ()) -> int:
    """The least makespan of jobs of these seconds by machine, by trying every assignment; ``busy``: of machines at first."""
    begin, found = busy or (0,) * len(table[0]), []
    for choice in product(*[[i for i, p in enumerate(seconds) if p] for seconds in table]):
        load = list(begin)
        for seconds, i in zip(table, choice, strict=True):
            load[i] += seconds[i]
        found.append(max(load))
    return min(found)
