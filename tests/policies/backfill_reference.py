"""Backfilling once more, slowly and word for word: exact numbers, no profile, every candidate time is tried.

A row is (r, p, e, q): submitted, run time, believed run time >= p, GPUs; rows are in order of the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from optsched.problem.instance import Instance, Job
from optsched.simulation.metrics import first_starts
from optsched.simulation.run import Run

Row = tuple[Any, Any, Any, int]  # r, p, e, q


def instance_of(rows: Sequence[Row], m: int, **changes: Any) -> Instance:
    jobs = [Job(str(j), arrival=r, duration=p, walltime=e, gpus=q) for j, (r, p, e, q) in enumerate(rows)]
    return Instance(jobs, f"1x{m}", **changes)


def starts_of(run: Run) -> list[float]:
    return first_starts(run.schedule).tolist()


def easy(rows: Sequence[Row], m: int, by_length: bool = False) -> list[Any]:
    """EASY as Feitelson writes it: one shadow time, and GPUs that are extra then."""
    starts: dict[int, Any] = {}
    for now in _instants(rows, starts):
        queue = [j for j, row in enumerate(rows) if row[0] <= now and j not in starts]
        free = m - sum(rows[j][3] for j, start in starts.items() if now < start + rows[j][1])
        while queue and rows[queue[0]][3] <= free:
            j = queue.pop(0)
            starts[j] = now
            free -= rows[j][3]
        if not queue:
            continue
        shadow, extra = shadow_of(rows, starts, queue[0], now, m)
        behind = queue[1:]
        for j in sorted(behind, key=lambda j: (rows[j][2], j)) if by_length else behind:
            _, _, e, q = rows[j]
            if q <= free and (now + e <= shadow or q <= extra):
                starts[j] = now
                free -= q
                extra -= q if now + e > shadow else 0
    return [starts[j] for j in range(len(rows))]


def shadow_of(rows: Sequence[Row], starts: dict[int, Any], head: int, now: Any, m: int) -> tuple[Any, int]:
    """The first believed end by which the head fits, and the GPUs that it leaves then."""
    running = [j for j, start in starts.items() if start <= now < start + rows[j][1]]
    free = m - sum(rows[j][3] for j in running)
    for end in sorted({starts[j] + rows[j][2] for j in running}):
        by_then = free + sum(rows[j][3] for j in running if starts[j] + rows[j][2] <= end)
        if by_then >= rows[head][3]:
            return end, by_then - rows[head][3]
    raise AssertionError("the head never fits")


def conservative(rows: Sequence[Row], m: int) -> tuple[list[Any], list[Any]]:
    """Starts, and the promises made on submission."""
    starts: dict[int, Any] = {}
    place: dict[int, Any] = {}  # of all jobs that were submitted
    promised: dict[int, Any] = {}

    def earliest(j: int, now: Any) -> Any:
        e, q = rows[j][2:]
        others = [(place[i], _believed_end(rows, starts, i, place[i], now), rows[i][3]) for i in place if i != j]
        for t in sorted({now, *(end for _, end, _ in others if end > now)}):
            moments = {t, *(begin for begin, _, _ in others if t < begin < t + e)}
            if all(sum(g for begin, end, g in others if begin <= at < end) + q <= m for at in moments):
                return t
        raise AssertionError("no place")

    for now in _instants(rows, starts, place):
        early = [j for j in starts if starts[j] + rows[j][1] == now < starts[j] + rows[j][2]]
        for j in [j for j in sorted(place) if j not in starts] if early else []:
            place[j] = earliest(j, now)
        for j in range(len(rows)):
            if j not in place and rows[j][0] <= now:
                promised[j] = place[j] = earliest(j, now)
        starts.update({j: now for j, begin in place.items() if j not in starts and begin <= now})
    every = range(len(rows))
    return [starts[j] for j in every], [promised[j] for j in every]


def _believed_end(rows: Sequence[Row], starts: dict[int, Any], j: int, begin: Any, now: Any) -> Any:
    ended = j in starts and starts[j] + rows[j][1] <= now
    return begin if ended else begin + rows[j][2]


def _instants(rows: Sequence[Row], starts: dict[int, Any], place: dict[int, Any] | None = None) -> Any:
    # All times at which a job is submitted, ends or is to start by its reservation.
    now = min((row[0] for row in rows), default=None)
    while now is not None:
        yield now
        times = [row[0] for row in rows] + [starts[j] + rows[j][1] for j in starts]
        times += [begin for j, begin in (place or {}).items() if j not in starts]
        now = min((time for time in times if time > now), default=None)


def delayed_heads(rows: Sequence[Row], starts: Sequence[Any], m: int) -> tuple[int, int]:
    """(P1) instants at which backfilling moves the shadow of the head to a later time, and instants with backfilling.

    It looks at starts alone, whoever made them: jobs that start while an earlier one waits are backfilled.
    """
    wrong = tried = submitted = 0
    waiting: list[int] = []
    active: dict[int, Any] = {}
    by_start = sorted(range(len(rows)), key=lambda j: (starts[j], j))
    for now, group in groupby(by_start, key=lambda j: starts[j]):
        new = set(group)
        while submitted < len(rows) and rows[submitted][0] <= now:
            waiting.append(submitted)
            submitted += 1
        waiting = [j for j in waiting if j not in new]
        active = {j: start for j, start in active.items() if now < start + rows[j][1]}
        head = waiting[0] if waiting else len(rows)
        before = {**active, **{j: now for j in new if j < head}}
        active |= dict.fromkeys(new, now)
        if len(before) < len(active):
            tried += 1
            free = m - sum(rows[j][3] for j in before)
            was = now if free >= rows[head][3] else shadow_of(rows, before, head, now, m)[0]
            wrong += shadow_of(rows, active, head, now, m)[0] > was
    return wrong, tried


def idle_heads(rows: Sequence[Row], starts: Sequence[Any], m: int) -> int:
    """(P4) instants at which the head of the queue waits although its GPUs are free."""
    found = 0
    for now in sorted({*starts, *(row[0] for row in rows), *(s + row[1] for s, row in zip(starts, rows, strict=True))}):
        waiting = [j for j, row in enumerate(rows) if row[0] <= now < starts[j]]
        busy = sum(row[3] for row, start in zip(rows, starts, strict=True) if start <= now < start + row[1])
        found += bool(waiting) and m - busy >= rows[waiting[0]][3]
    return found
