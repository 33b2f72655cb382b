"""`ScheduleClass`: a class of schedules as an object, and the registry of all classes.

A class says what its schedules may do, which smaller classes it contains, and which instances have schedules of it. What
other packages need of it (a run type, the referee's rules, bounds, exact methods, ...) its folder registers there
(`optsched.registry.PartsByClass`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.registry import Registry

if TYPE_CHECKING:  # it comes with numba, which what only reads names does without
    from optsched.problem.schedule import Schedule

SHARING = "sharing"  # field of a schedule file whose jobs share GPUs
LAST = 100  # place of a class that states none
PREEMPTIVE, NONPREEMPTIVE = "gang", "gang-nonpreemptive"  # of schedules that state nothing


def _always(_: Instance) -> bool:
    return True


def _no_format(path: Path, instance: Instance) -> Schedule | None:
    return None


def _usual_policies(_: Instance) -> tuple[str, ...]:
    return ("fifo", "sjf", "srtf")


@dataclass(frozen=True, kw_only=True, eq=False)
class ScheduleClass:
    """A class of schedules.

    Attributes
    ----------
    name
        Lower case, as in files and on the command line.
    optimum
        The best schedule of the class, in words.
    place
        Position in lists of classes.
    contains
        Names of the smaller classes whose schedules all belong to it.
    inside
        Names of larger classes, which need not know of it: their bounds are valid for it, too.
    has
        Tells if an instance has schedules of the class.
    suits
        Tells if policies that make schedules of the class serve all jobs of an instance.
    lacking
        What an instance without them lacks, in words.
    only
        An instance that has schedules of the class has none of other classes.
    usual
        The class is meant on an instance that has it where no class is named.
    bounded_as
        Name of the class whose certificates bound it; empty: its own.
    preemptive
        A job may be stopped and resumed.
    copies
        A job may run in several copies at once, whose work adds up.
    widths
        A job may have another number of GPUs than its gang.
    alone
        A GPU serves one job at a time.
    whole
        A job is a whole, which runs at a rate; False: the engine simulates its parts, tasks or tokens, one by one.
    stated
        Field of a schedule file that is true where its schedule belongs to the class; empty: none.
    harmless
        A schedule may state the class on an instance that has no such schedules: its rules are then those of gangs.
    means
        The means (`optsched.simulation.policy.Use`) whose policies make schedules of the class; empty: none.
    method
        The method by which a policy of such schedules decides, which may be that of a plain object; empty: ``decide`` or
        ``order``.
    read
        (path, instance) to the schedule in a file of a format that only this class has; None where it is not one.
    verified
        The stand-alone verifier proves bounds for the class that rest on modes of jobs (`optsched.bounds.modes`).
    policies
        The policies that are compared on an instance where none is named.
    """

    name: str
    optimum: str
    place: int = LAST
    contains: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    has: Callable[[Instance], bool] = _always
    suits: Callable[[Instance], bool] = _always
    lacking: str = ""
    only: bool = False
    usual: bool = False
    bounded_as: str = ""
    preemptive: bool = True
    copies: bool = False
    widths: bool = False
    alone: bool = True
    whole: bool = True
    stated: str = ""
    harmless: bool = False
    means: str = ""
    method: str = ""
    read: Callable[[Path, Instance], Schedule | None] = _no_format
    verified: bool = False
    policies: Callable[[Instance], tuple[str, ...]] = _usual_policies

    @property
    def within(self) -> tuple[str, ...]:
        """Names of the classes whose schedules all belong to it, its own name first."""
        smaller = (made.name for made in every_class() if self.name in made.inside)
        return tuple(dict.fromkeys((self.name, *self.contains, *smaller)))

    def bounded_by(self, classes: Collection[str]) -> str | None:
        """Return the class as which a bound serves it: itself, or a larger one; None where the bound is not valid for it.

        Parameters
        ----------
        classes
            Names of the classes for which the bound is valid.
        """
        return next((name for name in (self.name, *self.inside) if name in classes), None)

    @property
    def flag(self) -> str:
        """Field of a file of its gangs that is true: ``stated``, or ``sharing`` where GPUs are shared."""
        return self.stated if self.alone else SHARING

    @property
    def keeps_gangs(self) -> bool:
        """True if a job, in each of its copies, holds its own gang alone on its GPUs."""
        return self.alone and self.whole and not self.widths

    @property
    def rigid(self) -> bool:
        """True if a job has one copy, which holds its own gang alone on its GPUs."""
        return self.keeps_gangs and not self.copies

    @property
    def certified(self) -> str:
        """Name of the class whose certificates bound it."""
        return self.bounded_as or self.name


CLASSES: Registry[ScheduleClass] = Registry("class of schedules", package="optsched.classes")
add_class = CLASSES.maker(ScheduleClass, lambda made: made.name)


_in_order: dict[tuple[int, ...], tuple[ScheduleClass, ...]] = {}  # by the objects that are registered


def every_class() -> tuple[ScheduleClass, ...]:
    """Return all classes, by their place and name."""
    classes = CLASSES.values()
    key = tuple(map(id, classes))
    if key not in _in_order:
        _in_order.clear()
        _in_order[key] = tuple(sorted(classes, key=lambda made: (made.place, made.name)))
    return _in_order[key]


def class_names() -> tuple[str, ...]:
    """Return the names of all classes."""
    return tuple(made.name for made in every_class())


def names_where(**facts: object) -> tuple[str, ...]:
    """Return the names of the classes for which facts hold.

    Parameters
    ----------
    **facts
        Attributes of `ScheduleClass`, and the values that they must have.
    """
    return tuple(
        made.name for made in every_class() if all(getattr(made, name) == value for name, value in facts.items())
    )


def classes_of(instance: Instance) -> tuple[str, ...]:
    """Return the names of the classes of which an instance has schedules; the first is meant where none is named.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return tuple(made.name for made in offered(instance))


