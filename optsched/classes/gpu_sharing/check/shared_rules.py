"""The referee where jobs share GPUs, two at most: its rules, beside those of `optsched.check.feasibility` that hold anyway.

============== =======================================================================================================
instance       it says what sharing costs (interference), and its jobs are no tasks
capacity       the GPUs exist, a segment names each of them once, and at no moment are more than two segments on one
batch          the sub-steps of a segment are those of one of the job's sub-batches (1 where no batch is known)
memory         a GPU has what the job needs at its largest sub-batch (that is what makes a GPU suit it), and at every moment
               what the two on it need at the sub-batches they run with; two kinds that the table of interference says do
               not run together never share
rate           a segment does no more work than its partners leave it: at every moment a unit of work takes
               pace(placement) x stretch(sub-steps) x the largest xi of the partners on any of its GPUs, and longer beside
               others on its network interfaces where jobs contend (`optsched.check.interfaces`); nothing while a job
               is resumed, for as long as it says (`optsched.check.restarts`). Less is legal: a
               job may idle on GPUs that it holds, and slows its partners meanwhile (bounds of the class hold for that)
gang           a job is never in two places at once
preemption     (where it is forbidden) a job is one segment, from start to completion
============== =======================================================================================================

instance (digest), completeness, arrival, gang, type and work: as in `optsched.check.feasibility`, with its tolerances:
exact where all numbers compared are whole, else 1e-9 of the seconds compared and 8 units in the last place of the
clock, and once for a job, however many segments it has. Two segments that overlap by no more than that do not meet, but
slow each other down for as long. Written apart from the engine: the integral of every job's speed is taken over its own
stay, from the starts and ends of its partners.

**Complexity** O(K log K) for K (segment, GPU) pairs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.check.batches import judge_batches, sub_steps_of
from optsched.check.certain_times import TIMES, CertainTimes
from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.feasibility import in_sum, judge_gangs, one_place, overspent_together
from optsched.check.interfaces import Slow, slow_on_interfaces
from optsched.check.restarts import restarts
from optsched.check.speed_rules import backwards, less_paid, seconds_at_work, within_worth
from optsched.check.tolerance import RELATIVE, number, slack, whole
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.speeds.duration import SubSteps, segment_sub_steps

MOST = 2  # jobs on a GPU
FOLLOWED = 3  # residents of a GPU that are looked at: one more than may be there, those that stay longest

Meeting = tuple[float, float, float]


def judge_sharing(context: CheckContext, preemptive: bool) -> Violations:
    """Apply the rules of this module, and those of `optsched.check.feasibility` that hold for shared GPUs.

    Parameters
    ----------
    context
        Instance and schedule to be judged.
    preemptive
        Whether jobs may be preempted.
    """
    found = Violations()
    with np.errstate(all="ignore"):  # tampered numbers overflow; the comparisons come out right all the same
        judge_gangs(context, found)
        sub_steps = sub_steps_of(context)
        judge_batches(context, sub_steps, found, "one of the ways to split the job's batch")
        together = _together(context, found)
        _apart(context, together, found)
        _memory(context, together, sub_steps, found)
        _rate(context, together, sub_steps, found)
        one_place(context, found)
        if not preemptive:
            _one_run(context, found)
    return found


@dataclass(frozen=True, eq=False)
class _Together:
    """The M times that two segments are on a GPU at once.

    ``one`` i64[M] is a segment, and ``other`` i64[M] the one that starts later; ``pair`` i64[M] is the (segment,
    GPU) pair of the later one. They meet from ``since`` to ``until``, f64[M] seconds. ``each`` f64[M] is the part
    of that time that may be rounding, in seconds.
    """

    one: Ints
    other: Ints
    pair: Ints
    since: Floats
    until: Floats
    each: Floats


def _together(context: CheckContext, found: Violations, *, strict: bool = False) -> _Together:
    """Find the segments that meet, and apply the rule capacity: no third segment on a GPU.

    ``strict``: a third segment is a violation even if it is there for less than rounding.
    """
    document, row = context.document, context.segment
    pairs = np.flatnonzero(context.first & (context.sound & (document.end > document.start))[row])
    pairs = pairs[np.lexsort((pairs, document.start[row[pairs]], context.gpu[pairs]))]
    meetings, thirds = _meetings(context, pairs)
    if strict:
        found.add("capacity", np.array([k for k, *_ in thirds], dtype=np.int64), lambda _: Violation("capacity", ""))
    else:
        _crowded(context, thirds, found)
    one, other, pair = np.array(meetings, dtype=np.int64).reshape(-1, 3).T
    since, until = document.start[other], np.minimum(document.end[one], document.end[other])
    return _Together(one, other, pair, since, until, slack(_shorter(context, one, other), since, until))


def _shorter(context: CheckContext, one: Ints, other: Ints) -> Floats:
    length = context.document.end - context.document.start
    return np.minimum(length[one], length[other])


def _meetings(context: CheckContext, pairs: Ints) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Return the meetings and the third residents of (segment, GPU) pairs, which come by GPU and start.

    A meeting is (segment, later segment, pair of the later one). A third resident is (its pair, the two segments
    there before it); the second of those two leaves first.
    """
    meetings: list[tuple[int, int, int]] = []
    thirds: list[tuple[int, int, int]] = []
    present: list[tuple[float, float, int, int]] = []  # end, start, pair, segment
    last = -1
    segment = context.segment[pairs]
    columns = pairs, context.gpu[pairs], segment, context.document.start[segment], context.document.end[segment]
    for k, gpu, s, start, end in zip(*(column.tolist() for column in columns), strict=True):
        present = [each for each in present if each[0] > start] if gpu == last else []
        last = gpu
        meetings += [(each[3], s, k) for each in present]
        if len(present) >= MOST:
            first, second = sorted(present, reverse=True)[:MOST]
            thirds.append((k, first[3], second[3]))
        present.append((end, start, k, s))
        if len(present) > FOLLOWED:
            present.remove(min(present))
    return meetings, thirds


