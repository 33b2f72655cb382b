"""Tiny instances as logs have them: clocks that began long ago, ties, units from milliseconds to weeks, and mixtures.

Every draw is decided by (kind of jobs, seed). Arrivals and durations are the floats that a log would hold, so that decimal
ones have no common unit and late ones are rounded to what the clock resolves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.profile import Profile, Stage
from optsched.problem.throughputs import Throughput, Throughputs

CLOCKS = (0.0, 0.0, 1e6, 1.6e9, 1.7e9 + 0.25, 1e12)
UNITS = (1e-3, 0.025, 1.0, 1.0, 1.0, 60.0, 1e3, 1e6)

Times = Callable[[int], np.ndarray]


def _times(rng: np.random.Generator) -> tuple[float, Times, Times]:
    """(the clock's first second, draws of arrivals after it, draws of durations)."""
    clock, unit = float(rng.choice(CLOCKS)), float(rng.choice(UNITS))
    whole, mixed, late = rng.random() < 0.5, rng.random() < 0.15, rng.random() < 0.1
    step = max(unit, float(np.spacing(clock)))

    def arrivals(n: int) -> np.ndarray:
        after = (rng.integers(0, 5, n) if whole else rng.random(n) * 5) * step
        after *= rng.random(n) < 0.7
        if late:
            after[1:] += 1e6 * step  # one job long before the others
        return after

    def durations(n: int) -> np.ndarray:
        length = (rng.integers(1, 7, n) if whole else rng.random(n) * 6 + 0.05) * unit
        return length * 10.0 ** rng.integers(-3, 4, n) if mixed else length

    return clock, arrivals, durations


def _rows(rng: np.random.Generator, n: int) -> list[dict[str, float]]:
    """Arrivals, durations, weights and due dates of n jobs."""
    clock, arrivals, durations = _times(rng)
    arrival, duration = clock + arrivals(n), durations(n)
    weight = rng.choice([0.0, 0.1, 0.3, 1.0, 2.0, 3.0, 1000.0], n, p=[0.05, 0.1, 0.1, 0.3, 0.2, 0.2, 0.05])
    due = arrival + duration * rng.integers(0, 4, n)
    rows = zip(arrival.tolist(), duration.tolist(), weight.tolist(), due.tolist(), strict=True)
    return [{"arrival": r, "duration": p, "weight": w, "due": d} for r, p, w, d in rows]


def one_machine(rng: np.random.Generator) -> Instance:
    """One GPU."""
    return Instance([Job(f"j{k}", **row) for k, row in enumerate(_rows(rng, int(rng.integers(1, 6))))], "1x1")


def gang(rng: np.random.Generator) -> Instance:
    """Gangs on two to four GPUs, wherever they are."""
    gpus = int(rng.integers(2, 5))
    rows = _rows(rng, int(rng.integers(2, 5)))
    return Instance(
        [Job(f"j{k}", gpus=int(rng.integers(1, gpus + 1)), **row) for k, row in enumerate(rows)], f"1x{gpus}"
    )


def typed(rng: np.random.Generator) -> Instance:
    """Some jobs need a type, or the larger memory."""
    nodes = (NodeGroup(2, 1, "V100", gpu_memory=16.0), NodeGroup(1, 1, "K80", gpu_memory=8.0))
    jobs = []
    for k, row in enumerate(_rows(rng, int(rng.integers(2, 5)))):
        types = [None, ("V100",), ("K80",)][int(rng.integers(0, 3))]
        gpus = 1 if types == ("K80",) else int(rng.integers(1, 3))
        memory = float(rng.choice([0.0, 4.0])) if types == ("K80",) else float(rng.choice([0.0, 4.0, 12.0]))
        memory = 0.0 if memory == 12.0 and types == ("K80",) else memory
        jobs.append(Job(f"j{k}", gpus=gpus, gpu_types=types, gpu_memory=memory or None, **row))
    return Instance(jobs, Cluster(nodes))


def table(rng: np.random.Generator) -> Instance:
    """Speeds by GPU type, as a table of throughputs has them; one job has seconds."""
    cluster = Cluster((NodeGroup(1, 1, "V100"), NodeGroup(1, 1, "K80")))
    jobs, rates = [], {}
    for k, row in enumerate(_rows(rng, int(rng.integers(2, 5)))):
        if k == 2:
            jobs.append(Job(f"j{k}", **row))
            continue
        fast = float(rng.choice([1.0, 2.0, 2.5, 10.0])) / row["duration"]
        rates[f"m{k}", "V100", 1] = Throughput(fast)
        rates[f"m{k}", "K80", 1] = Throughput(fast / float(rng.choice([0.5, 1.0, 2.0, 3.0])))
        del row["duration"]
        jobs.append(Job(f"j{k}", iterations=int(rng.integers(1, 9)), profile=f"m{k}", **row))
    return Instance(jobs, cluster, throughputs=Throughputs(rates))


def stages(rng: np.random.Generator) -> Instance:
    """Profiles: across two nodes a ring takes longer than inside one."""
    nodes = tuple(NodeGroup(2, 1, nic_bandwidth=16 / 3, intra_bandwidth=8.0) for _ in range(2))
    unit = float(rng.choice([1e-3, 1.0, 1.0, 1e3]))
    profiles = {
        "ring": Profile.of_stages([Stage(2, 0.25 * unit, 0.25 * unit, 4.0 * unit)]),
        "line": Profile.of_stages([Stage(1, 0.3 * unit, 0.2 * unit, 0.0)]),
    }
    jobs = []
    for k, row in enumerate(_rows(rng, int(rng.integers(2, 4)))):
        del row["duration"]
        name = str(rng.choice(["ring", "ring", "line"]))
        jobs.append(
            Job(f"j{k}", gpus=2 if name == "ring" else 1, iterations=int(rng.integers(1, 9)), profile=name, **row)
        )
    return Instance(jobs, Cluster(nodes), profiles=profiles)


def sharing(rng: np.random.Generator) -> Instance:
    """Two or three jobs that slow each other down on common GPUs; one node or two."""
    n = 2 if rng.random() < 0.8 else 3
    cluster = str(rng.choice(["1x1", "1x1", "1x2", "1x3", "2+1"])) if n == 2 else "1x1"
    nodes = Cluster((NodeGroup(2, 1), NodeGroup(1, 1))) if cluster == "2+1" else Cluster.parse(cluster)
    rows = _rows(rng, n)
    jobs = [Job(f"j{k}", gpus=int(rng.integers(1, nodes.gpus + 1)), model=f"m{k}", **row) for k, row in enumerate(rows)]
    ratios = tuple(tuple(float(rng.choice([1.0, 1.1, 1.3, 1.5, 1.9, 2.5])) for _ in range(n)) for _ in range(n))
    return Instance(jobs, nodes, interference=Interference(kinds=tuple(f"m{k}" for k in range(n)), ratios=ratios))


KINDS: dict[str, Callable[[np.random.Generator], Instance]] = {
    build.__name__: build for build in (one_machine, gang, typed, table, stages, sharing)
}


def clocked_instance(kind: str, seed: int) -> Instance:
    """The instance of that kind and seed."""
    return KINDS[kind](np.random.default_rng([sorted(KINDS).index(kind), seed]))
