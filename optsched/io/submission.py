"""The comparison of a file with the library, which says whether it holds and whether it is better than the best known."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from optsched.bounds.certificate import Certificate
from optsched.check.context import Violation
from optsched.check.referee import check_file
from optsched.check.schedule_document import PARQUET_MAGIC
from optsched.classes import every_class
from optsched.errors import InputError
from optsched.io.index import LibraryEntry, entries
from optsched.io.library import (
    REFUSED,
    BestKnown,
    best_known,
    class_for,
    classes_for,
    may_preempt,
    near,
    read_schedule,
    shown,
)
from optsched.problem.atomic_files import read_bytes
from optsched.problem.documents import parse_json
from optsched.problem.parquet import parquet_metadata

LEGAL = "a schedule (.json, .parquet) or a certificate (.json) of an instance of the library"


@dataclass(frozen=True)
class Submission:
    """Result of the comparison of a file with the library.

    ``kind``: "schedule" or "certificate". ``violations``: the reasons why it does not hold, if any. ``value``: its
    exact value; ``known``: the library's value of that kind (for bounds the certified one). ``improves``: it is better
    than that, by more than the referee's tolerance. ``closes``: it makes value and bound equal. ``verdict``: all of
    that in a sentence.
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
    """Check a schedule or a certificate, and compare it with the library; refereed and proved exactly.

    The instance is the one of the library whose digest is in the file. A schedule must be of the class of schedules of
    the entry. A certificate must bound that class; one for a larger class does.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is neither a schedule nor a certificate, or belongs to no instance of the library.
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
    """Return violations that the referee cannot find: a wrong class of schedules or objective for the library's instance."""
    wanted, stated = known.schedule_class, head.get("class")
    if kind == "certificate":
        if head.get("objective") != known.objective:
            return [Violation("objective", f"it bounds {head.get('objective')} (expected: {known.objective})")]
        fits = stated in classes_for(wanted)
        return [] if fits else [Violation("class", f"it is for {stated}, which does not contain {wanted}")]
    asked = class_for(wanted)
    if not asked.whole:
        fits = "tasks" in str(head.get("format"))
        why = "it is no file of tasks, which has the seconds of each job (run -o writes tasks-*.parquet next to schedules)"
        return [] if fits else [Violation("class", why)]
    others = [made.stated for made in every_class() if made.stated and made is not asked]
    flags = [flag for flag in others if head.get(flag) is True]
    return [Violation("class", f"a {flags[0]} schedule, and no {wanted} one")] if flags else []


def _judged_schedule(known: BestKnown, value: Fraction, certain: Fraction | None) -> Submission:
    """Compare a valid schedule with the best known; it improves or refutes only what it certainly does."""
    best, bound = known.value, known.bound
    improves = best is None or (certain is not None and known.better(certain, best))
    beyond = improves and certain is not None and bound is not None and known.better(certain, bound)
    exact = known.instance.integral and certain is not None and certain.denominator == 1
    closes = improves and certain is not None and certain == bound
    how = "improves" if improves else "equals" if value == best else "does not reach"
    if best is not None and not improves and known.better(value, best):
        how = "is within rounding of, and does not improve,"
    of = _of(known, "value", best)
    # the certificates were compared before, so the search must be wrong
    if beyond and (exact or not near(certain, bound)):
        of += f", and REFUTES what {known.entry.bound_by} is said to have proved: {shown(bound or value)}"
    return _submission(known, "schedule", value, best, (improves, closes), f"{how} {of}")


def _judged_certificate(known: BestKnown, value: Fraction) -> Submission:
    """Compare a valid certificate with the best certified one."""
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
