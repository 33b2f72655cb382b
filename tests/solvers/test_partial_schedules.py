"""Partial schedules and prices of slots against exhaustion, at any prices and any width."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.deadline import NEVER, Deadline
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers import start_prices
from optsched.solvers.methods import partial_schedules
from optsched.solvers.methods.partial_schedules import WORD, Search, States, search_states
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from optsched.solvers.start_prices import BEYOND
from solvers.looks import Looks
from solvers.rigid_instances import SUMS, rigid_instances


@st.composite
def alike(draw: st.DrawFn) -> Instance:
    """Six jobs of few kinds."""
    kinds = st.tuples(st.integers(1, 3), st.integers(2, 3), st.integers(1, 2))
    drawn = draw(st.lists(st.tuples(st.integers(0, 5), kinds), min_size=6, max_size=6))
    jobs = [Job(f"j{j}", arrival=r, gpus=g, duration=p, weight=w) for j, (r, (g, p, w)) in enumerate(drawn)]
    return Instance(jobs, "1x4")


def begun(instance: Instance, objective: str) -> SolveState:
    """With a list schedule and no bound."""
    state = SolveState(instance, get_objective(objective))
    state.search(0)
    return state


def steps_of_optimum(search: Search, objective: str) -> int:
    return int((Fraction(optimum(search.state.instance, objective)) - search.clock.zero) / search.clock.step)


@given(
    rigid_instances(most=5) | alike(),
    st.sampled_from(SUMS),
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.sampled_from([1, 3, 32]),
)
@settings(max_examples=examples(80))
def test_any_prices_any_width_and_any_groups_enclose_the_optimum(
    instance: Instance, objective: str, seed: int, width: int, together: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_schedules, "TOGETHER", together)
        _enclose(instance, objective, seed, width)


def _enclose(instance: Instance, objective: str, seed: int, width: int) -> None:
    state = begun(instance, objective)
    search = Search(state)
    best = steps_of_optimum(search, objective)
    own = np.random.default_rng(seed).exponential(0.5, (instance.n, search.jobs.slots))
    bounds = search.jobs.prove(own)
    assert bounds.steps <= best
    unit = 1 << bounds.bits
    # starts that a schedule within the limit has are never given up
    kept = search.jobs.without(bounds, best)
    assert kept is not None
    found = search_states(kept.prove(own), search.times, best * unit, width, NEVER)
    assert found.finished
    assert found.order is None or found.cost == best * unit  # nothing above the limit is offered
    assert found.order is not None or found.bound <= best * unit
    # without a schedule that good, none is found, however wide
    assert search_states(bounds, search.times, best * unit - 1, width, NEVER).order is None
    everything = search_states(bounds, search.times, best * unit, 10_000, NEVER)
    assert (everything.cost, everything.bound) == (best * unit, BEYOND)


@given(rigid_instances(most=5), st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=examples(30))
def test_the_most_that_jobs_pay_is_the_dearest_set_of_every_slot(instance: Instance, seed: int, first: int) -> None:
    jobs, rng = Search(begun(instance, "total_completion_time")).jobs, np.random.default_rng(seed)
    prices = np.rint(rng.exponential(2.0, (instance.n, jobs.slots)))
    first_start, last_start = jobs.window
    slot = np.arange(jobs.slots)
    runs = (slot >= first_start[:, None]) & (slot < (last_start + jobs.length)[:, None])
    bounds, gone = jobs.prove(np.where(runs, prices, 0.0), 0), rng.random(instance.n) < 0.3
    before = gone & (rng.random(instance.n) < 0.5)  # some of them were gone before: their prices need not be read
    after = bounds.after(gone, bounds.payers(before), first)
    for gpus in range(jobs.total + 1):
        dearest = np.zeros(jobs.slots, dtype=np.int64)
        for k in range(2**instance.n):
            together = (k >> np.arange(instance.n) & 1).astype(bool)
            if not (together & gone).any() and jobs.gpus[together].sum() <= gpus:
                dearest = np.maximum(dearest, bounds.prices[together].sum(axis=0))
        expected = np.append(np.cumsum(dearest[::-1])[::-1], 0)
        assert (after[gpus, first:] == expected[first:]).all()


def test_states_of_nearly_the_same_jobs_are_neighbours() -> None:
    started = [[0, 1, 70], [0, 2, 3], [0, 1, 71], [0, 2, 4], [0, 1, 70]]
    states = States.empty(len(started), 2, 1)
    for state, jobs in enumerate(started):
        for job in jobs:
            states.gone[state, job // WORD] |= 1 << (job % WORD)
    assert states.gone_everywhere(80).nonzero()[0].tolist() == [0]
    order = states.similar_together(80).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert abs(order.index(1) - order.index(3)) == 1
    assert order.index(4) == order.index(0) + 1  # the same jobs: neighbours, in their order


@st.composite
def real_valued(draw: st.DrawFn) -> Instance:
    """Times and weights that no unit holds."""
    times = st.floats(0, 30)
    kinds = st.tuples(st.integers(1, 3), st.floats(0.1, 30), st.just(0.0) | st.floats(0.001, 3), times)
    drawn = draw(st.lists(st.tuples(times, kinds), min_size=1, max_size=5))
    jobs = [Job(f"j{j}", r, gpus=g, duration=p, weight=w, due=d) for j, (r, (g, p, w, d)) in enumerate(drawn)]
    return Instance(jobs, "1x4")


@given(real_valued() | rigid_instances(most=5) | alike(), st.sampled_from(SUMS), st.sampled_from([5, 50, 10_000]))
@settings(max_examples=examples(80))
def test_times_are_finer_than_slots(instance: Instance, objective: str, slots: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_prices, "MOST_SLOTS", slots)
        solution, best = solve(instance, objective, model="partial-schedules"), optimum(instance, objective)
    assert solution.status == "optimal"
    assert solution.value_exact is not None
    assert abs(solution.value_exact - best) <= Fraction(1, 10**8) * abs(best)


@given(rigid_instances(most=5), st.sampled_from(SUMS))
@settings(max_examples=examples(30))
def test_prices_only_get_better_and_never_pass_the_optimum(instance: Instance, objective: str) -> None:
    state = begun(instance, objective)
    search = Search(state)
    best = steps_of_optimum(search, objective)
    before = np.zeros((instance.n, search.jobs.slots))
    some = search.jobs.ascend(before, 50, NEVER)
    assert search.jobs.prove(before).value <= search.jobs.prove(some).value + (1 << search.jobs.prove(some).bits)
    assert search.jobs.prove(some).steps <= best


def test_a_pass_that_the_clock_stops_proves_what_it_has_seen() -> None:
    instance, goal = generate("rigid", seed=1, jobs=12), "total_completion_time"
    state, best = begun(instance, goal), solve(instance, goal, model="reduced-cost-fixing")
    search = Search(state)
    bounds = search.jobs.prove(np.zeros((instance.n, search.jobs.slots)))
    assert best.status == "optimal"
    assert best.value_exact is not None
    for looks in (0, 1, 2, 5, 11):
        stopped = search_states(bounds, search.times, search.limit << bounds.bits, 100, Looks(looks))
        assert (stopped.order, stopped.finished) == (None, False)
        assert stopped.bound <= int(best.value_exact - search.clock.zero) << bounds.bits


def test_no_time_proves_nothing() -> None:
    state = begun(generate("rigid", seed=1, jobs=40), "total_completion_time")
    state.deadline = Deadline(0.0)
    Search(state).run()
    assert not state.closed


def test_prices_that_leave_no_better_start_prove_the_incumbent() -> None:
    jobs = [
        Job(f"j{j}", gpus=2, duration=3) for j in range(9)
    ]  # all alike, all there at first: the first prices close it
    solution = solve(Instance(jobs, "1x2"), "total_completion_time", model="partial-schedules")
    assert (solution.status, solution.value) == ("optimal", 3 * 45)
    apart = [Job(f"j{j}", arrival=9 * j, gpus=1 + j % 2, duration=3 + j % 4) for j in range(10)]
    solution = solve(Instance(apart, "1x2"), "total_flow_time", model="partial-schedules")
    assert (solution.status, solution.gap) == ("optimal", 0)
