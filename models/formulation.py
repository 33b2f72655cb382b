"""`Formulation`, the type of what each file of this folder offers, and the registry that finds it by name."""

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

NONZEROS = 50_000_000  # a larger model does not fit in a few GB while it is built


@dataclass(frozen=True)
class Formulation:
    """One mathematical program for one scheduling problem.

    Fields
    ------
    name : registered name, the command line's ``--model``.
    graham : the problem in three-field notation.
    objectives : names of the objectives it can minimise.
    schedule_class : the class of schedules for which its optimum (or bound) holds.
    exact : whether it solves the scheduling problem itself; a relaxation gives only a bound.
    applies : ``applies(instance, objective)`` is None, or one sentence that says why the formulation does not apply.
    build : ``build(instance, objective, *, horizon=None, relax=False, cut=True)`` makes the `pyomo.ConcreteModel` or
        `cvxpy.Problem`. Its objective value **is** the named objective, in seconds (constants included).
        ``horizon`` is the latest completion allowed, in seconds: one number, or f64[n] with one for each job. The optimum is
        then that over schedules that end by the horizon, and the caller must know that the horizon is late enough
        (`optsched.models.latest_starts.latest_completions` gives one for a known value). Without it every formulation
        uses a horizon that provably keeps an optimal schedule. ``relax`` drops integrality.
        With ``cut`` false no start that ends by the horizon is left out as needless (default horizon: all jobs one after
        another after the last release). Use it for a model to which you add your own constraints.
    size : ``size(instance, objective)`` estimates the nonzeros before a model is built.
    schedule : ``schedule(model, instance)`` reads the schedule from the values loaded in the model; None: relaxation.
    warm_start : ``warm_start(model, schedule)`` puts a feasible non-preemptive schedule on **all** variables. It first moves
        the jobs to the left as far as they go, which never makes a regular objective worse. None: relaxation.
        Raises `InputError` where the schedule does not fit the horizon.
    in_seconds : whether rows hold times in seconds instead of slots of a grid. ``schedule`` and ``warm_start`` then take
        only the order of the jobs from their argument, and times from ``instance`` and the model;
        ``schedule(..., kept=True)`` starts no job before its time in the model, and ``warm_start(..., kept=True)`` starts no
        job before its start in the schedule.
    sets : for the name of a family of rows, one letter for each index: j a job, t a slot of ``model.grid``, v a node,
        k a position, a dot for an index that stays a number. A family that is not listed keeps its index as its name.
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
    """Return why an objective cannot be minimised, or None: it is not ``known``, or there are no jobs.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    known
        Names of the objectives that the formulation minimises.
    """
    if objective not in known:
        return f"it does not minimise {objective}, only {', '.join(sorted(known))}"
    if instance.n == 0:
        return "there are no jobs"
    return None


def size_reason(nonzeros: int) -> str | None:
    """Return why a model of this size is not built, or None.

    Parameters
    ----------
    nonzeros
        Estimated nonzeros.
    """
    if nonzeros <= NONZEROS:
        return None
    return f"it would have about {nonzeros:.2g} nonzeros (at most {NONZEROS:.0g}): use fewer jobs or coarser times"


def inapplicable(
    instance: Instance, objective: str, known: frozenset[str], size: Callable[[Instance, str], int]
) -> str | None:
    """Return why a formulation does not apply, or None: objective, no jobs, times or modes that ``size`` refuses, size.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    known
        Names of the objectives that the formulation minimises.
    size
        ``size(instance, objective)`` estimates the nonzeros; its `InputError` becomes the reason.
    """
    reason = objective_reason(instance, objective, known)
    if reason is not None:
        return reason
    try:
        return size_reason(size(instance, objective))
    except InputError as error:
        return str(error)


def require(reason: str | None, model: str) -> None:
    """Raise an error if a formulation does not apply.

    Parameters
    ----------
    reason
        The reason that ``applies`` returned; None: it applies.
    model
        Name of the formulation.

    Raises
    ------
    InputError
        If there is a reason.
    """
    if reason is not None:
        raise InputError(reason, field="model", value=model)
