"""Prices of GPUs over time: below every schedule, claims that are exactly what they say, more than the bounds before."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from examples import few
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import optsched as osd
from bounds import cases
from bounds.cases import best_of_others, queue
from optsched.bounds import BOUNDS, Certificate, CertificateError, priced_time
from optsched.bounds.modes import Modes
from optsched.bounds.priced_time_search import PricedTime, responses
from optsched.bounds.sum_costs import SumCosts
from optsched.io.sources import load
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.verifier.priced_cells import LeastCost, Minima, PricedCells
from optsched.verifier.stated_speeds import Rates

FLOW = "total_flow_time"
pytestmark = pytest.mark.usefixtures("prices_for_few_jobs")
built, others = partial(cases.built, "priced-time"), partial(best_of_others, "priced-time")


# --- what a job says is exactly so ---------------------------------------------------------------------------------------


def least_by_linear_programs(cells: PricedCells, job: LeastCost, modes: Rates, adds: bool, ends: list[float]) -> float:
    """The least cost and payment over these ends: an LP for each, seconds of options in cells."""
    best = np.inf
    for end in ends:
        moments = [*map(float, cells.moments), np.inf]
        free = dict.fromkeys(cells.prices[0], 0.0)
        columns, room, pay, rate = [], [], [], []
        for k, row in enumerate([*cells.prices, free]):
            seconds = min(moments[k + 1], end) - max(moments[k], float(job.release))
            if seconds <= 0:
                continue
            for t, speed, gpus in modes:
                columns.append(len(room) if not adds else len(columns))
                pay.append(float(row[t] * gpus) if k < len(cells.prices) else 0.0)
                rate.append(float(speed))
                if adds:
                    room.append(seconds)
            if not adds:
                room.append(seconds)
        if not columns:
            continue
        held = np.zeros((len(room), len(columns)))
        held[columns, np.arange(len(columns))] = 1.0
        found = linprog(pay, A_ub=held, b_ub=room, A_eq=[rate], b_eq=[float(job.work)])
        if found.success:
            cost = float(job.weight) * max(end - float(job.kink), 0.0)
            cost -= float(job.gain) / (end - float(job.release)) if job.gain else 0.0
            best = min(best, found.fun + cost)
    return float(best)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_three_ways_to_the_least_cost_of_a_job(seed: int, adds: bool) -> None:
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(1, 6))
    moments = np.cumsum([0, *rng.integers(1, 5, cells)]).astype(float)
    prices = rng.integers(0, 5, (cells, 2)) / 4
    options = [
        (int(rng.integers(2)), float(rng.integers(1, 9)) / 4, float(rng.integers(0, 5)))
        for _ in range(rng.integers(1, 4))
    ]
    release, work = float(rng.integers(0, 8)) / 2, float(rng.integers(1, 12))
    weight, counted = float(rng.integers(0, 4)), float(rng.integers(0, 20)) / 2
    gain = float(rng.integers(1, 50)) if rng.random() < 0.4 else 0.0
    weight = 0.0 if gain else weight
    one = np.ones(1)
    costs = SumCosts("total_weighted_tardiness", weight * one, release * one, one, counted * one, one > 0, gain * one)
    kinds, ones = np.zeros(1, dtype=np.int64), np.ones(2, dtype=np.int64)
    exactly = [tuple((t, 1 / Fraction(rate), Fraction(gpus)) for t, rate, gpus in options)]
    modes = Modes(("a", "b"), ones, ones[:1], kinds, work * one, release * one, exactly, adds)
    least = float(responses(costs, modes, PricedTime(moments, prices))[0][0])
    exact = PricedCells(
        [Fraction(m) for m in moments], [dict(zip("ab", map(Fraction, row), strict=True)) for row in prices]
    )
    job = LeastCost(*map(Fraction, (release, work, weight, counted, least, gain)))
    rates = tuple(("ab"[t], Fraction(rate), Fraction(charge)) for t, rate, charge in options)
    slightly = Fraction(1, 10**9)
    assert Minima(exact, adds).hold(job._replace(least=job.least - slightly), rates)
    assert not Minima(exact, adds).hold(job._replace(least=job.least + slightly), rates)
    ends = np.arange(0, 40, 1 / 8)
    brute = least_by_linear_programs(exact, job, rates, adds, [*ends[::4], *(ends[::8] + 0.3)])
    assert least <= brute + 1e-7
    assert gain or brute <= least + weight / 2 + 1e-7  # ends half a second apart, and a longer stay costs no more


# --- what it is worth ----------------------------------------------------------------------------------------------------


def test_utility_where_nobody_has_to_wait_and_where_all_do() -> None:
    # four jobs of 10 s at once on one GPU: half of the work is done at 20 s at best, and prices see that
    jobs = [Job(str(j), 0.0, 1, 10.0) for j in range(4)]
    alone, four = (Instance(jobs, Cluster([NodeGroup(1, g)]), f"{g}") for g in (4, 1))
    bounds = [osd.bound(each, "total_utility") for each in (alone, four)]
    assert bounds[0].value == 4
    # one after another: 10 (1/10 + 1/20 + 1/30 + 1/40)
    assert 10 / 10 + 10 / 20 + 10 / 30 + 10 / 40 <= bounds[1].value < 3.0
    assert bounds[1].kind == "priced-time"


@cache
def all_four() -> Instance:
    return load("all-four").relative


@pytest.mark.parametrize(("schedule_class", "gain"), few([("gang", 1.04), ("gpu-sharing", 1.06), ("elastic", 1.07)], 1))
def test_all_four(schedule_class: str, gain: float) -> None:
    certificate = built(all_four(), FLOW, schedule_class)
    assert float(certificate.value) > gain * float(others(all_four(), FLOW, schedule_class))


@pytest.mark.parametrize(
    "objective", ["total_weighted_tardiness", pytest.param("total_weighted_flow_time", marks=pytest.mark.study)]
)
def test_weights_and_due_dates_for_every_class(objective: str) -> None:
    table = all_four().table
    rng = np.random.default_rng(3)
    dated = table.with_columns(
        weight=table["arrival"] * 0 + rng.integers(1, 5, table.height),
        due=table["arrival"] + rng.uniform(0, 4000, table.height),
    )
    instance = all_four().replace(jobs=dated)
    for schedule_class in few(("gang", "gpu-sharing", "elastic"), 1):
        certificate = built(instance, objective, schedule_class)
        assert certificate.value > others(instance, objective, schedule_class)
    forked = built(instance, objective, "forking")
    assert forked.value > 0


def test_full_speed_pays_in_full() -> None:
    # xi = 1.25: two jobs beside each other do 1.6 of work a second, one alone at full speed leaves nothing to others
    jobs = [Job(f"j{k}", 0.0, 1, 8.0) for k in range(4)]
    instance = Instance(jobs, "1x2", interference=Interference(1.25))
    certificate = built(instance, FLOW, "gpu-sharing")
    assert others(instance, FLOW, "gpu-sharing") < certificate.value <= 4 * 10  # two pairs, 10 s each


def test_what_runs_on_fast_gpus_waits_for_them() -> None:
    # four jobs eight times as fast on the one V100: three of them wait for it, whatever the K80 do
    rows = [Job(f"j{k}", 0.0, 1, iterations=8.0, profile="m") for k in range(4)]
    table = Throughputs({("m", "V100", 1): Throughput(8.0), ("m", "K80", 1): Throughput(1.0)})
    instance = Instance(rows, "1x1:V100+8x1:K80", throughputs=table)
    certificate = built(instance, FLOW, "gang")
    assert others(instance, FLOW, "gang") < certificate.value <= 1 + 2 + 3 + 4


def test_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(queue(15), FLOW) is not None
    monkeypatch.undo()
    assert built(queue(15), FLOW) is None  # few
    monkeypatch.setattr(priced_time, "FEWEST_JOBS", 2)
    many = Instance([Job(f"j{k}", 0.0, 1, 1.0) for k in range(1_000)], "1x2")
    one, nobody = (Instance(rows, "1x2") for rows in ([Job("a", 1.0, 1, 2.0)], []))
    roomy = Instance([Job("a", 0.0, 1, 2.0), Job("b", 0.0, 1, 2.0)], "1x2")
    for instance in (many, one, nobody, roomy):
        assert BOUNDS.get("priced-time").build(instance, FLOW, "gang") is None


@pytest.mark.parametrize(("scale", "epoch"), [(1e-8, 0.0), (1e-5, 1.7e9), (1.0, 1.7e9), (1e5, 0.0)])
def test_times_of_any_size(scale: float, epoch: float) -> None:
    instance = queue(30, scale, epoch)
    for objective in (FLOW, "total_weighted_completion_time"):
        certificate = built(instance.relative, objective, "gang")
        assert certificate.value > others(instance.relative, objective, "gang")
        far = built(instance, objective, "gang")  # which counts from the first arrival
        assert (far is None) == (epoch > 1e6 * scale)


def test_endless_proofs_are_not_begun() -> None:
    one = Instance([Job("a", 0.0, 1, 1.0)], "1x1")
    many = one.replace(jobs=[Job(f"j{k}", 0.0, 1, 1.0) for k in range(2000)])
    data = {"moments": list(range(4097)), "moment_exponent": 0, "prices": {"GPU": [1] * 4096}, "price_exponent": 0}
    for instance, value in ((one, 1 - 4096), (many, 2000 - 4096)):
        proof = {**data, "minima": [1] * instance.n, "minimum_exponent": 0}
        claim = Certificate(instance.digest, FLOW, "gang", "priced-time", Fraction(value), proof)
        if instance is one:
            claim.verify(instance)
        else:
            with pytest.raises(CertificateError, match="too many to try"):
                claim.verify(instance)
