"""What a log of tasks is, by the definitions alone and in fractions: legal, illegal, or within rounding of either.

For `test_forged`. Nothing is shared with `optsched.classes.task_sharing.check.task_rules` and the modules it is made of: an
instance comes as plain numbers (`Facts`), every rule is written here anew, the transfers are replayed second by second of
their events (the linear model and measured ratios), and nothing is fast.

A document (of `forged_task_logs`) has a ``head`` with its ``gangs``, and ``rows``: the tasks, or None for the residencies
alone. Of these only necessary conditions are known: what breaks one is ``illegal``; ``legal`` is what a log in hand shows
to be possible, and all between is ``open``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

# Of the seconds compared, and ulp of the clock: what is less than this may be rounding. (In sum: of at most 12 tasks.)
PART, TICKS, TICKS_IN_SUM = Fraction(4, 10**9), 12, 24
TRANSFER = -1
LOG, RESIDENCIES = "optsched-tasks/1", "optsched-schedule/1"
FLAGS = ("preemptive", "forking", "sharing", "elastic")
Row = list[Any]
Document = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A job: exact numbers, and the name of what its iterations are made of."""

    name: str
    kind: str
    arrival: float
    gpus: int
    iterations: int
    forward: Fraction
    backward: Fraction
    message: Fraction  # 0: none
    memory: float
    types: tuple[str, ...]  # empty: any


@dataclass(frozen=True)
class Facts:
    """An instance as plain numbers; ``nodes``: (GPU type, GPUs, memory of each); ``ratios`` empty: the linear model."""

    digest: str
    jobs: tuple[Kind, ...]
    nodes: tuple[tuple[str, int, float], ...]
    cost: Fraction
    penalty: Fraction
    latency: Fraction
    ratios: dict[tuple[str, str], Fraction]


