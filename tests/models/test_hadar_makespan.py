"""Makespan LPs: mixing types gains nothing in the fluid limit, forking gains what the LPs say, every value proved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from optsched.bounds.certificate import CertificateError
from optsched.check.referee import check_schedule
from optsched.errors import InfeasibleError, InputError
from optsched.models import makespan_modes
from optsched.models.hadar_e_forking import fork_jobs
from optsched.models.hadar_makespan import fluid_jobs_of
from optsched.models.makespan_modes import MakespanCertificate, ModeJobs, WorkMode
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.solvers.compile_model import compile
from optsched.solvers.mode_makespan import makespan_interval
from optsched.solvers.session import Session

Solve = Callable[[Any], float]
Gangs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
CLOSED = Fraction(1, 10**9)  # relative width of an interval; measured: below 1e-13


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


def closed(jobs: ModeJobs) -> MakespanCertificate:
    """The interval, closed to 1e-9."""
    found = makespan_interval(jobs)
    assert 0 < found.lower <= found.upper <= found.lower * (1 + CLOSED)
    return found


def test_mixing_types_gains_nothing_in_the_fluid_limit() -> None:
    rng = np.random.default_rng(0)
    for _ in range(61):
        data = random_gangs(rng)
        fluid, single, mixed = (closed(of(*data)) for of in (fluid_jobs, single_jobs, mixed_jobs))
        for one, other in itertools.permutations((fluid, single, mixed), 2):
            assert one.lower <= other.upper


def test_the_fluid_lp_bounds_every_mixed_one() -> None:
    rng = np.random.default_rng(1)
    gained = 0
    for _ in range(15):
        data = random_gangs(rng, fitting=False)
        fluid, mixed = closed(fluid_jobs(*data)), closed(mixed_jobs(*data))
        assert fluid.lower <= mixed.upper
        try:
            single = closed(single_jobs(*data))
        except InfeasibleError:
            gained += 1
            continue
        assert mixed.lower <= single.upper
        gained += mixed.upper < single.lower
    assert gained > 0


def test_four_tasks_on_two_and_two_devices_run_mixed_only() -> None:
    data = [100.0], [4], [[3.0, 2.0]], [2, 2]
    assert closed(mixed_jobs(*data)).upper == Fraction(100, 4 * 2)
    assert closed(fluid_jobs(*data)).lower == Fraction(100, 2 * (3 + 2))
    with pytest.raises(InfeasibleError, match="job 0"):
        single_jobs(*data)


def test_the_lp_of_the_sheet_as_arrays() -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        work, tasks, speed, capacity = random_gangs(rng)
        n, types = speed.shape
        # columns: y_jr, then T
        rows, limits = [], []
        for j in range(n):
            y = np.zeros((n, types))
            y[j] = tasks[j] * speed[j]
            rows.append([*(-y.ravel()), 0])
            limits.append(-work[j])
            rows.append([*(y > 0).ravel().astype(float), -1])
            limits.append(0)
        for r in range(types):
            y = np.zeros((n, types))
            y[:, r] = tasks
            rows.append([*y.ravel(), -capacity[r]])
            limits.append(0)
        found = linprog([0] * (n * types) + [1], A_ub=np.array(rows), b_ub=limits, method="highs-ds")
        assert float(closed(fluid_jobs(work, tasks, speed, capacity)).lower) == pytest.approx(found.fun, rel=1e-8)


def test_pyomos_own_solver_agrees(solve: Solve) -> None:
    rng = np.random.default_rng(3)
    for k in range(4):
        work, tasks, speed, capacity = random_gangs(rng, fitting=False)
        jobs = mixed_jobs(work, tasks, speed, capacity) if k % 2 else fork_jobs(work, speed, fork=k % 4 == 0)
        interval = closed(jobs)
        values = [Session(compile(makespan_modes.build(jobs))).solve().value, solve(makespan_modes.build(jobs))]
        assert values == pytest.approx([float(interval.lower)] * 2, rel=1e-8)


def test_forking_by_hand() -> None:
    # one job on nodes of 1, 2 and 3 steps/s: 6 a second forked, 3 alone
    assert closed(fork_jobs([12.0], [[1.0, 2.0, 3.0]])).lower == 2
    assert closed(fork_jobs([12.0], [[1.0, 2.0, 3.0]], fork=False)).upper == 4
    # two equal jobs on two equal nodes: nothing to gain
    for fork in (True, False):
        assert closed(fork_jobs([12.0, 12.0], np.full((2, 2), 3.0), fork=fork)).upper == 4


def open_shop(jobs: ModeJobs, proof: MakespanCertificate) -> list[tuple[Fraction, dict[int, int]]]:
    """(seconds, node of every running job) in a row, in fractions, from the times of the LP without forking.

    Padded with idle time to a square matrix whose rows and columns all add up to T; a perfect matching of its positive
    entries runs until one of them is used up (Birkhoff).
    """
    n, nodes, T = jobs.n, len(jobs.capacity), proof.upper
    left: dict[tuple[int, int], Fraction] = {}
    for j in range(n):
        for m in range(jobs.offset[j], jobs.offset[j + 1]):
            (h, _), spent = jobs.flat[m].use[0], proof.time[m]
            left[j, h] = left[n + h, nodes + j] = spent
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
    return phases


def test_without_forking_the_optimum_is_attained() -> None:
    rng = np.random.default_rng(4)
    for _ in range(8):
        n, nodes = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        speed = rng.uniform(1, 9, (n, nodes)) * (rng.random((n, nodes)) < 0.8)
        speed[:, 0] += 1
        jobs = fork_jobs(rng.uniform(10, 100, n), speed, fork=False)
        proof = closed(jobs)
        done, total = [Fraction(0)] * n, Fraction(0)
        for seconds, node_of in open_shop(jobs, proof):
            assert len(set(node_of.values())) == len(node_of)
            total += seconds
            for j, h in node_of.items():
                done[j] += seconds * Fraction(float(speed[j, h]))
        assert total == proof.upper
        assert all(steps >= Fraction(asked) for steps, asked in zip(done, jobs.work, strict=True))


def fork_gain(rng: np.random.Generator, jobs: int) -> float:
    """No-fork over fork optimum in the setting of table 5.4: 5 nodes with relative speeds 1, .9, .55, .35, .12."""
    nodes = np.array([1, 0.9, 0.55, 0.35, 0.12]) * rng.uniform(0.8, 1.2, 5)
    speed = rng.uniform(5, 50, (jobs, 1)) * nodes * rng.uniform(0.8, 1.2, (jobs, 5))
    steps = rng.uniform(600, 6000, jobs) * speed.max(axis=1)
    return float(closed(fork_jobs(steps, speed, fork=False)).lower / closed(fork_jobs(steps, speed)).upper)


@pytest.mark.parametrize(("jobs", "gain", "error"), [(1, 2.79, 0.2), (4, 1.25, 0.12)])
def test_what_forking_can_gain(jobs: int, gain: float, error: float) -> None:
    rng = np.random.default_rng(5)
    gains = [fork_gain(rng, jobs) for _ in range(20)]
    assert min(gains) >= 1 - 1e-9
    assert np.mean(gains) == pytest.approx(gain, abs=error)


@pytest.mark.study
@pytest.mark.parametrize(("jobs", "gain"), [(1, 2.79), (3, 1.48), (4, 1.25), (5, 1.06), (8, 1.0), (10, 1.0), (12, 1.0)])
def test_the_whole_table_of_fork_gains(jobs: int, gain: float) -> None:
    rng = np.random.default_rng(6)
    gains = [fork_gain(rng, jobs) for _ in range(100)]
    # both this mean and the independent model's, of 20 instances, are samples
    error = 3 * np.std(gains) * (1 / np.sqrt(20) + 1 / np.sqrt(100)) + 0.005
    assert np.mean(gains) == pytest.approx(gain, abs=error)


def test_false_intervals_are_refused() -> None:
    jobs = fork_jobs([12.0, 5.0], [[1.0, 2.0], [2.0, 1.0]], fork=False)
    proof, tiny = closed(jobs), Fraction(1, 10**30)
    for wrong in (
        replace(proof, lower=proof.lower + tiny),
        replace(proof, upper=proof.upper - tiny),
        replace(proof, time=(proof.time[0], proof.time[1] - tiny, *proof.time[2:])),
        replace(proof, time=tuple(-spent for spent in proof.time)),
        replace(proof, time=proof.time[1:]),
        replace(proof, job_price=(Fraction(-1), Fraction(0))),
    ):
        with pytest.raises(CertificateError):
            wrong.verify(jobs)
    forked = fork_jobs([12.0, 5.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(CertificateError, match="overlap"):
        replace(proof, job_price=(Fraction(1), Fraction(1))).verify(forked)


def test_any_numbers_prove_something() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        work, _, speed, _ = random_gangs(rng)
        jobs = fork_jobs(work, speed, fork=bool(rng.integers(2)))
        best = closed(jobs)
        loose = makespan_modes.makespan_certificate(
            jobs,
            rng.normal(1, 1, len(jobs.capacity)).tolist(),
            rng.normal(1, 1, jobs.n).tolist(),
            rng.uniform(0.1, 1, len(jobs.flat)).tolist(),
        )
        loose.verify(jobs)
        assert loose.lower <= best.upper
        assert loose.upper >= best.lower


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
    bound = closed(fluid_jobs_of(instance))
    # y holds both V100s at 6/s for a part of the time, x a K80; then x has a V100 and y the K80s at 2/s or less
    y_first = Schedule.from_starts(
        instance, [0.0, 0.0], node_counts={0: [(1, 1)], 1: [(0, 2)]}, duration=np.array([400.0, 100.0])
    )
    assert check_schedule(instance, y_first) == []
    assert bound.upper < y_first.completion.max()
    # with T: y needs u s on V100 and v s on K80, 6 u + 2 v = 600; x the rest: 4 (2 T - 2 u) + (2 T - 2 v) = 400, u + v <= T
    assert float(bound.lower) == pytest.approx(_fluid_by_grid(), rel=1e-3)


def _fluid_by_grid() -> float:
    """x: 4 a + b = 400, a + b <= T; y: 6 u + 2 v = 600, u + v <= T; a + 2 u <= 2 T, b + 2 v <= 2 T."""
    a, u = np.meshgrid(np.linspace(0, 100, 801), np.linspace(0, 100, 801))
    b, v = 400 - 4 * a, 300 - 3 * u
    return float(np.maximum.reduce([a + b, u + v, (a + 2 * u) / 2, (b + 2 * v) / 2]).min())


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: fork_jobs([1.0], [[0.0, 0.0]]), InfeasibleError, "job 0"),
        (lambda: fork_jobs([1.0], [[-1.0]]), InputError, "speed"),
        (lambda: fork_jobs([1.0, 2.0], [[1.0]]), InputError, "speed"),
        (lambda: fork_jobs([0.0], [[1.0]]), InputError, "work"),
        (lambda: fork_jobs([], np.zeros((0, 2))), InputError, "work"),
        (lambda: mixed_jobs([1.0], [3], [[1.0, 1.0]], [1, 1]), InfeasibleError, "job 0"),
        (lambda: ModeJobs((1.0,), ((WorkMode(0.0, ((0, 1),)),),), (1,)), InputError, "rate"),
        (lambda: ModeJobs((1.0,), ((WorkMode(1.0, ((0, 1),)),),), (0,)), InputError, "use"),
    ],
)
def test_data_that_are_not_legal(make: Callable[[], ModeJobs], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        make()


def test_times_that_do_no_work_are_refused() -> None:
    with pytest.raises(InputError, match="no work"):
        makespan_modes.makespan_certificate(fork_jobs([1.0], [[1.0]]), [1.0], [0.0], [0.0])
