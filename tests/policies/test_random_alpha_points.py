"""Random alpha points: every draw within its limits, and the exact expectation within 1.6853 of the linear program."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds import BOUNDS
from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.guarantees.alpha_points import FACTOR_APART, FACTOR_COMMON, RANDOM_ALPHA_POINTS, limits, program_of
from optsched.guarantees.judge import judge
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.policies.alpha_points import APART, COMMON
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.solvers.methods.lp_order import LpSchedule
from optsched.solvers.solve import solve
from policies.exponential_density import ExponentialDensity

GOAL = "total_weighted_completion_time"
few = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 5)), min_size=1, max_size=4)
rows = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=9)
MORE = 1 + Fraction(1, 10**9)


def one_machine(jobs: list[tuple[int, int, int]]) -> Instance:
    first = min(r for r, _, _ in jobs)
    made = [Job(f"{j}", r - first, 1, p, weight=w) for j, (r, p, w) in enumerate(jobs)]
    return Instance(made, "1x1", objective=GOAL)


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
    instance = one_machine(jobs)
    least = float(program_of(instance).value(instance.weight.tolist()))
    most = float(FACTOR_COMMON if common else FACTOR_APART) * least
    assert least * (1 - 1e-9) <= expectation(instance, common) <= most * (1 + 1e-9)


@settings(max_examples=3)
@given(rows)
def test_what_draws_allow_is_within_the_factor_on_average(jobs: list[tuple[int, int, int]]) -> None:
    """One alpha for all, at the middles of 200 intervals of equal probability."""
    instance = one_machine(jobs)
    shares = (np.arange(200) + 0.5) / 200
    alphas = np.log1p(shares * math.expm1(COMMON))
    drawn = [float(instance.weight @ limits(instance, np.full(instance.n, alpha))) for alpha in alphas]
    assert np.mean(drawn) <= 1.02 * float(FACTOR_COMMON) * float(program_of(instance).value(instance.weight.tolist()))


@settings(max_examples=examples(15))
@given(rows, st.integers(0, 50), st.booleans())
def test_every_run_is_within_what_it_drew(jobs: list[tuple[int, int, int]], seed: int, common: bool) -> None:
    instance = one_machine(jobs)
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
    instance = one_machine(jobs)
    known = BOUNDS.get("mean-busy-time").build(instance, GOAL, "gang")
    assert known is not None
    assert float(program_of(instance).value(instance.weight.tolist())) == pytest.approx(float(known.value), rel=1e-9)


@settings(max_examples=examples(8))
@given(few)
def test_the_order_of_the_program(jobs: list[tuple[int, int, int]]) -> None:
    """By mean busy times within three times each of them; the best order of the method within 1.7451 of the program."""
    instance = one_machine(jobs)
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
    found = solve(one_machine(jobs), GOAL, model="lp-order")
    assert (found.model, found.status) == ("lp-order", "feasible")
    assert "orders of the linear program" in found.note
    with pytest.raises(InputError, match="more than one machine"):
        solve(Instance([Job("a", duration=1), Job("b", duration=2)], "1x2"), GOAL, model="lp-order")
    with pytest.raises(InputError, match="objective"):
        solve(one_machine(jobs), "total_flow_time", model="lp-order")


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


def test_what_is_not_legal_is_refused() -> None:
    with pytest.raises(InputError, match="seed"):
        specify("random-alpha-points:seed=-1")


@pytest.mark.study
@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_many_expectations(seed: int, common: bool) -> None:
    rng, factor = np.random.default_rng(seed), float(FACTOR_COMMON if common else FACTOR_APART)
    for n in (3, 4, 5, 6):
        rows = rng.integers((0, 1, 0), (int(rng.choice([3, 4 * n])), 15, 9), (n, 3)).tolist()
        instance = one_machine([(r, p, w) for r, p, w in rows])
        least = float(program_of(instance).value(instance.weight.tolist()))
        assert expectation(instance, common) <= factor * least * (1 + 1e-9)