@dataclass
class Truth:
    """Rules that are broken whatever the rounding (``broken``), and those that are broken at all (``missed``)."""

    broken: set[str] = field(default_factory=set)
    missed: set[str] = field(default_factory=set)
    sums: defaultdict[Any, list[tuple[Fraction, Fraction, float, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def lose(self, rule: str, key: Any, lost: Fraction, seconds: Fraction, clock: float, ticks: int = TICKS) -> None:
        """``lost`` seconds of ``seconds`` at a time ``clock``; what the same ``key`` loses under a rule adds up."""
        self.sums[rule, key].append((lost, max(seconds, Fraction(0)), abs(clock), ticks))
        if lost > 0:
            self.missed.add(rule)
        if lost > PART * max(seconds, Fraction(0)) + ticks * Fraction(math.ulp(clock)):
            self.broken.add(rule)

    def add_up(self) -> None:
        for (rule, _), rows in self.sums.items():
            clock, ticks = max(row[2] for row in rows), max(TICKS_IN_SUM, *(row[3] for row in rows))
            if sum(row[0] for row in rows) > PART * sum(row[1] for row in rows) + ticks * Fraction(math.ulp(clock)):
                self.broken.add(rule)


def verdict(facts: Facts, document: Document, witness: Document | None = None) -> str:
    """``legal``, ``illegal``, ``close``, or ``open`` for residencies; ``witness``: a log that is legal."""
    found = truth(facts, document)
    if found.broken:
        return "illegal"
    if found.missed:
        return "close"
    return "legal" if document["rows"] is not None or _is_shown(facts, document, witness) else "open"


def truth(facts: Facts, document: Document) -> Truth:
    """Judge a log, or residencies."""
    found, head, rows = Truth(), document["head"], document["rows"]
    if head["format"] != (RESIDENCIES if rows is None else LOG) or head["instance"] != facts.digest:
        found.broken.add("instance")
    if any(not (head.get(flag) is None or isinstance(head[flag], bool)) for flag in FLAGS):
        found.broken.add("unreadable")
    stays = _residencies(facts, head["gangs"], found)
    if found.broken:
        return found
    _memory(facts, stays, found)
    if rows is None:
        _long_enough(facts, stays, found)
        _room(facts, stays, found)
        if head.get("sharing") is not True:
            _exclusive(stays, found)
    else:
        _log(facts, stays, document, found)
    found.add_up()
    _value(facts, head, stays, found)
    return found


# --- residencies ---------------------------------------------------------------------------------------------------------


def _residencies(facts: Facts, gangs: list[Row], found: Truth) -> list[Row]:
    """The gang of every job, in the order of the jobs."""
    stays = []
    names = Counter(str(row[0]) for row in gangs)
    if names != Counter(job.name for job in facts.jobs):
        found.broken.add("completeness")
        return []
    by_name = {row[0]: row for row in gangs}
    for job in facts.jobs:
        row = by_name[job.name]
        if not all(isinstance(x, int | float) and math.isfinite(x) for x in row[2:]):
            found.broken.add("completeness")
            continue
        gpus, start, end = [tuple(gpu) for gpu in row[1]], row[2], row[3]
        _places(facts, job, gpus, found)
        found.lose("backward", job.name, _late(start, end), Fraction(0), max(abs(start), abs(end)))
        found.lose("arrival", job.name, _late(job.arrival, start), Fraction(0), max(abs(start), job.arrival))
        compute = job.forward + job.backward or Fraction(1)
        off = abs(Fraction(row[4]) - job.iterations) * compute
        found.lose("work", job.name, off, job.iterations * compute, end)
        if row[4] < 0:
            found.broken.add("work")
        stays.append([job, gpus, start, end])
    return stays


def _places(facts: Facts, job: Kind, gpus: list[Any], found: Truth) -> None:
    real = [0 <= node < len(facts.nodes) and 0 <= index < facts.nodes[node][1] for node, index in gpus]
    if not all(real) or len(set(gpus)) < len(gpus) or len(gpus) != job.gpus:
        found.broken.add("gang")
        return
    for node, _ in gpus:
        kind, _, memory = facts.nodes[node]
        if memory < job.memory or (job.types and kind not in job.types):
            found.broken.add("placement")


def _sends(job: Kind, gpus: list[Any]) -> bool:
    return job.message > 0 and len({node for node, _ in gpus}) > 1


def _memory(facts: Facts, stays: list[Row], found: Truth) -> None:
    """The longest time without an event in which residents need more than a GPU has."""
    for gpu in {gpu for stay in stays for gpu in stay[1]}:
        here = [stay for stay in stays if gpu in stay[1] and stay[2] < stay[3]]
        for since, until in pairwise(sorted({time for stay in here for time in stay[2:4]})):
            beside = [stay for stay in here if stay[2] <= since and until <= stay[3]]
            if sum(Fraction(stay[0].memory) for stay in beside) > facts.nodes[gpu[0]][2]:
                longest = max(Fraction(stay[3]) - Fraction(stay[2]) for stay in beside)
                found.lose("memory", (gpu, since), Fraction(until) - Fraction(since), longest, max(-since, until))


def _long_enough(facts: Facts, stays: list[Row], found: Truth) -> None:
    for job, gpus, start, end in stays:
        alone = facts.latency + facts.cost * job.message if _sends(job, gpus) else Fraction(0)
        need = job.iterations * (job.forward + job.backward + alone)
        missing = need - (Fraction(end) - Fraction(start))
        found.lose("rate", job.name, max(missing, Fraction(0)), need, max(abs(start), abs(end)), 4 * TICKS)


def _room(facts: Facts, stays: list[Row], found: Truth) -> None:
    """The compute of those that lie in an interval of time fits into it, on every GPU."""
    for gpu in {gpu for stay in stays for gpu in stay[1]}:
        here = [stay for stay in stays if gpu in stay[1]]
        for since in {stay[2] for stay in here}:
            for until in {stay[3] for stay in here if stay[3] > since}:
                inside = [stay[0] for stay in here if since <= stay[2] and stay[3] <= until]
                need = sum(((job.forward + job.backward) * job.iterations for job in inside), Fraction(0))
                missing = max(need - (Fraction(until) - Fraction(since)), Fraction(0))
                ticks = 4 * TICKS * (1 + len(inside))
                found.lose("capacity", (gpu, since, until), missing, need, max(abs(since), abs(until)), ticks)


def _exclusive(stays: list[Row], found: Truth) -> None:
    """A file that does not say that jobs share GPUs says that they do not."""
    for k, one in enumerate(stays):
        for other in stays[:k]:
            since, until = max(one[2], other[2]), min(one[3], other[3])
            if until > since and set(one[1]) & set(other[1]):
                length = min(Fraction(stay[3]) - Fraction(stay[2]) for stay in (one, other))
                both = Fraction(until) - Fraction(since)
                found.lose("capacity", (one[0].name, other[0].name), both, length, max(-since, until))


def _is_shown(facts: Facts, document: Document, witness: Document | None) -> bool:
    """Is a log legal with these residencies: the same gangs in any order, the same ends, nobody placed later?"""
    if witness is None or document["head"].get("sharing") is not True:
        return False
    head = {**witness["head"], "gangs": document["head"]["gangs"]}
    nodes = {row[0]: [tuple(gpu) for gpu in row[1]] for row in witness["head"]["gangs"]}
    gangs = [[row[0], nodes[row[0]], *row[2:]] for row in document["head"]["gangs"]]
    if any(sorted(nodes[row[0]]) != sorted(map(tuple, row[1])) for row in document["head"]["gangs"]):
        return False
    found = truth(facts, {**witness, "head": {**head, "gangs": gangs}})
    return not found.broken and not found.missed


# --- tasks ---------------------------------------------------------------------------------------------------------------


def _log(facts: Facts, stays: list[Row], document: Document, found: Truth) -> None:
    slots: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for j, worker, start, end in document["rows"]:
        named = 0 <= j < len(facts.jobs) and TRANSFER <= worker < facts.jobs[j].gpus
        if not (named and math.isfinite(start) and math.isfinite(end)):
            found.broken.add("completeness")
        else:
            slots[j, worker].append((start, end))
    if document["spoilt"] is not None:
        found.broken.add("unreadable")
    for j, (job, gpus, *_) in enumerate(stays):
        for worker in range(TRANSFER, job.gpus):
            sends = job.iterations if _sends(job, gpus) else 0
            if len(slots[j, worker]) != (sends if worker == TRANSFER else 2 * job.iterations):
                found.broken.add("completeness")
    if found.broken:
        return
    for tasks in slots.values():
        tasks.sort()
    for j, stay in enumerate(stays):
        own = [slots[j, worker] for worker in range(stay[0].gpus)]
        _stay(j, stay, [*own, slots[j, TRANSFER]], found)
        _lengths(j, stay[0], own, found)
        _order(j, stay[0], own, slots[j, TRANSFER], found)
    _one_at_a_time(stays, slots, found)
    _bytes(facts, stays, slots, found)


def _late(a: float, b: float) -> Fraction:
    """By how much time a is later than b."""
    return Fraction(a) - Fraction(b) if a > b else Fraction(0)


def _stay(j: int, stay: Row, slots: list[Any], found: Truth) -> None:
    job, _, since, until = stay
    since = max(since, job.arrival)
    for worker, tasks in enumerate(slots):
        for start, end in tasks:
            found.lose("early", (j, worker), _late(since, start), Fraction(0), max(abs(since), abs(start)))
            found.lose("late", (j, worker), _late(end, until), Fraction(0), max(abs(end), abs(until)))
    last = max(end for tasks in slots for _, end in tasks)
    found.lose("completion", j, _late(until, last), Fraction(0), max(abs(until), abs(last)))


def _lengths(j: int, job: Kind, workers: list[Any], found: Truth) -> None:
    for worker, tasks in enumerate(workers):
        short, seconds, clock = Fraction(0), Fraction(0), 0.0
        for k, (start, end) in enumerate(tasks):
            need = job.backward if k % 2 else job.forward
            off = need - (Fraction(end) - Fraction(start))
            clock = max(clock, abs(start), abs(end))
            found.lose("length", (j, worker, k), abs(off), need, max(abs(start), abs(end)))
            short, seconds = short + off, seconds + need
        found.lose("shorter", (j, worker), max(short, Fraction(0)), seconds, clock, TICKS_IN_SUM)


def _order(j: int, job: Kind, workers: list[Any], transfers: list[Any], found: Truth) -> None:
    """Nothing starts before what it needs has ended."""
    over = -math.inf
    for i in range(job.iterations):
        barrier = max(tasks[2 * i + 1][1] for tasks in workers)
        for worker, tasks in enumerate(workers):
            forward, backward = tasks[2 * i], tasks[2 * i + 1]
            if i:
                _wait(("order", (j, worker)), over, forward[0], found)
            _wait(("order", (j, worker)), forward[1], backward[0], found)
        over = barrier
        if transfers:
            _wait(("order", (j, TRANSFER)), barrier, transfers[i][0], found)
            over = transfers[i][1]


def _wait(what: tuple[str, Any], needed: float, start: float, found: Truth) -> None:
    found.lose(*what, _late(needed, start), Fraction(0), max(abs(needed), abs(start)))


def _one_at_a_time(stays: list[Row], slots: dict[Any, list[Any]], found: Truth) -> None:
    """In the order of the starts, a task waits until all before it on its GPU have ended; also one of no length."""
    of_gpu: defaultdict[Any, list[Any]] = defaultdict(list)
    for j, (_, gpus, *_) in enumerate(stays):
        for worker, gpu in enumerate(gpus):
            of_gpu[gpu] += [(start, end, j, worker) for start, end in slots[j, worker]]
    for tasks in of_gpu.values():
        tasks.sort()
        last = tasks[0]
        for task in tasks[1:]:
            if last[1] > task[0]:
                length = min(Fraction(each[1]) - Fraction(each[0]) for each in (last, task))
                clock = max(abs(last[1]), abs(task[0]))
                found.lose("capacity", task[2:], _late(last[1], task[0]), length, clock)
            last = task if task[1] >= last[1] else last


def _bytes(facts: Facts, stays: list[Row], slots: dict[Any, list[Any]], found: Truth) -> None:
    """Every transfer moves its message, no more and no less, at the rates that all of them leave each other."""
    moved = replay(facts, stays, {j: slots[j, TRANSFER] for j in range(len(stays))})
    for j, (job, *_) in enumerate(stays):
        short, seconds, clock = Fraction(0), Fraction(0), 0.0
        for k, (start, end) in enumerate(slots[j, TRANSFER]):
            off = (job.message - moved[j, k]) * facts.cost  # seconds at full speed
            now = max(abs(start), abs(end))
            found.lose("transfer", (j, k), abs(off), job.message * facts.cost, now)
            short, seconds, clock = short + off, seconds + job.message * facts.cost, max(clock, now)
        if seconds:
            found.lose("transfers", j, max(short, Fraction(0)), seconds, clock, TICKS_IN_SUM)


def replay(facts: Facts, stays: list[Row], transfers: dict[int, list[Any]]) -> defaultdict[tuple[int, int], Fraction]:
    """The bytes that every (job, transfer) moves, from one start or end to the next; none during its latency."""
    moving = {
        (j, k): (Fraction(start) + facts.latency, Fraction(end))
        for j, own in transfers.items()
        for k, (start, end) in enumerate(own)
    }
    moving = {key: times for key, times in moving.items() if times[0] < times[1]}
    moved: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    nodes = [{node for node, _ in stay[1]} for stay in stays]
    for since, until in pairwise(sorted({time for times in moving.values() for time in times})):
        now = [key for key, times in moving.items() if times[0] <= since and until <= times[1]]
        for key in now:
            beside = [
                [stays[other[0]][0].kind for other in now if other != key and node in nodes[other[0]]]
                for node in nodes[key[0]]
            ]
            moved[key] += (until - since) * min(_rate(facts, stays[key[0]][0].kind, kinds) for kinds in beside)
    return moved


def _rate(facts: Facts, kind: str, beside: list[str]) -> Fraction:
    """Bytes a second on a network interface beside others."""
    if facts.ratios:
        return math.prod((facts.ratios[kind, other] for other in beside), start=1 / facts.cost)
    k = len(beside) + 1
    return 1 / (k * facts.cost + (k - 1) * facts.penalty)


# --- value ---------------------------------------------------------------------------------------------------------------


def _value(facts: Facts, head: Document, stays: list[Row], found: Truth) -> None:
    """What a file says it is worth is what it is worth."""
    objective, stated = head.get("objective") or "total_flow_time", head.get("value")
    ends, flows = (
        [Fraction(stay[3]) for stay in stays],
        [Fraction(stay[3]) - Fraction(stay[0].arrival) for stay in stays],
    )
    worth = {"total_flow_time": sum(flows), "total_completion_time": sum(ends), "makespan": max(ends)}.get(objective)
    if worth is None:
        found.broken.add("value")
    if worth is None or stated is None:
        return
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not math.isfinite(stated):
        found.broken.add("value")
        return
    off = abs(Fraction(stated) - worth)
    if off:
        found.missed.add("value")
    if off > PART * abs(sum(flows)) + TICKS * Fraction(2) ** -52 * sum(map(abs, ends)):
        found.broken.add("value")
