"""Gavel's allocation rules against the CVXPY formulations, alone and along a run in which jobs come and go."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import (
    gavel_finish_time,
    gavel_makespan,
    gavel_max_min,
    gavel_max_sum,
    gavel_proportional,
    gavel_water_filling,
)
from optsched.models.gavel_allocation import effective_throughput, fill_levels, isolated
from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, Setting, equal_share, isolated_share
from optsched.policies.gavel_allocations.centre import centred
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gavel_allocations.min_total_duration import bisected
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge
from policies.gavel_problems import TYPES, problem, random_jobs

SEEDS = st.integers(0, 10_000)
NEAR = 3e-6  # the centre gives up 1e-6 of the optimum


def allocate(policy: str, jobs: ActiveJobs, setting: Setting) -> Floats:
    return ALLOCATIONS.get(policy)(setting).shares(jobs)


def assert_divides_time(share: Floats, jobs: ActiveJobs, setting: Setting) -> None:
    assert share.shape == jobs.rate.shape
    assert (share >= 0).all()
    assert (share.sum(axis=1) <= 1 + 1e-12).all()
    assert (jobs.gang @ share <= setting.capacity * (1 + 1e-12)).all()


@settings(max_examples=20)
@given(SEEDS)
def test_no_rule_gives_more_time_or_gpus_than_there_are(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    for name, rule in ALLOCATIONS.items():
        share = rule(setting).shares(jobs)
        assert_divides_time(share, jobs, setting)
        if rule.aware or rule.strict:
            assert (share[jobs.rate == 0] == 0).all(), name


@settings(max_examples=10)
@given(SEEDS)
def test_identical_jobs_get_identical_shares(seed: int) -> None:
    jobs, setting = random_jobs(seed, 5)
    twins = jobs.some(np.array([0, 1, 2, 3, 4, 2]))
    twins = replace(twins, ids=np.arange(6))
    for name in ALLOCATIONS.names():
        if not name.startswith("fifo"):  # there they queue one behind the other
            share = allocate(name, twins, setting)
            assert share[5] == pytest.approx(share[2], abs=1e-7), name


def test_equal_and_isolated_shares() -> None:
    assert equal_share(np.array([8.0, 16, 24])).tolist() == [1 / 6, 1 / 3, 1 / 2]
    jobs, setting = random_jobs(3)
    assert equal_share(setting.capacity).sum() == pytest.approx(1, abs=1e-15)
    ours = isolated_share(jobs.gang, setting.capacity)
    assert ours == pytest.approx(isolated(jobs.gang.size, jobs.gang, setting.capacity))
    assert (ours.sum(axis=1) <= 1 + 1e-15).all()


# -- against the formulations ---------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(SEEDS)
def test_max_min_fairness_is_that_of_the_formulation(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    share = allocate("max_min_fairness_perf", jobs, setting)
    value = (fill_levels(problem(jobs, setting), share) / jobs.weight).min()
    assert value == pytest.approx(gavel_max_min.allocate(problem(jobs, setting)).value, rel=NEAR)
    blind = problem(jobs, setting).agnostic()
    share = allocate("max_min_fairness", jobs, setting)
    value = (fill_levels(blind, share) / jobs.weight).min()
    assert value == pytest.approx(gavel_max_min.allocate(blind).value, rel=NEAR)


@settings(max_examples=15)
@given(SEEDS)
def test_water_filling_is_that_of_the_formulation(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    share = allocate("max_min_fairness_water_filling_perf", jobs, setting)
    ours = np.sort(fill_levels(problem(jobs, setting), share) / jobs.weight)
    theirs = np.sort(
        fill_levels(problem(jobs, setting), gavel_water_filling.allocate(problem(jobs, setting)).X) / jobs.weight
    )
    assert ours == pytest.approx(theirs, rel=1e-4)


@settings(max_examples=20)
@given(SEEDS)
def test_finish_time_fairness_is_that_of_the_formulation(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    so_far = np.random.default_rng(seed).uniform(0, 3e3, jobs.gang.size)
    model = problem(jobs, setting, iso_so_far=so_far)
    span = gavel_finish_time.isolated_finish(model)
    search = LevelSearch(setting.capacity)
    share, level = search.least(jobs, jobs.elapsed, span)
    assert level == pytest.approx(gavel_finish_time.allocate(model).value, rel=1e-7)
    centre = search.centred(share, jobs, jobs.elapsed, span, level)
    assert_divides_time(centre, jobs, setting)
    assert gavel_finish_time.ratios(model, centre).max() == pytest.approx(level, rel=NEAR)


@settings(max_examples=15)
@given(SEEDS)
def test_the_makespan_is_that_of_the_formulation_and_the_allocation_aims_where_gavels_bisection_ends(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    rule = ALLOCATIONS.get("min_total_duration_perf")(setting)
    share = rule.shares(jobs)
    best = gavel_makespan.allocate(problem(jobs, setting)).value
    assert getattr(rule, "makespan") == pytest.approx(best, rel=1e-7)  # noqa: B009
    reached = (jobs.left / effective_throughput(jobs.rate, share)).max()
    if best >= 105:  # below 100 s the bisection says 100
        assert reached <= best * 1.05 * (1 + NEAR)
        by_bisection = gavel_makespan.allocate_by_bisection(problem(jobs, setting)).value
        assert bisected(best) == pytest.approx(by_bisection, rel=1e-6)


def test_where_the_bisection_ends() -> None:
    for makespan in (1.0, 104.9, 3e4, 999_999.0, 3.3e6):
        end = bisected(makespan)
        assert makespan <= end <= max(1.05 * makespan, 105)


@settings(max_examples=15)
@given(SEEDS)
def test_worth_is_that_of_the_formulation(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    priced = problem(jobs, setting)
    for name, model, costs in (
        ("max_sum_throughput_perf", replace(priced, cost=np.ones(len(setting.types)), time_left=None), None),
        ("min_cost", replace(priced, time_left=None), priced.cost),
        ("min_cost_slo", priced, priced.cost),
    ):
        share = allocate(name, jobs, setting)
        value = float((jobs.rate / (1.0 if costs is None else costs) * share).sum())
        assert value == pytest.approx(gavel_max_sum.allocate(model).value, rel=NEAR), name


@settings(max_examples=20)
@given(SEEDS)
def test_proportional_fairness_is_that_of_the_formulation(seed: int) -> None:
    jobs, setting = random_jobs(seed)
    share = allocate("proportional_fairness_perf", jobs, setting)
    model = problem(jobs, setting)
    gap = gavel_proportional.optimality_gap(model, replace(gavel_proportional.allocate(model), X=share))
    assert gap == pytest.approx(0, abs=1e-5)


@settings(max_examples=5)
@given(SEEDS)
def test_a_program_that_lives_through_arrivals_and_completions_stays_that_of_the_formulation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    everybody, setting = random_jobs(seed, 14)
    rules = {name: ALLOCATIONS.get(name)(setting) for name in ("max_min_fairness_perf", "max_sum_throughput_perf")}
    search = LevelSearch(setting.capacity)
    for _ in range(8):
        present = np.flatnonzero(rng.random(14) < 0.5)
        if not present.size:
            continue
        jobs = everybody.some(present)
        jobs = replace(
            jobs, left=jobs.left * rng.uniform(0.1, 1, present.size), time_left=np.full(present.size, np.inf)
        )
        model = replace(problem(jobs, setting), cost=np.ones(len(setting.types)))
        shares = {name: rule.shares(jobs) for name, rule in rules.items()}
        fair = (fill_levels(model, shares["max_min_fairness_perf"]) / jobs.weight).min()
        assert fair == pytest.approx(gavel_max_min.allocate(model).value, rel=NEAR)
        total = float((jobs.rate * shares["max_sum_throughput_perf"]).sum())
        assert total == pytest.approx(gavel_max_sum.allocate(model).value, rel=NEAR)
        _, level = search.least(jobs, np.zeros(present.size), np.ones(present.size))
        assert level == pytest.approx(gavel_makespan.allocate(model).value, rel=1e-7)
    assert search.program.statistics()["slots"] <= 14


# -- the centre -----------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(SEEDS)
def test_the_centre_is_the_maximum_of_the_product_of_slacks(seed: int) -> None:
    jobs, setting = random_jobs(seed, 4)
    load, one = jobs.gang.astype(float), np.ones(4)
    share = isolated_share(jobs.gang, setting.capacity) * (jobs.rate > 0)
    need = 0.7 * (jobs.rate * share).sum(axis=1)  # far from the optimum, where a conic solver is at its ease
    found = centred(share, jobs.rate, need, load, one, setting.capacity)
    X = cp.Variable(share.shape)
    may = jobs.rate > 0
    logs = cp.sum(cp.multiply(may, cp.log(X + ~may))) + cp.sum(cp.log(1 - cp.sum(cp.multiply(may, X), axis=1)))
    logs += cp.sum(cp.log(cp.sum(cp.multiply(jobs.rate, X), axis=1) - need * (1 - 1e-6)))
    logs += cp.sum(cp.log(setting.capacity - load @ cp.multiply(may, X)))
    best = cp.Problem(cp.Maximize(logs), [X >= 0, X <= 1]).solve(solver=cp.CLARABEL)
    X.value = found
    assert logs.value == pytest.approx(best, abs=1e-5)


# -- rules with a memory ----------------------------------------------------------------------------------------------------


def jobs_of(rate: list[list[float]], gang: list[int], ids: list[int] | None = None) -> ActiveJobs:
    n = len(gang)
    zero, far = np.zeros(n), np.full(n, np.inf)
    names = np.arange(n) if ids is None else np.array(ids)
    return ActiveJobs(names, np.array(rate, dtype=float), np.array(gang), np.ones(n), zero, np.ones(n), far)


def test_fifo_keeps_types_inherits_them_and_its_head_blocks() -> None:
    setting = Setting(TYPES[:2], np.array([2.0, 1.0]))
    perf = ALLOCATIONS.get("fifo_perf")(setting)
    rate = [[3.0, 1.0], [3.0, 1.0], [3.0, 1.0], [9.0, 9.0]]
    first = perf.shares(jobs_of(rate, [1, 1, 2, 1]))
    assert first.tolist() == [
        [1, 0],
        [1, 0],
        [0, 0],
        [0, 0],
    ]  # the gang of 2 does not fit: the last one waits behind it
    left = jobs_of(rate[1:], [1, 2, 1], [1, 2, 3])
    assert perf.shares(left).tolist() == [[1, 0], [0, 0], [0, 0]]
    assert perf.shares(jobs_of(rate[2:], [2, 1], [2, 3])).tolist() == [[1, 0], [0, 1]]
    drawn = {
        tuple(ALLOCATIONS.get("fifo")(replace(setting, seed=s)).shares(jobs_of([[1, 5]], [1]))[0]) for s in range(9)
    }
    assert drawn == {(1, 0), (0, 1)}


def test_isolated_time_is_cumulative() -> None:
    setting = Setting(("v100",), np.array([2.0]))
    rule = ALLOCATIONS.get("finish_time_fairness_perf")(setting)
    jobs = replace(jobs_of([[10.0]] * 4, [1] * 4), left=np.full(4, 1000.0))
    rule.shares(jobs)  # a quarter of 2 GPUs each: 5 units a second alone
    isolated_time = rule._isolated  # type: ignore[attr-defined]
    assert isolated_time.finish == pytest.approx([200.0] * 4)
    two = replace(jobs.some(np.array([0, 3])), left=np.array([500.0, 800.0]))
    rule.shares(two)  # the first did 500 at 5 a second; now a half of 2 GPUs each: 10 a second
    assert isolated_time.finish == pytest.approx([100 + 50, 40 + 80])


def test_what_a_rule_needs_it_asks_for() -> None:
    with pytest.raises(InputError, match=r"K80.*price of a GPU-hour"):
        ALLOCATIONS.get("min_cost")(Setting(("v100", "K80"), np.ones(2), costs={"v100": 3.0}))
    with pytest.raises(InputError, match="max_min_fairness_perf"):
        ALLOCATIONS.get("max_min_fairness_pref")
    needs = {name for name, rule in ALLOCATIONS.items() if rule.knowledge is Knowledge.CLAIRVOYANT}
    assert needs == {
        "finish_time_fairness",
        "finish_time_fairness_perf",
        "min_total_duration",
        "min_total_duration_perf",
        "min_cost_slo",
    }


def test_due_dates_that_cannot_be_met_are_dropped_all_together() -> None:
    setting = Setting(("v100",), np.array([1.0]), costs={"v100": 1.0})
    jobs = replace(jobs_of([[10.0], [1.0]], [1, 1]), left=np.array([100.0, 50.0]), time_left=np.array([np.inf, 100.0]))
    share = allocate("min_cost_slo", jobs, setting)
    assert share[:, 0] == pytest.approx([0.5, 0.5], abs=1e-4)
    late = replace(jobs, time_left=np.array([np.inf, 49.0]))
    assert allocate("min_cost_slo", late, setting)[:, 0] == pytest.approx([1, 0], abs=1e-4)


def test_weight_zero_asks_for_nothing() -> None:
    setting = Setting(("v100",), np.array([1.0]))
    jobs = replace(jobs_of([[1.0], [1.0]], [1, 1]), weight=np.array([1.0, 0.0]))
    assert allocate("max_min_fairness_perf", jobs, setting)[:, 0] == pytest.approx([1, 0], abs=1e-4)
    both = replace(jobs, weight=np.zeros(2))
    assert allocate("max_min_fairness_perf", both, setting)[:, 0] == pytest.approx([0.5, 0.5], abs=1e-4)


def test_the_program_reuses_slots_and_says_what_it_did() -> None:
    program = ShareProgram(np.array([4.0]))
    for k in range(20):
        slots = program.open([(k, 0), (k, 1), (k, 2)], np.full((3, 1), 1.0 + k), np.ones(3))
        program.demand(slots, np.zeros(3))
        assert program.solved(slots)[1] == pytest.approx(-(1.0 + k))
    assert program.statistics()["slots"] == 3
    assert program.statistics()["solves"] == 20
