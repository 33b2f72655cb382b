"""What is called the optimum of transfers is it: every exact method against exhaustion, on clocks, with ties, in any unit.

Methods: the closed form of two, the branch and bound in fractions and in floats, a linear program for every order of events,
and the mixed-integer program. The tolerance of floats is relative to the flow and to the time since the first release. Then
multipliers, orders, links and limits, and how far rules are from the optimum.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from events import contended, least
from examples import examples, studied
from hypothesis import given, settings, strategies as st
from random_transfers import random_transfers
from scipy.optimize import linprog
from simulation.transfer_reference import RULES, completions

from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.models.link_contention import build, starts
from optsched.classes.task_sharing.models.transfer_completions import transfer_completions
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.classes.task_sharing.solvers.transfer_search import (
    MOST,
    best_event_order,
    transfer_optimum,
    transfer_orders,
    two_transfer_optimum,
)
from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session

CLOCKS = (0.0, 0.0, 1e6, 1.6e9, 1.7e9 + 0.25, 1e12)
UNITS = (1e-3, 0.025, 1.0, 1.0, 60.0, 1e3, 1e6)
BYTES = (1.0, 1.0, 1e6, 1e9)  # of a unit of size: seconds do not change
LP = 1e-7  # relative to the flow: tolerance of the linear programs


def clocked_transfers(seed: int) -> TransferProblem:
    """Two to four transfers as logs have them: late clocks, ties and any unit, decided by the seed."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.choice([2, 3, 3, 4], p=[0.4, 0.25, 0.25, 0.1]))
    clock, unit, byte = float(rng.choice(CLOCKS)), float(rng.choice(UNITS)), float(rng.choice(BYTES))
    whole, step = rng.random() < 0.5, max(unit, float(np.spacing(clock)))
    after = (rng.integers(0, 5, n) if whole else rng.random(n) * 5) * step * (rng.random(n) < 0.7)
    size = rng.integers(1, 9, n) if whole else rng.random(n) * 8 + 0.05
    if rng.random() < 0.5:  # short ones that come late, while a long one is on its way, move beside it
        size, after[0] = size * np.where(np.arange(n) > 0, rng.choice([1 / 16, 1 / 4, 1.0]), 4.0), 0.0
    if rng.random() < 0.15:
        size = size * 10.0 ** rng.integers(-3, 4, n)
    b = unit / byte
    contention = Contention(b, b * float(rng.choice([0.0, 0.25, 0.2745, 1.0, 3.0])))
    links = [(0,), (1,), (0, 1)]
    where = tuple(links[int(k)] for k in rng.integers(0, 3, n)) if rng.random() < 0.4 else ()
    return TransferProblem(clock + after, size * byte, contention, where)


def least_sum_of_completions(problem: TransferProblem) -> Fraction:
    """Over all starts at releases and completions, in fractions; exponential, for four transfers at most."""
    release, size = (list(map(Fraction, each.tolist())) for each in (problem.release, problem.size))
    b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
    return least(release, size, lambda j, _: [problem.links[j]], contended(b, eta), fastest=[b] * problem.n)


def flow(problem: TransferProblem, best: Fraction) -> Fraction:
    return best - sum(map(Fraction, problem.release.tolist()))


def rounding(problem: TransferProblem, best: Fraction) -> float:
    """16 ulps a transfer of the latest time that counts: where a release is no number that the log's clock resolves."""
    return 16 * problem.n * math.ulp(float(best) / problem.n)


def by_the_program(problem: TransferProblem) -> Fraction:
    """The value of the starts that the mixed-integer program finds, as the referee sees them in fractions."""
    model = build(problem.relative)
    program = compile(model)
    outcome = Session(program).solve()
    assert outcome.status == "optimal"
    assert outcome.x is not None
    program.load(outcome.x)
    begin = np.maximum(starts(model), problem.relative.release)
    ends = transfer_completions(problem.relative, begin.tolist(), exact=True)
    assert outcome.value == pytest.approx(float(sum(ends)), rel=LP)
    return sum(ends, Fraction(0)) + problem.n * Fraction(problem.epoch)


