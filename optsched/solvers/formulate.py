"""`formulate` makes any formulation a Pyomo or CVXPY model of an instance, to read, to change and to solve."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import rounded_down
from optsched.errors import InputError, check_legal
from optsched.models import FORMULATIONS
from optsched.models.mapped_modes import MappedModes, speed_depends_on_placement
from optsched.models.program import PROGRAMS, Program, data_of
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.registry import near_matches
from optsched.solvers.formulated import Formulated, is_cvxpy
from optsched.solvers.method import METHODS
from optsched.speeds.duration import fixed_durations


def is_program(text: str) -> bool:
    """Return whether ``NAME[:key=value,...]`` names a program, which has no method for optimal schedules.

    Parameters
    ----------
    text
        Name of a model, with parameters.
    """
    name = text.partition(":")[0].strip()
    return name in PROGRAMS and name not in METHODS


def formulate(
    instance: Source,
    model: str,
    objective: str | None = None,
    *,
    relax: bool = False,
    horizon: float | None = None,
) -> Any:
    """Return the mathematical program of an instance, to read, change and solve: a `pyomo.ConcreteModel` or `cvxpy.Problem`.

    ``optsched list models NAME`` shows the names of its parts. They are indexed by numbers from 0 and by slots from the
    first arrival; ``model.job("7")`` is the number of a job, ``model.slot(12)`` that of a slot, and ``model.end("7")`` the
    completion time of a job, an expression. The objective, and ``model.end``, count on the instance's own clock.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    model
        Name of a formulation in ``optsched list models``; some take parameters, ``"hadar-primal:rounds=6"``.
    objective
        Objective that a formulation of schedules minimises; default: the instance's own, else ``total_flow_time``.
    relax
        Drop the integrality of a formulation of schedules: an LP, with duals.
    horizon
        Latest completion that a formulation of schedules allows, in seconds on the instance's clock. Default: all
        jobs one after another after the last arrival, which is enough unless a constraint of your own makes jobs
        wait for longer.

    Raises
    ------
    InputError
        If the name is unknown, or the formulation does not apply to the instance (with the reason).
    InfeasibleError
        If a job cannot meet the horizon.

    Examples
    --------
    >>> import optsched as osd
    >>> model = osd.formulate("rigid-06-1", "rigid-time-indexed", "makespan")
    >>> type(model).__name__, model.job("3")
    ('ConcreteModel', 2)
    """
    given, began = instance_of(instance), time.perf_counter()
    if model.partition(":")[0].strip() in PROGRAMS:
        for option, asked in (("objective", objective), ("relax", relax or None), ("horizon", horizon)):
            check_legal(asked is None, option, asked, "a model of schedules; this one has an objective of its own")
        return built(given, *data_of(given.relative, model), began).model
    if model not in FORMULATIONS:
        known = sorted({*PROGRAMS.names(), *FORMULATIONS.names()})
        raise InputError(
            "no such formulation", field="model", value=model, legal=near_matches(model, known, kind="model")
        )
    formulation = FORMULATIONS.get(model)
    goal = objective_of(given, objective)
    reason = formulation.applies(given.relative, goal.name)
    if reason is not None:
        raise InputError(f"it does not apply: {reason}", field="model", value=model)
    latest = -rounded_down(-long_enough(given.relative)) if horizon is None else horizon - given.epoch
    asked = None if horizon is None and not formulation.exact else latest
    made = formulation.build(given.relative, goal.name, horizon=asked, relax=relax, cut=False)
    made = _on_clock(made, float(goal.clock_part(given)))
    relaxed, seconds = relax or not formulation.exact, time.perf_counter() - began
    return Formulated(given, formulation, made, goal.name, relaxed, horizon=latest, seconds=seconds).model


def built(given: Instance, program: Program, data: Any, began: float) -> Formulated:
    """Return the model of a program.

    Parameters
    ----------
    given
        Instance that the program is built for.
    program
        Program to build.
    data
        Its data, as `optsched.models.program.data_of` makes them.
    began
        Moment on `time.perf_counter` from which its seconds count.
    """
    model = _on_clock(program.build(data), given.epoch * given.n if program.clocked else 0.0)
    return Formulated(given, program, model, program.name, data=data, seconds=time.perf_counter() - began)


def _on_clock(model: Any, part: float) -> Any:
    """Return the model with an objective that counts on the log's clock, ``part`` more."""
    if part and not is_cvxpy(model):
        model.objective.expr += part
    elif part:
        import cvxpy as cp

        moved = cp.Problem(cp.Minimize(model.objective.expr + part), model.constraints)
        moved.__dict__.update({key: value for key, value in vars(model).items() if key not in vars(moved)})
        return moved
    return model


def long_enough(instance: Instance) -> Fraction:
    """Return a horizon that is long enough, in seconds: all jobs one after another after the last arrival.

    Parameters
    ----------
    instance
        Jobs and a cluster; time counts from the first arrival.

    Notes
    -----
    Each job counts with its slowest duration. **Lemma** In every class of schedules, and for every objective that does
    not fall when a job ends later, some optimal schedule ends by then. *Proof.* Cut out of an optimal schedule every
    time after the last arrival at which no job runs. Later parts move to the left; all jobs have arrived, and jobs that
    ran together still do. No job ends later, and the rest is over when the jobs have run, at least one at any time.
    """
    if speed_depends_on_placement(instance):
        modes = MappedModes.of(instance)
        longest = np.maximum.reduceat(modes.seconds, modes.offset[:-1])
    else:
        longest = fixed_durations(instance)
    return Fraction(float(instance.arrival.max())) + sum(map(Fraction, longest.tolist()), Fraction(0))
