"""Hadar's packing LP by columns: against all schedules enumerated, and its choices against the rules."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from packing_value import packing_value
from round_brute_force import best_utility, tiny_problems, ways

import optsched as osd
from optsched.deadline import NEVER
from optsched.models.hadar_rounds import RoundProblem, round_problem
from optsched.solvers import round_columns, round_packing
from optsched.solvers.round_columns import RoundColumns
from optsched.solvers.round_packing import RoundPacking, pack_rounds
from optsched.solvers.session import Progress


def faster_together(problem: RoundProblem) -> RoundProblem:
    if problem.together is None:
        return problem
    return replace(problem, together=np.maximum(problem.together, problem.speed))


def require_the_rules(found: RoundPacking) -> None:
    """The schedules chosen: devices there are, gangs whole and after their arrival, work done, utility as stated."""
    problem, free = found.problem, np.repeat(found.problem.devices[None], found.problem.rounds, axis=0)
    total = 0.0
    for j, schedule in enumerate(found.chosen):
        for t, cells in schedule:
            for h, r, count in cells:
                free[t, h, r] -= count
        rounds = [t for t, _ in schedule]
        assert rounds == sorted(set(rounds))
        assert all(t >= problem.arrival[j] for t in rounds)
        if schedule:
            known = {frozenset(cells): done for cells, done in ways(problem, j)}
            done = sum(known[frozenset(cells)] for _, cells in schedule)
            assert done >= Fraction(float(problem.work[j])) * (1 - Fraction(1, 10**8))
            total += float(problem.utility[j, rounds[-1]])
    assert (free >= 0).all()
    assert total == pytest.approx(found.chosen_value)


@settings(max_examples=examples(60))
@given(problem=tiny_problems())
def test_the_lp_is_that_of_all_schedules_and_choices_keep_the_rules(problem: RoundProblem) -> None:
    problem = faster_together(problem)
    found = pack_rounds(problem, tolerance=1e-9)
    whole = packing_value(problem.packing())
    assert found.value <= whole * (1 + 1e-7)
    assert float(found.bound) >= whole * (1 - 1e-12)
    assert found.value == pytest.approx(whole, abs=1e-7)
    best = best_utility(problem)
    assert found.chosen_value <= float(best) * (1 + 1e-12) <= float(found.bound) * (1 + 2e-12)
    require_the_rules(found)


@pytest.mark.parametrize("seed", range(20))
def test_twenty_instances_with_all_schedules_listed(seed: int) -> None:
    instance = osd.generate("hetero-small", seed=seed, jobs=5 + seed % 3)
    problem = round_problem(instance, float(1 + seed % 2), 6)
    found, whole = pack_rounds(problem, tolerance=1e-9), packing_value(problem.packing())
    assert float(found.bound) == pytest.approx(whole, rel=1e-6)
    assert found.value == pytest.approx(whole, rel=1e-6)


@settings(max_examples=examples(60))
@given(problem=tiny_problems(), data=st.data(), long=st.booleans())
def test_no_schedule_gains_more_than_the_payoff(problem: RoundProblem, data: st.DataObject, long: bool) -> None:
    problem = faster_together(problem)
    with pytest.MonkeyPatch.context() as patch:
        if long:  # as if no job were short
            patch.setattr(round_columns, "LONG", 0)
        columns = RoundColumns(problem)
    Q = columns.cells.capacity.size
    prices = st.lists(st.floats(0, 3), min_size=problem.rounds * Q, max_size=problem.rounds * Q)
    price = columns.integers(np.array(data.draw(prices)) * float(columns.utility.max()) / 4)
    payoff, found = columns.best(price)
    group = {(g, r): q for q, (g, r) in enumerate(columns.cells.where)}
    priciest = int(price.max(initial=0))
    for j in range(problem.n):
        gains = [0]
        for one in problem.job_schedules(j):
            t, cell = np.divmod(np.array([q for q, _ in one.demand]), problem.machines * problem.types)
            h, r = np.divmod(cell, problem.types)
            at = [group[int(columns.cells.group[i]), k] for i, k in zip(h.tolist(), r.tolist(), strict=True)]
            worth = int(columns.worth[j, int(t[-1])])
            gains.append(worth - int((price[t, at] * np.array([w for _, w in one.demand])).sum()))
        assert payoff[j] >= max(gains)
        # a part of one round, no more
        assert payoff[j] <= max(gains) + (priciest * int(problem.tasks[j]) if long else 0)
    assert all(columns.iterations[column.modes].sum() >= columns.needed[column.job] for column in found)


def test_forty_jobs_to_one_percent() -> None:
    instance = osd.generate("hadar-60", jobs=40, cluster="2x4:V100+2x4:P100+2x4:K80", hours=0.7, seed=3)
    reports = list[Progress]()
    found = pack_rounds(round_problem(instance, 360.0, 300), progress=reports.append)
    # what is said on the way is true: values are of the LP, or of the choice, and bounds are bounds
    said = [r.incumbent for r in reports if not math.isnan(r.incumbent)]
    assert all(value <= float(found.bound) * (1 + 1e-9) for value in said)
    assert all(r.bound >= found.value * (1 - 1e-9) for r in reports)
    assert len(said) < len(reports)
    assert said[-1] == found.chosen_value
    assert found.value > 0.99 * float(found.bound)
    assert 0.98 * float(found.bound) <= found.chosen_value <= float(found.bound)
    require_the_rules(found)


def test_a_second_dive_has_all_devices_and_jobs_again() -> None:
    instance = osd.generate("hadar-60", jobs=12, cluster="1x4:V100+1x4:P100+1x4:K80", hours=0.3, seed=3)
    columns = RoundColumns(round_problem(instance, 360.0, 60))
    lp, duals = round_packing._levels(columns, 1e-3, NEVER, None)
    first, second = (round_packing._dive(columns, lp, duals, 2, NEVER) for _ in range(2))
    assert first.value() > 0.8 * lp.value
    assert second.placed() == first.placed()


@settings(max_examples=examples(40))
@given(problem=tiny_problems(together=True))
def test_gangs_that_are_faster_apart_still_keep_the_rules(problem: RoundProblem) -> None:
    found = pack_rounds(problem, tolerance=1e-9)
    assert float(best_utility(problem)) <= float(found.bound) * (1 + 1e-12)
    require_the_rules(found)


def test_between_what_hadar_buys_and_what_its_prices_prove() -> None:
    # one LP by three roads: plans bought online are a solution, final prices online are prices, and columns close the gap
    short = {"gap": 400, "duration": "log-uniform:low=600,high=8000", "gpus": "constant:value=1"}
    instance = osd.generate("gavel-continuous", seed=5, jobs=20, cluster="4x1:V100+4x1:K80", **short)
    online = osd.guarantees.dual_solution(osd.simulate(instance, "hadar"))
    found = osd.solve_program(instance, "hadar-primal:round=360")
    assert found.opposite is not None
    assert online.primal <= found.opposite.value * (1 + 1e-9)
    assert found.value <= online.dual * (1 + 1e-9)
    assert found.gap < 0.01
