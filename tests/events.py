"""The one reference of jobs whose speed depends on who else runs: from event to event, in any numbers, slowly.

A speed model is a function ``pace``: of {job: how it runs} it says how many seconds a unit of everybody's work takes. `run`
plays jobs that a rule starts, `played` jobs that start at given times, and `least` goes through every way to start jobs at
arrivals and completions, which is the optimum of many tests. Nothing of optsched is used; fractions stay fractions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Running = dict[int, Any]  # job: how it runs, for example on which GPUs
Pace = Callable[[Running], dict[int, Any]]
Jobs = dict[int, Any]


def contended(b: Any, eta: Any) -> Pace:
    """Transfers, each on some links: k on a link move a byte in k b + (k - 1) eta, and the slowest link counts."""

    def pace(running: Running) -> Jobs:
        users = Counter(link for links in running.values() for link in links)
        most = {j: max(users[link] for link in links) for j, links in running.items()}
        return {j: k * b + (k - 1) * eta for j, k in most.items()}

    return pace


def shared(xi: Callable[[int, int], Any], alone: Callable[[int], Any] = lambda j: 1) -> Pace:
    """Gangs, each a collection of GPUs, at most two of them on a GPU: the worst partner counts."""

    def pace(running: Running) -> Jobs:
        assert max(Counter(gpu for gang in running.values() for gpu in gang).values(), default=0) <= 2
        beside = {j: [k for k in running if k != j and set(running[k]) & set(gang)] for j, gang in running.items()}
        return {j: alone(j) * max([1, *(xi(j, k) for k in others)]) for j, others in beside.items()}

    return pace


def advance(now: Any, left: Jobs, pace: Jobs, coming: Iterable[Any]) -> tuple[Any, Jobs] | None:
    """(moment, what those who still run have left) of the next completion or ``coming`` time; None: nothing happens."""
    ends = {j: now + units * pace[j] for j, units in left.items()}
    then = min([*ends.values(), *(time for time in coming if time > now)], default=None)
    if then is None:
        return None
    return then, {j: units - (then - now) / pace[j] for j, units in left.items() if ends[j] > then}


@dataclass
class State:
    """Who runs how, what they have left, and when the others ran: (how, start, end)."""

    now: Any
    running: Running = field(default_factory=dict)
    left: Jobs = field(default_factory=dict)
    since: Jobs = field(default_factory=dict)
    ended: dict[int, tuple[Any, Any, Any]] = field(default_factory=dict)

    def start(self, j: int, how: Any, work: Any) -> None:
        self.running[j], self.left[j], self.since[j] = how, work, self.now


def run(
    release: Sequence[Any],
    work: Callable[[int, Any], Any],
    choose: Callable[[int, State], Any],
    pace: Pace,
    order: Callable[[int], Any] = lambda j: 0,
) -> list[tuple[Any, Any, Any]]:
    """(how, start, end) of every job.

    At every release and completion the waiting jobs are asked by (order, release, index), each with those before it running:
    ``choose(j, state)`` says how j starts, or None. ``work(j, how)``: its units.
    """
    n, state = len(release), State(min(release, default=0))
    while True:
        waiting = [j for j in range(n) if release[j] <= state.now and j not in state.running and j not in state.ended]
        for j in sorted(waiting, key=lambda j: (order(j), release[j], j)):
            how = choose(j, state)
            if how is not None:
                state.start(j, how, work(j, how))
        step = advance(state.now, state.left, pace(state.running), release)
        if step is None:
            assert len(state.ended) == n, "nobody runs, and some wait for ever"
            return [state.ended[j] for j in range(n)]
        state.now, state.left = step
        for j in [j for j in state.running if j not in state.left]:
            state.ended[j] = state.running.pop(j), state.since.pop(j), state.now


def played(start: Sequence[Any], work: Sequence[Any], how: Sequence[Any], pace: Pace) -> list[Any]:
    """When jobs end that start at these times."""
    return [end for *_, end in run(start, lambda j, _: work[j], lambda j, _: how[j], pace)]


def least(
    release: Sequence[Any],
    work: Sequence[Any],
    ways: Callable[[int, Running], Iterator[Any] | Sequence[Any]],
    pace: Pace,
    *,
    fastest: Sequence[Any],
    value: Callable[[list[Any]], Any] = sum,
    close: float = 0,
) -> Any:
    """The least ``value`` of the completions over all schedules that start jobs at releases and completions.

    ``ways(j, running)``: how j may start beside those that run. Depth first; a branch ends where it is no better even if
    each unit still to do took ``fastest[j]`` seconds: ``value`` must not fall with a completion. In floats what is better by
    less than ``close`` of the best is no better. Exponential.
    """
    n, best = len(release), math.inf

    def go(now: Any, running: Running, left: Jobs, ended: Jobs) -> None:
        nonlocal best
        soonest = [
            ended[j] if j in ended else max(now, release[j]) + left.get(j, work[j]) * fastest[j] for j in range(n)
        ]
        worth = value(soonest)
        if best < math.inf and worth >= best - best * close:
            return
        if len(ended) == n:
            best = worth
        else:
            waiting = [j for j in range(n) if release[j] <= now and j not in running and j not in ended]
            choose(now, waiting, running, left, ended)

    def choose(now: Any, waiting: list[int], running: Running, left: Jobs, ended: Jobs) -> None:
        if waiting:
            j, *later = waiting
            for how in ways(j, running):
                choose(now, later, {**running, j: how}, {**left, j: work[j]}, ended)
            choose(now, later, running, left, ended)
        elif (step := advance(now, left, pace(running), release)) is not None:
            then, after = step
            over = {j: then for j in running if j not in after}
            go(then, {j: running[j] for j in after}, after, ended | over)

    go(min(release, default=0), {}, {}, {})
    return best
