"""The document of a schedule together with its instance, and the violations found in it: the input of all rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.check.schedule_document import ScheduleDocument
from optsched.check.tolerance import number
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import segment_paces

RULES = (
    "instance",
    "completeness",
    "arrival",
    "gang",
    "capacity",
    "type",
    "batch",
    "memory",
    "rate",
    "transfer",
    "work",
    "preemption",
    "value",
)
LISTED = 20  # violations of one rule that are spelled out; the last entry of the rule counts the others
Words = str | Callable[[int], str]  # the same for every row, or of a row


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: one of `RULES` or of a certificate's, what breaks it, and what would be legal.

    ``job`` is an id and ``segment`` a 0-based position, None if no single one is to blame. An entry with ``count`` > 1
    stands for that number of further violations of its rule, which are not listed one by one.
    """

    rule: str
    message: str
    job: str | None = None
    segment: int | None = None
    count: int = 1

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


Telling = Callable[[str, int, str, str], Violation]


class Violations:
    """Collects violations: the first of every rule spelled out, all of them counted."""

    def __init__(self) -> None:
        self._listed: dict[str, list[Violation]] = {rule: [] for rule in RULES}
        self._count = dict.fromkeys(RULES, 0)

    def add(self, rule: str, rows: Ints, spell_out: Callable[[int], Violation]) -> None:
        """Add one violation of a rule for each row.

        Parameters
        ----------
        rule
            The rule.
        rows
            Rows that break it, i64[].
        spell_out
            Function from a row to its violation.
        """
        self._count[rule] += rows.size
        room = max(LISTED - len(self._listed[rule]), 0)
        self._listed[rule] += [spell_out(row) for row in rows[:room].tolist()]

    def blame(
        self, tell: Telling, rule: str, wrong: npt.NDArray[Any], message: Words, legal: Words, of: Ints | None = None
    ) -> None:
        """Add a violation of a rule for each row that is wrong.

        Parameters
        ----------
        tell
            Function of (rule, row, message, legal) that makes a violation.
        rule
            The rule.
        wrong
            Rows, i64[], or a mask of them, bool[].
        message
            What is wrong, for all rows or by row.
        legal
            What would be legal, for all rows or by row.
        of
            By row, the index that is passed to ``tell`` in its place.
        """

        def spell_out(row: int) -> Violation:
            said, expected = (each if isinstance(each, str) else each(row) for each in (message, legal))
            return tell(rule, row if of is None else int(of[row]), said, expected)

        self.add(rule, np.flatnonzero(wrong) if wrong.dtype == np.bool_ else wrong, spell_out)

    def violations(self) -> list[Violation]:
        """Return all violations in the order of `RULES`."""
        result = []
        for rule, listed in self._listed.items():
            result += listed
            more = self._count[rule] - len(listed)
            if more:
                result.append(Violation(rule, f"... and {more} more violations of this rule", count=more))
        return result


