"""Alpha points, fixed and drawn: against preemptive WSPT in fractions, the linear program and the exact expectation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from brute_force import optimum
from examples import examples, explored
from hypothesis import given, settings, strategies as st
from srpt import served

from optsched.bounds import BOUNDS
from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judge
from optsched.guarantees.weighted_completion_times import (
    ALPHA_POINTS,
    FACTOR_APART,
    FACTOR_COMMON,
    RANDOM_ALPHA_POINTS,
    limits,
    program_of,
)
from optsched.policies.alpha_points import APART, COMMON
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.solvers.methods.lp_order import LpSchedule
from optsched.solvers.solve import solve

GOAL = "total_weighted_completion_time"
SHORT = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 5)), min_size=1, max_size=6)


def one_machine(jobs: list[tuple[int, int, int]]) -> Instance:
    return Instance([Job(f"{j}", r, 1, p, weight=w) for j, (r, p, w) in enumerate(jobs)], "1x1", objective=GOAL)


def points(jobs: list[tuple[int, int, int]], alpha: Fraction) -> list[Fraction]:
    """Alpha points of preemptive WSPT."""
    ratio = [Fraction(p, w) if w else 10**9 for _, p, w in jobs]
    return served([(r, p) for r, p, _ in jobs], lambda j, _: ratio[j], alpha)[0]


@settings(max_examples=examples(25))
@given(SHORT, st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1)]))
def test_against_preemptive_wspt_in_fractions(jobs: list[tuple[int, int, int]], alpha: Fraction) -> None:
    instance = one_machine(jobs)
    run = simulate(instance, f"alpha-points:alpha={float(alpha)}")
    reached, now, completion = points(jobs, alpha), Fraction(0), [Fraction(0)] * len(jobs)
    for j in sorted(range(len(jobs)), key=reached.__getitem__):
        now = max(now, reached[j]) + jobs[j][1]
        completion[j] = now
    assert run.schedule.completion.tolist() == [float(c) for c in completion]


@settings(max_examples=examples(30))
@given(SHORT, st.sampled_from([0.3, 0.5, 0.7071067811865476, 1.0]))
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


@dataclass(frozen=True)
class ExponentialDensity:
    """f(a) = e^a / (e^delta - 1) on [0, delta], ``delta`` the ``largest`` a."""

    largest: float

    @property
    def scale(self) -> float:
        """1 / (e^delta - 1): f at 0."""
        return 1.0 / math.expm1(self.largest)

    def mass(self, low: float, high: float) -> float:
        """int f(a) da over [low, high]."""
        low, high = min(low, self.largest), min(high, self.largest)
        return self.scale * (math.exp(high) - math.exp(low)) if high > low else 0.0

    def moment(self, low: float, high: float) -> float:
        """int f(a) (1 + a) da over [low, high]; a e^a is an antiderivative."""
        low, high = min(low, self.largest), min(high, self.largest)
        return self.scale * (high * math.exp(high) - low * math.exp(low))


# -- drawn at random ------------------------------------------------------------------------------------------------------


MOST = 6 if explored() else 4
few = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 5)), min_size=1, max_size=MOST)
rows = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=9)
MORE = 1 + Fraction(1, 10**9)


def from_zero(jobs: list[tuple[int, int, int]]) -> Instance:
    return one_machine(jobs).relative


def cost(instance: Instance, program: LpSchedule, points: list[Fraction]) -> float:
    """Of the order of these points, every job as soon as it can."""
    order = sorted(range(instance.n), key=lambda j: (points[j], j))
    done = program.one_after_the_other(order)
    return sum(float(w) * float(c) for w, c in zip(instance.weight, done, strict=True))


def expectation(instance: Instance, common: bool) -> float:
    """Of that cost, exact but for the exponentials: every choice of the pieces in which the alpha points lie."""
    program, density = program_of(instance), ExponentialDensity(COMMON if common else APART)
    if common:
        ends = [Fraction(0), *sorted({piece.after for piece in program.pieces})]
        spans = list(pairwise(ends))
        parts = [(density.mass(float(a), float(b)), program.points([(a + b) / 2] * instance.n)) for a, b in spans]
        return sum(mass * cost(instance, program, list(points)) for mass, points in parts)
    total = 0.0
    for chosen in product(*program.of_job):
        mass = math.prod(density.mass(float(piece.before), float(piece.after)) for piece in chosen)
        total += mass * cost(instance, program, [piece.start for piece in chosen])
    return total


@pytest.mark.parametrize("common", [False, True])
@settings(max_examples=examples(20))
@given(few)
def test_the_expectation_is_within_the_factor_of_the_program(common: bool, jobs: list[tuple[int, int, int]]) -> None:
    instance = from_zero(jobs)
    least = float(program_of(instance).value(instance.weight.tolist()))
    most = float(FACTOR_COMMON if common else FACTOR_APART) * least
    assert least * (1 - 1e-9) <= expectation(instance, common) <= most * (1 + 1e-9)


@settings(max_examples=3)
@given(rows)
def test_what_draws_allow_is_within_the_factor_on_average(jobs: list[tuple[int, int, int]]) -> None:
    """One alpha for all, at the middles of 200 intervals of equal probability."""
    instance = from_zero(jobs)
    shares = (np.arange(200) + 0.5) / 200
    alphas = np.log1p(shares * math.expm1(COMMON))
    drawn = [float(instance.weight @ limits(instance, np.full(instance.n, alpha))) for alpha in alphas]
    assert np.mean(drawn) <= 1.02 * float(FACTOR_COMMON) * float(program_of(instance).value(instance.weight.tolist()))


@settings(max_examples=examples(15))
@given(rows, st.integers(0, 50), st.booleans())
def test_every_run_is_within_what_it_drew(jobs: list[tuple[int, int, int]], seed: int, common: bool) -> None:
    instance = from_zero(jobs)
    spec = specify(f"random-alpha-points:seed={seed},common={str(common).lower()}")
    run = simulate(instance, spec)
    assert check_schedule(instance, run.schedule) == []
    alpha = run.notes["alpha"]
    assert ((alpha > 0) & (alpha <= (COMMON if common else APART))).all()
    assert len(set(alpha.tolist())) == (1 if common else instance.n)
    assert RANDOM_ALPHA_POINTS.audit(spec.policy, run) == []
    assert judge(RANDOM_ALPHA_POINTS, spec.policy, run, OptimumBounds(instance, [run])).holds is True


@settings(max_examples=examples(15))
@given(rows)
def test_the_program_is_the_bound_of_mean_busy_times(jobs: list[tuple[int, int, int]]) -> None:
    instance = from_zero(jobs)
    known = BOUNDS.get("mean-busy-time").build(instance, GOAL, "gang")
    assert known is not None
    assert float(program_of(instance).value(instance.weight.tolist())) == pytest.approx(float(known.value), rel=1e-9)


@settings(max_examples=examples(8))
@given(few)
def test_the_order_of_the_program(jobs: list[tuple[int, int, int]]) -> None:
    """By mean busy times within three times each of them; the best order of the method within 1.7451 of the program."""
    instance = from_zero(jobs)
    program = program_of(instance)
    order = sorted(range(instance.n), key=lambda j: (program.mean_busy[j], j))
    done = program.one_after_the_other(order)
    assert all(c <= 3 * m for c, m in zip(done, program.mean_busy, strict=True))
    found = solve(instance, GOAL, model="lp-order")
    assert found.value_exact is not None
    assert optimum(instance, GOAL) <= found.value_exact
    assert found.value_exact <= FACTOR_COMMON * program.value(instance.weight.tolist()) * MORE


def test_the_method_says_what_it_proves_and_what_it_is_not_for() -> None:
    rng = np.random.default_rng(3)
    jobs = [(int(r), int(p), int(w)) for r, p, w in rng.integers((0, 1, 1), (300, 20, 20), (40, 3))]
    found = solve(from_zero(jobs), GOAL, model="lp-order")
    assert (found.model, found.status) == ("lp-order", "feasible")
    assert "orders of the linear program" in found.note
    with pytest.raises(InputError, match="more than one machine"):
        solve(Instance([Job("a", duration=1), Job("b", duration=2)], "1x2"), GOAL, model="lp-order")
    with pytest.raises(InputError, match="objective"):
        solve(from_zero(jobs), "total_flow_time", model="lp-order")


@pytest.mark.parametrize("common", [False, True])
def test_the_constants_of_the_proof(common: bool) -> None:
    """What is left of it for all mu: on a grid, its slope being bounded."""
    delta, factor = (COMMON, float(FACTOR_COMMON)) if common else (APART, float(FACTOR_APART))
    density = ExponentialDensity(delta)
    assert 1 + density.scale <= factor
    for mu in np.linspace(0, 1, 5001)[:-1]:
        mean = float(density.moment(0.0 if not common else float(mu), 1.0))  # of 1 + alpha
        left = mean if common else mean * density.mass(float(mu), 1.0)
        assert left <= factor * (1 - mu) * (1 + 1e-12)
