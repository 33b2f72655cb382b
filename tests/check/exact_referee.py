"""What a schedule document is, by the definitions alone and in fractions: legal, illegal, or within rounding of either.

For `test_forged`. Nothing is shared with `optsched.check.referee` and the modules it is made of: GPUs, speeds
and rules are written here anew for the one world of `forged_schedules`, and nothing is fast.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

PART, TICKS = Fraction(4, 10**6), 200  # of a job's seconds, ulp of its clock: what is less than this may be rounding
XI = Fraction(1.3)


@dataclass(frozen=True)
class Model:
    """What a job is made of: its speed model, and what that needs."""

    kind: str  # duration, table, stage, scaling
    gang: int
    batch: int = 0
    name: str = ""


@dataclass
class Truth:
    """What was found: rules that are broken whatever the rounding, and seconds that every job overdraws."""

    broken: set[str] = field(default_factory=set)
    overdrawn: defaultdict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    @property
    def exact(self) -> bool:
        return not self.broken and not any(self.overdrawn.values())


class World:
    """GPUs by (node, index) with a type and memory; rates of the throughput table by (name, type, gang)."""

    def __init__(
        self, nodes: list[tuple[str, int, float]], rates: dict[tuple[str, str, int], tuple[float, float]]
    ) -> None:
        self.nodes, self.rates = nodes, rates

    def pace(self, model: Model, gpus: list[Any], elastic: bool) -> Fraction | None:
        """Seconds a unit of work takes on these GPUs; None: it cannot run there."""
        kinds, spans = {self.nodes[n][0] for n, _ in gpus}, len({n for n, _ in gpus}) > 1
        width = len(gpus)
        if model.kind == "scaling":
            if not (1 <= width <= model.batch if elastic else width == model.gang):
                return None
            computing = Fraction(0.05) + Fraction(0.01) * -(-model.batch // width)
            if width == 1:
                return computing
            first, growth = (0.07, 0.03) if spans else (0.02, 0.01)
            return computing + Fraction(first) + Fraction(growth) * (width - 2)
        if width != model.gang:
            return None
        if model.kind == "duration":
            return Fraction(1)
        if model.kind == "stage":
            return Fraction(0.1) + Fraction(0.25)
        rows = [self.rates.get((model.name, kind, width), (0.0, 0.0)) for kind in kinds]
        if any(0 in row for row in rows):
            return None
        return 1 / Fraction(min(row[spans] for row in rows))


def truth(world: World, jobs: list[dict[str, Any]], models: list[Model], document: dict[str, Any]) -> Truth:
    """Judge a schedule document of jobs with ``arrival``, ``need``, ``memory``, ``types``."""
    found = Truth()
    index = {job["id"]: j for j, job in enumerate(jobs)}
    rows = []
    for row in document["segments"]:
        times = [float(row[name]) for name in ("start", "end", "work")]
        if row["job"] not in index or not all(math.isfinite(x) for x in times):
            found.broken.add("completeness")
            continue
        rows.append((index[row["job"]], row["gpus"], times[0], times[1], Fraction(times[2]), row.get("steps", 1)))
    sharing = document.get("sharing") is True
    elastic = document.get("elastic") is True and not sharing
    forking = document.get("forking") is True and not sharing and not elastic
    rows = [row for row in rows if _placed(world, jobs[row[0]], models[row[0]], row, elastic, found)]
    if found.broken:
        return found
    for j, job in enumerate(jobs):
        own = [row for row in rows if row[0] == j]
        _work(world, job, models[j], own, elastic, found, j)
        if not forking:
            _apart(own, found)
        if sharing and len(own) > 1 and document.get("preemptive") is False:
            found.broken.add("preemption")
        if document.get("preemptive") is False and not sharing:
            _one_run(own, found, j)
    if sharing:
        _shared(world, models, jobs, rows, found)
    else:
        _exclusive(rows, found)
        worth = [
            _meet(row, row) - (since - row[2]) for row, since in zip(rows, _works_from(rows, jobs, found), strict=True)
        ]
        _rates(rows, [_pace(world, models, row, elastic) for row in rows], worth, found)
    return found


def verdict(world: World, jobs: list[dict[str, Any]], models: list[Model], document: dict[str, Any]) -> str:
    """``legal``, ``illegal``, or ``close``: illegal by no more than rounding may be."""
    found = truth(world, jobs, models, document)
    if found.exact:
        return "legal"
    if found.broken:
        return "illegal"
    for j, seconds in found.overdrawn.items():
        times = [(row["start"], row["end"]) for row in document["segments"] if row["job"] == jobs[j]["id"]]
        busy = sum(Fraction(b) - Fraction(a) for a, b in times)
        tick = math.ulp(max(max(abs(a), abs(b)) for a, b in times))
        if seconds > PART * busy + TICKS * Fraction(tick):
            return "illegal"
    return "close"


def _pace(world: World, models: list[Model], row: tuple[Any, ...], elastic: bool) -> Fraction:
    pace = world.pace(models[row[0]], row[1], elastic)
    assert pace is not None
    return pace


def _placed(world: World, job: dict[str, Any], model: Model, row: tuple[Any, ...], elastic: bool, found: Truth) -> bool:
    _, gpus, start, end, work, steps = row
    pairs = [tuple(pair) for pair in gpus]
    real = [0 <= n < len(world.nodes) and 0 <= i < world.nodes[n][1] for n, i in pairs]
    fine = bool(pairs) and all(real) and len(set(pairs)) == len(pairs)
    fine = fine and not any(
        world.nodes[n][2] < job["memory"] or (job["types"] and world.nodes[n][0] not in job["types"]) for n, _ in pairs
    )
    fine = (
        fine and world.pace(model, gpus, elastic) is not None and start <= end and work >= 0 and (steps == 1 or elastic)
    )
    if not fine:
        found.broken.add("placement")
    return fine


def _work(world: World, job: dict[str, Any], model: Model, own: list[Any], elastic: bool, found: Truth, j: int) -> None:
    if not own:
        found.broken.add("completeness")
        return
    slowest = max(_pace(world, {j: model}, row, elastic) for row in own)  # type: ignore[arg-type]
    found.overdrawn[j] += abs(sum(row[4] for row in own) - Fraction(job["need"])) * slowest
    found.overdrawn[j] += sum(Fraction(job["arrival"]) - Fraction(row[2]) for row in own if job["arrival"] > row[2])


def _meet(a: Any, b: Any) -> Fraction:
    since, until = max(a[2], b[2]), min(a[3], b[3])  # floats are compared exactly
    return Fraction(until) - Fraction(since) if until > since else Fraction(0)


def _apart(own: list[Any], found: Truth) -> None:
    for a, b in combinations(own, 2):
        both = _meet(a, b)
        if both:
            found.overdrawn[a[0]] += both


def _works_from(rows: list[Any], jobs: list[dict[str, Any]], found: Truth) -> list[Fraction]:
    """When each segment begins to work: a job that was stopped is resumed first, at most until the segment ends."""
    moments = []
    for row in rows:
        start, cost = Fraction(row[2]), Fraction(jobs[row[0]].get("restart", 0.0))
        runs = [o for o in rows if o[0] == row[0] and o is not row and (o[3] > o[2] or o[4] > 0)]
        gaps = [_gap(o, row) for o in runs if o[2] < row[2] or (o[2] == row[2] and o[3] == o[2])]
        gaps = [gap for gap in gaps if gap is not None]
        if cost and any(o[2] < row[2] for o in runs):
            if gaps:  # it goes on, if that is rounding
                found.overdrawn[row[0]] += min(gaps)
            else:
                start = min(start + cost, Fraction(row[3]))
        moments.append(start)
    return moments


def _gap(before: Any, after: Any) -> Fraction | None:
    """Seconds between two segments of a job that may be one run, or None."""
    if {tuple(x) for x in before[1]} != {tuple(x) for x in after[1]} or before[5] != after[5]:
        return None
    gap, length = abs(Fraction(after[2]) - Fraction(before[3])), max(_meet(before, before), _meet(after, after))
    return gap if gap <= PART * length + TICKS * Fraction(math.ulp(max(abs(before[3]), abs(after[2])))) else None


def _one_run(own: list[Any], found: Truth, j: int) -> None:
    runs = sorted((row for row in own if row[3] > row[2] or row[4] > 0), key=lambda row: (row[2], row[3]))
    for a, b in pairwise(runs):
        found.overdrawn[j] += abs(Fraction(b[2]) - Fraction(a[3]))
        if {tuple(x) for x in a[1]} != {tuple(x) for x in b[1]}:
            found.broken.add("preemption")


def _exclusive(rows: list[Any], found: Truth) -> None:
    rows = [(*row, frozenset(map(tuple, row[1]))) for row in rows]
    for a, b in combinations(rows, 2):
        both = _meet(a, b)
        if both and a[-1] & b[-1]:
            for j in {a[0], b[0]}:
                found.overdrawn[j] += both


def _rates(rows: list[Any], paces: list[Fraction], worth: list[Fraction], found: Truth) -> None:
    """Work of a job beyond what its segments are worth; also if moved among them, only their sum is."""
    units, room = defaultdict(Fraction), defaultdict(Fraction)
    slow: dict[int, Fraction] = {}
    for (j, _, start, end, work, *_), pace, seconds in zip(rows, paces, worth, strict=True):
        units[j] += work
        room[j] += seconds / pace
        slow[j] = max(slow.get(j, pace), pace)
        over = work * pace - seconds
        if over > PART * seconds + TICKS * Fraction(math.ulp(max(abs(float(start)), abs(float(end))))):
            found.broken.add("rate")
        if over > 0:
            found.overdrawn[j] += over / 10**6  # it is not exact; what counts is what the job draws in all
        if end == start and over > Fraction(math.ulp(float(end))):
            found.broken.add("rate")
    for j in units:
        found.overdrawn[j] += max(units[j] - room[j], Fraction(0)) * slow[j]


def _shared(world: World, models: list[Model], jobs: list[Any], rows: list[Any], found: Truth) -> None:
    worth = []
    begins = _works_from(rows, jobs, found)
    for s, row in enumerate(rows):
        mine = {tuple(x) for x in row[1]}
        others = [o for k, o in enumerate(rows) if k != s and _meet(row, o) > 0 and mine & {tuple(x) for x in o[1]}]
        cuts = sorted({row[2], row[3], *(min(max(t, row[2]), row[3]) for o in others for t in o[2:4])})
        gained = Fraction(0)
        for a, b in pairwise(cuts):
            here = [o for o in others if o[2] <= a and b <= o[3]]
            length = Fraction(b) - Fraction(a)
            gained += max(min(length, Fraction(b) - begins[s]), Fraction(0)) / (XI if here else 1)
            for gpu in mine:
                beside = [o for o in here if gpu in {tuple(x) for x in o[1]}]
                room = world.nodes[gpu[0]][2]
                if len(beside) > 1:
                    found.overdrawn[row[0]] += length
                if any(jobs[o[0]]["memory"] + jobs[row[0]]["memory"] > room for o in beside):
                    found.overdrawn[row[0]] += length
        worth.append(gained)
    _rates(rows, [_pace(world, models, row, False) for row in rows], worth, found)
