"""Communication rules on transfers, in plain Python: the reference for the compiled simulation and for ratios to optima.

Any kind of numbers goes through, so that `fractions.Fraction` stays exact. Semantics: at every release or completion (all of
one moment together) the waiting transfers are asked in order of (size, index); one that may start does so at once, and the
next one sees it running.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Left = dict[int, Any]  # bytes left of every running transfer

RULES = ("srsf:1", "srsf:2", "srsf:3", "adadual", "k-way")


def completions(
    release: Sequence[Any], size: Sequence[Any], links: Sequence[Sequence[int]], b: Any, eta: Any, rule: str
) -> list[Any]:
    """C_j of every transfer under ``rule``: one of `RULES`."""
    may_start = _rule(rule, size, links, b, eta)
    n = len(size)
    left: Left = {}
    done: dict[int, Any] = {}
    now: Any = 0
    while len(done) < n:
        for j in sorted(range(n), key=lambda j: (size[j], j)):
            if release[j] <= now and j not in left and j not in done and may_start(j, left):
                left[j] = size[j]
        pace = {}
        for j in left:
            k = max(sum(link in links[i] for i in left) for link in links[j])
            pace[j] = k * b + (k - 1) * eta
        ends = {j: now + left[j] * pace[j] for j in left}
        then = min([*ends.values(), *(r for r in release if r > now)])
        for j, end in ends.items():
            left[j] -= (then - now) / pace[j]
            if end <= then:
                done[j] = then
                del left[j]
        now = then
    return [done[j] for j in range(n)]


def _rule(
    rule: str, size: Sequence[Any], links: Sequence[Sequence[int]], b: Any, eta: Any
) -> Callable[[int, Left], bool]:
    def beside(j: int, left: Left) -> list[list[Any]]:
        # what is left of the transfers that run on each link of j
        return [[x for i, x in left.items() if link in links[i]] for link in links[j]]

    def srsf(j: int, left: Left) -> bool:
        return all(len(running) < most for running in beside(j, left))

    def adadual(j: int, left: Left) -> bool:
        running = beside(j, left)
        if max(map(len, running)) >= 2:
            return False
        return all(2 * (b + eta) * size[j] < b * x for here in running for x in here)

    def k_way(j: int, left: Left) -> bool:
        # on several links: each must be willing, looked at by itself
        return all(now_is_better(here, size[j], b, eta) for here in beside(j, left) if here)

    if rule.startswith("srsf:"):
        most = int(rule.removeprefix("srsf:"))
        return srsf
    return {"adadual": adadual, "k-way": k_way}[rule]


def now_is_better(running: Sequence[Any], new: Any, b: Any, eta: Any) -> bool:
    """Is the sum of completions strictly smaller when ``new`` starts now than when it starts at the next completion?"""
    x = sorted(running)
    wait = x[0] * (len(x) * b + (len(x) - 1) * eta)
    later = [y - x[0] for y in x[1:]]
    return sum(drain([*x, new], b, eta)) < wait + len(x) * wait + sum(drain([*later, new], b, eta))


def drain(sizes: Sequence[Any], b: Any, eta: Any) -> list[Any]:
    """Completion times, ascending, of transfers that run on one link until all are done."""
    return sorted(played([0] * len(sizes), sizes, b, eta))


def played(starts: Sequence[Any], sizes: Sequence[Any], b: Any, eta: Any) -> list[Any]:
    """When transfers on one link end that start at these times: from event to event, everyone at 1 / (k b + (k - 1) eta)."""
    left, ends, clock = list(sizes), [Fraction(-1)] * len(sizes), Fraction(0)
    while any(size > 0 for size in left):
        active = [i for i, size in enumerate(left) if size > 0 and starts[i] <= clock]
        pace = len(active) * b + (len(active) - 1) * eta
        events = [start for start, size in zip(starts, left, strict=True) if size > 0 and start > clock]
        done = {i: clock + left[i] * pace for i in active}
        then = min([*events, *done.values()])
        for i in active:
            left[i] = 0 if done[i] == then else left[i] - (then - clock) / pace
            if left[i] == 0:
                ends[i] = then
        clock = then
    return ends
