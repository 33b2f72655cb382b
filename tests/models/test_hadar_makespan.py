"""Makespan LPs: mixing types gains nothing in the fluid limit, forking gains what the LPs say, every value proved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from loaded_optimum import loaded_optimum

from optsched.check.referee import check_schedule
from optsched.errors import InfeasibleError, InputError
from optsched.models import makespan_modes
from optsched.models.hadar_e_forking import fork_jobs
from optsched.models.hadar_makespan import fluid_jobs_of
from optsched.models.makespan_modes import ModeJobs, WorkMode
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session

Solve = Callable[[Any], float]
Gangs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
CLOSED = 1e-9  # relative, of a value and what its prices prove; measured: below 1e-13


def random_gangs(rng: np.random.Generator, *, fitting: bool = True) -> Gangs:
    """(work, tasks, speed, capacity): 1-6 jobs, 1-3 types of 1-6 GPUs; with ``fitting`` every gang fits every type."""
    n, types = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    capacity = rng.integers(1, 7, types)
    most = capacity.min() if fitting else capacity.sum()
    tasks = rng.integers(1, most + 1, n)
    speed = rng.uniform(0.1, 1, (n, types)) * rng.uniform(1, 50, (n, 1))
    return rng.uniform(100, 1e5, n), tasks, speed, capacity


def fluid_jobs(work: Any, tasks: Any, speed: Any, capacity: Any, *, fitting: bool = False) -> ModeJobs:
    """One type at a time; with ``fitting`` only where all of the gang fits."""
    modes = [
        tuple(
            WorkMode(W * x, ((r, W),))
            for r, (x, c) in enumerate(zip(row, capacity, strict=True))
            if x > 0 and c >= (W if fitting else 1)
        )
        for W, row in zip(np.asarray(tasks).tolist(), np.asarray(speed).tolist(), strict=True)
    ]
    return ModeJobs(tuple(work), tuple(modes), tuple(capacity))


single_jobs = partial(fluid_jobs, fitting=True)


def mixed_jobs(work: Any, tasks: Any, speed: Any, capacity: Any) -> ModeJobs:
    """Every split of a gang over the types, at the rate of the slowest."""
    modes = []
    for W, row in zip(np.asarray(tasks).tolist(), np.asarray(speed).tolist(), strict=True):
        splits = itertools.product(
            *(range(min(W, int(c)) + 1 if x > 0 else 1) for x, c in zip(row, capacity, strict=True))
        )
        uses = (tuple((r, k) for r, k in enumerate(split) if k) for split in splits if sum(split) == W)
        modes.append(tuple(WorkMode(W * min(row[r] for r, _ in use), use) for use in uses))
    return ModeJobs(tuple(work), tuple(modes), tuple(capacity))


class Makespan(NamedTuple):
    """The optimum of the LP, in seconds, and the seconds in every mode."""

    value: float
    time: list[float]


def least(jobs: ModeJobs) -> Makespan:
    """Solved, and proved by its prices: sum_j v_j p_j over the sum of all prices is a bound whatever they are."""
    model = makespan_modes.build(jobs)
    value = loaded_optimum(model)
    price, own = makespan_modes.prices(model, jobs)
    earned = sum(
        work * min((q + sum(u * price[r] for r, u in mode.use)) / mode.rate for mode in modes)
        for work, modes, q in zip(jobs.work, jobs.modes, own.tolist(), strict=True)
    )
    assert min(price.min(), own.min()) >= -CLOSED
    assert earned / (own.sum() + np.dot(jobs.capacity, price)) == pytest.approx(value, rel=CLOSED)
    return Makespan(value, [variable.value or 0.0 for variable in model.time.values()])


def test_mixing_types_gains_nothing_in_the_fluid_limit() -> None:
    rng = np.random.default_rng(0)
    for _ in range(61):
        data = random_gangs(rng)
        fluid, single, mixed = (least(of(*data)).value for of in (fluid_jobs, single_jobs, mixed_jobs))
        assert [single, mixed] == pytest.approx([fluid] * 2, rel=CLOSED)


def test_the_fluid_lp_bounds_every_mixed_one() -> None:
    rng = np.random.default_rng(1)
    gained = 0
    for _ in range(15):
        data = random_gangs(rng, fitting=False)
        fluid, mixed = least(fluid_jobs(*data)).value, least(mixed_jobs(*data)).value
        assert fluid <= mixed * (1 + CLOSED)
        try:
            single = least(single_jobs(*data)).value
        except InfeasibleError:
            gained += 1
            continue
        assert mixed <= single * (1 + CLOSED)
        gained += mixed * (1 + CLOSED) < single
    assert gained > 0


def test_four_tasks_on_two_and_two_devices_run_mixed_only() -> None:
    data = [100.0], [4], [[3.0, 2.0]], [2, 2]
    assert least(mixed_jobs(*data)).value == pytest.approx(100 / (4 * 2))
    assert least(fluid_jobs(*data)).value == pytest.approx(100 / (2 * (3 + 2)))
    with pytest.raises(InfeasibleError, match="job 0"):
        single_jobs(*data)


def test_pyomos_own_solver_agrees(solve: Solve) -> None:
    rng = np.random.default_rng(3)
    for k in range(4):
        work, tasks, speed, capacity = random_gangs(rng, fitting=False)
        jobs = mixed_jobs(work, tasks, speed, capacity) if k % 2 else fork_jobs(work, speed, fork=k % 4 == 0)
        values = [Session(compile(makespan_modes.build(jobs))).solve().value, solve(makespan_modes.build(jobs))]
        assert values == pytest.approx([least(jobs).value] * 2, rel=1e-8)


def test_forking_by_hand() -> None:
    # one job on nodes of 1, 2 and 3 steps/s: 6 a second forked, 3 alone
    assert least(fork_jobs([12.0], [[1.0, 2.0, 3.0]])).value == pytest.approx(2)
    assert least(fork_jobs([12.0], [[1.0, 2.0, 3.0]], fork=False)).value == pytest.approx(4)
    # two equal jobs on two equal nodes: nothing to gain
    for fork in (True, False):
        assert least(fork_jobs([12.0, 12.0], np.full((2, 2), 3.0), fork=fork)).value == pytest.approx(4)


def open_shop(jobs: ModeJobs, seconds: list[float]) -> tuple[Fraction, list[tuple[Fraction, dict[int, int]]]]:
    """T, and (seconds, node of every running job) in a row, in fractions, from the times of the LP without forking.

    Padded with idle time to a square matrix whose rows and columns all add up to T; a perfect matching of its positive
    entries runs until one of them is used up (Birkhoff).
    """
    n, nodes = jobs.n, len(jobs.capacity)
    left: dict[tuple[int, int], Fraction] = {}
    for j, (work, modes) in enumerate(zip(jobs.work, jobs.modes, strict=True)):
        spent = [max(Fraction(0), Fraction(seconds[jobs.offset[j] + m])) for m in range(len(modes))]
        short = Fraction(work) / sum(x * Fraction(mode.rate) for x, mode in zip(spent, modes, strict=True))
        left.update({(j, mode.use[0][0]): x * short for x, mode in zip(spent, modes, strict=True)})
    T = max(
        *(sum(x for (i, _), x in left.items() if i == j) for j in range(n)),
        *(sum(x for (_, k), x in left.items() if k == h) for h in range(nodes)),
    )
    left.update({(n + h, nodes + j): x for (j, h), x in left.items()})
    for j in range(n):
        left[j, nodes + j] = T - sum(left.get((j, h), Fraction(0)) for h in range(nodes))
    for h in range(nodes):
        left[n + h, h] = T - sum(left.get((j, h), Fraction(0)) for j in range(n))
    phases = []
    while any(left.values()):
        graph = nx.Graph([(("row", i), ("column", k)) for (i, k), spent in left.items() if spent > 0])
        pairs = nx.bipartite.hopcroft_karp_matching(graph, [("row", i) for i in range(n + nodes)])
        matched = [(i, pairs["row", i][1]) for i in range(n + nodes)]
        step = min(left[pair] for pair in matched)
        for pair in matched:
            left[pair] -= step
        phases.append((step, {j: h for j, h in matched if j < n and h < nodes}))
    return T, phases


def test_without_forking_the_optimum_is_attained() -> None:
    rng = np.random.default_rng(4)
    for _ in range(8):
        n, nodes = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        speed = rng.uniform(1, 9, (n, nodes)) * (rng.random((n, nodes)) < 0.8)
        speed[:, 0] += 1
        jobs = fork_jobs(rng.uniform(10, 100, n), speed, fork=False)
        best = least(jobs)
        length, phases = open_shop(jobs, best.time)
        done, total = [Fraction(0)] * n, Fraction(0)
        for seconds, node_of in phases:
            assert len(set(node_of.values())) == len(node_of)
            total += seconds
            for j, h in node_of.items():
                done[j] += seconds * Fraction(float(speed[j, h]))
        assert total == length
        assert float(length) == pytest.approx(best.value, rel=CLOSED)
        assert all(steps >= Fraction(asked) for steps, asked in zip(done, jobs.work, strict=True))


def test_the_bound_of_an_instance_is_below_its_schedules() -> None:
    table = Throughputs(
        {
            ("a", "V100", 1): Throughput(4.0),
            ("a", "K80", 1): Throughput(1.0),
            ("b", "V100", 2): Throughput(6.0, 5.0),
            ("b", "K80", 2): Throughput(1.0, 2.0),
        }
    )
    jobs = [Job("x", 0, 1, iterations=400, profile="a"), Job("y", 0, 2, iterations=600, profile="b")]
    instance = Instance(jobs, "1x2:V100+2x1:K80", throughputs=table)
    bound = least(fluid_jobs_of(instance)).value
    # y holds both V100s at 6/s for a part of the time, x a K80; then x has a V100 and y the K80s at 2/s or less
    y_first = Schedule.from_starts(
        instance, [0.0, 0.0], node_counts={0: [(1, 1)], 1: [(0, 2)]}, duration=np.array([400.0, 100.0])
    )
    assert check_schedule(instance, y_first) == []
    assert bound < y_first.completion.max()
    # with T: y needs u s on V100 and v s on K80, 6 u + 2 v = 600; x the rest: 4 (2 T - 2 u) + (2 T - 2 v) = 400, u + v <= T
    assert bound == pytest.approx(_fluid_by_grid(), rel=1e-3)


def _fluid_by_grid() -> float:
    """x: 4 a + b = 400, a + b <= T; y: 6 u + 2 v = 600, u + v <= T; a + 2 u <= 2 T, b + 2 v <= 2 T."""
    a, u = np.meshgrid(np.linspace(0, 100, 801), np.linspace(0, 100, 801))
    b, v = 400 - 4 * a, 300 - 3 * u
    return float(np.maximum.reduce([a + b, u + v, (a + 2 * u) / 2, (b + 2 * v) / 2]).min())


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: fork_jobs([1.0], [[0.0, 0.0]]), InfeasibleError, "job 0"),
        (lambda: fork_jobs([], np.zeros((0, 2))), InputError, "work"),
        (lambda: mixed_jobs([1.0], [3], [[1.0, 1.0]], [1, 1]), InfeasibleError, "job 0"),
    ],
)
def test_data_that_are_not_legal(make: Callable[[], ModeJobs], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        make()
