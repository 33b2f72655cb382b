"""Deadlines that jobs cannot all meet: below every schedule, equal to programs that are exact, forgeries refused."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from examples import examples, few
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from verifier.certified_cases import Optima

import optsched as osd
from bounds import cases
from bounds.cases import best_of_others, queue
from optsched.bounds import bound
from optsched.bounds.modes import Modes, modes_of_gangs
from optsched.bounds.priced_deadlines import Payments
from optsched.bounds.priced_time_search import PricedTime
from optsched.policies.simulate import simulate
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.verifier.priced_cells import Minima, PricedCells

GOAL, KIND = "max_fair_slowdown", "priced-deadlines"
ALONE = 1 + 1e-8
pytestmark = pytest.mark.usefixtures("prices_for_few_jobs")
built, others = partial(cases.built, KIND, objective=GOAL), partial(best_of_others, KIND, objective=GOAL)


# --- below every schedule ------------------------------------------------------------------------------------------------


def unlike_jobs(rng: np.random.Generator, n: int, cluster: str, gangs: tuple[int, ...] = (1,)) -> Instance:
    """Jobs whose speeds on two types are at random."""
    types = [part.split(":")[1] for part in cluster.split("+")]
    pairs = [(f"m{j}", int(rng.choice(gangs))) for j in range(n)]
    table = {(m, gpu, g): Throughput(float(rng.choice([1, 2, 3, 5]))) for m, g in pairs for gpu in types}
    jobs = [Job(m, float(rng.integers(0, n)), g, iterations=float(rng.integers(2, 30)), profile=m) for m, g in pairs]
    return Instance(jobs, cluster, throughputs=Throughputs(table)).relative


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_unrelated_machines_reach_their_optimum(seed: int) -> None:
    """Lawler and Labetoulle: parts of modes that meet all deadlines become a schedule, where every job takes one GPU."""
    instance = unlike_jobs(np.random.default_rng(seed), 4, "1x1:V100+1x1:K80")
    best, certificate = float(Optima(instance).least(GOAL, "gang")), built(instance)
    value = float(others(instance)) if certificate is None else float(certificate.value)
    assert 0.99 * best <= value <= best * ALONE


# --- other ways to the same number ---------------------------------------------------------------------------------------


def meets_all(instance: Instance, modes: Modes, ratio: float) -> bool:
    """Can all jobs be done by r_j + ratio d_j, in parts of their modes? The program over all moments, written out."""
    ends = instance.arrival + ratio * fair_flow_times(instance)
    moments = np.unique(np.concatenate([instance.arrival, ends]))
    columns = [
        (j, k, t, float(1 / a), float(g))
        for j in range(instance.n)
        for k in range(moments.size - 1)
        if instance.arrival[j] <= moments[k] and moments[k + 1] <= ends[j]
        for t, a, g in modes.by_kind[modes.kind[j]]
    ]
    rows: dict[tuple[str, int, int], dict[int, float]] = {}
    limits: dict[tuple[str, int, int], float] = {}
    for c, (j, k, t, rate, gpus) in enumerate(columns):
        seconds = float(moments[k + 1] - moments[k])
        for key, entry_of, limit in (
            (("work", j, 0), -rate / float(instance.work[j]), -1.0),
            (("own", j, k), 1 / seconds, 1.0),
            (("type", k, t), gpus / seconds, float(modes.capacity[t])),
        ):
            rows.setdefault(key, {})[c] = entry_of
            limits[key] = limit
    matrix = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows.values()):
        matrix[i, list(row)] = list(row.values())
    return bool(linprog(np.zeros(len(columns)), A_ub=matrix, b_ub=list(limits.values()), method="highs").status == 0)


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_near_the_program_over_all_moments(seed: int) -> None:
    instance = unlike_jobs(np.random.default_rng(100 + seed), 14, "1x3:V100+1x2:K80", (1, 1, 2, 3))
    certificate, modes = built(instance), modes_of_gangs(instance)
    value = float(certificate.value)
    assert not meets_all(instance, modes, value * (1 - 1e-6))
    assert meets_all(instance, modes, value * 1.001)


ways = st.tuples(st.integers(0, 1), st.sampled_from([0.3, 1.0, 1.0 + 2.0**-40, 2.0, 5.0]), st.integers(1, 3))


@settings(max_examples=examples(60))
@given(st.lists(ways, min_size=1, max_size=4), st.integers(0, 10**6), st.booleans())
def test_what_a_job_pays_at_least(options: list[tuple[int, float, int]], seed: int, adds: bool) -> None:
    """The search a little below the verifier, which is at a program over seconds of modes."""
    rng = np.random.default_rng(seed)
    moments = np.cumsum([0.0, *rng.integers(1, 9, 4) / 2])
    price = rng.choice([0.0, 0.5, 1.0, 1.0 + 2.0**-40, 7.0], (4, 2))
    release, end = float(rng.integers(0, 10)) / 2, float(rng.integers(12, 24))
    work = float(rng.uniform(0.1, 1.0)) * (end - release) * max(rate for _, rate, _ in options)
    ones = np.ones(2, dtype=np.int64)
    exactly = [tuple((t, 1 / Fraction(rate), Fraction(gpus)) for t, rate, gpus in options)]
    given_jobs = np.array([work]), np.array([release])
    modes = Modes(("a", "b"), ones, ones[:1], ones[:1] * 0, *given_jobs, exactly, adds)
    found = float(Payments(modes, PricedTime(moments, price)).least(np.array([end]))[0])
    rows = [dict(zip("ab", map(Fraction, row), strict=True)) for row in price.tolist()]
    proof = Minima(PricedCells(list(map(Fraction, moments.tolist())), rows), adds)
    rates = tuple(("ab"[t], Fraction(rate), Fraction(gpus)) for t, rate, gpus in options)
    exact = proof.paid(*map(Fraction, (work, release, end)), rates)
    assert found <= exact
    assert found == pytest.approx(float(exact), rel=1e-7, abs=1e-7)
    spans = np.maximum(np.minimum([*moments[1:], end], end) - np.maximum(moments, release), 0.0)
    columns = [(k, *option) for k in range(5) for option in options]
    cost = [price[k, t] * gpus if k < 4 else 0.0 for k, t, _, gpus in columns]
    within = np.eye(len(columns)) if adds else np.array([[float(c[0] == k) for c in columns] for k in range(5)])
    limit = [spans[c[0]] for c in columns] if adds else spans
    program = linprog(cost, A_ub=within, b_ub=limit, A_eq=[[c[2] for c in columns]], b_eq=[work], method="highs")
    assert float(exact) == pytest.approx(program.fun, rel=1e-7, abs=1e-6)


# --- what it is worth ----------------------------------------------------------------------------------------------------


@cache
def sixty() -> Instance:
    return osd.generate("hadar-60", seed=4, jobs=60, hours=1, cluster="2x4:V100+2x4:P100+2x4:K80").relative


def test_prices_of_types_over_time_say_more_than_one_price_each() -> None:
    certificate = built(sixty())
    assert float(certificate.value) > 1.05 * float(others(sixty()))
    assert bound(sixty(), GOAL) == certificate
    assert all(
        certificate.value <= Fraction(simulate(sixty(), each).value(GOAL))
        for each in ("fifo", "srtf", "makespan-rounds")
    )


def test_one_fast_gpu_that_all_would_like_to_have() -> None:
    # alone 1 s on the V100, 8 s on a K80; on an equal share of five such GPUs nobody waits
    table = Throughputs({("m", "V100", 1): Throughput(8.0), ("m", "K80", 1): Throughput(1.0)})
    jobs = [Job(f"j{k}", 0.0, 1, iterations=8.0, profile="m") for k in range(4)]
    instance = Instance(jobs, "1x1:V100+4x1:K80", throughputs=table)
    certificate = built(instance)
    # by R all have 8 R of 32 units on the V100, and 3 R on the K80: one at a time is on none of these
    assert float(certificate.value) == pytest.approx(32 / 11, rel=1e-3)
    assert certificate.value <= Fraction(32, 11)


def test_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    few_jobs = unlike_jobs(np.random.default_rng(100), 14, "1x3:V100+1x2:K80", (1, 1, 2, 3))
    for instance in (few_jobs, queue(600), queue(0)):
        assert built(instance) is None
    assert built(Instance([Job(f"j{k}", 0.0, 1, 1.0 + k) for k in range(20)], "1x20")) is None


@pytest.mark.parametrize(("scale", "epoch"), [(1e-6, 0.0), (1.0, 1.7e9), (1e5, 0.0)])
def test_times_of_any_size(scale: float, epoch: float) -> None:
    instance = queue(20, scale, epoch)
    best = bound(instance, GOAL)
    best.verify(instance)
    assert best.value >= others(instance.relative)
