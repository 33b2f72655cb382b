"""Communication rules on transfers, in plain Python: the reference for the compiled simulation and for ratios to optima.

At every release or completion (all of one moment together) the waiting transfers are asked in order of (size, index); one
that may start does so at once, and the next one sees it running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from events import State, contended, played, run

RULES = ("srsf:1", "srsf:2", "srsf:3", "adadual", "k-way")


def completions(
    release: Sequence[Any], size: Sequence[Any], links: Sequence[Sequence[int]], b: Any, eta: Any, rule: str
) -> list[Any]:
    """C_j of every transfer under ``rule``: one of `RULES`."""

    def may_start(j: int, state: State) -> bool:
        # bytes that the transfers on each link of j have left
        beside = [[x for i, x in state.left.items() if link in links[i]] for link in links[j]]
        if rule == "adadual":
            few = max(map(len, beside)) < 2
            return few and all(2 * (b + eta) * size[j] < b * x for here in beside for x in here)
        if rule == "k-way":  # on several links: each must be willing, looked at by itself
            return all(now_is_better(here, size[j], b, eta) for here in beside if here)
        return all(len(here) < int(rule.removeprefix("srsf:")) for here in beside)

    def choose(j: int, state: State) -> Sequence[int] | None:
        return links[j] if may_start(j, state) else None

    rank = sorted(range(len(size)), key=lambda j: (size[j], j)).index
    return [end for *_, end in run(release, lambda j, _: size[j], choose, contended(b, eta), rank)]


def now_is_better(running: Sequence[Any], new: Any, b: Any, eta: Any) -> bool:
    """Is the sum of completions strictly smaller when ``new`` starts now than when it starts at the next completion?"""
    sizes, pace = [*running, new], contended(b, eta)
    first = min(running) * (len(running) * b + (len(running) - 1) * eta)
    now, later = (
        sum(played([*[0] * len(running), start], sizes, [(0,)] * len(sizes), pace)) for start in (0 * first, first)
    )
    return bool(now < later)
