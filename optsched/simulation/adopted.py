"""`adopt`: make a policy of the base classes of an object of a plain class, which need not know optsched's.

This is the one place that looks for attributes by name: everything else reads what `BasePolicy` and its subclasses declare.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from optsched.simulation.policy import (
    BasePolicy,
    Decision,
    Knowledge,
    KnownJobs,
    Order,
    OrderedPolicy,
    Policy,
    View,
    declared_names,
    refuse_near_names,
)
from optsched.simulation.task_policy import TaskJobs, TaskOrder, TaskPolicy


class PlainPolicy(Protocol):
    """An object of any class that decides as `Policy` does."""

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may ask about jobs that have not completed."""

    def decide(self, view: Any) -> Iterable[Any]:
        """Decisions, as of `Policy.decide`."""


class PlainOrder(Protocol):
    """An object of any class that orders the queue as `OrderedPolicy` does."""

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may ask about jobs that have not completed."""

    def order(self, jobs: Any) -> Order:
        """Keys and rules, as of `OrderedPolicy.order`."""


class PlainTasks(Protocol):
    """An object of any class that orders tasks as `TaskPolicy` does."""

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may ask about jobs that have not completed."""

    def tasks(self, jobs: Any) -> TaskOrder:
        """Orders and admission rule, as of `TaskPolicy.tasks`."""


class AdoptedPolicy(Policy):
    """A plain object with ``decide(view)``; ``own`` is the object."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "decide")

    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        """Ask the object."""
        decisions: Iterable[Decision | list[Decision]] = self.own.decide(view)
        return decisions


class AdoptedOrder(OrderedPolicy):
    """A plain object with ``order(jobs)``; ``own`` is the object."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "order")

    def order(self, jobs: KnownJobs) -> Order:
        """Ask the object."""
        order: Order = self.own.order(jobs)
        return order


class AdoptedTasks(TaskPolicy):
    """A plain object with ``tasks(jobs)``; ``own`` is the object."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "tasks")
        self.uses = TaskPolicy.uses

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """Ask the object."""
        order: TaskOrder = self.own.tasks(jobs)
        return order


ADOPTED: dict[str, type[AdoptedPolicy | AdoptedOrder | AdoptedTasks]] = {
    "order": AdoptedOrder,
    "decide": AdoptedPolicy,
    "tasks": AdoptedTasks,
}
METHODS = tuple(ADOPTED)  # a policy has one of them


def adopt(policy: object) -> BasePolicy:
    """Return a policy as it is, and a plain object with one of `METHODS` as a policy of the base class for that method.

    `TypeError` for an object with none of them; `InputError` where its class has a name that is nearly a declared one.
    """
    if isinstance(policy, BasePolicy):
        return policy
    for method, kind in ADOPTED.items():
        if callable(getattr(policy, method, None)):
            refuse_near_names(type(policy), kind)
            return kind(policy)
    raise TypeError(f"{policy!r} has none of {', '.join(METHODS)}")


def methods_of(policy: object) -> list[str]:
    """Return those of `METHODS` that a policy, or the plain object that it was made of, has."""
    return [method for method in METHODS if callable(getattr(plain(policy), method, None))]


def plain(policy: object) -> object:
    """Return the plain object that was adopted as this policy; any other policy as it is."""
    return policy.own if isinstance(policy, AdoptedPolicy | AdoptedOrder | AdoptedTasks) else policy


def _take_over(policy: BasePolicy, own: object, method: str) -> None:
    for name in declared_names(type(policy)) - {method, "own"}:
        if hasattr(own, name):
            setattr(policy, name, getattr(own, name))
