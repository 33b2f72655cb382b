"""`Program`: a formulation whose optimum is not the value of a schedule but prices, shares, a mapping or a relaxation.

A `Formulation` minimises an objective over schedules, and `optsched.solve` proves optima with it. A program answers another
question about an instance: what a GPU of each type is worth, how to share time, how good a fluid relaxation can be. Its data
come from the instance and a few parameters, e.g. the length of a round. Programs are found by name in `PROGRAMS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.models.gavel_allocation import ActiveJobs, AllocationProblem, prices
from optsched.models.hadar_rounds import Packing, RoundProblem, round_problem
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.registry import Registry, made
from optsched.speeds.duration import seconds_alone
from optsched.speeds.type_speeds import type_speeds


@dataclass(frozen=True)
class Program:
    """One mathematical program of an instance.

    Fields
    ------
    name : registered name, the command line's ``--model``.
    notation : the problem, as the file writes it.
    value : what the optimum is, in a few words.
    schedule_class : the schedules to which it refers.
    data : ``data(instance, **parameters)`` makes the argument of ``build``; parameters have defaults, which text may set.
    build : makes the `pyomo.ConcreteModel` or `cvxpy.Problem`.
    duals : ``duals(model, data, instance)`` of the solved model: prices by name, each d value / d capacity; None: the
        program has integers, or its prices have no names.
    dual : the program whose optimum is the same by strong duality.
    sets : what indices mean, as in `optsched.models.formulation.Formulation`.
    clocked : whether its value is the sum of all jobs' completion times; it then counts on the log's clock.
    """

    name: str
    notation: str
    value: str
    schedule_class: str
    data: Callable[..., Any]
    build: Callable[[Any], Any]
    duals: Callable[[Any, Any, Instance], Mapping[str, float]] | None = None
    dual: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    clocked: bool = False


MOST_ROUNDS = 100_000
MOST_CELLS = 6  # machines times types: up to this number all allocations are listed

PROGRAMS: Registry[Program] = Registry("model", package="optsched.models")
add_program = PROGRAMS.maker(Program, lambda program: program.name)


def data_of(instance: Instance, text: str) -> tuple[Program, Any]:
    """Return the program that ``NAME[:key=value,...]`` names, and its data.

    Parameters
    ----------
    instance
        Jobs and cluster.
    text
        Name of the program, with parameters.

    Raises
    ------
    InputError
        If the name or a parameter is wrong; the message has near matches.
    """
    program = PROGRAMS.get(text.partition(":")[0].strip())
    return program, made(lambda name: partial(PROGRAMS.get(name).data, instance), "model", text)


# --- data of an instance ------------------------------------------------------------------------------------------------


def rounds_of(instance: Instance, round: float = 0.0, rounds: int = 0) -> RoundProblem:
    """Return the instance in rounds of equal length.

    Parameters
    ----------
    instance
        Jobs and cluster.
    round
        Seconds of a round. 0: twice the longest job plus the time of arrivals, divided by ``rounds``.
    rounds
        Number of rounds. 0: four, or with a given ``round`` as many as cover the arrivals, twice the longest job
        and all the work, which is enough for schedules that leave no job out.

    Raises
    ------
    InputError
        If there are no jobs, or a parameter is not legal.
    """
    check_legal(rounds >= 0, "rounds", rounds, "an integer >= 1, or 0 for as many as needed")
    if instance.n == 0:
        raise InputError("there are no jobs", field="jobs", value=0, legal="at least one")
    alone = seconds_alone(instance)
    span = float(np.ptp(instance.arrival)) + 2 * float(np.nanmax(alone))
    seconds = round if round else span / (rounds or 4)
    check_legal(math.isfinite(seconds) and seconds > 0, "round", round, "seconds > 0, or 0 for equal parts")
    if round and not rounds:
        enough = (span + float((alone * instance.gpus).sum()) / instance.cluster.gpus) / round
        check_legal(
            enough < MOST_ROUNDS, "round", round, f"seconds such that at most {MOST_ROUNDS:,} rounds are enough"
        )
        rounds = math.ceil(enough)
    return round_problem(instance, seconds, rounds or 4)


@dataclass(frozen=True, eq=False)
class RoundSchedules:
    """A problem in rounds, and all its schedules, listed on first use."""

    problem: RoundProblem

    @cached_property
    def packing(self) -> Packing:
        """Every schedule in rounds of every job; `InputError` if they are too many."""
        return self.problem.packing()

    @property
    def at_most(self) -> float:
        """Upper bound on the number of schedules.

        In every round from its arrival on a job has one of its allocations, or none.
        """
        problem = self.problem
        if np.count_nonzero(problem.devices) > MOST_CELLS:
            return math.inf
        ways = [len(problem.allocations(j)) + 1.0 for j in range(problem.n)]
        return float(
            sum(way ** min(left, 100) for way, left in zip(ways, problem.rounds - problem.arrival, strict=True))
        )


def packing_of(instance: Instance, round: float = 0.0, rounds: int = 0) -> RoundSchedules:
    """Return every schedule in rounds of every job.

    Parameters
    ----------
    instance
        Jobs and cluster.
    round
        Seconds of a round, as in `rounds_of`.
    rounds
        Number of rounds, as in `rounds_of`.
    """
    return RoundSchedules(rounds_of(instance, round, rounds))


def packing_names(data: RoundSchedules, instance: Instance, price: Floats, payoff: Floats) -> dict[str, float]:
    """Return prices k_q by round, node and type, and payoffs mu_j by job, without those that are 0.

    Parameters
    ----------
    data
        The problem in rounds.
    instance
        Jobs and cluster.
    price
        Price of every resource of a round, f64[Q].
    payoff
        Payoff of every job, f64[n].
    """
    problem, types = data.problem, type_speeds(instance).types
    named = {}
    for q in np.flatnonzero(price).tolist():
        (t, h), r = divmod(q // problem.types, problem.machines), q % problem.types
        named[f"price of {types[r]}, node {h}, round {t}"] = float(price[q])
    return named | {f"payoff of {instance.ids[j]}": float(payoff[j]) for j in np.flatnonzero(payoff).tolist()}


def allocation_of(instance: Instance) -> AllocationProblem:
    """Return all jobs at once, as a policy of Gavel sees them when no job has run yet: n jobs, R types.

    Rates f64[n, R] are in units of work a second of the whole gang, on the best placement it can have on each type; 0 where
    the type has fewer GPUs than the gang. O(n R).

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If there are no jobs, if a weight is 0, or if a gang is larger than every type.
    """
    speeds, n = type_speeds(instance), instance.n
    whole = instance.gpus[:, None] <= speeds.capacity[None, :]
    rate = np.where(whole, np.maximum(*speeds.reachable), 0.0)
    check_legal(n > 0, "jobs", n, "at least one")
    for j in np.flatnonzero(instance.weight == 0).tolist():
        raise InputError("invalid", field=f"weight of {instance.ids[j]}", value=0.0, legal="a number > 0")
    for j in np.flatnonzero(~rate.any(axis=1)).tolist():
        legal = f"at most the GPUs of a type it runs on; there are {speeds.capacity.tolist()}"
        raise InputError(
            "no GPU type holds it", field=f"gpus of {instance.ids[j]}", value=int(instance.gpus[j]), legal=legal
        )
    jobs = ActiveJobs(np.arange(n), rate, instance.gpus, instance.weight, np.zeros(n), instance.work)
    return AllocationProblem(jobs, speeds.capacity.astype(np.float64))


def by_type(instance: Instance, price: Floats) -> dict[str, float]:
    """Return one price for each GPU type, by name.

    Parameters
    ----------
    instance
        Jobs and cluster.
    price
        Price of each type, f64[R].
    """
    return {f"price of {name}": float(k) for name, k in zip(type_speeds(instance).types, price.tolist(), strict=True)}


def add_allocation_program(name: str, notation: str, value: str, build: Callable[[AllocationProblem], Any]) -> None:
    """Register a program of shares of time: `allocation_of` makes its data, its duals are the prices of GPU types.

    Parameters
    ----------
    name
        Registered name.
    notation
        The problem, as the file writes it.
    value
        What the optimum is, in a few words.
    build
        Makes the `cvxpy.Problem`.
    """
    add_program(
        name,
        notation,
        value,
        "shares of time",
        allocation_of,
        build,
        lambda program, problem, instance: by_type(instance, prices(program)),
        sets={"time": "j", "fair": "j", "work": "j", "X": "j."},
    )
