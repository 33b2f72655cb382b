"""Bounds are a product: a relaxation of a class of schedules x a theorem about one machine, each written once.

A **relaxation** says what is left of the jobs of an instance when a whole cluster becomes one machine: the seconds that a
job takes alone, and machines of some capacity on which every job has a release and a work (`FastMachine`). Those with a
search parameter (a threshold, prices of GPU types, charges) offer one machine after the other. A **theorem** bounds an
objective for such jobs and machines. Whoever adds a relaxation gets every theorem for it, whoever adds a theorem gets it for
every relaxation; each is one file, which ends with `relaxation` or `theorem`.

The stand-alone verifier (`optsched.verifier`) knows all that come with optsched. A new one brings what
that calls: a relaxation ``machine(case, data)``, which builds the machine again from the instance and the data of a
certificate, a theorem ``verify(case, data)``, which evaluates it there, both in Python integers and fractions
(`optsched.verifier.certified_case.Case`, `optsched.verifier.tick_machine.Machine`).

The bound of theorem T for relaxation R is called ``R-T`` unless `Relaxation.names` has another name for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

from optsched.bounds.certificate import Certificate, Proof, Verifier
from optsched.bounds.integer_grid import GridJobs, on_grid
from optsched.bounds.proof import prove, proved_bound
from optsched.bounds.sum_costs import FAIR, SumCosts, sum_costs
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.verifier.class_table import ON_ANY_MACHINE
from optsched.verifier.document_fields import Data
from optsched.verifier.fair_share_proof import fair_alone
from optsched.verifier.tick_machine import Machine


@dataclass(frozen=True, eq=False)
class FastMachine:
    """A machine of ``capacity`` units on which every job has a release and a work.

    A job holds ``width`` units for ``seconds``, from ``release`` on. Let E_j be the end and M_j the mean moment of its
    work on the machine: C_j >= E_j + ``tail``_j and C_j >= M_j + ``reach``_j / 2.

    Attributes
    ----------
    release
        Earliest start of every job's work, in seconds, f64[n].
    seconds
        Length of every job's work in seconds, f64[n]; it may be rounded if ``ticks`` is given.
    width
        Units of capacity that every job holds, i64[n].
    capacity
        Units of the machine.
    stated
        Function that returns what a certificate states of the machine, in addition to capacity and grid.
    reach
        Twice the least distance from mean moment to completion, in seconds, f64[n].
    tail
        Least seconds from the end of the work to the completion, f64[n]; None for 0.
    ticks
        Function from a grid exponent to the exact works in ticks, rounded down, i64[n]; None if ``seconds`` is exact.
    """

    release: Floats
    seconds: Floats
    width: Ints
    capacity: int
    stated: Callable[[], dict[str, Any]]
    reach: Floats
    tail: Floats | None = None
    ticks: Callable[[int], Ints] | None = None

    def grid(self, moments: Floats | None = None) -> GridJobs:
        """Return the jobs on the grid.

        Parameters
        ----------
        moments
            Further times that shall be on the grid, in seconds, f64[].
        """
        return on_grid(self.release, self.seconds, self.width, self.capacity, moments, self.ticks)

    def rough_grid(self, moments: Floats | None = None) -> GridJobs:
        """Return the jobs on the grid with works that are computed in floats, for searches.

        Parameters
        ----------
        moments
            Further times that shall be on the grid, in seconds, f64[].
        """
        return on_grid(self.release, self.seconds, self.width, self.capacity, moments)

    def data(self, grid: GridJobs) -> dict[str, Any]:
        """Return what a certificate states of the machine and its grid.

        Parameters
        ----------
        grid
            Jobs of this machine on a grid.
        """
        return {**self.stated(), **grid.data()}


Machines = tuple[FastMachine, ...]  # one; or several side by side, each of which serves all jobs
Value = Callable[[FastMachine], float]


@dataclass(frozen=True, eq=False)
class Relaxed(ABC):
    """A relaxed instance.

    Attributes
    ----------
    mean_beside
        True if there is a bound by mean busy times without a search, for instances with very many jobs.
    instance
        Jobs and a cluster.
    alone
        Least seconds that every job takes, f64[n].
    """

    mean_beside: ClassVar[bool] = False
    instance: Instance
    alone: Floats

    def costs(self, objective: str) -> SumCosts:
        """Return the costs of jobs under a sum objective.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        return sum_costs(self.instance, objective, self.alone)

    @abstractmethod
    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield machines that are worth an exact proof, among those to choose from one with a large ``value``.

        Parameters
        ----------
        value
            Function from a machine to the bound that it gives, roughly.
        rounds
            Number of searches; ``value`` may be another function after each of them.
        """


# --- the product ---------------------------------------------------------------------------------------------------------

Names = Mapping[str, Iterable[str]]  # kind to the objectives that it serves


@dataclass(frozen=True)
class Relaxation:
    """A relaxation of classes of schedules, registered under its name.

    Attributes
    ----------
    name
        Name; the bound of a theorem for it is called ``name-theorem``, unless ``names`` says otherwise.
    classes
        Names of the classes of schedules that it is valid for.
    find
        Function of (instance, class of schedules) that returns the relaxed instance, or None if it says nothing.
    text
        End of the statements of its bounds.
    names
        Other names of bounds: by theorem, either one name or a dictionary from names to objectives.
    only
        Names of the theorems that it has; None for all.
    modes
        True if its `Relaxed` are those of `optsched.bounds.priced_machine`.
    machine
        Function of (case, data) that builds the machine again for the verifier; None if the verifier has its own.
    """

    name: str
    classes: tuple[str, ...]
    find: Callable[[Instance, str], Relaxed | None]
    text: str
    names: Mapping[str, str | Names] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    modes: bool = False
    machine: Callable[[Any, Data], Machine] | None = None


@dataclass(frozen=True)
class Theorem:
    """A theorem for all relaxations, registered under its name.

    Attributes
    ----------
    name
        Name.
    objectives
        Objectives that it bounds.
    statement
        The theorem in one line.
    build
        Function of (relaxed instance, objective) that returns value and data, or None if it says nothing.
    verify
        Function of (case, data) that proves them; None if the verifier has its own.
    modes
        True if it is only for relaxations with modes.
    """

    name: str
    objectives: tuple[str, ...]
    statement: str
    build: Callable[[Any, str], Proof | None]
    verify: Callable[[Any, Data], Proof] | None = None
    modes: bool = False


_relaxations: list[Relaxation] = []
_theorems: list[Theorem] = []


def relaxation(new: Relaxation) -> None:
    """Register a relaxation: a bound for every theorem.

    Parameters
    ----------
    new
        The relaxation.
    """
    _relaxations.append(new)
    for proposition in _theorems:
        _cross(new, proposition)


def theorem(new: Theorem) -> None:
    """Register a theorem: a bound for every relaxation.

    Parameters
    ----------
    new
        The theorem.
    """
    _theorems.append(new)
    for ground in _relaxations:
        _cross(ground, new)


def _cross(ground: Relaxation, proposition: Theorem) -> None:
    offered = proposition.name in ground.only if ground.only is not None else ground.modes or not proposition.modes
    if not offered:
        return
    names = ground.names.get(proposition.name, f"{ground.name}-{proposition.name}")
    for kind, objectives in ({names: proposition.objectives} if isinstance(names, str) else names).items():
        served, text = tuple(objectives), f"{proposition.statement}: {ground.text}"
        verifier = _verifier(ground, proposition)
        proved_bound(kind, objectives=served, classes=ground.classes, statement=text, verifier=verifier)(
            partial(_proof, ground, proposition)
        )


def _proof(
    ground: Relaxation, proposition: Theorem, instance: Instance, objective: str, schedule_class: str
) -> Proof | None:
    relaxed = _found(ground.find, instance, schedule_class)
    return None if relaxed is None else proposition.build(relaxed, objective)


@lru_cache(maxsize=2)  # the next theorem asks again
def _found(find: Callable[[Instance, str], Relaxed | None], instance: Instance, schedule_class: str) -> Relaxed | None:
    return find(instance, schedule_class)


def _verifier(ground: Relaxation, proposition: Theorem) -> Verifier:
    if ground.machine is None and proposition.verify is None:
        return prove

    def verify(certificate: Certificate, instance: Instance) -> None:
        fair = (proposition.name, certificate.objective) == ("alone", FAIR)
        theorem = proposition.verify or (fair_alone if fair else ON_ANY_MACHINE.get(proposition.name))
        prove(certificate, instance, theorem, ground.machine)

    return verify