def _crowded(context: CheckContext, thirds: list[tuple[int, int, int]], found: Violations) -> None:
    """The rule capacity: no third on a GPU, for longer than rounding, of one segment and of a job in all."""
    document = context.document
    # A gang may be the third on many GPUs; that is one violation, reported for the first of them.
    first_seen = {(int(context.segment[k]), first, second): k for k, first, second in reversed(thirds)}
    third, first, second = np.array(list(first_seen), dtype=np.int64).reshape(-1, 3).T
    pair = np.array(list(first_seen.values()), dtype=np.int64)
    since, until = document.start[third], np.minimum(document.end[second], document.end[third])
    each = slack(np.minimum(_shorter(context, first, second), _shorter(context, third, third)), since, until)

    def crowded(i: int) -> Violation:
        names = f"{context.name(int(first[i]))} and {context.name(int(second[i]))}"
        message = f"uses {context.place(int(pair[i]))}, and so do {names}"
        return context.of_segment("capacity", int(third[i]), message, f"at most {MOST} jobs on a GPU")

    blamed = np.array([third, first, second])
    alone, over = overspent_together(context, blamed, until - since, each)
    found.add("capacity", alone[np.unique(third[alone], return_index=True)[1]], crowded)
    found.add("capacity", over, lambda j: in_sum(context, "capacity", j, "uses GPUs beside two others again and again"))


def _xi(context: CheckContext, one: Ints, other: Ints) -> Floats:
    """Slow-downs f64[M] of the segments ``one`` beside ``other``."""
    interference, kinds, job = context.instance.interference, context.instance.kinds, context.document.job
    assert interference is not None
    known: dict[tuple[str | None, str | None], float] = {}
    values = np.ones(one.size)
    for i, (a, b) in enumerate(zip(job[one].tolist(), job[other].tolist(), strict=True)):
        key = kinds[a], kinds[b]
        if key not in known:
            known[key] = interference.slowdown(*key)
        values[i] = known[key]
    return values


def _apart(context: CheckContext, together: _Together, found: Violations) -> None:
    def forbidden(i: int) -> Violation:
        s, other, kinds = int(together.other[i]), int(together.one[i]), context.instance.kinds
        here, there = (kinds[context.document.job[k]] for k in (s, other))
        message = f"shares {context.place(int(together.pair[i]))} with {context.name(other)}"
        return context.of_segment("memory", s, message, f"not {here} beside {there}, which does not run")

    _refuse(context, together, _never(context, together), found, forbidden)