class CheckContext:
    """A document and its instance, with data that several rules need.

    Parameters
    ----------
    instance
        The instance that the schedule is checked against.
    document
        The schedule, as claimed.

    Attributes
    ----------
    known, finite, sound
        Masks over segments, bool[S]: the segment names a job; all its numbers are finite; both.
    segment, node, gpu
        For every (segment, GPU) pair, i64[K]: its segment, its node, and the number of the GPU in the cluster.
    exists
        Whether the GPU of every pair exists, bool[K].
    need
        Work of every job, f64[n].
    pace
        Seconds of a unit of work on the GPUs of a segment, f64[S]: 1 for jobs with durations; nan if the GPUs are no
        placement of the job.
    gang
        Number of GPUs that the job of every segment must have, i64[S].
    """

    def __init__(self, instance: Instance, document: ScheduleDocument) -> None:
        self.instance, self.document = instance, document
        self.need = instance.work
        self.known: Bools = document.job >= 0
        self.finite: Bools = np.isfinite(document.start) & np.isfinite(document.end) & np.isfinite(document.work)
        self.sound: Bools = self.finite & self.known
        self.segment: Ints = np.repeat(np.arange(document.job.size), np.diff(document.offset))
        node_gpus = instance.cluster.node_gpus
        self.node: Ints = np.clip(document.node, 0, node_gpus.size - 1)
        inside = (document.index >= 0) & (document.index < node_gpus[self.node])
        self.exists: Bools = (self.node == document.node) & inside
        self.pace: Floats = segment_paces(instance, document.job, document.offset, document.node)
        self.gang: Ints = self.per_segment(instance.gpus)
        self.gpu: Ints = np.where(self.exists, (np.cumsum(node_gpus) - node_gpus)[self.node] + document.index, -1)

    @cached_property
    def first(self) -> Bools:
        """Marks of pairs, bool[K], that name an existing GPU for the first time in their segment."""
        ascending = (self.gpu[1:] > self.gpu[:-1]) | (self.segment[1:] != self.segment[:-1])
        if ascending.all() and self.exists.all():
            return self.exists
        pairs = np.flatnonzero(self.exists)
        found = np.zeros(self.exists.size, dtype=np.bool_)
        key = self.segment[pairs] * self.instance.cluster.gpus + self.gpu[pairs]
        found[pairs[np.unique(key, return_index=True)[1]]] = True
        return found

    @property
    def placed(self) -> Bools:
        """Marks of segments, bool[S], that have the number of GPUs that their job needs, all of which exist."""
        exist = np.bincount(self.segment[self.exists], minlength=self.document.job.size)
        return np.asarray((np.diff(self.document.offset) == self.gang) & (exist == self.gang))

    @cached_property
    def runs(self) -> Bools:
        """Marks of jobs that have a segment, bool[n]."""
        return np.asarray(np.bincount(self.document.job[self.known], minlength=self.instance.n) > 0)

    @cached_property
    def completed(self) -> bool:
        """True if every job has a completion time."""
        return bool(self.runs.all() and self.finite[self.known].all())

    @cached_property
    def completion(self) -> Floats:
        """End of the last segment of every job, f64[n] seconds."""
        last = np.full(self.instance.n, -np.inf)
        np.maximum.at(last, self.document.job[self.known], self.document.end[self.known])
        return last

    def per_segment(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of jobs as values of the segments, [S]; 0 for a segment that names no job.

        Parameters
        ----------
        values
            Value of every job, [n].
        """
        return np.append(values, 0)[self.document.job]  # -1, no job, is the place of that 0

    def job_id(self, s: int) -> str | None:
        """Return the id of the job that a segment names; None if it is no job of the instance.

        Parameters
        ----------
        s
            Position of the segment.
        """
        j = int(self.document.job[s])
        return None if j < 0 else self.instance.ids[j]

    def name(self, s: int) -> str:
        """Return the description of a segment in words.

        Parameters
        ----------
        s
            Position of the segment.
        """
        job = self.job_id(s)
        text = self.document.unknown[s] if job is None else repr(job)
        return f"segment {s} (job {text}, {number(self.document.start[s])} to {number(self.document.end[s])} s)"

    def place(self, pair: int) -> str:
        """Return the description of the GPU of a pair in words.

        Parameters
        ----------
        pair
            Position of the pair.
        """
        return f"GPU {self.document.index[pair]} of node {self.document.node[pair]}"

    def of_segment(self, rule: str, s: int, message: str, legal: str) -> Violation:
        """Return a violation for which one segment is to blame.

        Parameters
        ----------
        rule
            The rule.
        s
            Position of the segment.
        message
            What the segment does.
        legal
            What would be legal.
        """
        return Violation(rule, f"{self.name(s)} {message} (expected: {legal})", self.job_id(s), s)

    def unit(self, j: int) -> str:
        """Return the unit of a job's work.

        Parameters
        ----------
        j
            Index of the job; -1 for no job.
        """
        return "iterations" if j >= 0 and self.instance.profiled[j] else "s"

    def of_job(self, rule: str, j: int, message: str) -> Violation:
        """Return a violation for which a job is to blame, but no single segment.

        Parameters
        ----------
        rule
            The rule.
        j
            Index of the job.
        message
            What the job does.
        """
        job = self.instance.ids[j]
        legal = f"{number(self.need[j])} {self.unit(j)} of work, " + (
            "all" if self.instance.profiled[j] else "its duration"
        )
        return Violation(rule, f"job {job!r} {message} (expected: {legal})", job)