def tried(seed: int, *, program: bool = False) -> Counter[str]:
    """How often each method was asked; asserts that none is wrong."""
    problem, count = clocked_transfers(seed), Counter[str]()
    best = least_sum_of_completions(problem)
    stay, ulps = float(flow(problem, best)), rounding(problem, best)

    def agrees(method: str, value: float | Fraction, share: float) -> None:
        count[method] += 1
        off = abs(float(Fraction(value) - best))
        assert off <= share * stay + ulps * (share > 0), (seed, method, off, stay)

    exact = transfer_optimum(problem, exact=True)
    assert (exact.proved, exact.bound) == (True, best)
    assert sum(exact.completion) == best
    assert tuple(transfer_completions(problem, exact.start, exact=True)) == exact.completion
    agrees("branch and bound, fractions", exact.value, 0)
    found = transfer_optimum(problem)
    assert found.proved
    agrees("branch and bound", found.value, 1e-9)
    if problem.n == 2:
        agrees("closed form", two_transfer_optimum(problem), 0)
    if problem.n <= 3:
        agrees("orders", best_event_order(problem).value, LP)
    if program and problem.n <= 3:
        agrees("program", by_the_program(problem), LP)
    return count


@pytest.mark.parametrize(("first", "many"), [(0, 80), *(studied(1000 + 300 * part, 300) for part in range(4))])
def test_the_optimum_of_transfers_is_never_wrong(first: int, many: int) -> None:
    count = sum((tried(seed, program=seed % 4 == 0) for seed in range(first, first + many)), Counter[str]())
    print("transfers", first, dict(count))  # figures of the study
    assert len(count) == 5


ETA_RATIOS = (0.0, 0.2745, 1.0)
CLOSE = 1e-9  # relative: HiGHS solves the programs of the orders in floats

bytes_, seconds = st.integers(1, 60), st.integers(0, 60)


def is_a_schedule(problem: TransferProblem, found: float, start: np.ndarray) -> None:
    """The referee gives these starts the value that was found."""
    latest = np.maximum(start, problem.release)  # an LP may be off by its tolerance
    assert sum(transfer_completions(problem, latest.tolist())) == pytest.approx(found, rel=CLOSE)


# --- two transfers -----------------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(st.tuples(bytes_, bytes_), st.tuples(seconds, seconds), st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]))
def test_the_closed_form_is_the_search_in_fractions(size: tuple, release: tuple, eta: float) -> None:
    problem = TransferProblem(release, size, Contention(1.0, eta))
    found = transfer_optimum(problem, exact=True)
    assert found.proved
    assert found.value == two_transfer_optimum(problem)
    assert tuple(transfer_completions(problem, found.start, exact=True)) == found.completion


def test_no_starts_on_a_grid_beat_the_closed_form() -> None:
    rng = np.random.default_rng(3)
    for eta in ETA_RATIOS:
        for _ in range(6):
            size, release = rng.integers(1, 9, 2), rng.integers(0, 9, 2)
            problem = TransferProblem(release, size, Contention(1.0, eta))
            grid = [[r + x / 2 for x in range(25)] for r in release.tolist()]
            least = min(sum(transfer_completions(problem, starts)) for starts in itertools.product(*grid))
            best = float(two_transfer_optimum(problem))
            assert best <= least + 1e-9
            assert least <= best + 1e-9  # the best starts are integers


def test_transfers_that_share_no_link_do_not_meet() -> None:
    apart = TransferProblem([0, 0], [3, 5], Contention(1.0, 1.0), ((0, 1), (2,)))
    assert two_transfer_optimum(apart) == 8 == transfer_optimum(apart, exact=True).value
    together = replace(apart, links=((0, 1), (1, 2)))
    assert two_transfer_optimum(together) == 11 == transfer_optimum(together, exact=True).value


# --- orders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "links"), [(1, 1), (2, 1), (2, 3), (3, 1), (3, 2)])
def test_multipliers_prove_the_optimum_exactly(n: int, links: int) -> None:
    problem = random_transfers(n, 7, seconds_per_byte=0.856e-9, unit=1e8, links=links)
    found, optimum = best_event_order(problem, certify=True), transfer_optimum(problem, exact=True)
    assert found.bound is not None
    assert optimum.value * (1 - Fraction(1, 10**9)) <= found.bound <= optimum.value


