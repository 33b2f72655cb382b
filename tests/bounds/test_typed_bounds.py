"""Bounds for clusters of several GPU types: below every schedule, equal to other methods where these are exact."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from examples import examples, few
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from srpt import srpt

from bounds import cases
from bounds.cases import OBJECTIVES, SUMS, instance_of
from bounds.typed_cases import objective_value, random_completions, typed_instance
from optsched.bounds import BOUNDS, bound
from optsched.bounds.certificate import EXCLUSIVE_CLASSES
from optsched.bounds.mean_busy_time import gain_with, weights_on_grid
from optsched.bounds.modes import modes_of_gangs, type_paces
from optsched.bounds.one_machine import layered, levels_of
from optsched.bounds.priced_machine import Priced, first_prices, whole_prices
from optsched.classes.forking.bounds.modes_of_forked import modes_of_copies
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.duration import seconds_alone
from optsched.speeds.throughput_sources import built_in

TYPED = ("typed-srpt", "typed-busy-time", "typed-makespan", "typed-due-dates", "typed-first-come", "typed-fair-share")
build_makespan, build_srpt = (BOUNDS.get(kind).build for kind in ("typed-makespan", "typed-srpt"))
ROUNDED = Fraction(1, 10**6)  # prices are rounded to 14 bits (sums) or 40 (makespan): far less than this is lost


certificates = partial(cases.certificates, names=TYPED)


@pytest.mark.parametrize("schedule_class", EXCLUSIVE_CLASSES)
def test_any_prices_and_multipliers_stay_below(schedule_class: str) -> None:
    """The theorems alone: prices and multipliers drawn at random, some 0, no search."""
    rng = np.random.default_rng([2, EXCLUSIVE_CLASSES.index(schedule_class)])
    forking, preempt = schedule_class == "forking", schedule_class != "gang-nonpreemptive"
    for k in few(range(20), 8):
        instance, objective = typed_instance(rng), SUMS[k % len(SUMS)]
        jobs = modes_of_copies(instance) if forking else modes_of_gangs(instance)
        relaxed = Priced(instance, jobs.alone if forking else seconds_alone(instance), jobs)
        costs = relaxed.costs(objective)
        prices = tuple(int(price) for price in rng.integers(0, 20, len(jobs.types)))
        if not any(prices):
            continue
        grid = relaxed.at(prices).grid()
        weight, exponent = weights_on_grid(costs.weight, 6)
        share = np.where(grid.work > 0, rng.integers(0, 65, instance.n), 0)
        gain, _ = gain_with(costs, costs.duration, grid, weight * share // 64, exponent)
        bounds = [costs.alone(costs.weight) + gain]
        if "tardiness" not in objective:
            bounds.append(layered(costs, grid, levels_of(costs.weight)))
        for _ in range(3):
            completion = random_completions(instance, rng, forking=forking, preempt=preempt)
            value = objective_value(instance, objective, completion)
            assert max(bounds) <= value * (1 + Fraction(1, 2**51)), (prices, instance.jobs)


def test_without_a_table_prices_say_nothing_new_and_are_not_tried() -> None:
    instance = Instance([Job("a", duration=3), Job("b", duration=2, gpus=2)], "2x2:V100+1x2:K80")
    one_type = Instance(
        [Job("a", iterations=3, profile="m")], "2x2:V100", throughputs=Throughputs({("m", "V100", 1): Throughput(2.0)})
    )
    for objective in OBJECTIVES:
        assert certificates(instance, objective, "gang") == []
        assert certificates(one_type, objective, "gang") == []
        assert certificates(instance, objective, "forking") != []


def fluid_makespan(instance: Instance, forking: bool) -> float:
    """The primal LP of `fluid_prices` written out, all jobs released at 0: seconds y_jt of j's gang on type t."""
    paces, names, capacity = type_paces(instance)
    n, types = instance.n, len(names)
    size = n * types + 1
    rows, limits = [], []

    def row(entries: dict[int, float], limit: float) -> None:
        line = np.zeros(size)
        for column, value in entries.items():
            line[column] = value
        rows.append(line)
        limits.append(limit)

    for j in range(n):
        pace = paces[j]
        row({j * types + t: -1 / pace[t] for t in range(types) if np.isfinite(pace[t])}, -float(instance.work[j]))
        if not forking:
            row({**{j * types + t: 1.0 for t in range(types)}, size - 1: -1.0}, 0.0)
    for t in range(types):
        gangs = {j * types + t: float(instance.gpus[j]) for j in range(n)}
        row({**gangs, size - 1: -float(capacity[t])}, 0.0)
    found = linprog(np.eye(size)[-1], A_ub=np.array(rows), b_ub=limits, bounds=(0, None), method="highs")
    return float(found.fun)


