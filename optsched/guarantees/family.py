"""`Family`: instances on which a rule loses much, which can be made, run and compared with their formula.

Every family registers itself in the module of its theorem (or, if there is none, in a file of its own). A member is
written like a policy: ``blocked-long-job:m=4``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.guarantees.optimum import proved_here
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.registry import Registry, docstring_parts, parameters_of, parsed


@dataclass(frozen=True)
class Challenge:
    """An instance that is bad for a policy.

    Attributes
    ----------
    instance
        The instance.
    reference
        Value that some schedule of it reaches.
    better
        That schedule, if it is given.
    """

    instance: Instance
    reference: Fraction
    better: Schedule | None = None


@dataclass(frozen=True)
class Family:
    """Instances, one for every choice of parameters, on which a policy is bad; the decorator `family` makes one.

    Attributes
    ----------
    name
        Name of the family.
    summary
        Its members in one line.
    policy
        Specification of the policy that loses.
    objective
        Name of the objective in which it loses.
    make
        Function that returns the member of some parameters, keywords with defaults that are numbers. The member states
        its optimum; if that is not known it is a `Challenge`. The first parameter is the size; the others do not depend
        on it.
    ratio
        Function of the same parameters: value of ``policy`` / optimum of a member (for a gain optimum / value), exact;
        None if no formula is known.
    limit
        The ratio, or its limit, in words.
    sizes
        Values of the first parameter that are worth a look, all cheap.
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
    def about(self) -> str:
        """The description of the members: the docstring of ``make`` with its notes, without its other sections."""
        text, sections = docstring_parts(self.make)
        return "\n\n".join(part.strip() for part in (text, sections.get("Notes", "")) if part.strip())

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters with their defaults, in order."""
        return parameters_of(self.make)

    @property
    def size(self) -> str:
        """Name of the first parameter."""
        return next(iter(self.parameters))

    def __call__(self, *args: Any, **parameters: Any) -> Instance:
        """Return the instance of some parameters.

        An optimum that it states is a formula, proved in the module of the theorem.
        """
        found = self.make(*args, **parameters)
        return found.instance if isinstance(found, Challenge) else proved_here(found)

    def member(self, **parameters: Any) -> Member:
        """Return the member of some parameters, with the others at their defaults.

        Parameters
        ----------
        **parameters
            Values by name.
        """
        written = ",".join(f"{key}={value}" for key, value in parameters.items())
        return Member(self, {**self.parameters, **parameters}, f"{self.name}:{written}" if written else self.name)

    def of_size(self, size: int) -> Member:
        """Return the member of a size.

        Parameters
        ----------
        size
            Value of the first parameter.
        """
        return self.member(**{self.size: size})


@dataclass(frozen=True)
class Member:
    """A family with values for all of its parameters, and its written form."""

    family: Family
    parameters: Mapping[str, Any]
    text: str

    @property
    def instance(self) -> Instance:
        """The instance, newly made; `InputError` for parameters that are invalid."""
        return self.family(**self.parameters)

    @property
    def ratio(self) -> Fraction | None:
        """Value / optimum (for a gain optimum / value), exact; None if there is no formula."""
        return None if self.family.ratio is None else self.family.ratio(**self.parameters)

    @property
    def reference(self) -> Fraction | None:
        """Value that some schedule reaches in the objective of the family if the optimum is not known, else None."""
        found = self.family.make(**self.parameters)
        return found.reference if isinstance(found, Challenge) else None


FAMILIES: Registry[Family] = Registry("family", package="optsched.guarantees")


def family(summary: str, **facts: Any) -> Callable[[Callable[..., Instance | Challenge]], Family]:
    """Return a decorator that registers a maker of instances under its own name, with ``-`` for ``_``, as a `Family`.

    Parameters
    ----------
    summary
        The members in one line.
    **facts
        Further attributes of the `Family`.
    """

    def add(make: Callable[..., Instance | Challenge]) -> Family:
        found = Family(make.__name__.replace("_", "-"), summary, make=make, **facts)
        return FAMILIES.register(found.name)(found)

    return add


def family_member(text: str) -> Member:
    """Return the member written ``NAME[:key=value,...]``.

    Parameters
    ----------
    text
        The written form.

    Raises
    ------
    InputError
        The family or a parameter is unknown, or a value has the wrong type; the message has near matches.
    """
    _, values = parsed(lambda name: FAMILIES.get(name).make, "family", text)
    return FAMILIES.get(text.partition(":")[0].strip()).member(**values)


def family_instance(text: str) -> Instance:
    """Return the instance of the member written ``NAME[:key=value,...]``.

    Parameters
    ----------
    text
        The written form.

    Raises
    ------
    InputError
        As from `family_member`, or a parameter is invalid.
    """
    return family_member(text).instance
