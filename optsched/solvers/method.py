"""`Method`, a way to solve a `SolveState`, and the registry that finds it by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from optsched.registry import PartsByClass, Registry
from optsched.solvers.linear_program import Size
from optsched.solvers.solve_state import EXCLUSIVE, SolveState


@dataclass(frozen=True)
class MethodReport:
    """Report of a method at its end, in addition to what it has given to the state.

    ``unproved``: the solver's tolerances ended the proof, and neither the time nor the class of its schedules did: another
    method may prove more.
    """

    solver: str
    size: Size = field(default_factory=Size)
    nodes: int = 0
    duals: dict[str, float] = field(default_factory=dict)
    note: str = ""
    status: str | None = None  # None: optimal or limit, as the numbers say
    unproved: bool = False


@dataclass(frozen=True)
class Method:
    """One way to solve.

    ``applies(state)`` is None, or one sentence why not; ``run(state)`` brings the bounds together. ``schedule_class``:
    the class of schedules over which it minimises; a state has the class of the method that was requested.
    ``statement``: one line for people; "": the first line of its module. ``exact``: whether it can prove the optimum.
    """

    name: str
    applies: Callable[[SolveState], str | None]
    run: Callable[[SolveState], MethodReport]
    schedule_class: str = EXCLUSIVE
    statement: str = ""
    exact: bool = True


METHODS: Registry[Method] = Registry("model", package="optsched.solvers.methods")
add_method = METHODS.maker(Method, lambda method: method.name)
# By class of schedules: methods in the order in which they are tried; the first that applies is taken.
PREFERRED: PartsByClass[tuple[str, ...]] = PartsByClass(
    "optsched.solvers",
    (
        "mode-branching",
        "sequence-branching",
        "machine-schedules",
        "partial-schedules",
        "reduced-cost-fixing",
        "rigid-time-indexed",
        "rigid-placed",
        "gang-modes",
        "disjunctive",
    ),
)


def has_own_methods(schedule_class: str) -> bool:
    """Return True if a class of schedules registers methods of its own.

    Parameters
    ----------
    schedule_class
        Name of the class.
    """
    return PREFERRED.of(schedule_class) is not PREFERRED.of("")
