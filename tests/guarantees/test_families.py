"""Every registered family keeps what it says, and families against exhaustion and integrals made by hand."""

from __future__ import annotations

import dataclasses
import inspect
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from policies.test_alpha_points import ExponentialDensity

from optsched.check.referee import check_schedule, schedule_value
from optsched.classes.gpu_sharing.evaluation.shared_suite import SHARING, small_sharing
from optsched.classes.gpu_sharing.solvers.sharing_orders import best_shared_order
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.suite_ratios import ratios
from optsched.evaluation.suites import suite
from optsched.guarantees import GUARANTEES, Guarantee
from optsched.guarantees.family import FAMILIES, family_instance, family_member
from optsched.guarantees.judge import judge
from optsched.guarantees.optimum import exact_optimum, is_proved
from optsched.guarantees.unrelated_machines import DUAL_FITTING, UnrelatedMachines, torn_job
from optsched.guarantees.weighted_completion_times import FACTOR_APART, FACTOR_COMMON, late_short_job as late
from optsched.policies.alpha_points import APART, COMMON
from optsched.policies.simulate import serves, simulate, specify
from optsched.problem.objectives import OBJECTIVES, get_objective


def about(family: str) -> list[Guarantee]:
    """The guarantee that is tight on a family, if there is one."""
    return [theorem for _, theorem in GUARANTEES.items() if theorem.tight.family is FAMILIES.get(family)]


SIZED = [(name, size) for name, family in FAMILIES.items() for size in family.sizes]


@pytest.mark.parametrize("name", FAMILIES.names())
def test_it_says_what_it_is(name: str) -> None:
    family = FAMILIES.get(name)
    assert family.name == name
    assert family.summary
    assert family.limit
    assert family.objective in OBJECTIVES
    assert family.about
    assert "----" not in family.about  # the section Parameters is no part of the description
    assert list(family.parameters) == list(inspect.signature(family.make).parameters)  # all of them can be written
    assert family.sizes
    for theorem in about(name):
        assert specify(family.policy).policy.name in theorem.policies
        assert theorem.objective == family.objective
    member = family.member()
    assert serves(specify(family.policy).policy, member.instance)
    assert family_instance(name).digest == member.instance.digest


@pytest.mark.parametrize(("name", "size"), SIZED)
def test_its_formula_is_what_the_policy_loses(name: str, size: int) -> None:
    member = FAMILIES.get(name).of_size(size)
    instance, family = member.instance, member.family
    run = simulate(instance, family.policy)
    value = schedule_value(instance, run.schedule, family.objective)
    optimum = exact_optimum(instance, family.objective)
    if member.ratio is not None:
        assert isinstance(member.ratio, Fraction)
        assert optimum is not None
        assert is_proved(instance)
        gain = get_objective(family.objective).gain
        assert (optimum[0] == member.ratio * value) if gain else (value == member.ratio * optimum[0])
    if member.reference is not None:
        assert optimum is None
        lower = OptimumBounds(instance, [run]).lower(family.objective)
        assert lower is None or lower <= member.reference
    for theorem in about(name):
        chosen = specify(family.policy)
        assert theorem.applies(chosen.policy, chosen.placement, instance)
        if member.ratio is not None:
            assert member.ratio <= theorem.ratio(chosen.policy, run)


def test_a_member_is_a_suite_of_one_instance(command: Any) -> None:
    found = suite("blocked-long-job:m=3")
    assert found.members == ("blocked-long-job:m=3",)
    ((_, instance),) = found.instances()
    assert instance.digest == family_member("blocked-long-job:m=3").instance.digest
    code, out, _ = command("ratio", "blocked-long-job:m=3", "-p", "list")
    assert code == 0
    assert "1.6667" in out


def test_families_are_listed(command: Any) -> None:
    code, out, _ = command("list", "families")
    assert code == 0
    assert all(name in out for name in FAMILIES.names())
    assert "optsched ratio kappa:gpus=4 -p a-srpt" in " ".join(command("list", "families", "kappa")[1].split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bloked-long-job:m=3", "blocked-long-job"),
        ("blocked-long-job:n=3", "parameters: m"),
        ("blocked-long-job:m=x", "an integer"),
        ("blocked-long-job:m=0", "m = 0"),
        ("kappa:gpus=1", "gpus"),
        ("crowded:small=0", "small = 0"),
        ("crowded:xi=0.5", "xi = 0.5"),
        ("crowded:second=-1", "seconds >= 0"),
        ("blocked-transfers:small=0", "small = 0"),
        ("blocked-transfers:eta=-0.1", "eta = -0.1"),
        ("blocked-transfers:size=-1", "size = -1"),
    ],
)
def test_what_is_no_member(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        family_instance(text)
    with pytest.raises(InputError, match=expected):
        suite(text).instances()


# -- unrelated machines and random alpha points ---------------------------------------------------------------------------


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


# -- the suite of jobs that share one GPU ---------------------------------------------------------------------------------


SOME = ("sharing-1.1-3-1", "sharing-1.3-3-4", "sharing-1.8-3-8", "sharing-exp-3-9")


def test_policies_on_some_of_its_members() -> None:
    table = ratios(dataclasses.replace(suite("sharing-small"), members=SOME), ["sjf", "sjf-ffs", "sjf-bsbf", "srtf"])
    assert table.violations == []
    assert table.objective == "total_flow_time"
    for row in table.policies:
        shares = row.policy in ("sjf-ffs", "sjf-bsbf")
        for each in row.measured:
            assert each.bound is not None
            assert each.bound.exact or not shares
            assert each.ratio is not None
            assert each.ratio >= 1 - 1e-9
    means = {row.policy: row.mean or 0 for row in table.policies}
    assert 1 < means["sjf-bsbf"] < means["sjf"]


@pytest.mark.parametrize("member", SOME)
def test_what_they_state(member: str) -> None:
    instance = small_sharing(member)
    assert instance.optimum is not None
    value = float(instance.optimum["value"])
    kept = best_shared_order(instance).value
    assert value <= kept * (1 + 1e-7)
    assert ("sharing-orders" in instance.optimum["proved_by"]) == (value >= kept * (1 - 1e-7))
    floor = OptimumBounds(instance).lower("total_completion_time", "gpu-sharing")
    assert floor is not None
    assert float(floor) <= value * (1 + 1e-7)


@pytest.mark.study
def test_every_member_can_be_made() -> None:
    assert len(SHARING) == len({small_sharing(member).digest for member in SHARING})
