"""`adopt`: turn an object of a plain class, which knows nothing of optsched, into a policy of the base classes.

This is the only place that looks for attributes by name: everything else reads what `BasePolicy` and its subclasses
declare.
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
        """Name in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """The facts that it may ask about jobs that have not completed."""

    def decide(self, view: Any) -> Iterable[Any]:
        """Return decisions, as `Policy.decide` does.

        Parameters
        ----------
        view
            What the policy may see of the engine's state.
        """


class PlainOrder(Protocol):
    """An object of any class that orders the queue as `OrderedPolicy` does."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """The facts that it may ask about jobs that have not completed."""

    def order(self, jobs: Any) -> Order:
        """Return keys and rules, as `OrderedPolicy.order` does.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs.
        """


class PlainTasks(Protocol):
    """An object of any class that orders tasks as `TaskPolicy` does."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """The facts that it may ask about jobs that have not completed."""

    def tasks(self, jobs: Any) -> TaskOrder:
        """Return orders and an admission rule, as `TaskPolicy.tasks` does.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs and their tasks.
        """


class AdoptedPolicy(Policy):
    """A policy made of a plain object ``own`` with ``decide(view)``."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "decide")

    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        """Return the decisions of the plain object.

        Parameters
        ----------
        view
            What the policy may see of the engine's state.
        """
        decisions: Iterable[Decision | list[Decision]] = self.own.decide(view)
        return decisions


class AdoptedOrder(OrderedPolicy):
    """A queue order made of a plain object ``own`` with ``order(jobs)``."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "order")

    def order(self, jobs: KnownJobs) -> Order:
        """Return the order of the plain object.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs.
        """
        order: Order = self.own.order(jobs)
        return order


class AdoptedTasks(TaskPolicy):
    """A task policy made of a plain object ``own`` with ``tasks(jobs)``."""

    def __init__(self, own: Any) -> None:
        self.own = own
        _take_over(self, own, "tasks")
        self.uses = TaskPolicy.uses

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """Return the orders and the admission rule of the plain object.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs and their tasks.
        """
        order: TaskOrder = self.own.tasks(jobs)
        return order


ADOPTED: dict[str, type[AdoptedPolicy | AdoptedOrder | AdoptedTasks]] = {
    "order": AdoptedOrder,
    "decide": AdoptedPolicy,
    "tasks": AdoptedTasks,
}
METHODS = tuple(ADOPTED)  # a policy has one of them


def adopt(policy: object) -> BasePolicy:
    """Return a policy of the base classes for a policy, which is returned unchanged, or for a plain object.

    Parameters
    ----------
    policy
        A policy, or an object with ``name``, ``knowledge`` and one of `METHODS`.

    Raises
    ------
    TypeError
        The object has none of `METHODS`.
    InputError
        Its class has a name that is nearly a declared one.
    """
    if isinstance(policy, BasePolicy):
        return policy
    for method, kind in ADOPTED.items():
        if callable(getattr(policy, method, None)):
            refuse_near_names(type(policy), kind)
            return kind(policy)
    raise TypeError(f"{policy!r} has none of {', '.join(METHODS)}")


def methods_of(policy: object) -> list[str]:
    """Return those of `METHODS` that a policy, or the plain object that it was made of, has.

    Parameters
    ----------
    policy
        A policy, or a plain object.
    """
    return [method for method in METHODS if callable(getattr(plain(policy), method, None))]


def plain(policy: object) -> object:
    """Return the plain object that was adopted as a policy; any other policy is returned unchanged.

    Parameters
    ----------
    policy
        A policy, or a plain object.
    """
    return policy.own if isinstance(policy, AdoptedPolicy | AdoptedOrder | AdoptedTasks) else policy


def _take_over(policy: BasePolicy, own: object, method: str) -> None:
    for name in declared_names(type(policy)) - {method, "own"}:
        if hasattr(own, name):
            setattr(policy, name, getattr(own, name))
