"""Alpha points: against preemptive WSPT in fractions, and the factor of the theorem against the linear program."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds import BOUNDS
from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.guarantees.alpha_points import ALPHA_POINTS
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job

GOAL = "total_weighted_completion_time"
rows = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 5)), min_size=1, max_size=6)


def one_machine(jobs: list[tuple[int, int, int]]) -> Instance:
    return Instance([Job(f"{j}", r, 1, p, weight=w) for j, (r, p, w) in enumerate(jobs)], "1x1", objective=GOAL)


def points(jobs: list[tuple[int, int, int]], alpha: Fraction) -> list[Fraction]:
    """Alpha points of preemptive WSPT, a slot of a 64th after the other: exact for quarters of integers."""
    left, slot = [Fraction(p) for _, p, _ in jobs], Fraction(1, 64)
    found, now = [Fraction(-1)] * len(jobs), Fraction(0)
    while any(left):
        open_now = [j for j, (r, _, _) in enumerate(jobs) if r <= now and left[j]]
        if open_now:
            j = min(open_now, key=lambda j: (Fraction(jobs[j][1], jobs[j][2]) if jobs[j][2] else 10**9, j))
            left[j] -= slot
            if found[j] < 0 and jobs[j][1] - left[j] >= alpha * jobs[j][1]:
                found[j] = now + slot
        now += slot
    return found


@settings(max_examples=examples(25))
@given(rows, st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1)]))
def test_against_preemptive_wspt_in_fractions(jobs: list[tuple[int, int, int]], alpha: Fraction) -> None:
    instance = one_machine(jobs)
    run = simulate(instance, f"alpha-points:alpha={float(alpha)}")
    reached, now, completion = points(jobs, alpha), Fraction(0), [Fraction(0)] * len(jobs)
    for j in sorted(range(len(jobs)), key=reached.__getitem__):
        now = max(now, reached[j]) + jobs[j][1]
        completion[j] = now
    assert run.schedule.completion.tolist() == [float(c) for c in completion]


@settings(max_examples=examples(30))
@given(rows, st.sampled_from([0.3, 0.5, 0.7071067811865476, 1.0]))
def test_the_factor_holds_against_the_linear_program(jobs: list[tuple[int, int, int]], alpha: float) -> None:
    instance, spec = one_machine(jobs), specify(f"alpha-points:alpha={alpha}")
    run = simulate(instance, spec)
    assert check_schedule(instance, run.schedule) == []
    assert ALPHA_POINTS.applies(spec.policy, spec.placement, instance)
    program = BOUNDS.get("mean-busy-time").build(instance, GOAL, "gang")
    assert program is not None
    value, factor = schedule_value(instance, run.schedule, GOAL), ALPHA_POINTS.ratio(spec.policy, run)
    assert value <= Fraction(factor) * program.value * (1 + Fraction(1, 10**9))
    assert value >= optimum(instance, GOAL) * (1 - Fraction(1, 10**9))


def test_many_jobs_are_far_below_the_factor() -> None:
    rng = np.random.default_rng(1)
    jobs = [(int(r), int(p), int(w)) for r, p, w in rng.integers(1, 60, (40, 3))]
    instance = one_machine(jobs)
    program = BOUNDS.get("mean-busy-time").build(instance, GOAL, "gang")
    assert program is not None
    assert schedule_value(instance, simulate(instance, "alpha-points").schedule, GOAL) <= 1.7 * program.value


def test_what_is_not_legal_is_refused() -> None:
    for alpha in ("0", "1.5", "nan"):
        with pytest.raises(InputError):
            specify(f"alpha-points:alpha={alpha}")
