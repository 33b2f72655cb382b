"""Optima of requests: golden values, enumeration, the integer program, theorems and families."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import optsched as osd
from kv_cache.every_start import optimum, random_requests
from optsched.classes.kv_cache.guarantees.serving_theorems import LEAST_VOLUME, PAPER, SHORTEST_FIRST
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.classes.kv_cache.solvers import order_search
from optsched.classes.kv_cache.solvers.cell_states import Types, cell_states
from optsched.classes.kv_cache.solvers.methods.cache_states import RequestSearch
from optsched.errors import InputError
from optsched.guarantees.family import FAMILIES
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


def check_enumerated(seeds: range) -> None:
    for seed in seeds:
        instance = random_requests(seed).relative
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


@pytest.mark.study
def test_no_false_optimum_of_20000() -> None:
    check_enumerated(range(1000, 21_000))


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
def test_an_interval_has_the_optimum() -> None:
    """A search without proof ends with a bound and a schedule around the optimum, with prices for stretches of rounds."""
    instance = generate("kv-paper", 3, jobs=14)
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
    types = Types.of_requests(np.zeros(7, np.int64), np.ones(7, np.int64), outputs, np.ones(7, np.int64))
    states = cell_states(8, types)
    assert states is not None
    assert states.before.size == 22


def test_audits_hold_and_can_fail() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        half = int(rng.integers(3, 15))
        n, prompt = int(rng.integers(2, 20)), int(rng.integers(0, half))
        output = rng.integers(1, half - prompt + 1, n)
        equal = request_instance([prompt] * n, output, 2 * half)
        prompts = rng.integers(0, half, n)
        mixed = request_instance(prompts, np.minimum(output, half - prompts), 2 * half, weight=rng.integers(1, 5, n))
        for policy, instance, theorems in (
            ("mc-sf", equal, (SHORTEST_FIRST, PAPER)),
            ("least-volume", mixed, (LEAST_VOLUME,)),
        ):
            run = osd.simulate(instance, policy)
            for theorem in theorems:
                assert theorem.audit(None, run) == []
                assert theorem.ratio(None, run) <= (4 if theorem is not PAPER else 9216)
    waits = osd.simulate(request_instance([0, 0], [1, 1], 10), "least-volume")
    waits.schedule.end[:] += 50
    waits.schedule.start[:] += 50
    assert LEAST_VOLUME.audit(None, waits)


@pytest.mark.parametrize("name", ["behind-long", "large-prompts", "alternating", "arriving-behind"])
def test_references_of_families_are_reached(name: str) -> None:
    """Their stated values are at least the optimum, and the policy's ratio grows."""
    family = FAMILIES.get(name)
    ratios = []
    for size in family.sizes[:2]:
        challenge = family.make(size)
        value = osd.simulate(challenge.instance, family.policy).value()
        ratios.append(Fraction(value) / challenge.reference)
    assert ratios[0] < ratios[1]
    smallest = family.make(family.sizes[0])
    if requests_of(smallest.instance).n < 12:
        best = osd.solve(smallest.instance)
        assert best.status == "optimal"
        assert best.value is not None
        assert best.value <= smallest.reference
