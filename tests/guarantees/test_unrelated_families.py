"""Families for unrelated machines and random alpha points, against exhaustion and integrals made by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from policies.exponential_density import ExponentialDensity

from optsched.check.referee import check_schedule, schedule_value
from optsched.guarantees.alpha_points import FACTOR_APART, FACTOR_COMMON, late_short_job as late
from optsched.guarantees.dual_fitting import DUAL_FITTING
from optsched.guarantees.family import family_member
from optsched.guarantees.judge import judge
from optsched.guarantees.lenstra_shmoys_tardos import torn_job
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.guarantees.unrelated_machines import UnrelatedMachines
from optsched.policies.alpha_points import APART, COMMON
from optsched.policies.simulate import simulate, specify


@pytest.mark.parametrize("m", [2, 3])
def test_the_torn_job_fits_where_its_machine_is_cleared(m: int) -> None:
    instance = torn_job(m)
    machines = UnrelatedMachines.of(instance)
    seconds = [[machines.seconds(i, j) or Fraction(0) for j in range(instance.n)] for i in range(m)]
    best = min(
        max(sum((seconds[i][j] for j in range(instance.n) if on[j] == i), Fraction(0)) for i in range(m))
        for on in product(range(m), repeat=instance.n)
    )
    run = simulate(instance, "lenstra-shmoys-tardos")
    assert best == m + 1
    assert schedule_value(instance, run.schedule, "makespan") == 2 * m


@pytest.mark.parametrize("k", [2, 4, pytest.param(8, marks=pytest.mark.study)])
def test_who_is_bound_beside_the_short_jobs_waits_for_all_of_them(k: int) -> None:
    member = family_member(f"divided-evenly:k={k}")
    instance, chosen = member.instance, specify("immediate-dispatch")
    run = simulate(instance, chosen)
    assert check_schedule(instance, run.schedule) == []
    assert member.reference is not None
    lost = schedule_value(instance, run.schedule, "total_weighted_flow_time") / member.reference
    assert lost == Fraction((k + 2) * (k * k + k + 1), 2 * (k + 1) ** 2)
    judged = judge(DUAL_FITTING, chosen.policy, run, OptimumBounds(instance, [run]))
    assert judged.holds is True
    assert judged.ratio >= lost  # the dual solution of the run is below what some schedule reaches


@pytest.mark.parametrize(("common", "factor"), [(False, FACTOR_APART), (True, FACTOR_COMMON)])
def test_the_expectation_reaches_the_factor(common: bool, factor: Fraction) -> None:
    """E C = come + E alpha or, where alpha of the long job is at most come / length, (1 + alpha) length; then 1 more."""
    largest, length = COMMON if common else APART, 10**6
    come = 4 * length // 5
    density = ExponentialDensity(largest)
    held_up = density.moment(0.0, 0.8) * length  # int f(a) (1 + a) da
    free = 1 - density.mass(0.0, 0.8)
    expected = held_up + free * come + 1
    best = come + 1
    assert float(factor) - 1e-4 < expected / best < float(factor)
    assert density.scale + 1 == pytest.approx(1 + 1 / (math.exp(largest) - 1))


@pytest.mark.parametrize("common", [False, True])
def test_a_run_is_what_its_draws_say(common: bool) -> None:
    instance, length = late(1000), 1000
    waits = []
    for seed in range(8):
        run = simulate(instance, f"random-alpha-points:seed={seed},common={str(common).lower()}")
        first, second = run.notes["alpha"]
        point = 800 + second
        done = max((1 + first) * length, point) if first <= 0.8 else point
        waits.append(bool(first <= 0.8))
        assert run.schedule.completion[1] == pytest.approx(done + 1)
    assert np.unique(waits).size == 2
