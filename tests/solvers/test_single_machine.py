"""Branching over sequences against exhaustion, from incumbents that are anything but good."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.bounds.lp_dual import price_certificate
from optsched.problem.objectives import get_objective
from optsched.solvers import single_machine
from optsched.solvers.methods.sequence_branching import machine_of
from optsched.solvers.single_machine import SequenceProof, SingleMachine, prove_single_machine
from optsched.solvers.solve_state import SolveState
from solvers.rigid_instances import SUMS, one_machine


@st.composite
def machines(draw: st.DrawFn, most: int = 6) -> SingleMachine:
    """Small jobs with tardiness costs (kink anywhere) or linear ones; ties are frequent."""
    n = draw(st.integers(1, most))
    length = np.array(draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
    release = np.array(draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    if draw(st.booleans()):
        release[:] = 0
    weight = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    due = np.array(draw(st.lists(st.integers(-3, 15), min_size=n, max_size=n)))
    horizon = int(release.max() + length.sum())
    slot = np.arange(horizon + 1)
    cost = weight[:, None] * np.maximum(slot + (length - due)[:, None], 0)
    return SingleMachine(cost.astype(float), length, release, horizon)


def value_of(machine: SingleMachine, starts: np.ndarray) -> int:
    return int(machine.cost[np.arange(starts.size), starts].sum())


def exhaustion(machine: SingleMachine) -> tuple[int, int]:
    """(best, worst) value over all left-shifted sequences."""
    values = []
    for order in permutations(range(machine.length.size)):
        now, value = 0, 0
        for j in order:
            start = max(now, int(machine.release[j]))
            value += int(machine.cost[j, start])
            now = start + int(machine.length[j])
        values.append(value)
    return min(values), max(values)


def is_schedule(machine: SingleMachine, starts: np.ndarray) -> bool:
    order = np.argsort(starts)
    ends = (starts + machine.length)[order]
    return bool(np.all(starts >= machine.release) and np.all(ends[:-1] <= starts[order][1:]))


@given(machines(), st.integers(1, 50))
def test_a_bad_incumbent_is_improved_to_the_optimum(machine: SingleMachine, above: int) -> None:
    best, worst = exhaustion(machine)
    for upper in (worst + above, best + 1):
        proof = prove_single_machine(machine, upper)
        assert proof.proved
        assert proof.bound == proof.value == best
        assert proof.starts is not None
        assert is_schedule(machine, proof.starts)
        assert value_of(machine, proof.starts) == best


@given(machines())
def test_an_optimal_incumbent_is_proved_and_nothing_else_is_claimed(machine: SingleMachine) -> None:
    best, _ = exhaustion(machine)
    proof = prove_single_machine(machine, best)
    assert (proof.bound, proof.value, proof.starts) == (best, best, None)


@given(machines(), st.integers(0, 3))
def test_bounds_hold_at_every_limit(machine: SingleMachine, limit: int) -> None:
    best, worst = exhaustion(machine)
    proof = prove_single_machine(machine, worst + 20, node_limit=limit)
    assert proof.bound <= best <= proof.value


def hard(seed: int = 0, n: int = 15) -> SingleMachine:
    """Due dates that leave a gap after the root."""
    rng = np.random.default_rng(seed)
    length, weight = rng.integers(1, 40, n), rng.integers(1, 10, n)
    due = rng.integers(0, int(length.sum() * 0.8), n)
    horizon = int(length.sum())
    cost = weight[:, None] * np.maximum(np.arange(horizon + 1) + (length - due)[:, None], 0)
    return SingleMachine(cost.astype(float), length, np.zeros(n, dtype=np.int64), horizon)


def test_the_search_is_asked_once_when_the_root_leaves_a_gap() -> None:
    machine = hard()
    proof = prove_single_machine(machine, 10**6)
    assert proof.proved
    asked: list[int] = []

    def search(bound: int) -> tuple[int, np.ndarray]:
        asked.append(bound)
        assert proof.starts is not None
        return proof.value, proof.starts

    again = prove_single_machine(machine, 10**6, search=search)
    assert len(asked) == 1
    assert asked[0] <= proof.value
    assert (again.bound, again.value) == (proof.value, proof.value)
    assert again.nodes <= proof.nodes


def test_progress_comes_with_every_node_and_the_limit_holds() -> None:
    machine, seen = hard(), []
    upper = prove_single_machine(machine, 10**6).value + 40
    proof = prove_single_machine(machine, upper, node_limit=5, progress=lambda *now: seen.append(now))
    assert len(seen) == proof.nodes <= 5
    bounds = [bound for _, bound, _ in seen]
    assert bounds == sorted(bounds)
    again = prove_single_machine(machine, upper, node_limit=5)
    assert (again.bound, again.value, again.nodes) == (proof.bound, proof.value, proof.nodes)


def root(machine: SingleMachine, upper: int) -> SequenceProof:
    return prove_single_machine(machine, upper, node_limit=0)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=6),
    st.sampled_from(SUMS),
    st.booleans(),
)
def test_multipliers_become_prices_that_prove_a_bound(
    jobs: list[tuple[int, int, int]], objective: str, together: bool
) -> None:
    from optsched.solvers.prices import prices_of_multipliers
    from optsched.solvers.start_program import SlotJobs

    rows = [(0 if together else r, p, w) for r, p, w in jobs]
    instance = one_machine(*rows, due=tuple(2 * p for _, p, _ in rows))
    task = SolveState(instance, get_objective(objective))
    task.search(0)
    grid, step = task.grid, task.step
    assert grid is not None
    assert step is not None
    assert task.value is not None
    horizon = int(grid.release.max() + grid.duration.sum())
    machine = machine_of(task, horizon)
    best, _ = exhaustion(machine)
    proof = root(machine, int((task.value - task.values_from) / step))
    slots = SlotJobs(instance, objective, grid.origin, grid.unit, grid.release, grid.duration)
    longer = machine_of(task, horizon + int(grid.duration.max()))
    certificate = price_certificate(
        instance, objective, "gang-nonpreemptive", prices_of_multipliers(slots, longer, proof.multipliers, step)
    )
    certificate.verify(instance)
    assert certificate.value <= task.values_from + best * step


def test_one_job_is_proved_by_its_prices() -> None:
    from optsched.solvers.solve import solve

    solution = solve(one_machine((3, 4, 2)), "total_weighted_flow_time", model="sequence-branching")
    assert (solution.value_exact, solution.bound_exact, solution.status) == (Fraction(8), Fraction(8), "optimal")


@pytest.mark.parametrize(
    ("left", "accepted"),
    [
        ([(0, 0), (0, 3), (2, 5)], None),  # as many arcs as jobs, but none of job 1
        ([(0, 0), (1, 1), (2, 5)], None),  # one arc each that overlap
        ([(0, 0), (1, 3), (2, 5)], [0, 3, 5]),
    ],
)
def test_what_eliminations_leave_is_a_schedule_before_it_is_accepted(
    monkeypatch: pytest.MonkeyPatch, left: list[tuple[int, int]], accepted: list[int] | None
) -> None:
    machine = SingleMachine(np.zeros((3, 9)), np.array([3, 2, 3]), np.array([0, 1, 0]), 8)

    def eliminate(*arguments: object) -> tuple[float, int]:
        alive = arguments[4]
        assert isinstance(alive, np.ndarray)
        alive[:] = False
        alive[tuple(zip(*left, strict=True))] = True
        return 0.0, 3

    monkeypatch.setattr(single_machine, "ascend", eliminate)
    tree = single_machine._Tree(machine, 100)
    monkeypatch.setattr(tree, "_path", lambda *_: [[0, 3], [], [5]])
    tree.open(np.ones((3, 9), dtype=bool), np.zeros(3), 1, 1.0, -1e18)
    assert (None if tree.starts is None else tree.starts.tolist()) == accepted
