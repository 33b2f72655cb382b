"""A method whose numbers fail gives way to the next one, and at last to the interval: a note, never a solver's status."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from brute_force import placed_optimum

from optsched.check.referee import check_schedule
from optsched.errors import OptschedError
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.solvers.method import METHODS, Method
from optsched.solvers.session import Session
from optsched.solvers.solution import Solution
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from solvers.rigid_instances import one_machine

JOBS = ((0.0, 0.3, 1.0), (0.1, 0.2, 3.0), (0.15, 0.7, 1.0), (0.4, 0.1, 5.0))


def fails(*_: Any, **__: Any) -> Any:
    raise OptschedError("HiGHS: run failed (model status: Solve error)")


def told_in_words(instance: Instance, solution: Solution) -> bool:
    """An interval around the optimum, a schedule that stands, and a note that no solver wrote."""
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []
    assert "failed on these numbers" in solution.note
    assert "HiGHS" not in solution.note
    assert solution.bound_exact is not None
    assert solution.value_exact is not None
    return solution.bound_exact <= solution.value_exact


def test_a_solver_that_fails_leaves_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "solve", fails)
    instance = one_machine(*JOBS)
    solution = solve(instance, "total_weighted_completion_time")
    assert told_in_words(instance, solution)
    assert (solution.status, solution.model) == ("limit", "list")
    best = placed_optimum(instance, "total_weighted_completion_time")
    assert solution.bound_exact <= best <= solution.value_exact


def test_the_next_method_that_applies_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "solve", fails)
    whole = one_machine((0, 3, 1), (1, 2, 3), (1, 7, 1), (4, 1, 5))
    solution = solve(whole, "total_weighted_completion_time", model="disjunctive")
    assert told_in_words(whole, solution)
    assert (solution.status, solution.model) == ("optimal", "sequence-branching")  # dynamic programming needs no solver
    assert solution.value_exact == placed_optimum(whole, "total_weighted_completion_time")


def test_jobs_that_share_have_a_schedule_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance([Job("a", 0, 1, 4), Job("b", 0, 1, 4)], "1x1", interference=Interference(1.25))
    monkeypatch.setattr(Session, "solve", fails)
    solution = solve(instance, "total_flow_time", model="gpu-sharing")
    assert told_in_words(instance, solution)
    assert (solution.status, solution.model, solution.value_exact) == ("optimal", "sharing-branching", Fraction(10))
    monkeypatch.setattr("optsched.classes.gpu_sharing.solvers.methods.sharing_methods.sharing_optimum", fails)
    solution = solve(instance, "total_flow_time", model="sharing-orders")
    assert told_in_words(instance, solution)
    assert (solution.status, solution.model, solution.value_exact) == ("limit", "list", Fraction(12))


def test_a_schedule_that_the_referee_rejects_ends_the_method_only() -> None:
    def tampered(task: SolveState) -> Any:
        assert task.schedule is not None
        raise OptschedError("the referee rejects a schedule of tampered: capacity")

    method = Method("tampered", lambda task: None, tampered)
    METHODS.register("tampered")(method)
    try:
        instance = one_machine(*JOBS)
        solution = solve(instance, "total_weighted_completion_time", model="tampered")
        assert told_in_words(instance, solution)
        assert (solution.status, solution.model) == ("optimal", "partial-schedules")
    finally:
        METHODS._things.pop("tampered")
