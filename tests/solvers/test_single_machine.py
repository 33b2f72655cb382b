"""Branching over sequences against exhaustion, from incumbents that are anything but good."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from optsched.bounds.lp_dual import price_certificate
from optsched.io.traces.generate import generate
from optsched.problem.arrays import Floats
from optsched.problem.objectives import get_objective
from optsched.solvers import sequence_pairs, single_machine
from optsched.solvers.lp_bound import SlotJobs
from optsched.solvers.methods.sequence_branching import machine_of, prices_of_multipliers
from optsched.solvers.sequence_graph import _triple
from optsched.solvers.sequence_paths import Ascent, Jobs, find_orders, may_follow, simple_ascend
from optsched.solvers.sequence_search import improve_gapless, improve_sequence
from optsched.solvers.single_machine import EXACT, SingleMachine, prove_single_machine
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from solvers.looks import Looks
from solvers.rigid_instances import SUMS, one_machine


@st.composite
def machines(draw: st.DrawFn, most: int = 6, least: int = 1) -> SingleMachine:
    """Small jobs with tardiness costs (kink anywhere) or linear ones; ties are frequent."""
    n = draw(st.integers(least, most))
    length = np.array(draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
    release = np.array(draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    if draw(st.booleans()):
        release[:] = 0
    weight = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    due = np.array(draw(st.lists(st.integers(-3, 15), min_size=n, max_size=n)))
    horizon = int(release.max() + length.sum())
    return machine_with(weight, length - due, length, release, horizon)


def machine_with(weight, early, length, release, horizon) -> SingleMachine:  # type: ignore[no-untyped-def]
    """Starting j at s costs weight (s + early)+."""
    return SingleMachine(weight.astype(float), (weight * early).astype(float), length, release, horizon)


def value_of(machine: SingleMachine, starts: np.ndarray) -> int:
    return int(machine.cost(np.arange(starts.size), starts).sum())


def jobs_of(machine: SingleMachine) -> Jobs:
    return Jobs.of(machine.rise, machine.base, machine.length, machine.release)


def left_shifted(machine: SingleMachine, order: tuple[int, ...]) -> np.ndarray:
    starts, now = np.zeros(len(order), dtype=np.int64), 0
    for j in order:
        starts[j] = max(now, int(machine.release[j]))
        now = int(starts[j] + machine.length[j])
    return starts


def exhaustion(machine: SingleMachine) -> tuple[int, int]:
    """(best, worst) value over all left-shifted sequences."""
    values = [value_of(machine, left_shifted(machine, order)) for order in permutations(range(machine.length.size))]
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


@pytest.mark.compiled
@given(machines(5), st.sampled_from([20_000_000, 30, 0]))
def test_weak_multipliers_leave_the_proof_to_counting_or_to_branching(machine: SingleMachine, edges: int) -> None:
    best, worst = exhaustion(machine)
    with pytest.MonkeyPatch.context() as patch:
        # next to no ascent, no local search, and graphs of any size, of 30 edges, or none at all
        for name, value in {"PLAIN": 1, "RULES": 5, "GRAPH": 5, "CHILD": 5, "SEARCH": 0, "EDGES": edges}.items():
            patch.setattr(single_machine, name, value)
        for upper in (worst + 1, best + 1, best):
            proof = prove_single_machine(machine, upper)
            assert (proof.bound, proof.value) == (best, best)
            assert (proof.starts is None) == (upper == best)
            if proof.starts is not None:
                assert is_schedule(machine, proof.starts)
                assert value_of(machine, proof.starts) == best


@settings(max_examples=200)  # cheap ones; of 20 none has a release that forbids what would be cheaper
@given(machines(3, 3), st.integers(0, 6))
def test_three_in_a_row_may_stay_when_no_other_sequence_of_them_is_better(machine: SingleMachine, begin: int) -> None:
    jobs = jobs_of(machine)
    begin = min(begin, int(machine.release.max()))

    def starts(order: tuple[int, ...]) -> list[int]:
        return [begin + int(machine.length[list(order[:k])].sum()) for k in range(3)]

    possible = {  # without a wait
        order: int(machine.cost(np.array(order), np.array(starts(order))).sum())
        for order in permutations(range(3))
        if all(machine.release[j] <= s for j, s in zip(order, starts(order), strict=True))
    }
    for (h, i, j), value in possible.items():
        a, b, s = starts((h, i, j))
        pairs = may_follow.py_func(h, a, i, b, jobs) and may_follow.py_func(i, b, j, s, jobs)
        stays = pairs and _triple.py_func(h, a, i, b, j, s, jobs)
        assert stays == all((value, (h, i, j)) <= (other, order) for order, other in possible.items())


@given(machines(), st.lists(st.integers(0, 12), min_size=2, max_size=2))
def test_orders_and_windows_are_those_of_the_smallest_best_sequence(machine: SingleMachine, slack: list[int]) -> None:
    sort = np.argsort(machine.length, kind="stable")
    machine = machine.sorted(sort)
    sequences = permutations(range(machine.length.size))
    starts = left_shifted(
        machine, min(sequences, key=lambda order: (value_of(machine, left_shifted(machine, order)), order))
    )
    jobs = jobs_of(machine)
    first = np.maximum(machine.release, starts - slack[0])
    last = np.minimum(machine.horizon - machine.length, starts + slack[1])
    assert find_orders(jobs, first, last, machine.idle)
    assert np.all(first <= starts)
    assert np.all(starts <= last)
    assert not np.any(jobs.before & (starts[:, None] >= starts))


def test_orders_of_jobs_that_need_no_windows() -> None:
    """Shorter, heavier and due earlier goes first; of two that are alike the first; a third fits in between."""
    length, weight, due = np.array([1, 2, 2, 9]), np.array([3, 2, 2, 1]), np.array([2, 4, 4, 4])
    jobs = jobs_of(machine_with(weight, length - due, length, np.zeros(4, dtype=np.int64), 14))
    first, last = np.zeros(4, dtype=np.int64), 14 - length
    assert find_orders(jobs, first, last, False)
    assert np.array_equal(jobs.before, np.triu(np.ones((4, 4), dtype=bool), 1))
    assert first.tolist() == last.tolist() == [0, 1, 3, 5]


def test_windows_that_contradict_each_other_leave_nothing() -> None:
    machine = hard(n=3)
    first = np.zeros(3, dtype=np.int64)
    assert not find_orders(jobs_of(machine), first, first.copy(), True)  # nobody ends before all have started


@given(machines(), st.integers(0, 1000))
def test_local_search_returns_the_value_of_its_sequence(machine: SingleMachine, seed: int) -> None:
    n = machine.length.size
    order = np.random.default_rng(seed).permutation(n)
    jobs = jobs_of(machine)
    found = improve_sequence(order, 100_000, -1.0, np.array([seed]), jobs)
    assert sorted(order.tolist()) == list(range(n))
    assert found == value_of(machine, left_shifted(machine, tuple(order.tolist())))
    assert found == exhaustion(machine)[0]  # so few jobs are searched through


@given(machines(), st.integers(0, 3))
def test_bounds_hold_at_every_limit(machine: SingleMachine, limit: int) -> None:
    best, worst = exhaustion(machine)
    proof = prove_single_machine(machine, worst + 20, stage_limit=limit)
    assert proof.bound <= best <= proof.value


@given(machines(), st.integers(0, 30))
def test_bounds_hold_whenever_the_time_is_up(machine: SingleMachine, looks: int) -> None:
    best, worst = exhaustion(machine)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((single_machine, "PLAIN"), (single_machine, "SEARCH"), (sequence_pairs, "ARCS")):
            patch.setattr(module, name, 1)  # many looks at the clock before it is proved
        proof = prove_single_machine(machine, worst + 20, deadline=Looks(looks))
    assert proof.bound <= best <= proof.value
    assert proof.starts is None or value_of(machine, proof.starts) == proof.value


@given(machines(), st.integers(0, 1000))
def test_search_without_releases_returns_the_value_of_its_sequence(machine: SingleMachine, seed: int) -> None:
    n = machine.length.size
    machine = SingleMachine(machine.rise, machine.base, machine.length, 0 * machine.release, machine.horizon)
    order = np.random.default_rng(seed).permutation(n)
    found = improve_gapless(order, 100_000, -1.0, np.array([seed]), jobs_of(machine))
    assert sorted(order.tolist()) == list(range(n))
    assert found == value_of(machine, left_shifted(machine, tuple(order.tolist())))
    assert found == exhaustion(machine)[0]


def hard(seed: int = 0, n: int = 40) -> SingleMachine:
    """Due dates that leave a gap after the root."""
    rng = np.random.default_rng(seed)
    length, weight = rng.integers(1, 40, n), rng.integers(1, 10, n)
    due = rng.integers(0, int(length.sum() * 0.8), n)
    return machine_with(weight, length - due, length, np.zeros(n, dtype=np.int64), int(length.sum()))


def test_an_ascent_in_parts_is_the_ascent() -> None:
    machine = hard(n=20)
    alive = (np.arange(machine.horizon + 1)[:, None] + machine.length <= machine.horizon).T
    whole, parts = Ascent.at(np.zeros(20)), Ascent.at(np.zeros(20))
    simple_ascend(jobs_of(machine), whole, alive, False, True, 1e5, 200)
    for _ in range(20):
        simple_ascend(jobs_of(machine), parts, alive, False, True, 1e5, 10)
    assert whole.state[0] < 1  # steps have become shorter
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_progress_comes_with_every_stage_and_the_limit_holds() -> None:
    machine, seen = hard(n=60), []
    upper = prove_single_machine(machine, 10**6).value + 40
    proof = prove_single_machine(machine, upper, stage_limit=2, progress=lambda *now: seen.append(now))
    assert 0 < len(seen) == proof.stages <= 2
    bounds = [bound for _, bound, _ in seen]
    assert bounds == sorted(bounds)
    again = prove_single_machine(machine, upper, stage_limit=2)
    assert (again.bound, again.value, again.stages) == (proof.bound, proof.value, proof.stages)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=6),
    st.sampled_from(SUMS),
    st.booleans(),
)
def test_multipliers_become_prices_that_prove_a_bound(
    jobs: list[tuple[int, int, int]], objective: str, together: bool
) -> None:
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
    made: list[tuple[Floats, float]] = []
    upper = int((task.value - task.values_from) / step)
    prove_single_machine(machine, upper, stage_limit=0, priced=lambda *prices: made.append(prices))
    [(multipliers, bound)] = made
    slots = SlotJobs(instance, objective, grid.origin, grid.unit, grid.release, grid.duration)
    longer = machine_of(task, horizon + int(grid.duration.max()))
    certificate = price_certificate(
        instance, objective, "gang-nonpreemptive", prices_of_multipliers(slots, longer, multipliers, step)
    )
    certificate.verify(instance)
    assert certificate.value <= task.values_from + math.ceil(bound) * step
    assert bound <= best


def test_values_may_be_any_number_of_steps() -> None:
    """One in ten million counts: methods that trust floats have no use for such a step."""
    instance = one_machine((0, 3, 10**7), (0, 2, 1), (1, 2, 3 * 10**6), (2, 1, 10**6 + 1))
    state = SolveState(instance, get_objective("total_weighted_completion_time"))
    state.search(0)
    assert (state.step, state.finest_step) == (None, 1)
    machine = machine_of(state, 10)
    best, _ = exhaustion(machine)
    solution = solve(instance, "total_weighted_completion_time", model="sequence-branching")
    assert solution.status == "optimal"
    assert solution.value_exact == solution.bound_exact == state.values_from + best


def test_costs_beyond_exact_arithmetic_are_large_and_begin_at_the_same_start() -> None:
    """A job of weight 10^17 costs nothing until it is late, and then more than any schedule worth finding."""
    state = SolveState(one_machine((0, 3, 1e17), (0, 2, 3), due=(4, 2)), get_objective("total_weighted_tardiness"))
    state.search(0)
    machine, start = machine_of(state, 5), np.arange(6)
    heavy, light = (machine.cost(np.full(6, j), start).tolist() for j in (0, 1))
    assert heavy[:2] == [0, 0]
    assert min(heavy[2:]) > EXACT / 6
    assert light == [0, 3, 6, 9, 12, 15]


def test_one_job_is_proved_by_its_prices() -> None:
    solution = solve(one_machine((3, 4, 2)), "total_weighted_flow_time", model="sequence-branching")
    assert (solution.value_exact, solution.bound_exact, solution.status) == (Fraction(8), Fraction(8), "optimal")


@pytest.mark.study
@pytest.mark.parametrize(("tightness", "spread", "optimum"), [(0.6, 0.4, 1045276), (0.8, 0.6, 3286565)])
def test_optima_of_300_jobs(tightness: float, spread: float, optimum: int) -> None:
    instance = generate("tardiness", seed=1, jobs=300, tightness=tightness, spread=spread)
    solution = solve(instance, model="sequence-branching")
    assert (solution.status, solution.value, solution.bound) == ("optimal", optimum, optimum)
    assert solution.certificate is not None
    solution.certificate.verify(instance)
