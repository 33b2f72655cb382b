"""Properties of the schedules of batch schedulers, judged on a finished schedule and its instance alone.

A property is one function in a file of this package; it registers itself. The judge sees starts, ends and limits, but not
the scheduler, so that a schedule of any program can be judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from optsched.check.properties.executions import Executions
from optsched.errors import check_legal
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.registry import Registry


@dataclass(frozen=True)
class Breach:
    """A violation of a property: one place in a schedule where it does not hold.

    Attributes
    ----------
    text
        Violation in words, with its numbers.
    instant
        Time in seconds on the clock of the instance.
    jobs
        Ids of the jobs, the one to blame last.
    numbers
        Numbers of the violation by name; times in seconds on the clock of the instance.
    """

    text: str
    instant: float
    jobs: tuple[str, ...]
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Property:
    """A property of finished schedules.

    Attributes
    ----------
    name
        Name of the property.
    statement
        The property in one line.
    source
        Where it is defined.
    check
        Function from the executions to the violations, in order of time.
    exact
        Whether the property is defined only if every limit equals the run time.
    """

    name: str
    statement: str
    source: str
    check: Callable[[Executions], list[Breach]]
    exact: bool = False


PROPERTIES: Registry[Property] = Registry("property", package="optsched.check.properties")


def schedule_property(
    name: str, *, statement: str, source: str, exact: bool = False
) -> Callable[[Callable[[Executions], list[Breach]]], Callable[[Executions], list[Breach]]]:
    """Return a decorator that registers the check of a property.

    Parameters
    ----------
    name
        Name of the property.
    statement
        The property in one line.
    source
        Where it is defined.
    exact
        Whether the property is defined only if every limit equals the run time.
    """

    def add(check: Callable[[Executions], list[Breach]]) -> Callable[[Executions], list[Breach]]:
        PROPERTIES.register(name)(Property(name, statement, source, check, exact))
        return check

    return add


def broken_properties(instance: Instance, schedule: Schedule, name: str) -> list[Breach]:
    """Return the violations of a property by a finished schedule, in order of time.

    Times that differ by 8 units in the last place or less are one instant. A scheduler that adds times whose sums are
    rounded (0.1 s) may decide such a tie in another way, which can look like a violation; whole seconds have no such ties.

    Parameters
    ----------
    instance
        Jobs and their limits (``walltime``; without one, a job's limit is its run time), and the cluster.
    schedule
        The schedule, in which no job is stopped.
    name
        Name of the property.

    Raises
    ------
    InputError
        There is no such property, a job runs in several pieces, jobs are restricted to some nodes, or the property needs
        exact limits and the instance has others.
    """
    judged, executions = PROPERTIES.get(name), Executions.of(instance, schedule)
    if judged.exact:
        check_legal(executions.exact, f"walltime ({name})", instance.name, "limits that equal the run times")
    return judged.check(executions)
