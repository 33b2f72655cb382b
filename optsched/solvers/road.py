"""`Road`: a way to the end of a `Task`, and the registry that finds it by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optsched.registry import Registry
from optsched.solvers.solution import Size

if TYPE_CHECKING:
    from optsched.solvers.task import Task

__all__ = ["EXCLUSIVE", "ROADS", "SHARING", "Report", "Road"]

EXCLUSIVE, SHARING = "gang-nonpreemptive", "sharing"


@dataclass(frozen=True)
class Report:
    """What a road says at its end, beside what it has given to the task."""

    solver: str
    size: Size = field(default_factory=Size)
    nodes: int = 0
    duals: dict[str, float] = field(default_factory=dict)
    note: str = ""
    status: str | None = None  # None: optimal or limit, as the numbers say


@dataclass(frozen=True)
class Road:
    """One way to solve. ``applies(task)`` is None, or one sentence why not; ``run(task)`` brings the bounds together.

    ``schedule_class``: over which schedules it minimises; a task has the class of the road that was asked for.
    """

    name: str
    applies: Callable[[Task], str | None]
    run: Callable[[Task], Report]
    schedule_class: str = EXCLUSIVE


ROADS: Registry[Road] = Registry("model", package="optsched.solvers")