def offered(instance: Instance) -> list[ScheduleClass]:
    """Return the classes of which an instance has schedules; the first is meant where none is named.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    found = [made for made in every_class() if made.has(instance)]
    found = [made for made in found if made.only] or found
    return sorted(found, key=lambda made: not made.usual)


def usual_class(instance: Instance) -> ScheduleClass:
    """Return the class that is meant where none is named.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return offered(instance)[0]


def require_whole_jobs(instance: Instance, what: str) -> None:
    """Check that the jobs of an instance run as wholes, at a rate.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    what
        The method that needs such jobs.

    Raises
    ------
    InputError
        The engine simulates parts of the jobs: their tasks, or their tokens.
    """
    meant = usual_class(instance)
    if not meant.whole:
        raise InputError(
            f"{what} schedules whole jobs, these have {meant.lacking} and share GPUs",
            field=meant.lacking,
            legal="jobs with durations, stage profiles or throughputs; where they are tasks also --job-level",
        )


def class_stated(instance: Instance, stated: Collection[str], preemptive: bool = True) -> ScheduleClass:
    """Return the class of a schedule by what it states; without a statement it has rigid gangs alone on their GPUs.

    Parameters
    ----------
    instance
        Jobs and a cluster. A statement counts only if the instance has schedules of that class, or does no harm.
    stated
        Fields of the schedule file that are true (`ScheduleClass.stated`).
    preemptive
        May the schedule stop and resume jobs?
    """
    for made in sorted(every_class(), key=lambda made: (not made.only, not made.usual, -made.place)):
        if made.only and (made.has(instance) or made.stated in stated):
            return made
        if made.stated and made.stated in stated and (made.harmless or made.has(instance)):
            return made
    return CLASSES.get(PREEMPTIVE if preemptive else NONPREEMPTIVE)


def class_of_means(means: Collection[str]) -> ScheduleClass:
    """Return the class of the schedules that a policy makes which uses some means; without any rigid gangs.

    Parameters
    ----------
    means
        What the policy declares in its ``uses``.
    """
    return next((made for made in every_class() if made.means in means), None) or CLASSES.get(PREEMPTIVE)
