"""The instance library: what is known of every instance, the best schedules and certificates, and what a submission adds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from optsched.bounds.certificate import Certificate, rounded_down
from optsched.check.certain_times import certain_value
from optsched.check.context import Violation
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.check.schedule_document import PARQUET_MAGIC
from optsched.classes import CLASSES, ScheduleClass, every_class
from optsched.errors import InputError, OptschedError, check_legal
from optsched.io.index import LibraryEntry, entries, entry, extracted, index
from optsched.io.sources import load
from optsched.problem.documents import parse_json, short_number
from optsched.problem.files import read_bytes
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.parquet import parquet_metadata
from optsched.problem.schedule import Schedule
from optsched.problem.table import Table
from optsched.registry import known_name

WITHOUT_PREEMPTION = "-nonpreemptive"
REFUSED = ("forking",)  # classes of schedules that no file of the library is of
ROUNDING, ROUNDED = Fraction(1, 10**12), " up to rounding"  # relative; and what is said of a proof that rests on it
LEGAL = "a schedule (.json, .parquet) or a certificate (.json) of an instance of the library"


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
    """The instance library as a polars frame: a row an instance, the columns of `LibraryEntry` and ``gap``.

    Parameters
    ----------
    suite : only that one (`optsched library list`); None: all.
    solved : True: only instances whose optimum is proved; False: only open ones, with an interval; None: both.

    `load` takes a name, and `best_known` gives the best schedule and the certificate that the library has.

    Raises `InputError` for a suite that there is none of, with near matches.

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
    """What is known of an instance: the best schedule and certificate, and what searches proved.

    Fields
    ------
    entry, instance : the row of the index, and the instance.
    schedule, value : the best one, exactly what it is worth (a fraction), and ``found_by`` whom; None without one.
    certificate : of the best bound that is proved from the instance alone.
    bound : the best proven bound, exactly, and ``bound_by`` whom: the certificate, or a search where that is more.
    proved_by : who proved that the value is the optimum; empty where nobody did.
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
        """Is a value of a schedule better than another one? (Of a bound: weaker.)"""
        return other is None or (one > other if self.goal.gain else one < other)

    def offer(self, schedule: Schedule | None, who: str) -> None:
        """A schedule, to keep if it is certainly better, and the referee accepts it."""
        preemptive = may_preempt(self.entry.schedule_class)
        if schedule is not None and not check_schedule(self.instance, schedule, preemptive=preemptive):
            value = self.worth(schedule)
            if self.value is None or (self.better(value, self.value) and self.certainly(schedule, self.value)):
                self.schedule, self.value, self.found_by = schedule, value, who

    def worth(self, schedule: Schedule) -> Fraction:
        """What an accepted schedule adds up to; where the data are integers and that is none, what it certainly reaches."""
        value = schedule_value(self.instance, schedule, self.goal.name)
        if self.instance.integral and value.denominator != 1:
            certain = self.certain(schedule)
            return certain if certain is not None and certain.denominator == 1 else value
        return value

    def certain(self, schedule: Schedule) -> Fraction | None:
        """What it certainly reaches, whatever the referee forgave it (`optsched.check.certain_times`)."""
        preemptive = may_preempt(self.entry.schedule_class)
        return certain_value(self.instance, schedule, self.goal.name, preemptive=preemptive)

    def certainly(self, schedule: Schedule, than: Fraction) -> bool:
        """Is it better than a value, and not by what the referee forgives?"""
        certain = self.certain(schedule)
        return certain is not None and self.better(certain, than)

    def raise_bound(self, value: Fraction | None, who: str) -> None:
        """A bound, to keep if it is stronger."""
        if value is not None and (self.bound is None or self.better(self.bound, value)):
            self.bound, self.bound_by = value, who

    def offer_certificate(self, certificate: Certificate | None) -> None:
        """A certificate, to keep if it is stronger; of equal ones the first. `CertificateError` where it does not hold."""
        if certificate is None or certificate.schedule_class not in self.classes:
            return
        certificate.verify(self.instance)
        if self.certificate is None or self.better(self.certificate.value, certificate.value):
            self.certificate = certificate
        self.raise_bound(certificate.value, certificate.kind)

    def settled(self, optima: Mapping[str, Fraction | None]) -> BestKnown:
        """This, with who proved the optimum; raises `OptschedError` where value, bound and ``optima`` do not agree."""
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
        """The better of both; searches that proved this optimum go before those that proved the other's."""
        optima = self.searched or other.searched
        self.offer(other.schedule, other.found_by)
        self.offer_certificate(other.certificate)
        self.raise_bound(other.bound, other.bound_by)
        return self.settled(optima)

    @property
    def searched(self) -> dict[str, Fraction | None]:
        """Who proved the optimum by search, and which."""
        kind = None if self.certificate is None else self.certificate.kind
        return {name: self.value for name in self.proved_by if name != kind}

    def row(self, seconds: float) -> LibraryEntry:
        """The entry with all that is known."""

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
        """Write schedule and certificate, as they are in the archives; the files."""
        for old in folder.glob(f"{self.entry.name}.*"):
            old.unlink()
        if self.schedule is not None:
            stated = {"objective": self.goal.name, "preemptive": may_preempt(self.entry.schedule_class)}
            self.schedule.save_whole(str(folder / f"{self.entry.name}.schedule"), **stated)
        if self.certificate is not None:
            self.certificate.save(folder / f"{self.entry.name}.certificate.json")
        return list(folder.glob(f"{self.entry.name}.*"))


