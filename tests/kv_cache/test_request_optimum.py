"""Optima of requests: golden values, enumeration, the integer program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import optsched as osd
from kv_cache.every_start import arriving_requests, optimum, random_requests
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.classes.kv_cache.solvers import order_search
from optsched.classes.kv_cache.solvers.cell_prices import PriceAscent
from optsched.classes.kv_cache.solvers.cell_states import Types, cell_states
from optsched.classes.kv_cache.solvers.methods.cache_states import RequestSearch
from optsched.deadline import NEVER
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models import FORMULATIONS
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.method import METHODS
from optsched.solvers.solve_state import SolveState

TEN = request_instance([1] * 10, [12, 8, 9, 10, 11, 1, 8, 3, 7, 14], 16)
GOLDEN = [
    (request_instance([1] * 4, [3, 8, 9, 4], 10), 35, [0, 1, 9, 1]),  # no list schedule has less than 36
    (request_instance([0] * 4, [4, 4, 9, 7], 9), 33, None),
    pytest.param(TEN, 196, None, marks=pytest.mark.compiled),
    (request_instance([2, 1, 3, 1], [4, 7, 2, 5], 12, arrival=[0, 1, 2, 3]), 22, [0, 4, 2, 4]),
    (request_instance([1] * 4, [2, 2, 3, 3], 6), 15, None),  # 16 if they complete in order of output
]


@pytest.mark.parametrize(("instance", "value", "starts"), GOLDEN)
def test_golden_optima(instance: Instance, value: int, starts: list[int] | None) -> None:
    best = osd.solve(instance)
    assert (best.status, best.value, best.bound, best.model) == ("optimal", value, value, "cache-states")
    if starts is not None:
        assert best.schedule is not None
        assert best.schedule.start.tolist() == starts


def check_enumerated(seeds: range, draw: Callable[[int], Instance] = random_requests) -> None:
    for seed in seeds:
        instance = draw(seed).relative
        if instance.weight.min() < 1:
            continue  # weights of 0 are for the integer program
        state = SolveState(instance, get_objective("total_weighted_flow_time"), schedule_class="kv-cache")
        METHODS.get("cache-states").run(state)
        assert state.value is not None
        least, _ = optimum(instance, float(state.value) + 1)
        assert (state.closed, state.value) == (True, least), seed


def test_no_false_optimum() -> None:
    """Solve 200 instances whose optima are known by enumeration."""
    check_enumerated(range(220))


def test_no_false_optimum_of_requests_that_arrive() -> None:
    """Solve instances in which requests of one kind arrive in several rounds, so that order and dominance matter."""
    check_enumerated(range(15), arriving_requests)


@pytest.mark.study
def test_no_false_optimum_of_20000() -> None:
    check_enumerated(range(1000, 21_000))
    check_enumerated(range(1000, 4000), arriving_requests)


def test_any_prices_of_requests_that_arrive_give_a_bound() -> None:
    """Prices that fall in order of arrival count as prices that do not; the level method raises the bound."""
    rng, raised = np.random.default_rng(2), 0
    for seed in range(6):
        requests = requests_of(instance := arriving_requests(seed).relative)
        arrival, weight = (np.asarray(x, dtype=np.int64) for x in (requests.arrival, requests.weight))
        types, kinds = Types.of_requests(arrival, requests.prompt, requests.output, weight)
        states = cell_states(requests.cells, kinds)
        assert states is not None
        least, _ = optimum(instance, np.inf)
        cost = int(least + (arrival * weight).sum())
        for spread in (0.1, 1.0, 10.0):
            ascent = PriceAscent.begin(states, types, kinds, rng.exponential(spread * 10, types.number.size), cost)
            first = ascent.evaluate()
            assert first <= cost * ascent.scale
            ascent.climb(5, cost, NEVER)
            assert ascent.bound >= first
            ascent.refine(15, cost, NEVER)
            assert first <= ascent.bound <= cost * ascent.scale
            raised += ascent.bound > first
    assert raised > 12


def test_the_integer_program_has_the_same_optimum() -> None:
    for instance, value in (GOLDEN[0][:2], GOLDEN[3][:2]):
        best = osd.solve(instance, model="kv-time-indexed")
        assert (best.status, best.value) == ("optimal", value)
    relaxed = osd.formulate(GOLDEN[3][0], "kv-time-indexed", relax=True)
    assert len(relaxed.once) == 4
    weighted = request_instance([1, 1, 2], [4, 6, 3], 9, weight=[1, 3, 2])
    values = [
        osd.solve(weighted, "total_weighted_flow_time", model=name).value
        for name in ("kv-time-indexed", "cache-states")
    ]
    assert values[0] == values[1]


def test_the_program_refuses_what_it_is_not_for() -> None:
    affine = request_instance([1], [2], 9, affine=True)
    with pytest.raises(InputError, match="rounds are not of length 1"):
        osd.formulate(affine, "kv-time-indexed")
    assert "no requests" in str(FORMULATIONS.get("kv-time-indexed").applies(osd.load("rigid-06-1"), "total_flow_time"))


def test_a_search_over_orders_gains_whatever_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = requests_of(TEN)
    order, weight = np.arange(10), np.ones(10, dtype=np.int64)
    first, best = (int(order_search.list_ends(requests, weight, order.copy(), steps).sum()) for steps in (0, 300))
    assert best < first
    monkeypatch.setattr(order_search, "SLICE", 50)  # other slices, the same steps
    again = order_search.list_ends(requests, weight, order.copy(), 300)
    assert int(again.sum()) == best
    assert osd.check_schedule(TEN, request_schedule(TEN, again - requests.output), value=float(best)) == []


@pytest.mark.release
@pytest.mark.parametrize("every", [0, 2])
def test_an_interval_has_the_optimum(every: int) -> None:
    """A search without proof ends with a bound and a schedule around the optimum, with prices for stretches of rounds."""
    requests = requests_of(generate("kv-paper", 3, jobs=14))
    instance = request_instance(
        requests.prompt, requests.output, requests.cells, arrival=every * (np.arange(14) * 5 % 14)
    )
    best = osd.solve(instance)
    assert best.status == "optimal"
    state = SolveState(instance.relative, get_objective("total_flow_time"), schedule_class="kv-cache")
    RequestSearch(state, prove=False).run()
    assert state.bound is not None
    assert state.value is not None
    assert best.value is not None
    assert state.bound <= best.value <= state.value <= 1.02 * float(state.bound)


def test_states_are_partitions() -> None:
    """Equal prompts 1 and M = 8: parts of at least 2 with a sum of at most 8; there are 22."""
    outputs = np.arange(1, 8)
    _, kinds = Types.of_requests(np.zeros(7, np.int64), np.ones(7, np.int64), outputs, np.ones(7, np.int64))
    states = cell_states(8, kinds)
    assert states is not None
    assert states.before.size == 22