@pytest.mark.parametrize("forking", [False, True])
def test_the_makespan_is_the_fluid_optimum_of_jobs_released_together(forking: bool) -> None:
    rng = np.random.default_rng(11)
    for _ in range(14):
        instance = typed_instance(rng)
        instance = instance.replace(jobs=instance.table.with_columns(arrival=0.0))
        certificate = build_makespan(instance, "makespan", "forking" if forking else "gang")
        if certificate is None:
            continue
        certificate.verify(instance)
        assert float(certificate.value) == pytest.approx(fluid_makespan(instance, forking), rel=1e-9)


def test_one_forked_job_takes_all_gpus_at_once() -> None:
    # 2 V100 at 3/s and 1 K80 at 1/s: 7/s together; one gang of one V100 would need 14 s
    table = Throughputs({("m", "V100", 1): Throughput(3.0), ("m", "K80", 1): Throughput(1.0)})
    instance = Instance([Job("a", 5, iterations=42, profile="m")], "2x1:V100+1x1:K80", throughputs=table)
    for objective, value in (("makespan", 11), ("total_completion_time", 11), ("total_flow_time", 6)):
        # 1/3 as a float is below 1/3, by less than its last bit: so is the bound
        certificate = bound(instance, objective, "forking")
        assert value * (1 - ROUNDED**2) < certificate.value <= value
        certificate.verify(instance)
        assert bound(instance, objective, "gang").value > value + 7


def test_gangs_of_one_type_are_the_fast_machine() -> None:
    jobs = [(0.0, 2, 4.0), (1.0, 1, 2.0), (1.0, 1, 8.0), (5.0, 3, 1.0)]
    instance = instance_of(jobs, 4)
    certificate = build_srpt(instance, "total_completion_time", "forking")
    assert certificate.data["prices"] == {"GPU": 1}
    assert certificate.value == sum(srpt((Fraction(r), Fraction(g * d) / 4) for r, g, d in jobs))


@settings(max_examples=examples(20))
@given(st.integers(0, 10**6))
def test_any_prices_are_srpt_of_works_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = typed_instance(rng)
    paces, types, capacity = type_paces(instance)
    prices = tuple(int(price) for price in rng.integers(1, 50, len(types)))
    total = sum(price * int(count) for price, count in zip(prices, capacity, strict=True))
    grid = Priced(instance, seconds_alone(instance), modes_of_gangs(instance)).at(prices).grid()
    assert grid.capacity == total
    for j in range(instance.n):
        pace = paces[j]
        least = min(Fraction(a) * price for a, price in zip(pace.tolist(), prices, strict=True) if np.isfinite(a))
        share = Fraction(float(instance.work[j])) * int(instance.gpus[j]) * least / total
        assert 0 <= share - grid.work[j] * grid.tick < grid.tick


def test_prices_tell_types_apart() -> None:
    """Where one type is fast for all, equal prices waste what the slow type cannot do."""
    table = Throughputs({("m", "V100", 1): Throughput(10.0), ("m", "K80", 1): Throughput(1.0)})
    jobs = [Job(str(j), iterations=100, profile="m") for j in range(40)]
    instance = Instance(jobs, "1x1:V100+9x1:K80", throughputs=table)
    # the cluster does 19 units a second: 4,000 take 210.5 s; equal prices promise 10 GPUs at 10 units a second, 40 s
    certificate = bound(instance, "makespan", "gang")
    assert certificate.kind == "typed-makespan"
    assert float(certificate.value) == pytest.approx(4000 / 19, rel=1e-9)
    flow = bound(instance, "total_flow_time", "gang")
    assert flow.kind == "typed-busy-time"
    # works alike: least mean busy times 100 (k - 1/2) / 19, plus half of 10 s each
    assert float(flow.value) == pytest.approx(100 / 19 * 800 + 40 * 5, rel=1e-5)


