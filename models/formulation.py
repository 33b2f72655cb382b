"""`Formulation`: what a file of this folder offers, and the registry that finds it by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.registry import Registry

COMPLETION = frozenset({"total_completion_time", "total_flow_time"})
WEIGHTED_COMPLETION = COMPLETION | {"total_weighted_completion_time", "total_weighted_flow_time"}
REGULAR = WEIGHTED_COMPLETION | {"makespan", "max_flow_time", "total_weighted_tardiness"}  # nondecreasing in every C_j

NONZEROS = 50_000_000  # above it a model no longer fits in a few GB while it is being built


@dataclass(frozen=True)
class Formulation:
    """One mathematical program for one scheduling problem.

    Fields
    ------
    name : registered name, the command line's ``--model``.
    graham : the problem in three-field notation.
    objectives : names of the objectives it can minimise.
    schedule_class : the class of schedules its optimum (or bound) holds for.
    exact : does it solve the scheduling problem itself? A relaxation only gives a bound.
    applies : ``applies(instance, objective)`` is None, or one sentence why the formulation does not apply.
    build : ``build(instance, objective, *, horizon=None, relax=False, cut=True)`` makes the `pyomo.ConcreteModel` or
        `cvxpy.Problem` whose objective value **is** the objective named, in seconds (constants included).
        ``horizon``: latest completion allowed, in seconds, one number or f64[n] one a job; the optimum is then that
        over schedules that end by then, and it is the caller's part to know that it is enough
        (`optsched.models.latest_starts.latest_completions` says so for a known value). Without it every formulation
        uses one that provably keeps an optimal schedule. ``relax`` drops integrality.
        Without ``cut`` no start that ends by the horizon is left out as needless (default horizon: all jobs one after
        another after the last release): for a model that is to get constraints of one's own.
    size : ``size(instance, objective)`` estimates the nonzeros before anything is built.
    schedule : ``schedule(model, instance)`` reads the schedule from the values loaded in the model; None: relaxation.
    warm_start : ``warm_start(model, schedule)`` puts a feasible non-preemptive schedule on **all** variables, jobs
        moved to the left as far as they go first (which never makes a regular objective worse); None: relaxation.
        `InputError` where the schedule does not fit the horizon.
    in_seconds : do rows hold times as they are, not slots of a grid? ``schedule`` and ``warm_start`` then take the order of
        the jobs from what they are given, and times from ``instance`` and the model; ``schedule(..., kept=True)`` lets no
        job start before its time in the model, ``warm_start(..., kept=True)`` none before its start in the schedule.
    sets : of a family of rows by name, what its index stands for, a letter each: j a job, t a slot of ``model.grid``, v a
        node, k a position, a dot what stays a number. What is not here keeps its index as a name.
    end : ``end(model, j)`` is C_j in seconds, a linear expression; None: the model has none.
    """

    name: str
    graham: str
    objectives: frozenset[str]
    applies: Callable[[Instance, str], str | None]
    build: Callable[..., Any]
    size: Callable[[Instance, str], int]
    schedule_class: str = "gang-nonpreemptive"
    exact: bool = True
    schedule: Callable[[Any, Instance], Schedule] | None = None
    warm_start: Callable[..., None] | None = None
    in_seconds: bool = False
    sets: Mapping[str, str] = field(default_factory=dict)
    end: Callable[[Any, int], Any] | None = None

    def __post_init__(self) -> None:
        for objective in self.objectives:
            get_objective(objective)


FORMULATIONS: Registry[Formulation] = Registry("model", package="optsched.models")
add_formulation = FORMULATIONS.maker(Formulation, lambda formulation: formulation.name)


def objective_reason(instance: Instance, objective: str, known: frozenset[str]) -> str | None:
    """Why an objective cannot be minimised here: it is not among ``known``, or there is nothing to schedule."""
    if objective not in known:
        return f"it does not minimise {objective}, only {', '.join(sorted(known))}"
    if instance.n == 0:
        return "there are no jobs"
    return None


def size_reason(nonzeros: int) -> str | None:
    """Why a model of this size is not built."""
    if nonzeros <= NONZEROS:
        return None
    return f"it would have about {nonzeros:.2g} nonzeros (at most {NONZEROS:.0g}): take fewer jobs or coarser times"


def inapplicable(
    instance: Instance, objective: str, known: frozenset[str], size: Callable[[Instance, str], int]
) -> str | None:
    """None, or why a formulation does not apply: objective, no jobs, times or modes that ``size`` refuses, too large."""
    reason = objective_reason(instance, objective, known)
    if reason is not None:
        return reason
    try:
        return size_reason(size(instance, objective))
    except InputError as error:
        return str(error)


def require(reason: str | None, model: str) -> None:
    """`InputError` for a formulation that does not apply, with the reason that ``applies`` gave."""
    if reason is not None:
        raise InputError(reason, field="model", value=model)
