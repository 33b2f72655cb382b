"""`adopt`: turn an object of a plain class, which knows nothing of optsched, into a policy of the base classes.

This is the only place that looks for attributes by name: everything else reads what `BasePolicy` and its subclasses
declare.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from optsched.classes import every_class
from optsched.registry import PartsByClass
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


class PlainPolicy(Protocol):
    """An object of any class with one of the methods by which a policy decides (`methods`)."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """Knowledge that it may use of jobs that have not completed."""


class Adopted(BasePolicy):
    """A plain object as a policy, with every declared attribute that the object has."""

    _method: ClassVar[str]  # the method by which the object decides

    def __init__(self, own: Any) -> None:
        self._own = own
        for name in declared_names(type(self)) - {self._method}:
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))


class AdoptedPolicy(Adopted, Policy):
    """A plain object with ``decide(view)``."""

    _method = "decide"

    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        """Ask the object.

        Parameters
        ----------
        view
            What the policy sees.
        """
        decisions: Iterable[Decision | list[Decision]] = self._own.decide(view)
        return decisions


class AdoptedOrder(Adopted, OrderedPolicy):
    """A plain object with ``order(jobs)``."""

    _method = "order"

    def order(self, jobs: KnownJobs) -> Order:
        """Ask the object.

        Parameters
        ----------
        jobs
            What is known of the jobs.
        """
        order: Order = self._own.order(jobs)
        return order


# By class of schedules whose policies decide by a method of their own (`ScheduleClass.method`).
ADOPTED: PartsByClass[type[Adopted] | None] = PartsByClass("optsched.simulation", None)
_GANGS: dict[str, type[Adopted]] = {"order": AdoptedOrder, "decide": AdoptedPolicy}


def methods() -> tuple[str, ...]:
    """Return the names of the methods by which policies decide; each policy has one of them."""
    return (*_GANGS, *(made.method for made in every_class() if made.method))


def has_method(thing: object) -> bool:
    """Tell if an object, or a class, has a method by which a policy decides.

    Parameters
    ----------
    thing
        Any object.
    """
    return isinstance(thing, BasePolicy) or any(callable(getattr(thing, method, None)) for method in methods())


def adopt(policy: object) -> BasePolicy:
    """Return a policy as it is, and a plain object as a policy of the base class for its method.

    Parameters
    ----------
    policy
        A policy, or an object with one of `methods`.

    Raises
    ------
    TypeError
        The object has none of them.
    InputError
        The class of the object has a name that is nearly a declared one.
    """
    if isinstance(policy, BasePolicy):
        return policy
    for method in methods():
        if callable(getattr(policy, method, None)):
            kind = _adopted(method)
            refuse_near_names(type(policy), kind)
            return kind(policy)
    raise TypeError(f"{policy!r} has none of {', '.join(methods())}")


def _adopted(method: str) -> type[Adopted]:
    if method in _GANGS:
        return _GANGS[method]
    kind = next(ADOPTED.of(made.name) for made in every_class() if made.method == method)
    if kind is None:
        raise TypeError(f"no class of schedules adopts objects with {method}")
    return kind


def methods_of(policy: object) -> list[str]:
    """Return those of `methods` that a policy has, or the plain object that it was made of.

    Parameters
    ----------
    policy
        A policy, or a plain object.
    """
    return [method for method in methods() if callable(getattr(plain(policy), method, None))]


def plain(policy: object) -> object:
    """Return the plain object that was adopted as a policy, and any other policy as it is.

    Parameters
    ----------
    policy
        A policy, or a plain object.
    """
    return policy._own if isinstance(policy, Adopted) else policy