def _never(context: CheckContext, together: _Together) -> Bools:
    """Meetings of kinds that do not run together, bool[M]."""
    one, other = together.one, together.other
    return np.asarray(np.isinf(_xi(context, one, other)) | np.isinf(_xi(context, other, one)))


def _refuse(
    context: CheckContext, together: _Together, wrong: Bools, found: Violations, tell: Callable[[int], Violation]
) -> None:
    """The rule memory for the meetings that are ``wrong``: for longer than rounding, of two segments and of a job in all."""
    rows, size = np.flatnonzero(wrong), context.document.job.size  # two gangs meet on many GPUs; that is one violation
    rows = rows[np.unique(together.one[rows] * size + together.other[rows], return_index=True)[1]]
    blamed = np.array([together.one[rows], together.other[rows]])
    alone, over = overspent_together(context, blamed, (together.until - together.since)[rows], together.each[rows])
    found.add("memory", rows[alone], tell)
    found.add("memory", over, lambda j: in_sum(context, "memory", j, "is beside whom it may not be again and again"))


def _memory(context: CheckContext, together: _Together, sub_steps: SubSteps, found: Violations) -> None:
    here, there = sub_steps.memory[together.other], sub_steps.memory[together.one]
    both, offer = here + there, context.instance.cluster.node_memory[context.node[together.pair]]
    allowed = np.where(whole(here) & whole(there), offer, offer * (1 + RELATIVE))

    def too_much(i: int) -> Violation:
        message = f"and {context.name(int(together.one[i]))} need {number(both[i])} bytes"
        message += f" on {context.place(int(together.pair[i]))}"
        return context.of_segment("memory", int(together.other[i]), message, f"at most its {number(offer[i])} bytes")

    _refuse(context, together, both > allowed, found, too_much)


def _rate(context: CheckContext, together: _Together, sub_steps: SubSteps, found: Violations) -> None:
    document, paid = context.document, restarts(context)
    backwards(context, found)
    length, pace = document.end - document.start, context.pace * sub_steps.stretch
    at_work, gained = seconds_at_work(context, paid), _gained(context, together, pace, paid)

    def most(s: int) -> str:
        if not np.isfinite(pace[s]):
            return "none: the job has no speed on these GPUs"
        units = number(gained[s] / pace[s]) if pace[s] > 0 else "any number of"
        partners = "alone" if gained[s] == at_work[s] else "beside its partners"
        seconds = f"{number(length[s])} s{less_paid(paid[s])}"
        return f"at most {units}, what its {seconds} {partners} are worth at {number(pace[s])} s a unit"

    within_worth(context, found, pace, gained, most)


def _gained(context: CheckContext, together: _Together, pace: Floats, paid: Floats) -> Floats:
    """Seconds alone that every stay is worth, f64[S]."""
    document, gained = context.document, seconds_at_work(context, paid)
    network, meetings = _slowing(context, together, pace)
    for s in {*network, *meetings}:
        start, end = float(document.start[s] + paid[s]), float(document.end[s])
        gained[s] = _seconds_alone(start, end, meetings.get(s, []), network.get(s, []), math.fsum)
    return gained


def _slowing(
    context: CheckContext, together: _Together, pace: Floats
) -> tuple[dict[int, Slow], dict[int, list[Meeting]]]:
    """By segment what slows it: on its network interfaces, and on its GPUs."""
    steps = np.ones(pace.size, dtype=np.int64) if context.document.steps is None else context.document.steps
    return slow_on_interfaces(context, pace, steps), dict(_by_segment(context, together))


