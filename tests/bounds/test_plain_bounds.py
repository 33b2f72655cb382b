"""Bounds on one fast machine or on single jobs: by hand, exact on one machine, and worth their parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import example, given, settings, strategies as st
from srpt import srpt

from bounds.cases import SUMS, instance_of, instances, many, proved, random_gangs
from optsched.bounds import Certificate, CertificateError, bound
from optsched.bounds.one_machine import MAX_LEVELS, levels_of, reduced, steps
from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.verifier.tick_machine import served

END, LARGEST, FAIR = "makespan", "max_flow_time", "max_fair_slowdown"
TOTAL, FLOW, WEIGHTED = "total_completion_time", "total_flow_time", "total_weighted_completion_time"
LATE = "total_weighted_tardiness"
CROWD = instance_of([(0.0, 1, 4.0), (1.0, 2, 3.0), (1.0, 1, 2.0), (2.0, 2, 1.0), (50.0, 1, 3.0)], 2)

# (kind, objective, GPUs, jobs: arrival, gang, duration, weight, due; value)
BY_HAND: dict[str, tuple[str, str, int, list[tuple[Any, ...]], Any]] = {
    # 100 GPU-seconds at 0 on 4 GPUs end by 25; 8 more at 40 last until 42
    "only the work still to come counts": ("volume", END, 4, [(0, 4, 25), (40, 2, 2), (40, 2, 2)], 42),
    "wide gangs count with their durations": ("volume", END, 8, [(0, 5, 3)] * 3, 9),
    "(r, p) = (0, 3), (1, 1): C = 4 and 2": ("srpt", TOTAL, 1, [(0, 1, 3), (1, 1, 1)], 6),
    "less the arrivals": ("srpt", FLOW, 1, [(0, 1, 3), (1, 1, 1)], 5),
    # one machine of two GPUs: 1, 2, 3, then 101, 102
    "ties and idle time": ("srpt", TOTAL, 2, [(0, 1, 2)] * 3 + [(100, 2, 1)] * 2, 209),
    # 5 of 8 GPUs each: GPU-seconds alone would let three of them end at 5/8, 10/8, 15/8
    "wide gangs run one by one": ("srpt", TOTAL, 8, [(0, 5, 1)] * 3 + [(0, 1, 4)], 1 + 2 + 3 + 4),
    # at most two gangs of 3 at once on 8 GPUs: the machine has 6 GPUs, not 8
    "gangs that cannot fill the cluster": ("srpt", TOTAL, 8, [(0, 3, 4)] * 4, 2 + 4 + 6 + 8),
    # theta = 1 for both jobs, 2 more for the second: SRPT of both + 2 x SRPT of the second alone
    "weights in layers": ("srpt", WEIGHTED, 1, [(0, 1, 1, 1), (0, 1, 5, 3)], (1 + 6) + 2 * 5),
    "no weights": ("srpt", TOTAL, 1, [(0, 1, 1, 1), (0, 1, 5, 3)], 7),
    # SRPT ends at 1, 3, 6; due dates in order 1, 2, 3
    "names are matched in order": ("srpt-due-dates", LATE, 1, [(0, 1, 1, 1, 3), (0, 1, 2, 1, 1), (0, 1, 3, 1, 2)], 4),
    "who has no date neither costs nor matches": ("srpt-due-dates", LATE, 1, [(0, 1, 1, 1, None), (0, 1, 2, 1, 1)], 1),
    # both jobs at weight 1, the second alone at 2 more
    "dates in layers": ("srpt-due-dates", LATE, 1, [(0, 1, 2, 1, 0), (0, 1, 2, 3, 1)], (2 + 3) + 2 * 1),
    # nobody is late alone, all but one are late together
    "tardiness of a crowd": ("split-busy-time", LATE, 1, [(0, 1, 3, 1, 3)] * 4, 18),
    "late by the last bit of a float": ("release-plus-duration", LATE, 1, [(1e16, 1, 1, 1, 1e16)], 1),
    "due before all": ("release-plus-duration", LATE, 1, [(1e16, 1, 1, 1, -5)], 10**16 + 6),
    "in time": ("release-plus-duration", LATE, 1, [(1e16, 1, 1, 1, 1e16 + 2)], 0),
    # 24 GPU-seconds in 2 s on 2 GPUs: 12 - 2; a long quiet time before and after
    "a burst, less the seconds in which it comes": (
        *("first-come", LARGEST, 2),
        *([(0, 1, 4), (100, 2, 5), (101, 1, 4), (102, 1, 10), (900, 1, 1)], 10),
    ),
    "the longest job alone": ("critical-job", LARGEST, 2, [(0, 1, 3), (2, 1, 5), (9, 1, 4)], 5),
    # both sums round to 1e16 + 2; only the error tells that the second is larger
    "the last job, beyond the last bit of a float": (
        *("critical-job", END, 3),
        *([(1e16, 1, 1.25), (1e16, 1, 1.5), (0, 1, 1)], 10**16 + Fraction(3, 2)),
    ),
}


@pytest.mark.parametrize(("kind", "objective", "gpus", "jobs", "value"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(kind: str, objective: str, gpus: int, jobs: list[tuple[Any, ...]], value: Any) -> None:
    certificate = proved(kind, instance_of(jobs, gpus), objective)
    assert certificate.value == value
    if kind == "critical-job":
        assert certificate.data == {"job": "j1"}


EXACT = {END: "volume", LARGEST: "first-come", FAIR: "fair-share", TOTAL: "srpt", FLOW: "srpt"}


@settings(max_examples=examples(120))
@given(instances(most=4, kind="short", gpus=1))
def test_on_one_machine_they_are_the_preemptive_optimum(instance: Instance) -> None:
    for objective, kind in EXACT.items():
        assert proved(kind, instance, objective).value == preemptive_optimum(instance, objective)


# --- single jobs ---------------------------------------------------------------------------------------------------------


@given(instances(most=6), st.sampled_from(SUMS))
@example(instance_of([], 3), FLOW)
def test_release_plus_duration_is_the_value_of_never_waiting(instance: Instance, objective: str) -> None:
    alone = [Fraction(r) + Fraction(d) for r, d in zip(instance.arrival, instance.duration, strict=True)]
    assert proved("release-plus-duration", instance, objective).value == get_objective(objective).exact_of(
        instance, alone
    )
    assert proved("critical-job", instance, END).value == max(alone, default=0)


def test_any_job_proves_its_own_seconds_and_no_more() -> None:
    instance = instance_of([(0.0, 1, 3.0), (2.0, 1, 5.0)], 2)
    for objective, value, job in ((END, 3, "j0"), (END, 7, "j1"), (LARGEST, 3, "j0"), (LARGEST, 5, "j1")):
        claim = Certificate(instance.digest, objective, "gang", "critical-job", Fraction(value), {"job": job})
        claim.verify(instance)
        with pytest.raises(CertificateError, match="value"):
            replace(claim, value=Fraction(8)).verify(instance)


def test_times_beyond_the_legal_range_are_a_users_mistake() -> None:
    with pytest.raises(InputError, match=r"duration = 1.7e\+308: too long"):
        instance_of([(0, 1, 1.7e308)], 1)


# --- SRPT ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(instances(most=6))
def test_srpt_against_fractions_without_a_grid(instance: Instance) -> None:
    total = instance.cluster.gpus
    jobs = [
        (Fraction(r), g * Fraction(d) / total)
        for r, g, d in zip(instance.arrival.tolist(), instance.gpus.tolist(), instance.duration.tolist(), strict=True)
    ]
    # capacity and thresholds may only improve on G GPUs; the grid may lose its last place
    assert proved("srpt", instance, TOTAL).value >= sum(srpt(jobs), Fraction(0)) * (1 - Fraction(1, 10**9))


def test_rounding_goes_down_and_loses_little() -> None:
    rng = np.random.default_rng(3)
    rows = [(1e9 + 0.3 + 0.1 * k, int(rng.integers(1, 3)), 0.1 + 1e-9 * k) for k in range(200)]
    exact = sum(srpt((Fraction(r), g * Fraction(d) / 2) for r, g, d in rows), Fraction(0))
    certificate = proved("srpt", instance_of(rows, 2), TOTAL)
    assert certificate.data["grid_exponent"] < 60
    assert exact - Fraction(1, 10**3) < certificate.value < exact


@pytest.mark.parametrize("seed", range(5))
def test_flow_is_completion_minus_releases(seed: int) -> None:
    instance = random_gangs(np.random.default_rng(seed))
    for plain, flow, constant in (
        (TOTAL, FLOW, instance.arrival.sum()),
        (WEIGHTED, "total_weighted_flow_time", instance.weight @ instance.arrival),
    ):
        certificate = proved("srpt", instance, flow)
        assert certificate.data["flow_constant"] == f"{int(constant)}/1"
        assert proved("srpt", instance, plain).value - int(constant) == certificate.value


@pytest.mark.parametrize("due", [-1e12, 0.3, 1e18])
def test_due_dates_far_away(due: float) -> None:
    proved("srpt-due-dates", instance_of([(0.1, 1, 1.5, 1.0, due), (0.2, 2, 0.5, 1.0, 1.0)], 2), LATE)


# --- layers of weight: the identity that they rest on, and what a certificate may claim -----------------------------------


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.0, 5.0]) | st.floats(0.0, 1e12), max_size=12))
def test_layers_add_up_to_the_reduced_weights(values: list[float]) -> None:
    weight = np.array(values)
    levels = levels_of(weight)
    assert len(levels) <= MAX_LEVELS
    assert levels == sorted(set(levels))
    lower = reduced(weight, levels)
    for w, low in zip(values, lower.tolist(), strict=True):
        assert low <= w
        assert sum((height for level, height in steps(levels) if w >= level), Fraction(0)) == Fraction(low)
    if len(set(values) - {0.0}) <= MAX_LEVELS:
        assert np.array_equal(lower, weight)


def test_weights_above_the_levels_still_count() -> None:
    weights = [float(w) for w in range(1, 21)]
    instance = instance_of([(0.0, 1, 1.0, w) for w in weights], 20)
    assert len(levels_of(instance.weight)) == 4
    assert sum(weights) / 20 <= proved("srpt", instance, WEIGHTED).value <= sum(weights)


# --- the largest flow time and the fair slowdown: the best of all sets of jobs --------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(-3, 12)), max_size=6))
def test_earliest_due_date_attains_the_best_set_of_jobs(jobs: list[tuple[int, int, int]]) -> None:
    sets = (some for size in range(1, len(jobs) + 1) for some in combinations(jobs, size))
    best = max((min(r for r, _, _ in s) + sum(p for _, p, _ in s) - max(d for *_, d in s) for s in sets), default=0)
    release, work, dues = ([job[part] for job in jobs] for part in range(3))
    ends, _ = served(release, work, sorted(range(len(jobs)), key=dues.__getitem__))
    assert max([0, *(end - due for end, due in zip(ends, dues, strict=True))]) == max(best, 0)


@settings(max_examples=examples(40))
@given(instances(most=4, kind="short", gpus=1).filter(lambda instance: instance.n))
def test_fair_share_is_the_best_of_all_sets_of_jobs(instance: Instance) -> None:
    columns = (instance.arrival, instance.duration, fair_flow_times(instance))
    r, p, d = ([Fraction(x) for x in each.tolist()] for each in columns)
    sets = [some for size in range(1, instance.n + 1) for some in combinations(range(instance.n), size)]
    worth = [min((min(r[i] for i in s) + sum(p[i] for i in s) - r[j]) / d[j] for j in s) for s in sets]
    assert proved("fair-share", instance, FAIR).value == max(worth) <= 1  # first who ends first on the equal share


@pytest.mark.parametrize("kind", ["integer", "tenths"])
def test_fair_share_of_many_jobs_and_no_policy_is_better(kind: str) -> None:
    instance = many(200, 13, kind)
    certificate = proved("fair-share", instance, FAIR)
    assert certificate.value > proved("fair-alone", instance, FAIR).value
    for policy in ("fifo", "srtf", "sjf", "tiresias"):
        assert certificate.value <= Fraction(simulate(instance, policy).value(FAIR))


def test_who_is_slowed_down_least_proves_it() -> None:
    assert "j4" not in proved("fair-share", CROWD, FAIR).data["jobs"]
    job = proved("fair-alone", CROWD, FAIR)
    assert (job.value, job.data) == (1, {"job": "j4"})  # nobody is there when it comes
    assert bound(CROWD, FAIR).value == 1


def test_seconds_alone_are_not_those_on_an_equal_share() -> None:
    certificate, fair = proved("fair-share", CROWD, FAIR), fair_flow_times(CROWD)
    own = [CROWD.index[name] for name in certificate.data["jobs"]]
    larger = min(Fraction(float(fair[j])) / Fraction(float(CROWD.duration[j])) for j in own)
    assert larger > 1
    with pytest.raises(CertificateError):
        replace(certificate, value=certificate.value * larger).verify(CROWD)