def test_any_multipliers_prove_something_and_never_too_much() -> None:
    rng = np.random.default_rng(5)
    problem = random_transfers(3, 11, links=2)
    problem = replace(problem, release=problem.release + 1.0)
    programs = transfer_orders(problem)
    for order in itertools.islice(programs, 0, None, 9):
        best = order_value_by_scipy(problem, order)
        late = np.zeros(6)
        late[3 + order[0]] = 100.0  # the release of the first
        for y in (late, *(rng.exponential(2.0, 6) * (rng.random(6) < 0.7) - 0.1 for _ in range(4))):
            assert programs.proved(order, y) <= Fraction(best) * (1 + Fraction(1, 10**9))


def order_value_by_scipy(problem: TransferProblem, order: tuple[int, ...]) -> float:
    program = transfer_orders(problem).program([order])
    found = linprog(program.c, A_ub=-program.A.toarray(), b_ub=-program.row_lower, method="highs-ipm")
    return float(found.fun)


@pytest.mark.parametrize("seed", range(4))
def test_transfers_that_may_not_idle_have_the_same_optimum(seed: int) -> None:
    """With equality in (1) many orders are infeasible; the best value is the same."""
    problem = random_transfers(3, 40 + seed, 0.5, links=1 + seed % 2)
    values = []
    for order in transfer_orders(problem):
        program = transfer_orders(problem).program([order])
        rows, need = program.A.toarray(), program.row_lower
        found = linprog(program.c, A_ub=-rows[3:], b_ub=-need[3:], A_eq=rows[:3], b_eq=need[:3], method="highs")
        if found.status == 0:
            values.append(found.fun)
    assert 0 < len(values) < 90
    assert min(values) == pytest.approx(transfer_optimum(problem).value, rel=CLOSE)


def test_every_order_is_enumerated_once() -> None:
    for n, count in ((1, 1), (2, 6), (3, 90), (4, 2520)):
        orders = list(transfer_orders(random_transfers(n, 1)))
        assert len(orders) == len(set(orders)) == count
        assert all(sorted(order) == sorted([*range(n)] * 2) for order in orders)
    for n in (0, 6):
        with pytest.raises(InputError, match=f"n = {n}"):
            best_event_order(TransferProblem([0.0] * n, [1.0] * n, Contention(1.0)))


# --- the search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_links_that_nothing_connects_are_independent(seed: int) -> None:
    """Also the first of each at the same moment, and rules that are not optimal on either link."""
    waits = TransferProblem([0, 0.5], [10, 1], Contention(1.0, 0.25))
    other = replace(random_transfers(3, seed, 0.25), release=np.array([0.0, 0.0, 0.5]))
    for parts in ((waits, waits), (waits, other), (waits, waits, waits)):  # of the last, three start at once
        beside = TransferProblem(
            np.concatenate([part.release for part in parts]),
            np.concatenate([part.size for part in parts]),
            waits.contention,
            tuple((link,) for link, part in enumerate(parts) for _ in range(part.n)),
        )
        expected = sum(transfer_optimum(part, exact=True).value for part in parts)
        assert transfer_optimum(beside, exact=True).value == expected


def test_a_search_that_is_stopped_gives_an_interval() -> None:
    problem = random_transfers(7, 3)
    optimum = transfer_optimum(problem)
    stopped = transfer_optimum(problem, node_limit=5)
    assert (stopped.proved, stopped.nodes) == (False, 5)
    assert stopped.bound <= optimum.value <= stopped.value
    is_a_schedule(problem, stopped.value, np.array(stopped.start))
    assert transfer_optimum(problem, node_limit=optimum.nodes).proved


def test_the_child_with_the_least_bound_goes_next() -> None:
    # 35,730 nodes; children in the order of their making would need 134,490
    assert sum(transfer_optimum(random_transfers(8, seed)).nodes for seed in range(30)) < 50_000