def worth_beside_partners(context: CheckContext, paid: Floats) -> tuple[list[Fraction], Floats, set[int]] | None:
    """Return the seconds alone that every stay is worth, in fractions.

    Parameters
    ----------
    context
        Instance and schedule.
    paid
        Seconds that every segment spends on resuming its job, f64[S].

    Returns
    -------
    tuple or None
        The seconds alone that every stay is worth (fractions), seconds a unit of work (f64[S]), and the set of
        segments that are slowed down on network interfaces. None if any two segments meet that may not, for
        however short a time.
    """
    found, sub_steps, document = Violations(), sub_steps_of(context), context.document
    together = _together(context, found, strict=True)
    here, there = sub_steps.memory[together.other], sub_steps.memory[together.one]
    tight = here + there > context.instance.cluster.node_memory[context.node[together.pair]]
    if found.violations() or tight.any() or _never(context, together).any():
        return None
    pace = context.pace * sub_steps.stretch
    network, meetings = _slowing(context, together, pace)
    worth = []
    for s, (start, end, cost) in enumerate(zip(document.start, document.end, paid, strict=True)):
        beside, slow = ([tuple(map(Fraction, each)) for each in of.get(s, [])] for of in (meetings, network))
        worth.append(_seconds_alone(Fraction(start) + Fraction(cost), Fraction(end), beside, slow, sum))
    return worth, pace, set(network)


def _by_segment(context: CheckContext, together: _Together) -> Iterator[tuple[int, list[Meeting]]]:
    """Every segment that meets others, with (from, to, xi) of each of them by time."""
    segment = np.concatenate([together.one, together.other])
    partner = np.concatenate([together.other, together.one])
    # Two gangs meet on many GPUs, at the same times.
    segment, partner = np.divmod(np.unique(segment * context.document.job.size + partner), context.document.job.size)
    since = np.maximum(context.document.start[segment], context.document.start[partner])
    until = np.minimum(context.document.end[segment], context.document.end[partner])
    xi = _xi(context, segment, partner)
    order = np.lexsort((since, segment))
    rows = zip(since[order].tolist(), until[order].tolist(), xi[order].tolist(), strict=True)
    first = np.flatnonzero(np.diff(segment[order], prepend=-1))
    for s, count in zip(segment[order][first].tolist(), np.diff(np.append(first, order.size)).tolist(), strict=True):
        yield s, [next(rows) for _ in range(count)]


def _seconds_alone(start: Any, end: Any, meetings: Any, network: Any, total: Callable[[list[Any]], Any]) -> Any:
    """The integral of 1 / (max xi x slow) over [start, end]: of the partners present the worst rules, and the network.

    In floats or in fractions, as all numbers are; ``total`` adds them up.
    """
    pieces, now, seen, passed, slow = [], start, 0, 0, 1
    worst: list[tuple[Any, Any]] = []  # (-xi, until): those at the top that have left are dropped when they rule
    while now < end:
        while seen < len(meetings) and meetings[seen][0] <= now:
            _, until, xi = meetings[seen]
            heapq.heappush(worst, (-xi, until))
            seen += 1
        while worst and worst[0][1] <= now:
            heapq.heappop(worst)
        while passed < len(network) and network[passed][0] <= now:
            slow, passed = network[passed][1], passed + 1
        change = min(end, meetings[seen][0] if seen < len(meetings) else end, worst[0][1] if worst else end)
        change = min(change, network[passed][0] if passed < len(network) else end)
        pieces.append((change - now) / ((-worst[0][0] if worst else 1) * slow))
        now = change
    return total(pieces)


def _one_run(context: CheckContext, found: Violations) -> None:
    document = context.document
    rows = np.flatnonzero(context.known)
    rows = rows[np.lexsort((rows, document.start[rows], document.job[rows]))]
    again = np.flatnonzero(document.job[rows[1:]] == document.job[rows[:-1]]) + 1

    def another(i: int) -> str:
        return f"is another run beside {context.name(int(rows[i - 1]))}"

    found.blame(context.of_segment, "preemption", again, another, "one segment, from start to completion", rows)


class CertainShared(CertainTimes):
    """Completion times of jobs that slow their partners on a GPU."""

    slows = True

    def _paces(self, rows: Ints) -> Floats:
        context, document = self._context, self._context.document
        pace = context.pace
        if document.steps is not None:
            steps = document.steps, document.offset, document.node
            pace = pace * segment_sub_steps(context.instance, document.job, *steps).stretch
        return pace[rows]

    def _worth(self, paid: Floats, resized: dict[int, float] | None) -> tuple[list[Fraction], Floats, set[int]] | None:
        return worth_beside_partners(self._context, paid)


RULES.register("gpu-sharing", ClassRules(judge=judge_sharing))
TIMES.register("gpu-sharing", CertainShared)
