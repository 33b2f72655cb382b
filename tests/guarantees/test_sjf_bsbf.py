"""Jobs that share GPUs: theorems for two of them, families without a constant, and where tests of pairs go wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from events import played, shared

from optsched.classes.gpu_sharing.guarantees.sjf_bsbf import (
    NEVER_SHARED,
    SJF_BSBF,
    SJF_FFS,
    always_shared_ratio,
    crowded,
    equal_sharers,
    just_refused,
    two_job_ratio,
    two_sharers,
)
from optsched.guarantees.guarantee import Guarantee
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference

F = Fraction
PUBLISHED = "sjf-bsbf:consolidated=false,joint=false,by=pair,outlook=0"
SLOW = (F(1), F(5, 4), F(3, 2), F(9, 5), F(3), F(10))


def flows(e: list[Fraction], r: Fraction, xi: tuple[Fraction, Fraction]) -> dict[str, Fraction]:
    """Flow times of two jobs on one GPU, the second released at r < e_1: what each rule makes, and the optimum."""

    def start_second(at: Fraction) -> Fraction:
        return sum(played([F(0), at], e, [{0}, {0}], shared(lambda j, other: xi[j]))) - r

    at_once, after = start_second(r), start_second(e[0])
    interrupted = (e[0] + e[1]) + e[1]  # the second first; what has run of the first is kept
    between = [start_second(r + (e[0] - r) * F(step, 4)) for step in (1, 2, 3)]
    best = min(at_once, after, interrupted)
    assert best <= min(between)
    return {"sjf-bsbf": at_once if at_once < after else after, "sjf-ffs": at_once, "sjf": after, "optimum": best}


def limit(rule: str, xi: tuple[Fraction, Fraction], gap: Fraction) -> Fraction:
    if rule == "sjf":
        return (gap + 2) / (gap + 1)
    return (two_job_ratio if rule == "sjf-bsbf" else always_shared_ratio)(*xi, gap)


@pytest.mark.parametrize("gap", [F(0), F(1, 3), F(2)])
def test_no_length_is_worse_than_the_theorems_say(gap: Fraction) -> None:
    """Exactly, and somewhere it is as bad: for every pair of slow-downs and every release of the second job."""
    worst: dict[Any, Fraction] = {}
    for xi in product(SLOW, SLOW):
        q = xi[0] / xi[1]
        k, least = xi[1] * (2 - 1 / xi[0]), min(xi[0] * (2 - 1 / xi[1]), F(2))
        special = [q, 1 + F(1, 10**9), *([(least - 1) / (k - 1)] if k > 1 and least > 1 else [])]
        for y in [*special, F(1, 10**6), *(F(step, 6) for step in (1, 3, 5, 6, 9, 30))]:
            found = flows([1 + gap, y], gap, xi)
            for rule in ("sjf-bsbf", "sjf-ffs", "sjf"):
                ratio = found[rule] / found["optimum"]
                assert ratio <= limit(rule, xi, gap)
                worst[rule, xi] = max(worst.get((rule, xi), F(0)), ratio)
    for (rule, xi), ratio in worst.items():
        assert ratio > limit(rule, xi, gap) * F(99_999, 10**5)
        assert ratio == limit(rule, xi, gap) or rule == "sjf"  # a limit there


def test_figures_of_the_sheet() -> None:
    expected = {F(3, 2): 1, F(8, 5): F(17, 16), F(9, 5): F(7, 6), F(2): F(5, 4), F(3): F(3, 2), F(10): F(37, 20)}
    for xi, ratio in expected.items():
        assert two_job_ratio(xi, xi) == ratio
        assert ratio <= always_shared_ratio(xi, xi) == max(1, 2 * xi / 3)
        th = min(F(1), 1 / (2 * xi - 2))
        assert ratio == (2 + th) / (1 + 2 * th)
    assert two_job_ratio(F(10**9), F(10**9)) == pytest.approx(2)
    assert two_job_ratio(F(2), F(1)) == 1  # the new job is not slowed down: whoever runs may be
    assert always_shared_ratio(F(2), F(1)) == 1
    assert always_shared_ratio(F(5), F(2)) == always_shared_ratio(F(2), F(5)) == F(20, 9)


def pair(first: float, second: float, late: float, xi: Interference, widths=(1, 1), gpus: int = 1, **said: Any):
    jobs = [
        Job("a", duration=first, gpus=widths[0], model="A"),
        Job("b", arrival=late, duration=second, gpus=widths[1], model="B"),
    ]
    return Instance(jobs, f"1x{gpus}", interference=xi, **said)


def table(one: float, other: float) -> Interference:
    """xi of A beside B, and of B beside A."""
    return Interference(1, ("A", "B"), ((1, one), (other, 1)))


def ratio_of(spec: str, instance: Instance) -> tuple[Fraction, float]:
    """What the theorem says of a run, and what the run makes; the optimum by the exact formula."""
    chosen = specify(spec)
    theorem = theorem_of(spec)
    assert theorem.applies(chosen.policy, chosen.placement, instance)
    run = simulate(instance, chosen)
    two = two_sharers(instance)
    assert two.left > 0
    best = flows([two.gap + two.left, two.alone], two.gap, (two.first, two.second))["optimum"]
    return F(theorem.ratio(chosen.policy, run)), run.value("total_flow_time") / float(best)


def theorem_of(spec: str) -> Guarantee:
    name = spec.partition(":")[0].partition("+")[0]
    return {"sjf-bsbf": SJF_BSBF, "sjf-ffs": SJF_FFS}.get(name, NEVER_SHARED)


@pytest.mark.parametrize("spec", ["sjf-bsbf", "sjf-bsbf:outlook=9", PUBLISHED, "sjf-ffs", "sjf", "fifo"])
def test_the_policies_keep_them(spec: str) -> None:
    rng = np.random.default_rng(5)
    reached = 0.0
    for trial in range(16):
        xi = (1 + rng.exponential(1, 2)).tolist()
        first, second = np.exp(rng.uniform(-1, 1, 2)).tolist()
        late = (0.0, 1e-9 * first, rng.random() * first)[trial % 3]
        widths = ((1, 1, 1), (4, 4, 4), (2, 3, 4), (4, 1, 4))[trial % 4]
        bound, ratio = ratio_of(spec, pair(first, second, late, table(*xi), widths[:2], widths[2]))
        assert 1 - 1e-9 <= ratio <= float(bound) * (1 + 1e-9)
        if late == 0.0 and spec.startswith("sjf-bsbf"):
            assert bound == 1
        reached = max(reached, ratio)
    assert reached > 1.05


@pytest.mark.parametrize(("xi", "expected"), [(1.6, 1.0625), (1.8, 1.1667), (2, 1.25), (3, 1.5)])
def test_two_job_ratios_of_the_sheet(xi: float, expected: float) -> None:
    """The second job a moment later, th times as long."""
    bound, ratio = ratio_of("sjf-bsbf", pair(1, 1 / (2 * xi - 2), 1e-9, Interference(xi)))
    assert ratio == pytest.approx(expected, abs=5e-5)
    assert float(bound) == pytest.approx(expected, abs=5e-5)
    assert ratio <= float(bound) * (1 + 1e-12)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_by_seconds_times_gpus_the_ratio_is_reached_at_once(k: int) -> None:
    """k s on one GPU before 1 s on all k + 1, both there at 0."""
    instance = pair(k, 1, 0, Interference(1 + k / 2), (1, k + 1), k + 1)
    bound, ratio = ratio_of("sjf-bsbf:width=true", instance)
    assert bound == F(2 * k + 1, k + 2)
    assert ratio == float(bound)
    assert ratio_of("sjf-bsbf", instance) == (1, 1.0)


def test_an_unequal_pair_in_which_the_first_job_suffers_less() -> None:
    """K < 2 < k: the second job always shares, and where both end together it costs most, 2 xi_1 xi_2 / (2 xi_1 + xi_2)."""
    assert two_job_ratio(F(11, 10), F(4)) == F(44, 31)
    bound, ratio = ratio_of("sjf-bsbf", pair(1, 1.1 / 4, 1e-9, table(1.1, 4)))
    assert ratio == pytest.approx(44 / 31)
    assert float(bound) == pytest.approx(44 / 31)


@pytest.mark.parametrize(
    ("make", "spec", "why"),
    [
        (lambda: Instance([Job("a", duration=1)], "1x1", interference=Interference()), "sjf-bsbf", "not two"),
        (lambda: Instance([Job("a", duration=1), Job("b", duration=1)], "1x1"), "sjf", "what sharing costs"),
        (lambda: pair(1, 1, 0, Interference(), (1, 1), 2), "sjf-bsbf", "side by side"),
        (lambda: pair(1, 1, 0, Interference(2, ("A", "B"), ((2, None), (2, 2)))), "sjf-ffs", "never share"),
        (lambda: pair(1, 1, 0, Interference()), "sjf-bsbf:interval=1", "interval"),
        (lambda: pair(1, 1, 0, Interference()), "sjf-ffs:interval=1", "interval"),
        (lambda: pair(1, 1, 0, Interference(), (2, 2), 2), "fifo+consolidated", "placement"),
    ],
)
def test_what_they_assume(make: Callable[[], Instance], spec: str, why: str) -> None:
    chosen = specify(spec)
    told = theorem_of(spec).assumptions(chosen.policy, chosen.placement, make())
    assert any(why in each for each in told)
    plain = specify(spec.partition(":")[0].partition("+")[0])
    assert not theorem_of(spec).assumptions(plain.policy, plain.placement, pair(1, 1, 0, Interference()))


def test_memory_for_both() -> None:
    jobs = [Job(name, duration=1, gpu_memory=6) for name in "ab"]
    for memory, fits in ((12, True), (11, False)):
        cluster = Cluster.machines(1)
        group = dataclasses.replace(cluster.nodes[0], gpu_memory=memory)
        instance = Instance(jobs, dataclasses.replace(cluster, nodes=(group,)), interference=Interference())
        chosen = specify("sjf-bsbf")
        assert SJF_BSBF.applies(chosen.policy, chosen.placement, instance) is fits


@pytest.mark.parametrize("k", [2, 5, 16])
def test_tight_families(k: int) -> None:
    for make, spec, value in ((just_refused, "sjf-bsbf", 2 * k + 2), (equal_sharers, "sjf-ffs", 2 * k)):
        instance = make(k)
        bound, ratio = ratio_of(spec, instance)
        assert simulate(instance, spec).value("total_flow_time") == value
        assert value == bound * instance.optimum["value"]  # type: ignore[index]
        assert ratio == float(bound)


# --- pair by pair is not all together ----------------------------------------------------------------------------------


def total(instance: Instance, spec: str) -> float:
    return simulate(instance, spec).value("total_completion_time")


def wide_job(partners: int, xi: float, seconds: float = 10.0) -> Instance:
    """``partners`` P jobs of 1 s on a GPU each, and one that needs all P GPUs: pairwise tests are not joint ones.

    Where it ends last, starting at once costs (P + 1) xi + e - 1 in sum, waiting P + 1 + e: it pays iff xi < (P + 2) / (P +
    1), while every pair test says xi < 3/2. Where it ends first, it pays iff e < 1 / ((P + 1) (xi - 1)), the test says e <
    1 / (2 (xi - 1)). See `wide_job_sums`.
    """
    jobs = [Job(f"narrow-{p}", duration=1) for p in range(partners)]
    jobs.append(Job("wide", gpus=partners, duration=seconds))
    name = f"wide-job-{partners}"
    return Instance(jobs, f"1x{partners}", name, "total_completion_time", interference=Interference(xi))


def wide_job_sums(partners: int, xi: Fraction, seconds: Fraction) -> tuple[Fraction, Fraction]:
    """sum C_j of `wide_job` if it starts at once beside all, and if it waits; exact."""
    waiting = partners + 1 + seconds
    if seconds >= 1:  # it ends last
        return (partners + 1) * xi + seconds - 1, waiting
    return partners * (1 + seconds * (xi - 1)) + seconds * xi, waiting


@pytest.mark.parametrize(("partners", "shares", "waits"), [(1, 11.8, 12), (2, 13.2, 13), (3, 14.6, 14)])
def test_a_wide_job_beside_several(partners: int, shares: float, waits: float) -> None:
    instance = wide_job(partners, 1.4)
    both = wide_job_sums(partners, F(14, 10), F(10))
    assert [float(each) for each in both] == pytest.approx([shares, waits])
    assert total(instance, PUBLISHED) == pytest.approx(shares) == total(instance, "sjf-ffs")
    assert total(instance, "sjf") == pytest.approx(waits)
    assert total(instance, "sjf-bsbf") == pytest.approx(min(shares, waits))


@pytest.mark.parametrize("partners", [1, 2, 3])
def test_when_a_wide_job_should_share(partners: int) -> None:
    """Its threshold is (P + 2) / (P + 1) where it ends last, 1 / ((P + 1) (xi - 1)) seconds where it ends first."""
    gangs = [*({p} for p in range(partners)), set(range(partners))]
    cases = [(F(partners + 2, partners + 1) + shift, F(10)) for shift in (F(-1, 50), F(0), F(1, 50))]
    cases += [(F(17, 10), (1 + shift) / ((partners + 1) * F(7, 10))) for shift in (F(-1, 50), F(0), F(1, 50))]
    for (xi, seconds), sign in zip(cases, [-1, 0, 1] * 2, strict=True):
        alone = [F(1)] * partners + [seconds]
        at_once, after = (
            sum(played([F(0)] * partners + [start], alone, gangs, shared(lambda j, other, xi=xi: xi)))
            for start in (F(0), F(1))
        )
        assert (at_once, after) == wide_job_sums(partners, xi, seconds)
        assert (at_once > after) - (at_once < after) == sign
        if seconds > 1 and partners > 1 and sign:
            joint = total(wide_job(partners, float(xi)), "sjf-bsbf")
            assert joint == pytest.approx(float(min(at_once, after)))


def choice(one: float, two: float, xi: Interference) -> Instance:
    """Two jobs run on a GPU each when a third of 1 s comes, just after."""
    jobs = [Job("one", duration=one, model="A"), Job("two", duration=two, model="B")]
    jobs.append(Job("new", arrival=1e-9, duration=1, model="C"))
    return Instance(jobs, "1x2", interference=xi)


def test_partners_by_average_and_by_saving() -> None:
    """They choose differently, and neither is always better: 4.8 against 5.1, 5.9 against 5."""
    alike = choice(0.5, 3, Interference(1.3))  # the short one: t_con 0.9, saving 0.1; the long one: 2.3 and 1.2
    assert total(alike, PUBLISHED) == pytest.approx(4.8)
    assert total(alike, PUBLISHED.replace("pair", "saving")) == pytest.approx(5.1)
    rows = ((1, 1, 1.45), (1, 1, 1), (1.45, 1, 1))
    unlike = choice(1, 3, Interference(1, ("A", "B", "C"), rows))  # the long one loses nothing
    assert total(unlike, PUBLISHED) == pytest.approx(5.9)
    assert total(unlike, PUBLISHED.replace("pair", "saving")) == pytest.approx(5)


# --- more jobs: no constant --------------------------------------------------------------------------------------------

TABLE = {
    (1.2, "sjf"): (2.32, 5.13, 15.5, 47.0),
    (1.2, "sjf-ffs"): (1.25, 2.26, 5.98, 17.4),
    (1.2, "sjf-bsbf"): (1.25, 2.26, 5.98, 17.4),
    (1.8, "sjf"): (2.06, 4.56, 13.7, 42.6),
    (1.8, "sjf-ffs"): (1.45, 2.80, 7.77, 23.5),
    (1.8, "sjf-bsbf"): (1.45, 2.80, 7.77, 23.5),
}


def lost(spec: str, *made: Any, **said: Any) -> float:
    family = crowded.make(*made, **said)
    return simulate(family.instance, spec).value("total_flow_time") / float(family.reference)


@pytest.mark.parametrize(("xi", "spec"), TABLE)
def test_the_table_of_the_family(xi: float, spec: str) -> None:
    for small, expected in zip((1, 5, 20, 80), TABLE[xi, spec], strict=True):
        digits = 0.0055 if expected < 10 else 0.055  # three figures, the last one rounded or cut
        assert lost(spec, small, xi, size=1e-4, second=0.3) == pytest.approx(expected, abs=digits)


def test_the_reference_is_a_schedule() -> None:
    """Played: the short ones first, then the two that are left, in the best of three ways."""
    for xi, second in ((F(6, 5), 0.3), (F(9, 5), 0.3), (F(3), 0.0)):
        family = crowded.make(4, float(xi), second=second)
        e = [F(x) for x in family.instance.duration.tolist()]
        r = [F(x) for x in family.instance.arrival.tolist()]
        begin = [r[2] + i * e[2] for i in range(4)]
        after = begin[-1] + e[2]
        slow = F(float(xi))
        best = min(
            sum(played([*two, *begin], e, [{0}] * 6, shared(lambda j, other, slow=slow: slow)))
            for two in ((after, after), (after + e[1], after))
        )
        assert family.reference == best - sum(r)


@pytest.mark.parametrize(("spec", "xi"), [("sjf-bsbf", 1.0), ("sjf-bsbf", 3.0), (PUBLISHED, 1.5), ("sjf", 1.0)])
def test_the_ratio_grows_with_the_number_of_jobs(xi: float, spec: str) -> None:
    counts = (10, 100)
    found = [lost(spec, small, xi) for small in counts]
    assert all(ratio >= small / 11 for ratio, small in zip(found, counts, strict=True))
    assert 6 < found[1] / found[0] < 12
    assert all(crowded.make(small, xi).reference < 5 for small in counts)
