"""Neither the epoch of a log nor its unit changes what is solved: only the clock that is printed.

A shift by whole seconds leaves the very same numbers to compute, so status, value less the clock's part, bound and gap are
equal, exactly. A unit changes them by that factor: exactly for powers of two, else as far as float64 holds the times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from examples import few

from optsched.classes.gpu_sharing.solvers.sharing_orders import best_shared_order
from optsched.classes.gpu_sharing.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.classes.task_sharing.models import link_contention
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.classes.task_sharing.solvers.transfer_search import best_event_order, transfer_optimum
from optsched.errors import InputError
from optsched.models import gpu_sharing
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.objectives import get_objective
from optsched.problem.profile import Profile, Stage
from optsched.solvers import Progress, Session, best_list_schedule, compile, list_schedule, lp_bound, model_names, solve
from solvers.rigid_instances import OBJECTIVES

SHIFTS = (1e6, 1.7e9, 1e12)
UNITS = (1e-3, 1e3, 1e6)
WHOLE = (2.0**-10, 1e3, 1e6)  # units of which float64 holds every multiple
Build = Callable[[float, float], Instance]


def one_machine(clock: float, unit: float) -> Instance:
    rows = [(0, 5, 1, 7), (2, 3, 2, 9), (2, 1, 3, 4), (6, 2, 1, 8)]
    jobs = [
        Job(f"j{k}", clock + r * unit, 1, p * unit, weight=w, due=clock + d * unit)
        for k, (r, p, w, d) in enumerate(rows)
    ]
    return Instance(jobs, "1x1")


def gangs(clock: float, unit: float) -> Instance:
    rows = [(0, 2, 5, 1, 7), (0, 3, 3, 2, 9), (2, 1, 1, 3, 4), (2, 2, 2, 1, 8)]
    jobs = [
        Job(f"j{k}", clock + r * unit, g, p * unit, weight=w, due=clock + d * unit)
        for k, (r, g, p, w, d) in enumerate(rows)
    ]
    return Instance(jobs, "1x3")


def staged(clock: float, unit: float) -> Instance:
    nodes = Cluster((NodeGroup(2, 2, nic_bandwidth=4.0, intra_bandwidth=8.0),))
    profiles = {"ring": Profile.of_stages([Stage(2, 0.25 * unit, 0.25 * unit, 4.0 * unit)])}
    rows = [(0, 2, 4, 1), (0, 2, 3, 2), (1, 2, 5, 1)]
    jobs = [
        Job(f"j{k}", clock + r * unit, g, iterations=i, profile="ring", weight=w, due=clock + 6 * unit)
        for k, (r, g, i, w) in enumerate(rows)
    ]
    return Instance([*jobs, Job("one", clock, 1, 2 * unit)], nodes, profiles=profiles)


def shared(clock: float, unit: float) -> Instance:
    rows = [(0, 8), (1, 3), (2, 5)]
    jobs = [Job(f"j{k}", clock + r * unit, 1, p * unit) for k, (r, p) in enumerate(rows)]
    return Instance(jobs, "1x1", interference=Interference(1.25))


BUILDS: tuple[Build, ...] = (one_machine, gangs, staged, shared)
MODELS = [None, *sorted({*model_names()} - {"cp-sat"})]


@dataclass(frozen=True)
class Found:
    """What is the same on every clock."""

    status: str
    model: str
    value: Fraction
    bound: Fraction
    gap: float | None


@cache
def found(build: Build, clock: float, unit: float, objective: str, model: str | None) -> Found | str:
    instance = build(clock, unit)
    try:
        solution = solve(instance, objective, model=model)
    except InputError as error:
        return str(error).split(":")[0]
    part = get_objective(objective).clock_part(instance)
    assert solution.value_exact is not None
    assert solution.bound_exact is not None
    return Found(
        solution.status, solution.model, solution.value_exact - part, solution.bound_exact - part, solution.gap
    )


def some(build: Build, model: str | None) -> tuple[int, int]:
    """Two objectives, other ones for other models: `make study` takes all of them."""
    first = (MODELS.index(model) + BUILDS.index(build)) % 3
    return first, first + 3


@pytest.mark.parametrize(("build", "model"), few([(build, model) for build in BUILDS for model in MODELS], 13))
def test_no_clock_changes_what_is_found(build: Build, model: str | None) -> None:
    for k in some(build, model):
        here = found(build, 0.0, 1.0, OBJECTIVES[k], model)
        assert found(build, SHIFTS[k % len(SHIFTS)], 1.0, OBJECTIVES[k], model) == here


@pytest.mark.study
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("build", BUILDS)
def test_no_clock_changes_anything_on_any_model_and_objective(build: Build, model: str | None) -> None:
    for objective in OBJECTIVES:
        for unit in (1.0, *WHOLE):
            here = found(build, 0.0, unit, objective, model)
            for shift in SHIFTS:
                if shift + unit == shift + 1.5 * unit:
                    continue  # a clock that does not hold these times
                assert found(build, shift, unit, objective, model) == here, (objective, unit, shift)


@pytest.mark.parametrize(
    ("build", "model"), few([(b, model) for b in (one_machine, gangs, shared) for model in MODELS], 10)
)
def test_no_unit_changes_what_is_found(build: Build, model: str | None) -> None:
    for k in some(build, model):
        objective, unit = OBJECTIVES[k], WHOLE[(k + MODELS.index(model)) % len(WHOLE)]
        here, there = (found(build, 0.0, scale, objective, model) for scale in (1.0, unit))
        if isinstance(here, str) or isinstance(there, str):
            assert here == there
            continue
        assert (there.status, there.model) == (here.status, here.model)
        for one, other in ((here.value, there.value), (here.bound, there.bound)):
            assert float(other / Fraction(unit)) == pytest.approx(float(one), rel=1e-9)


@pytest.mark.parametrize(("objective", "unit"), few([(goal, unit) for goal in OBJECTIVES for unit in UNITS], 8))
def test_decimal_units_are_solved_alike(objective: str, unit: float) -> None:
    """Milliseconds have no common unit in float64: by another model where it must be, to the same optimum."""
    here, there = (
        solve(one_machine(clock, scale), objective) for clock, scale in ((0.0, 1.0), (1.7e9 * (unit >= 1), unit))
    )
    assert (here.status, there.status) == ("optimal", "optimal")
    assert there.value_exact is not None
    assert here.value is not None
    assert float((there.value_exact - there.clock_part) / Fraction(unit)) == pytest.approx(here.value, rel=1e-9)


# --- what is called without solve ----------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize("clock", SHIFTS)
def test_list_schedules_and_lp_bounds(clock: float) -> None:
    here, there = gangs(0.0, 1.0), gangs(clock, 1.0)
    for objective in ("total_weighted_completion_time", "total_flow_time"):
        part = get_objective(objective).clock_part(there)
        one, other = lp_bound(here, objective), lp_bound(there, objective)
        assert one is not None
        assert other is not None
        other.verify(there)
        assert other.value - part == one.value
    for one, other in zip(
        (best_list_schedule(here), list_schedule(here, "spt")),
        (best_list_schedule(there), list_schedule(there, "spt")),
        strict=True,
    ):
        assert (other.start - clock).tolist() == one.start.tolist()


@pytest.mark.parametrize("clock", SHIFTS)
def test_searches_of_jobs_that_share(clock: float) -> None:
    here, there = shared(0.0, 1.0), shared(clock, 1.0)
    for exact in (False, True):
        one, other = sharing_optimum(here, exact=exact), sharing_optimum(there, exact=exact)
        assert (other.flow_time, other.nodes, other.complete) == (one.flow_time, one.nodes, one.complete)
        assert other.value == one.value + 3 * (Fraction(clock) if exact else clock)
    one, other = best_shared_order(here, certify=True), best_shared_order(there, certify=True)
    assert one.bound is not None
    assert other.bound == one.bound + 3 * Fraction(clock)
    assert other.order == one.order
    assert (other.schedule.relative.start).tolist() == one.schedule.start.tolist()
    free = preemptive_sharing_optimum(there)
    assert free.value == preemptive_sharing_optimum(here).value + 3 * clock
    program = compile(gpu_sharing.build(there, value=other.value))
    outcome = Session(program).solve()
    assert outcome.value == pytest.approx(other.value, rel=1e-15, abs=1e-6)


@pytest.mark.parametrize("clock", SHIFTS)
def test_searches_of_transfers(clock: float) -> None:
    link = Contention(0.5, 0.125)
    release, size = np.array([0.0, 1.0, 1.0]), np.array([8.0, 1.0, 3.0])
    here, there = TransferProblem(release, size, link), TransferProblem(release + clock, size, link)
    for exact in (False, True):
        one, other = transfer_optimum(here, exact=exact), transfer_optimum(there, exact=exact)
        assert other.value == one.value + 3 * (Fraction(clock) if exact else clock)
        assert other.nodes == one.nodes
    one, other = best_event_order(here, certify=True), best_event_order(there, certify=True)
    assert one.bound is not None
    assert other.bound == one.bound + 3 * Fraction(clock)
    outcome = Session(compile(link_contention.build(there))).solve()
    assert outcome.value == pytest.approx(one.value + 3 * clock, rel=1e-15, abs=1e-6)


@pytest.mark.parametrize("model", ["disjunctive", "positional", "time-indexed", "rigid-time-indexed"])
def test_what_is_said_of_times_is_on_the_logs_clock(model: str) -> None:
    clock = 1_700_000_000.0
    for horizon in (10.0, 4.0):
        solution = solve(one_machine(clock, 1.0), "total_flow_time", model=model, horizon=clock + horizon)
        assert solution.status == "infeasible"
        assert f"{clock + horizon:.15g} s" in solution.note
    enough = solve(one_machine(clock, 1.0), "total_flow_time", model=model, horizon=clock + 11)
    assert enough.status == "optimal"
    assert enough.schedule is not None
    assert enough.schedule.completion.max() == clock + 11


def test_progress_is_on_the_logs_clock() -> None:
    seen: list[Progress] = []
    instance = one_machine(1e6, 1.0)
    solution = solve(instance, "total_completion_time", model="disjunctive", progress=seen.append)
    assert seen[-1].incumbent == solution.value == seen[-1].bound
    assert all(event.bound >= 4e6 for event in seen if not np.isnan(event.bound))
