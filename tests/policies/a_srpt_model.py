"""A-SRPT a second way, in plain Python: SRPT by scanning, the strict dispatcher one job after another, small optima.

Shares no code with the policy. All functions work in ints, fractions or floats, whatever they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Number = Any
# what a job would be given now: its alpha, or None when it does not fit; `running` are (end, job) of those before it
Offer = Callable[[int, list[tuple[Number, int]]], Number | None]


def srpt_points(release: Sequence[Number], length: Sequence[Number], beta: Number = 1) -> list[Number]:
    """When SRPT, smallest (remaining, job) first and preempting for strictly less only, has done beta of every job.

    From event to event, with a scan of all jobs at each.
    """
    n = len(release)
    left, point = list(length), [None] * n
    serving: int | None = None
    now = min(release, default=0)
    while any(x > 0 for x in left):
        here = [j for j in range(n) if release[j] <= now and left[j] > 0]
        coming = [r for r in release if r > now]
        if not here:
            now = min(coming)
            serving = None
            continue
        best = min(here, key=lambda j: (left[j], j))
        if serving is None or left[serving] <= 0 or left[best] < left[serving]:
            serving = best
        done = now + left[serving]
        until = min([done, *coming])
        after = 0 if until == done else left[serving] - (until - now)
        behind = length[serving] - beta * length[serving]
        if point[serving] is None and after <= behind:
            point[serving] = now + (left[serving] - behind)
        left[serving], now = after, until
    return point


def dispatched(
    point: Sequence[Number],
    work: Sequence[Number],
    offer: Offer,
    patience: Sequence[Number],
    good: Sequence[Number],
    *,
    alone: bool = True,
) -> list[tuple[Number, Number]]:
    """(start, end) of every job: the strict queue in the order of ``point``, one job after another.

    A job starts when its predecessors have and it fits; while it is offered an alpha above ``good[j]`` it waits for the next
    completion, as long as ``patience[j]`` lasts and others run (``alone`` false: whoever runs). Only jobs before it matter,
    since nothing overtakes.
    """
    times: dict[int, tuple[Number, Number]] = {}
    clock = 0
    for j in sorted(range(len(point)), key=lambda k: (point[k], k)):
        clock, budget = max(clock, point[j]), patience[j]
        while True:
            running = sorted((end, k) for k, (_, end) in times.items() if end > clock)
            pace = offer(j, running)
            if pace is not None and (pace <= good[j] or budget <= 0 or (alone and not running)):
                break
            following = running[0][0] if running else None
            if pace is not None:
                expiry = clock + budget
                if following is None or expiry <= following:
                    clock, budget = expiry, 0
                else:
                    clock, budget = following, expiry - following
            else:
                clock = following
        times[j] = clock, clock + work[j] * pace
    return [times[j] for j in range(len(point))]


def smallest_total(release: Sequence[Number], duration: Sequence[Number], gpus: Sequence[int], total: int) -> Number:
    """The least sum of completion times of rigid gangs, not preemptive, by branch and bound over all orders.

    Every job at its earliest feasible start given those already placed; up to seven jobs or so.
    """
    n = len(release)
    alone = [r + d for r, d in zip(release, duration, strict=True)]
    best = [sum(alone) + n * (max(release) + sum(duration))]

    def earliest(j: int, placed: list[tuple[Number, Number, int]]) -> Number:
        r, d, room = release[j], duration[j], total - gpus[j]
        for start in sorted({r, *(end for _, end, _ in placed if end > r)}):
            stop = start + d
            near = [row for row in placed if row[0] < stop and row[1] > start]
            moments = [start, *(s for s, _, _ in near if s > start)]
            if all(sum(g for s, e, g in near if s <= t < e) <= room for t in moments):
                return start
        raise AssertionError("after the last end every job fits")

    def search(left: list[int], placed: list[tuple[Number, Number, int]], cost: Number, rest: Number) -> None:
        if not left:
            best[0] = min(best[0], cost)
            return
        for j in left:
            start = earliest(j, placed)
            end = start + duration[j]
            if cost + end + rest - alone[j] < best[0]:
                others = [k for k in left if k != j]
                search(others, [*placed, (start, end, gpus[j])], cost + end, rest - alone[j])

    search(sorted(range(n), key=lambda j: alone[j]), [], 0, sum(alone))
    return best[0]
