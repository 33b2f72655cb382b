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
    """A machine of ``capacity`` units, of which a job holds ``width`` for ``seconds``, from ``release`` on; arrays [n].

    With E_j the end and M_j the mean moment of that, C_j >= E_j + ``tail``_j (None: 0) and C_j >= M_j + ``reach``_j / 2.
    ``seconds`` may be rounded where ``ticks`` gives the exact works for a grid exponent, rounded down. ``stated`` is what a
    certificate says of the machine, beside capacity and grid.
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
        """The jobs in ticks; ``moments``: times that shall be on the grid, too."""
        return on_grid(self.release, self.seconds, self.width, self.capacity, moments, self.ticks)

    def rough_grid(self, moments: Floats | None = None) -> GridJobs:
        """The same with works in floats: for searches."""
        return on_grid(self.release, self.seconds, self.width, self.capacity, moments)

    def data(self, grid: GridJobs) -> dict[str, Any]:
        """What a certificate says of machine and grid."""
        return {**self.stated(), **grid.data()}


Machines = tuple[FastMachine, ...]  # one; or several side by side, each of which serves all jobs
Value = Callable[[FastMachine], float]


@dataclass(frozen=True, eq=False)
class Relaxed(ABC):
    """An instance, relaxed: ``alone`` f64[n] seconds that every job takes at least.

    ``mean_beside``: is there a bound by mean busy times without a search, for very many jobs?
    """

    mean_beside: ClassVar[bool] = False
    instance: Instance
    alone: Floats

    def costs(self, objective: str) -> SumCosts:
        """The costs of a sum objective."""
        return sum_costs(self.instance, objective, self.alone)

    @abstractmethod
    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Machines worth an exact proof, one after the other; of those there are to choose from one with a large ``value``.

        ``rounds`` > 1: ``value`` may be another after each of them, and is searched again so often.
        """


# --- the product ---------------------------------------------------------------------------------------------------------

Names = Mapping[str, Iterable[str]]  # kind to the objectives that it serves


@dataclass(frozen=True)
class Relaxation:
    """A relaxation of classes of schedules, under its name.

    ``find`` may return None where it says nothing; ``machine`` builds the machine again (None: the verifier does).
    ``text`` ends the statements of its bounds. ``names`` has other names for theorems than ``name-theorem``: by objective,
    or one for all. ``only``: the theorems that it has (None: all). ``modes``: are its `Relaxed` those of
    `optsched.bounds.priced_machine`?
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
    """A theorem for all relaxations (``modes``: only for those with modes), under its name.

    ``build`` finds (value, data), None where it has nothing to say; ``verify`` (None: the verifier has it) proves them.
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
    """File a relaxation: a bound for every theorem."""
    _relaxations.append(new)
    for known in _theorems:
        _cross(new, known)


def theorem(new: Theorem) -> None:
    """File a theorem: a bound for every relaxation."""
    _theorems.append(new)
    for known in _relaxations:
        _cross(known, new)


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
