"""Instance library: the best known schedule and certificate of every instance."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import polars as pl

from optsched.bounds.certificate import Certificate, rounded_down
from optsched.check.certain_times import certain_value
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.classes import CLASSES, ScheduleClass, every_class
from optsched.errors import OptschedError, check_legal
from optsched.io.index import LibraryEntry, entry, extracted, index
from optsched.io.sources import load
from optsched.problem.documents import short_number
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.problem.table import Table
from optsched.registry import known_name

WITHOUT_PREEMPTION = "-nonpreemptive"
REFUSED = ("forking",)  # classes of which the library has no schedules
ROUNDING, ROUNDED = Fraction(1, 10**12), " up to rounding"  # relative; and the words for a proof that depends on it


def class_for(name: str) -> ScheduleClass:
    """Return the class of schedules of the library's class; one that ends with ``-nonpreemptive`` may be a part of one.

    Parameters
    ----------
    name
        Name of the class in the index.
    """
    return CLASSES.get(name if name in CLASSES else name.removesuffix(WITHOUT_PREEMPTION))


def may_preempt(name: str) -> bool:
    """Tell if the schedules of the library's class may be preempted.

    Parameters
    ----------
    name
        Name of the class in the index.
    """
    return not name.endswith(WITHOUT_PREEMPTION)


def classes_for(name: str) -> tuple[str, ...]:
    """Return the classes whose bounds are valid for the library's class: itself and those that contain it.

    Parameters
    ----------
    name
        Name of the class in the index.
    """
    kind = class_for(name)
    return tuple(dict.fromkeys((name, kind.name, *(made.name for made in every_class() if kind.name in made.contains))))


def library(suite: str | None = None, solved: bool | None = None) -> Table:
    """Return the instance library as a polars frame: a row an instance, the columns of `LibraryEntry` and ``gap``.

    `load` takes a name of the table, and `best_known` gives the best schedule and the certificate of the library.

    Parameters
    ----------
    suite
        Only this suite (`optsched library list`); None: all.
    solved
        True: only instances whose optimum is proved; False: only open ones, with an interval; None: both.

    Raises
    ------
    InputError
        If there is no such suite; the message has near matches.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.library("rigid", solved=True).select("name", "jobs", "value").head(2).rows()
    [('rigid-06-1', 6, 156.0), ('rigid-06-2', 6, 71.0)]
    """
    check_legal(suite is None or isinstance(suite, str), "suite", suite, "a name")
    check_legal(solved is None or isinstance(solved, bool), "solved", solved, "True, False or None")
    frame = index()
    suites = frame["suite"].unique(maintain_order=True).to_list()
    if suite is not None:
        message = "there is no suite of this name in the library"
        suite = known_name(suite, suites, "suite", message, field="suite", value=suite)
        frame = frame.filter(suite=suite)
    chosen = frame.filter(solved=solved) if solved is not None else frame
    value, bound = pl.col("value"), pl.col("bound")
    gap = pl.when(value == bound).then(0.0).when(value != 0).then((value - bound).abs() / value.abs())
    return Table(chosen.with_columns(gap=gap))


class BestKnown:
    """Best known schedule and certificate of an instance, and the results of searches.

    Fields
    ------
    entry, instance : the row of the index, and the instance.
    schedule, value : the best schedule and its exact value (a fraction), and ``found_by``, the method; None if unknown.
    certificate : the certificate of the best bound that is verified from the instance alone.
    bound : the best proven bound, exactly, and ``bound_by``: the certificate, or a search if its bound is better.
    proved_by : methods that proved that the value is the optimum; empty if there are none.
    """

    def __init__(self, entry: LibraryEntry, instance: Instance) -> None:
        self.entry, self.instance = entry, instance
        self.goal = get_objective(str(instance.objective))
        self.classes = classes_for(entry.schedule_class)
        self.schedule: Schedule | None = None
        self.certificate: Certificate | None = None
        self.value: Fraction | None = None
        self.bound: Fraction | None = None
        self.found_by = self.bound_by = ""
        self.proved_by: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"BestKnown({self.entry.name}: {self.entry.known})"

    def better(self, one: Fraction, other: Fraction | None) -> bool:
        """Return whether a value of a schedule is better than another one (for bounds: weaker).

        Parameters
        ----------
        one
            The value.
        other
            The other value; None: there is none.
        """
        return other is None or (one > other if self.goal.gain else one < other)

    def offer(self, schedule: Schedule | None, who: str) -> None:
        """Keep a schedule if it is certainly better, and the referee accepts it.

        Parameters
        ----------
        schedule
            The schedule; None: there is none.
        who
            Method that found it.
        """
        preemptive = may_preempt(self.entry.schedule_class)
        if schedule is not None and not check_schedule(self.instance, schedule, preemptive=preemptive):
            value = self.worth(schedule)
            if self.value is None or (self.better(value, self.value) and self.certainly(schedule, self.value)):
                self.schedule, self.value, self.found_by = schedule, value, who

    def worth(self, schedule: Schedule) -> Fraction:
        """Return the value of an accepted schedule.

        If the data are integers and the value is not, it is the integer that the schedule certainly reaches.

        Parameters
        ----------
        schedule
            The schedule.
        """
        value = schedule_value(self.instance, schedule, self.goal.name)
        if self.instance.integral and value.denominator != 1:
            certain = self.certain(schedule)
            return certain if certain is not None and certain.denominator == 1 else value
        return value

    def certain(self, schedule: Schedule) -> Fraction | None:
        """Return the value that a schedule certainly reaches (`optsched.check.certain_times`).

        It is the value without the referee's tolerance.

        Parameters
        ----------
        schedule
            The schedule.
        """
        preemptive = may_preempt(self.entry.schedule_class)
        return certain_value(self.instance, schedule, self.goal.name, preemptive=preemptive)

    def certainly(self, schedule: Schedule, than: Fraction) -> bool:
        """Return whether a schedule is better than a value by more than the referee's tolerance.

        Parameters
        ----------
        schedule
            The schedule.
        than
            The value.
        """
        certain = self.certain(schedule)
        return certain is not None and self.better(certain, than)

    def raise_bound(self, value: Fraction | None, who: str) -> None:
        """Keep a bound if it is stronger.

        Parameters
        ----------
        value
            The bound; None: there is none.
        who
            Method that proved it.
        """
        if value is not None and (self.bound is None or self.better(self.bound, value)):
            self.bound, self.bound_by = value, who

    def offer_certificate(self, certificate: Certificate | None) -> None:
        """Keep a certificate if it is stronger; of equal ones the first.

        Parameters
        ----------
        certificate
            The certificate; None: there is none.

        Raises
        ------
        CertificateError
            If the certificate does not hold.
        """
        if certificate is None or certificate.schedule_class not in self.classes:
            return
        certificate.verify(self.instance)
        if self.certificate is None or self.better(self.certificate.value, certificate.value):
            self.certificate = certificate
        self.raise_bound(certificate.value, certificate.kind)

    def settled(self, optima: Mapping[str, Fraction | None]) -> BestKnown:
        """Return this object with the methods that proved the optimum.

        Parameters
        ----------
        optima
            Optimum that each method proved.

        Raises
        ------
        OptschedError
            If value, bound and ``optima`` do not agree.
        """
        certified = self.certificate is not None and self.certificate.value == self.value
        self.proved_by = (*optima, self.certificate.kind) if certified and self.certificate else tuple(optima)
        crossed = self.value is not None and self.bound is not None and self.better(self.value, self.bound)
        if crossed and near(self.value, self.bound):
            # completion times are floats: they may add up to less than the exact bound that they meet
            self.proved_by = tuple(dict.fromkeys((*optima, self.bound_by + ROUNDED)))
            self.bound, crossed = self.value, False
        if crossed or not all(near(each, self.value) for each in optima.values()):
            said = f"value {self.value} by {self.found_by}, bound {self.bound} by {self.bound_by}, optima {optima}"
            raise OptschedError(f"{self.entry.name}: the methods disagree: {said}")
        return self

    def joined(self, other: BestKnown) -> BestKnown:
        """Return the better of both; searches that proved this optimum precede those that proved the other's.

        Parameters
        ----------
        other
            The other one.
        """
        optima = self.searched or other.searched
        self.offer(other.schedule, other.found_by)
        self.offer_certificate(other.certificate)
        self.raise_bound(other.bound, other.bound_by)
        return self.settled(optima)

    @property
    def searched(self) -> dict[str, Fraction | None]:
        """Optimum of each search that proved it."""
        kind = None if self.certificate is None else self.certificate.kind
        return {name: self.value for name in self.proved_by if name != kind}

    def row(self, seconds: float) -> LibraryEntry:
        """Return the entry with all that is known.

        Parameters
        ----------
        seconds
            CPU time of the proof.
        """

        def number(value: Fraction | None, up: bool) -> float | None:
            return None if value is None else short_number(-rounded_down(-value) if up else rounded_down(value))

        value, certificate = number(self.value, not self.goal.gain), self.certificate
        return replace(
            self.entry,
            jobs=self.instance.n,
            gpus=self.instance.cluster.gpus,
            objective=self.goal.name,
            digest=self.instance.digest,
            value=value,
            bound=value if self.proved_by else number(self.bound, self.goal.gain),
            solved=bool(self.proved_by),
            proved_by=self.proved_by,
            found_by=self.found_by,
            bound_by=self.bound_by,
            certified=None if certificate is None else number(certificate.value, self.goal.gain),
            certificate="" if certificate is None else certificate.kind,
            seconds=round(seconds, 2),
        )

    def save(self, folder: Path) -> list[Path]:
        """Write schedule and certificate as they are in the archives, and return the files.

        Parameters
        ----------
        folder
            Folder of the files.
        """
        for old in folder.glob(f"{self.entry.name}.*"):
            old.unlink()
        if self.schedule is not None:
            stated = {"objective": self.goal.name, "preemptive": may_preempt(self.entry.schedule_class)}
            self.schedule.save_whole(str(folder / f"{self.entry.name}.schedule"), **stated)
        if self.certificate is not None:
            self.certificate.save(folder / f"{self.entry.name}.certificate.json")
        return list(folder.glob(f"{self.entry.name}.*"))


def near(one: Fraction | None, other: Fraction | None) -> bool:
    """Return whether two values are equal up to the rounding of times to floats.

    Parameters
    ----------
    one
        A value; None: there is none.
    other
        Another value; None: there is none.
    """
    return one == other or (one is not None and other is not None and abs(one - other) <= ROUNDING * abs(other))


def best_known(name: str) -> BestKnown:
    """Return the best schedule and certificate of the library for an instance, checked and verified again.

    Parameters
    ----------
    name
        Name of the instance.

    Raises
    ------
    InputError
        If the name is unknown.
    OptschedError
        If the content of the library does not hold.

    Examples
    --------
    >>> import optsched as osd
    >>> best = osd.best_known("rigid-06-1")
    >>> best.value, best.bound, best.proved_by[:2]
    (Fraction(156, 1), Fraction(156, 1), ('rigid-time-indexed', 'cp-sat'))
    """
    return in_library(entry(name), load(name))


def read_proof(each: LibraryEntry, instance: Instance, files: Iterable[Path]) -> BestKnown:
    """Return the content of files and entry, after the referee and the verifier accept the files.

    Parameters
    ----------
    each
        Entry of the instance.
    instance
        Jobs and cluster.
    files
        Schedule and certificate.

    Raises
    ------
    OptschedError
        If a file does not hold.
    """
    found = BestKnown(each, instance)
    for path in files:
        verdict = check_file(path, instance, preemptive=may_preempt(each.schedule_class), refused=REFUSED)
        if not verdict.holds:
            raise OptschedError(f"{path.name}: {verdict.violations[0].rule}: {verdict.violations[0].message}")
        if verdict.kind == "certificate":
            found.offer_certificate(Certificate.load(path))
        else:
            found.offer(read_schedule(path, instance), each.found_by)
    searched = found.value if each.solved else None if each.bound is None else Fraction(each.bound)
    found.raise_bound(searched, each.bound_by)
    return found.settled({name: found.value for name in each.proved_by if name != each.certificate})


def in_library(each: LibraryEntry, instance: Instance) -> BestKnown:
    """Return the content of the library for an instance, checked and verified again.

    Parameters
    ----------
    each
        Entry of the instance.
    instance
        Jobs and cluster.
    """
    with tempfile.TemporaryDirectory() as folder:
        return read_proof(each, instance, extracted(each, Path(folder)))


def read_schedule(path: Path, instance: Instance) -> Schedule:
    """Return the schedule in a schedule file or a file of tasks.

    Parameters
    ----------
    path
        The file.
    instance
        Jobs and cluster.
    """
    for made in every_class():
        schedule = made.read(path, instance)
        if schedule is not None:
            return schedule
    return Schedule.load(path, instance)


def shown(value: Fraction) -> str:
    """Return a fraction as text for people: whole, or the nearest float.

    Parameters
    ----------
    value
        The fraction.
    """
    return str(short_number(float(value)))