def test_limits_and_the_empty_problem() -> None:
    empty = transfer_optimum(TransferProblem([], [], Contention(1.0)))
    assert (empty.value, empty.start, empty.proved) == (0, (), True)
    with pytest.raises(InputError, match=f"at most {MOST}"):
        transfer_optimum(random_transfers(MOST + 1, 1))
    with pytest.raises(InputError, match="n = 3"):
        two_transfer_optimum(random_transfers(3, 1))


@pytest.mark.parametrize(("start", "name"), [([0.0, 0.5], "transfer 1"), ([float("nan"), 1.0], "transfer 0")])
def test_the_referee_refuses_starts_that_are_none(start: list[float], name: str) -> None:
    problem = TransferProblem([0, 1], [1, 1], Contention(1.0))
    with pytest.raises(InputError, match=name):
        transfer_completions(problem, start)


def test_the_referee_by_hand() -> None:
    problem = TransferProblem([0, 1, 1], [4, 2, 3], Contention(1.0, 0.5), ((0,), (0, 1), (1,)))
    # 0 and 2 do not share a link, but 1 is on both: from 1 on all three move at 1 / 2.5
    ends = transfer_completions(problem, [0, 1, 1], exact=True)
    assert ends == [7, 6, 7]


# --- how far rules are from the optimum: never below it, and on average as an independent model says ---------------------
#
# A ratio is one of sums of **flow** times C_j - r_j: with completion times the table does not come out.


# mean ratio to the optimum of SRSF(1), SRSF(2), SRSF(3), AdaDUAL, the k-way rule, and optimum / SRPT; so many problems each
MODEL = {
    2: (300, (1.144, 1.097, 1.097, 1.012, 1.012, 1.025)),
    3: (200, (1.279, 1.172, 1.159, 1.024, 1.023, 1.040)),
    4: (100, (1.404, 1.260, 1.239, 1.029, 1.024, 1.054)),
    5: (60, (1.408, 1.357, 1.298, 1.041, 1.029, 1.059)),
    6: (30, (1.423, 1.526, 1.429, 1.091, 1.058, 1.073)),
}
DEVIATIONS = 3.5  # of the difference of two means; 30 means are compared, so a false alarm has a chance of 1.4 %
Values = tuple[list[float], float, float]  # of the rules, the optimum, SRPT


def values_of(problem: TransferProblem) -> Values:
    """sum C_j of all rules, the optimum and the bound; asserts that they stand in this order."""
    b, eta = problem.contention.seconds_per_byte, problem.contention.penalty
    ends = [completions(problem.release.tolist(), problem.size.tolist(), problem.links, b, eta, rule) for rule in RULES]
    values, found, bound = [sum(each) for each in ends], transfer_optimum(problem), srpt_per_link(problem)
    assert found.proved
    assert bound.exact_float <= found.value * (1 + 1e-12)
    assert found.value <= min(values) * (1 + 1e-9)
    return values, found.value, bound.exact_float


def ratios(n: int, count: int) -> np.ndarray:
    """f64[count, 6]: one problem a row, the columns of `MODEL`."""
    rows = []
    for seed in range(count):
        problem = random_transfers(n, seed)
        values, optimum, bound = values_of(problem)
        off = float(problem.release.sum())
        rows.append([(value - off) / (optimum - off) for value in values] + [(optimum - off) / (bound - off)])
    return np.array(rows)


def deviations(n: int, found: np.ndarray) -> np.ndarray:
    """Measured mean minus the model's, in standard errors of that difference; both samples have the same spread."""
    count, means = MODEL[n]
    error = found.std(axis=0, ddof=1) * np.sqrt(1 / count + 1 / len(found))
    return (found.mean(axis=0) - np.array(means)) / error


@pytest.mark.parametrize(("n", "count"), [(2, 300), (3, 200), (4, 100), (5, 60), (6, 30)])
def test_mean_ratios_are_those_of_the_sheet(n: int, count: int) -> None:
    assert np.abs(deviations(n, ratios(n, count))).max() < DEVIATIONS


@pytest.mark.parametrize("eta_ratio", [0.0, 1.0])
@pytest.mark.parametrize("links", [1, 3])
def test_the_order_holds_for_other_penalties_and_on_several_links(eta_ratio: float, links: int) -> None:
    for seed in range(20):
        values_of(random_transfers(5, 900 + seed, eta_ratio, links=links))
