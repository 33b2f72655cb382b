"""The rules of a feasible schedule (rigid gangs on exclusive GPUs, rate 1 on any allowed GPU), for `optsched.check`.

At the task level jobs share GPUs; what the rules say there stands in `optsched.task_check`, and for two jobs on a GPU in
`optsched.sharing_check`.

============== =======================================================================================================
instance       the schedule was made for this instance (sha256 of jobs and cluster)
completeness   every job runs, every segment names a job of the instance, every number is finite
arrival        no job starts before its arrival
gang           a segment holds exactly the job's number of GPUs, and a job is never in two places at once (a forking
               schedule: it may be, every segment is a copy of it)
capacity       the GPUs exist, a segment names each of them once, and a GPU serves one segment at a time
type, memory   the GPUs are of a type the job may use, and have the memory that it needs
rate           a segment does not end before its start, nor does more work than its length allows: at rate 1, or for a job
               with a profile at one iteration in alpha(placement) seconds, its GPUs holding the replicas in order
work           the work of a job adds up to its duration (its iterations), and none of it is negative
preemption     (where it is forbidden) a job runs in one piece: no gaps, always on the same GPUs, and not in copies
============== =======================================================================================================

**Tolerance.** Whole numbers (below 2**53) are compared exactly: float64 adds them without error, and rounding never
makes one whole number of another. Any other comparison allows ``1e-9`` of the seconds compared (the segment's length,
the job's duration) for what a producer's sums lose, and 8 units in the last place of the clock for the rounding of the
times themselves. Both are relative, so a verdict does not depend on the unit of time; and nothing is gained by using
them up, because a schedule that is accepted becomes feasible when it is stretched by a few parts in 1e9. The allowance
is not relative to the clock alone: at 1e8 s that would give every job a tenth of a second.

**Complexity** O(K log K) in numpy for K (segment, GPU) pairs; only the violations that are listed become objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.claim import Claim
from optsched.instance import Instance
from optsched.rates.segment_paces import segment_paces

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
RELATIVE = 1e-9
ULPS = 8
EXACT = 2.0**53

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: which (one of `RULES`, or a certificate's), by what, and what would be legal.

    ``job`` is an id and ``segment`` a 0-based position, None where no single one is to blame. An entry with
    ``count`` > 1 stands for that many further violations of its rule that are not listed one by one.
    """

    rule: str
    message: str
    job: str | None = None
    segment: int | None = None
    count: int = 1

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


class Findings:
    """Collects violations: the first of every rule spelled out, all of them counted."""

    def __init__(self) -> None:
        self._listed: dict[str, list[Violation]] = {rule: [] for rule in RULES}
        self._count = dict.fromkeys(RULES, 0)

    def add(self, rule: str, rows: Ints, spell_out: Callable[[int], Violation]) -> None:
        """One violation of ``rule`` for each of ``rows``."""
        self._count[rule] += rows.size
        room = max(LISTED - len(self._listed[rule]), 0)
        self._listed[rule] += [spell_out(row) for row in rows[:room].tolist()]

    def violations(self) -> list[Violation]:
        """All of them, in the order of `RULES`."""
        result = []
        for rule, listed in self._listed.items():
            result += listed
            more = self._count[rule] - len(listed)
            if more:
                result.append(Violation(rule, f"... and {more} more violations of this rule", count=more))
        return result


