"""Jobs that share GPUs, played from event to event by nothing but their speeds: what closed forms are tested against.

Any kind of numbers, so that fractions stay fractions; without preemption. It shares nothing with optsched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any


def played(
    start: Sequence[Any], alone: Sequence[Any], gangs: Sequence[Collection[int]], xi: Callable[[int, int], Any]
) -> list[list[tuple[Any, Any, Any]]]:
    """(from, to, speed) of every piece of every job; job j starts at ``start[j]`` on the GPUs ``gangs[j]``.

    The speed is 1 / max over its GPUs of ``xi(j, partner there)``. At most two jobs on a GPU, else an `AssertionError`.
    """
    left, now = list(alone), min(start)
    pieces: list[list[tuple[Any, Any, Any]]] = [[] for _ in alone]
    while any(work > 0 for work in left):
        active = [j for j, work in enumerate(left) if work > 0 and start[j] <= now]
        for gpu in {gpu for j in active for gpu in gangs[j]}:
            assert sum(gpu in gangs[j] for j in active) <= 2
        speed = {}
        for j in active:
            partners = [other for other in active if other != j and set(gangs[j]) & set(gangs[other])]
            speed[j] = 1 / max(xi(j, other) for other in partners) if partners else 1
        events = [s for s, work in zip(start, left, strict=True) if work > 0 and s > now]
        ends = {j: now + left[j] / speed[j] for j in active}
        then = min([*events, *ends.values()])
        for j in active:
            pieces[j].append((now, then, speed[j]))
            left[j] = 0 if ends[j] == then else left[j] - (then - now) * speed[j]
        now = then
    return pieces


def completions(
    start: Sequence[Any], alone: Sequence[Any], gangs: Sequence[Collection[int]], xi: Callable[[int, int], Any]
) -> list[Any]:
    """When they end."""
    return [job[-1][1] for job in played(start, alone, gangs, xi)]