def near(one: Fraction | None, other: Fraction | None) -> bool:
    """Are two values the same but for the rounding of times to floats?"""
    return one == other or (one is not None and other is not None and abs(one - other) <= ROUNDING * abs(other))


def best_known(name: str) -> BestKnown:
    """The best schedule and certificate that the library has of an instance, refereed and verified anew.

    Raises `InputError` for an unknown name, `OptschedError` where what the library has does not hold.

    >>> import optsched as osd
    >>> best = osd.best_known("rigid-06-1")
    >>> best.value, best.bound, best.proved_by[:2]
    (Fraction(156, 1), Fraction(156, 1), ('rigid-time-indexed', 'cp-sat'))
    """
    return in_library(entry(name), load(name))


def read_proof(each: LibraryEntry, instance: Instance, files: Iterable[Path]) -> BestKnown:
    """What the files and the entry say, once the referee and the verifier accept the files; `OptschedError` otherwise."""
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
    """What the library has of an instance, refereed and verified anew."""
    with tempfile.TemporaryDirectory() as folder:
        return read_proof(each, instance, extracted(each, Path(folder)))


def read_schedule(path: Path, instance: Instance) -> Schedule:
    """A schedule file, or a file of tasks."""
    for made in every_class():
        schedule = made.read(path, instance)
        if schedule is not None:
            return schedule
    return Schedule.load(path, instance)


@dataclass(frozen=True)
class Submission:
    """A file held against the library.

    ``kind``: "schedule" or "certificate". ``violations``: why it does not hold, if it does not. ``value``: what it is worth,
    exactly; ``known``: what the library has of that kind (of bounds, what is certified). ``improves``: it is better than
    that, and not by what the referee forgives. ``closes``: it makes value and bound meet. ``verdict``: all of that in a
    sentence.
    """

    entry: LibraryEntry
    kind: str
    violations: tuple[Violation, ...]
    value: Fraction | None = None
    known: Fraction | None = None
    improves: bool = False
    closes: bool = False
    verdict: str = ""


def check_submission(path: str | os.PathLike[str]) -> Submission:
    """Does a schedule or a certificate improve what the library has of its instance? Refereed and proved exactly.

    The instance is the one of the library whose digest the file states. A schedule must be of the class of schedules of
    the entry, a certificate must bound it: one for a larger class does. Raises `InputError` when the file cannot be read as
    either, or is of no instance of the library.
    """
    content = read_bytes(path)
    if content.startswith(PARQUET_MAGIC):
        texts = [text for name, text in parquet_metadata(content, path, LEGAL).items() if name.startswith("optsched")]
        content = texts[0].encode() if texts else b"null"
    head = parse_json(content, path, LEGAL)
    if not isinstance(head, dict) or not isinstance(head.get("instance"), str):
        raise InputError("states no instance", file=path, field="instance", legal=LEGAL)
    found = next((each for each in entries() if each.digest == head["instance"]), None)
    if found is None:
        why = "the library has no such instance"
        raise InputError(why, file=path, field="instance", value=head["instance"], legal=LEGAL)
    known, preemptive = best_known(found.name), may_preempt(found.schedule_class)
    kind = "certificate" if str(head.get("format")).startswith("optsched-certificate/") else "schedule"
    wrong = _not_for(found, head, kind)
    violations = wrong or check_file(path, known.instance, preemptive=preemptive, refused=REFUSED).violations
    if violations:
        return Submission(found, kind, tuple(violations))
    if kind == "certificate":
        return _judged_certificate(known, Certificate.load(path).value)
    schedule = read_schedule(Path(path), known.instance)
    return _judged_schedule(known, known.worth(schedule), known.certain(schedule))