class Case:
    """A claim beside its instance, with what several rules need of both.

    Masks over segments, bool[S]: ``known`` (names a job), ``finite`` (all its numbers), ``sound`` (both). Of every
    (segment, GPU) pair, [K]: its ``segment``, its ``node``, and ``gpu``, the number of the GPU in the cluster, where
    it ``exists``. ``need`` f64[n] is the work of every job, ``pace`` f64[S] the seconds that a unit of it takes on the
    GPUs of a segment (1 for jobs with durations; nan where the GPUs are no placement of the job), ``gang`` i64[S] the
    number of GPUs that its job must have.
    """

    def __init__(self, instance: Instance, claim: Claim) -> None:
        self.instance, self.claim = instance, claim
        self.need = instance.work
        self.known: Bools = claim.job >= 0
        self.finite: Bools = np.isfinite(claim.start) & np.isfinite(claim.end) & np.isfinite(claim.work)
        self.sound: Bools = self.finite & self.known
        self.segment: Ints = np.repeat(np.arange(claim.job.size), np.diff(claim.offset))
        node_gpus = instance.cluster.node_gpus
        self.node: Ints = np.clip(claim.node, 0, node_gpus.size - 1)
        inside = (claim.index >= 0) & (claim.index < node_gpus[self.node])
        self.exists: Bools = (self.node == claim.node) & inside
        self.pace: Floats = segment_paces(instance, claim.job, claim.offset, claim.node)
        self.gang: Ints = self.per_segment(instance.gpus)
        self.gpu: Ints = np.where(self.exists, (np.cumsum(node_gpus) - node_gpus)[self.node] + claim.index, -1)

    @cached_property
    def first(self) -> Bools:
        """Which pairs, bool[K], name a GPU that exists, and for the first time in their segment."""
        pairs = np.flatnonzero(self.exists)
        found = np.zeros(self.exists.size, dtype=np.bool_)
        key = self.segment[pairs] * self.instance.cluster.gpus + self.gpu[pairs]
        found[pairs[np.unique(key, return_index=True)[1]]] = True
        return found

    @cached_property
    def runs(self) -> Bools:
        """Which jobs have a segment, bool[n]."""
        return np.asarray(np.bincount(self.claim.job[self.known], minlength=self.instance.n) > 0)

    @cached_property
    def completed(self) -> bool:
        """Has every job a completion time?"""
        return bool(self.runs.all() and self.finite[self.known].all())

    @cached_property
    def completion(self) -> Floats:
        """End of the last segment of every job, f64[n] seconds."""
        last = np.full(self.instance.n, -np.inf)
        np.maximum.at(last, self.claim.job[self.known], self.claim.end[self.known])
        return last

    def per_segment(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of jobs, [n], as values of the segments, [S]; 0 where a segment names no job."""
        return np.append(values, 0)[self.claim.job]  # -1, no job, is the place of that 0

    def job_id(self, s: int) -> str | None:
        """Id of the job that segment ``s`` names, None when it is no job of the instance."""
        j = int(self.claim.job[s])
        return None if j < 0 else self.instance.ids[j]

    def name(self, s: int) -> str:
        """Segment ``s`` in words."""
        job = self.job_id(s)
        text = self.claim.unknown[s] if job is None else repr(job)
        return f"segment {s} (job {text}, {number(self.claim.start[s])} to {number(self.claim.end[s])} s)"

    def place(self, pair: int) -> str:
        """The GPU of a pair in words."""
        return f"GPU {self.claim.index[pair]} of node {self.claim.node[pair]}"

    def of_segment(self, rule: str, s: int, message: str, legal: str) -> Violation:
        """Segment ``s`` is to blame."""
        return Violation(rule, f"{self.name(s)} {message} (legal: {legal})", self.job_id(s), s)

    def unit(self, j: int) -> str:
        """What the work of job ``j`` is counted in (-1: no job)."""
        return "iterations" if j >= 0 and self.instance.profiled[j] else "s"

    def of_job(self, rule: str, j: int, message: str) -> Violation:
        """Job ``j`` is to blame, by no single segment."""
        job = self.instance.ids[j]
        legal = f"{number(self.need[j])} {self.unit(j)} of work, " + (
            "all" if self.instance.profiled[j] else "its duration"
        )
        return Violation(rule, f"job {job!r} {message} (legal: {legal})", job)


def judge(case: Case, *, preemptive: bool, forking: bool = False) -> Findings:
    """Apply every rule but ``value``.

    ``preemptive``: may a job be stopped and resumed? ``forking``: may it run in several copies at once?
    """
    found = Findings()
    with np.errstate(all="ignore"):  # tampered numbers overflow; the comparisons come out right all the same
        judge_gangs(case, found)
        judge_exclusive(case, found)
        _rate(case, found)
        if not forking:
            _one_place(case, found)
        if not preemptive:
            _preemption(case, found)
    return found


def judge_gangs(case: Case, found: Findings) -> None:
    """The rules that hold whether or not GPUs are shared: all but who else is there, how fast a job is, and preemption."""
    for rule in (_instance, _completeness, _arrival, _gang, _existing_gpus, _type_and_memory, _work):
        rule(case, found)


def _instance(case: Case, found: Findings) -> None:
    claimed, digest = case.claim.digest, case.instance.digest
    message = f"made for the instance {claimed!r} (legal: {digest!r}, the one it is checked against)"
    found.add("instance", np.flatnonzero([claimed != digest]), lambda _: Violation("instance", message))


def _completeness(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "completeness"
    found.add(rule, np.flatnonzero(~case.runs), lambda j: case.of_job(rule, j, "never runs"))
    ids = f"one of the {case.instance.n} ids of the instance"
    found.add(rule, np.flatnonzero(~case.known), lambda s: case.of_segment(rule, s, "names no job", ids))
    broken = np.flatnonzero(~case.finite)
    found.add(
        rule,
        broken,
        lambda s: case.of_segment(rule, s, f"does {number(claim.work[s])} s of work", "finite times and work"),
    )


def _arrival(case: Case, found: Findings) -> None:
    start, arrival = case.claim.start, case.per_segment(case.instance.arrival)
    # No sums lie behind a start: only the rounding of the clock is forgiven.
    early = np.flatnonzero(case.sound & (arrival - start > slack(np.zeros_like(start), start, arrival)))
    found.add(
        "arrival",
        early,
        lambda s: case.of_segment("arrival", s, "starts too early", f"from the job's arrival, {number(arrival[s])}"),
    )


def _gang(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "gang"
    width, gang = np.diff(claim.offset), case.gang
    found.add(
        rule,
        np.flatnonzero(case.known & (width != gang)),
        lambda s: case.of_segment(rule, s, f"has {width[s]} GPUs", f"{gang[s]}, the job's gang"),
    )


def _one_place(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "gang"
    rows = np.flatnonzero(case.sound)
    later, earlier = _overlaps(claim.job[rows], claim.start[rows], claim.end[rows])
    found.add(
        rule,
        np.arange(later.size),
        lambda i: case.of_segment(
            rule, int(rows[later[i]]), f"overlaps {case.name(int(rows[earlier[i]]))}", "one place at a time"
        ),
    )


def _existing_gpus(case: Case, found: Findings) -> None:
    segment, rule, cluster = case.segment, "capacity", case.instance.cluster
    found.add(
        rule,
        np.flatnonzero(~case.exists),
        lambda k: case.of_segment(rule, int(segment[k]), f"names {case.place(k)}", f"GPUs of {cluster.spec}"),
    )
    found.add(
        rule,
        np.flatnonzero(case.exists & ~case.first),
        lambda k: case.of_segment(rule, int(segment[k]), f"names {case.place(k)} twice", "once"),
    )


def judge_exclusive(case: Case, found: Findings) -> None:
    """The rule capacity where GPUs are not shared: a GPU serves one segment at a time."""
    claim, rule = case.claim, "capacity"
    pairs = np.flatnonzero(case.first & case.finite[case.segment])
    rows = case.segment[pairs]
    later, earlier = _overlaps(case.gpu[pairs], claim.start[rows], claim.end[rows])
    # Two gangs meet on many GPUs; that is one violation, told of the first of them.
    clash = np.unique(rows[later] * claim.job.size + rows[earlier], return_index=True)[1]
    found.add(
        rule,
        clash,
        lambda i: case.of_segment(
            rule,
            int(rows[later[i]]),
            f"uses {case.place(pairs[later[i]])}, and so does {case.name(int(rows[earlier[i]]))}",
            "one segment at a time",
        ),
    )


def _type_and_memory(case: Case, found: Findings) -> None:
    instance, cluster = case.instance, case.instance.cluster
    pairs = np.flatnonzero(case.exists & case.known[case.segment])
    job, node = case.claim.job[case.segment[pairs]], case.node[pairs]
    column = instance.table["gpu_types"]
    if column.null_count() < instance.n:
        allowed = [names if names is None else frozenset(map(str.casefold, names)) for names in column.to_list()]
        position = {names: k for k, names in enumerate(dict.fromkeys(allowed))}
        types = [group.gpu.casefold() for group in cluster.nodes]
        suits = np.array([[names is None or kind in names for kind in types] for names in position], dtype=np.bool_)
        kind_of_job = np.array([position[names] for names in allowed], dtype=np.int64)
        wrong = pairs[~suits[kind_of_job[job], cluster.node_group[node]]]

        def wrong_type(k: int) -> Violation:
            legal = ", ".join(column[int(case.claim.job[case.segment[k]])])
            kind = cluster.nodes[cluster.node_group[case.node[k]]].gpu
            return case.of_segment("type", int(case.segment[k]), f"uses {case.place(k)}, a {kind}", legal)

        found.add("type", _first_of_segment(case, wrong), wrong_type)

    def short_of_memory(k: int) -> Violation:
        need = instance.gpu_memory[case.claim.job[case.segment[k]]]
        offer = cluster.node_memory[case.node[k]]
        message = f"needs {number(need)} bytes on {case.place(k)}"
        return case.of_segment("memory", int(case.segment[k]), message, f"at most its {number(offer)} bytes")

    short = pairs[instance.gpu_memory[job] > cluster.node_memory[node]]
    found.add("memory", _first_of_segment(case, short), short_of_memory)


def _first_of_segment(case: Case, pairs: Ints) -> Ints:
    return pairs[np.unique(case.segment[pairs], return_index=True)[1]]


def _rate(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "rate"
    length = claim.end - claim.start
    found.add(
        rule,
        np.flatnonzero(case.finite & (length < 0)),
        lambda s: case.of_segment(rule, s, "ends before it starts", "an end after the start"),
    )
    rows = np.flatnonzero(case.finite & (length >= 0))
    start, end, work = claim.start[rows], claim.end[rows], claim.work[rows] * case.pace[rows]
    fast = work - length[rows] > slack(length[rows], start, end, work)
    found.add(
        rule,
        rows[fast],
        lambda s: case.of_segment(
            rule,
            s,
            f"does {number(claim.work[s])} {case.unit(claim.job[s])} of work",
            f"at most its {number(length[s])} s at "
            + ("rate 1" if case.unit(claim.job[s]) == "s" else f"{number(case.pace[s])} s an iteration"),
        ),
    )


def _work(case: Case, found: Findings) -> None:
    claim, n, rule = case.claim, case.instance.n, "work"
    found.add(
        rule,
        np.flatnonzero(case.finite & (claim.work < 0)),
        lambda s: case.of_segment(
            rule, s, f"does {number(claim.work[s])} {case.unit(claim.job[s])} of work", "0 or more"
        ),
    )
    rows = np.flatnonzero(case.sound)
    job, work = claim.job[rows], claim.work[rows]
    total = np.bincount(job, weights=work, minlength=n).astype(np.float64)
    pace = np.where(case.pace[rows] > 0, case.pace[rows], 1.0)  # an iteration without compute: only messages
    clock = np.spacing(np.abs(claim.end[rows])) / pace
    allowed = RELATIVE * case.need + ULPS * np.bincount(job, weights=clock, minlength=n)
    broken = np.bincount(job[~whole(work)], minlength=n) > 0
    allowed[whole(case.need) & whole(total) & ~broken] = 0.0
    judged = case.runs & (np.bincount(claim.job[case.known & ~case.finite], minlength=n) == 0)
    found.add(
        rule,
        np.flatnonzero(judged & (np.abs(total - case.need) > allowed)),
        lambda j: case.of_job(rule, j, f"receives {number(total[j])} {case.unit(j)} of work"),
    )


def _preemption(case: Case, found: Findings) -> None:
    claim = case.claim
    rows = np.flatnonzero(case.sound & ((claim.end > claim.start) | (claim.work > 0)))  # an empty segment is no run
    rows = rows[np.lexsort((claim.end[rows], claim.start[rows], claim.job[rows]))]
    before, after = rows[:-1], rows[1:]
    same = claim.job[before] == claim.job[after]
    before, after = before[same], after[same]
    stop, resume = claim.end[before], claim.start[after]
    length = np.minimum(stop - claim.start[before], claim.end[after] - resume)
    gap = np.abs(resume - stop) > slack(length, stop, resume)
    cut = np.flatnonzero(gap | _moved(case, before, after))
    found.add(
        "preemption",
        cut,
        lambda i: case.of_segment(
            "preemption",
            int(after[i]),
            f"resumes what {case.name(int(before[i]))} began" + ("" if gap[i] else " on other GPUs"),
            "one run without gaps on the same GPUs",
        ),
    )


def _moved(case: Case, before: Ints, after: Ints) -> Bools:
    """Which pairs of segments hold different sets of GPUs."""
    order = np.lexsort((case.gpu, case.segment))  # the pairs stay with their segment, its GPUs ascending
    gpu, offset = case.gpu[order], case.claim.offset
    width = np.diff(offset)
    moved = np.asarray(width[before] != width[after])
    alike = np.flatnonzero(~moved)
    pair = np.repeat(np.arange(alike.size), width[before[alike]])
    step = np.arange(pair.size) - np.repeat(
        np.cumsum(width[before[alike]]) - width[before[alike]], width[before[alike]]
    )
    differs = gpu[offset[before[alike]][pair] + step] != gpu[offset[after[alike]][pair] + step]
    moved[alike[pair[differs]]] = True
    return moved


def _overlaps(key: Ints, start: Floats, end: Floats) -> tuple[Ints, Ints]:
    """Rows that start while another row of the same key is still running, and that other row.

    Rows of no length occupy nothing. Every row is compared with the one that ends last among those that started
    before it, so a long row that covers many later ones clashes with each of them.
    """
    rows = np.flatnonzero(end > start)
    rows = rows[np.lexsort((start[rows], key[rows]))]
    key, start, end = key[rows], start[rows], end[rows]
    by_end = np.lexsort((end, key))
    rank = np.empty(rows.size, dtype=np.int64)
    rank[by_end] = np.arange(rows.size)
    # Ranks grow from key to key, so the running maximum never reaches back into another key.
    holder = by_end[np.maximum.accumulate(rank)[:-1]]
    this = np.arange(1, rows.size)
    until = np.minimum(end[holder], end[this])
    length = np.minimum(end[holder] - start[holder], end[this] - start[this])
    clash = (key[holder] == key[this]) & (until - start[this] > slack(length, start[this], until))
    return rows[this[clash]], rows[holder[clash]]


def whole(x: Floats) -> Bools:
    """Which numbers are integers that float64 adds without error."""
    return np.asarray((np.floor(x) == x) & (np.abs(x) < EXACT))


def slack(seconds: Floats, *compared: Floats) -> Floats:
    """The tolerance of one comparison (see the module): 0 where all compared numbers are whole."""
    exact = np.logical_and.reduce([whole(x) for x in compared])
    clock = np.maximum.reduce([np.abs(x) for x in compared])
    return np.where(exact, 0.0, RELATIVE * np.maximum(seconds, 0.0) + ULPS * np.spacing(clock))


def number(x: float) -> str:
    """Digits that read back as ``x``, without ``.0``."""
    return str(int(x)) if np.isfinite(x) and abs(x) < EXACT and x == int(x) else repr(float(x))
