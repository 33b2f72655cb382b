"""`Family`: instances on which a rule loses much, as something that can be made, run and held against its formula.

Every family registers itself in the module of its theorem (or, where there is none, in a file of its own). A member
is written like a policy: ``blocked-long-job:m=4``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.guarantees.optimum import proved_here
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.registry import Registry, parameters_of, parsed


@dataclass(frozen=True)
class Challenge:
    """An instance that is bad for a policy; ``reference``: what some schedule of it reaches, ``better``, if that is here."""

    instance: Instance
    reference: Fraction
    better: Schedule | None = None


@dataclass(frozen=True)
class Family:
    """Instances, one for every choice of parameters, on which ``policy`` is bad (made by the decorator `family`).

    Parameters
    ----------
    name, summary : how it is called, and what its members are, in one line.
    policy, objective : the specification of the policy that loses, and in what.
    make : the member of some parameters, keywords with defaults that are numbers. It states its optimum; where that is not
        known it is a `Challenge`. The first parameter is the size, which the others do not depend on.
    ratio : value of ``policy`` / optimum of a member (of a gain: optimum / value), exact, of the same parameters; None where
        no formula is known.
    limit : what the ratio is or tends to, in words.
    sizes : some values of the first parameter on which it is worth looking at, all cheap.
    """

    name: str
    summary: str
    policy: str
    objective: str
    make: Callable[..., Instance | Challenge]
    ratio: Callable[..., Fraction] | None = None
    limit: str = ""
    sizes: tuple[int, ...] = (2, 3, 4, 8, 16)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters with their defaults, in order."""
        return parameters_of(self.make)

    @property
    def size(self) -> str:
        """The name of the first parameter."""
        return next(iter(self.parameters))

    def __call__(self, *args: Any, **parameters: Any) -> Instance:
        """The instance of these parameters. An optimum that it states is a formula, proved in the module of the theorem."""
        found = self.make(*args, **parameters)
        return found.instance if isinstance(found, Challenge) else proved_here(found)

    def member(self, **parameters: Any) -> Member:
        """The member of these parameters, the others at their defaults."""
        written = ",".join(f"{key}={value}" for key, value in parameters.items())
        return Member(self, {**self.parameters, **parameters}, f"{self.name}:{written}" if written else self.name)

    def of_size(self, size: int) -> Member:
        """The member of that size."""
        return self.member(**{self.size: size})


@dataclass(frozen=True)
class Member:
    """A family with values for all of its parameters, and how it is written."""

    family: Family
    parameters: Mapping[str, Any]
    text: str

    @property
    def instance(self) -> Instance:
        """Made anew; `InputError` for parameters that are invalid."""
        return self.family(**self.parameters)

    @property
    def ratio(self) -> Fraction | None:
        """Value / optimum, of a gain optimum / value, exact, where there is a formula."""
        return None if self.family.ratio is None else self.family.ratio(**self.parameters)

    @property
    def reference(self) -> Fraction | None:
        """What some schedule reaches in the objective of the family, where the optimum is not known."""
        found = self.family.make(**self.parameters)
        return found.reference if isinstance(found, Challenge) else None


FAMILIES: Registry[Family] = Registry("family", package="optsched.guarantees")


def family(summary: str, **facts: Any) -> Callable[[Callable[..., Instance | Challenge]], Family]:
    """Decorator that files a maker of instances under its own name, with ``-`` for ``_``, as a `Family`."""

    def add(make: Callable[..., Instance | Challenge]) -> Family:
        found = Family(make.__name__.replace("_", "-"), summary, make=make, **facts)
        return FAMILIES.register(found.name)(found)

    return add


def family_member(text: str) -> Member:
    """The member written ``NAME[:key=value,...]``.

    Raises `InputError` with near matches for an unknown family or parameter, and for a value of the wrong type.
    """
    _, values = parsed(lambda name: FAMILIES.get(name).make, "family", text)
    return FAMILIES.get(text.partition(":")[0].strip()).member(**values)


def family_instance(text: str) -> Instance:
    """The instance of the member written ``NAME[:key=value,...]``; errors as of `family_member`, and of its maker."""
    return family_member(text).instance