def _not_for(known: LibraryEntry, head: dict[str, Any], kind: str) -> list[Violation]:
    """What the referee cannot know: for which class of schedules, and which objective, the library has this instance."""
    wanted, stated = known.schedule_class, head.get("class")
    if kind == "certificate":
        if head.get("objective") != known.objective:
            return [Violation("objective", f"it bounds {head.get('objective')} (expected: {known.objective})")]
        fits = stated in classes_for(wanted)
        return [] if fits else [Violation("class", f"it is for {stated}, which does not contain {wanted}")]
    asked = class_for(wanted)
    if not asked.whole:
        fits = "tasks" in str(head.get("format"))
        why = "no file of tasks, which alone say how long a job takes (run -o writes tasks-*.parquet beside schedules)"
        return [] if fits else [Violation("class", why)]
    others = [made.stated for made in every_class() if made.stated and made is not asked]
    flags = [flag for flag in others if head.get(flag) is True]
    return [Violation("class", f"a {flags[0]} schedule, and no {wanted} one")] if flags else []


def _judged_schedule(known: BestKnown, value: Fraction, certain: Fraction | None) -> Submission:
    """What a schedule that holds is worth beside the best known: it improves or refutes only what it certainly does."""
    best, bound = known.value, known.bound
    improves = best is None or (certain is not None and known.better(certain, best))
    beyond = improves and certain is not None and bound is not None and known.better(certain, bound)
    exact = known.instance.integral and certain is not None and certain.denominator == 1
    closes = improves and certain is not None and certain == bound
    how = "improves" if improves else "equals" if value == best else "does not reach"
    if best is not None and not improves and known.better(value, best):
        how = "is within rounding of, and does not improve,"
    of = _of(known, "value", best)
    if beyond and (exact or not near(certain, bound)):  # certificates were held against it: it was a search that erred
        of += f", and REFUTES what {known.entry.bound_by} is said to have proved: {shown(bound or value)}"
    return _submission(known, "schedule", value, best, (improves, closes), f"{how} {of}")


def _judged_certificate(known: BestKnown, value: Fraction) -> Submission:
    """What a certificate that holds is worth beside the best certified one."""
    best = known.certificate.value if known.certificate else None
    improves = best is None or known.better(best, value)
    closes = improves and value == known.value
    how = "improves" if improves else "equals" if value == best else "does not reach"
    of = _of(known, "certified bound", best)
    if known.schedule is not None and known.value is not None and known.certainly(known.schedule, value):
        of += f", and contradicts the best schedule known, of {shown(known.value)}: one of the two proofs is wrong"
    return _submission(known, "certificate", value, best, (improves, closes), f"{how} {of}")


def _of(known: BestKnown, what: str, best: Fraction | None) -> str:
    return f"the best {what} known of {known.entry.name}, {'none' if best is None else shown(best)}"


def _submission(
    known: BestKnown, kind: str, value: Fraction, best: Fraction | None, found: tuple[bool, bool], says: str
) -> Submission:
    improves, closes = found
    says += ", and proves the optimum: value and bound are equal" if closes else ""
    verdict = f"the {kind} holds: {known.entry.objective} {shown(value)} {says}"
    return Submission(known.entry, kind, (), value, best, improves, closes, verdict)


def shown(value: Fraction) -> str:
    """A fraction as people read it: whole, or the nearest float."""
    return str(short_number(float(value)))