@pytest.mark.parametrize("seed", few(range(7), 3))
def test_as_large_as_the_bounds_it_generalises(seed: int) -> None:
    rng = np.random.default_rng(seed + 100)
    instance = typed_instance(rng)
    certificate = build_makespan(instance, "makespan", "gang")
    if certificate is not None:
        critical = BOUNDS.get("critical-job").build(instance, "makespan", "gang")
        assert certificate.value >= critical.value * (1 - Fraction(1, 10**9))
    for objective in SUMS:
        for certificate in certificates(instance, objective, "gang"):
            plain = BOUNDS.get("release-plus-duration").build(instance, objective, "gang")
            assert certificate.kind != "typed-busy-time" or certificate.value >= plain.value


def test_searches_start_from_prices_of_any_scale() -> None:
    assert whole_prices(np.array([3e-9, 6e-9, 0.0]), 14) == (1, 2, 0)
    assert whole_prices(np.array([0.0, 0.0]), 14) is None
    assert whole_prices(np.array([np.inf, 1.0]), 14) is None
    jobs = modes_of_gangs(typed_instance(np.random.default_rng(0)))
    for prices in first_prices(jobs):
        assert len(prices) == len(jobs.types)
        assert max(prices) > 0


def test_a_type_that_a_job_may_not_use_does_not_make_it_cheap() -> None:
    table = Throughputs({("m", "V100", 1): Throughput(1.0), ("m", "K80", 1): Throughput(0.0)})
    jobs = [Job(str(j), iterations=10, profile="m") for j in range(4)]
    instance = Instance(jobs, "1x1:V100+3x1:K80", throughputs=table)
    certificate = bound(instance, "makespan", "gang")
    certificate.verify(instance)
    assert certificate.value == 40  # only one GPU counts
    assert bound(instance, "total_completion_time", "gang").value == 10 + 20 + 30 + 40
    assert bound(instance, "makespan", "forking").value == 40


def test_stage_profiles_and_gangs_that_fit_no_node_are_served() -> None:
    table = Throughputs({("m", "V100", 4): Throughput(9.0, 2.0), ("m", "K80", 4): Throughput(9.0, 1.0)})
    cluster = Cluster((NodeGroup(2, 2, gpu="V100"), NodeGroup(2, 2, gpu="K80")))
    instance = Instance([Job("a", gpus=4, iterations=8, profile="m")], cluster, throughputs=table)
    # four GPUs are never together: 2/s on the V100, and 3/s if copies could share all eight
    assert bound(instance, "makespan", "gang").value == 4
    assert float(bound(instance, "makespan", "forking").value) == pytest.approx(8 / 3)


def test_the_built_in_table_on_a_cluster_of_three_types() -> None:
    rng = np.random.default_rng(8)
    names = [name for name in built_in().job_types if built_in().get(name, "V100", 4) is not None]
    jobs = [
        Job(
            str(j),
            float(rng.integers(0, 900)),
            int(rng.choice([1, 2, 4])),
            iterations=float(rng.integers(10_000, 50_000)),
            profile=str(rng.choice(names)),
        )
        for j in range(60)
    ]
    instance = Instance(jobs, "2x4:V100+2x4:P100+2x4:K80", throughputs=built_in())
    for objective in ("total_flow_time", "total_weighted_completion_time", "makespan"):
        typed = max(certificates(instance, objective, "gang"), key=lambda c: c.value)
        typed.verify(instance)
        forked = bound(instance, objective, "forking")
        forked.verify(instance)
        assert forked.value <= typed.value
        for name in ("srpt", "mean-busy-time", "volume", "split-busy-time", "release-plus-duration"):
            if objective in BOUNDS.get(name).objectives:
                plain = BOUNDS.get(name).build(instance, objective, "gang")
                assert typed.value > plain.value * Fraction(11, 10), name
