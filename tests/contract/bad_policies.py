"""Policies that do what no policy does, one a check, named after it; and one that is as it should be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import optsched as osd


class Good:
    """The shortest first."""

    name, knowledge = "good", "clairvoyant"

    def key(self, view: Any, job: int) -> Any:
        return view.duration(job), view.arrival(job)

    def decide(self, view: Any) -> Iterator[Any]:
        for job in sorted(view.waiting, key=lambda j: self.key(view, j)):
            if view.fits(job):
                yield osd.Start(job)


class Feasible(Good):
    """Starts whoever waits, whether there is room or not."""

    def decide(self, view: Any) -> Iterator[Any]:
        for job in sorted(view.waiting):
            yield osd.Start(job)


class Complete(Good):
    """Never starts a wide gang."""

    def decide(self, view: Any) -> Iterator[Any]:
        for job in sorted(view.waiting):
            if view.gpus(job) < 3 and view.fits(job):
                yield osd.Start(job)


class Deterministic(Good):
    """Draws without a seed."""

    def key(self, view: Any, job: int) -> Any:
        return random.random()


class Clock(Good):
    """Looks at the date."""

    def key(self, view: Any, job: int) -> Any:
        return view.duration(job) * (-1 if view.epoch > 500 else 1), view.arrival(job)


class Unit(Good):
    """Takes five for a long time."""

    def key(self, view: Any, job: int) -> Any:
        return view.duration(job) > 5, view.arrival(job)


class Names:
    """In the order of the ids."""

    name, knowledge = "names", "non-clairvoyant"

    def order(self, jobs: Any) -> osd.Order:
        ranked = {job: float(k) for k, job in enumerate(sorted(jobs.ids))}
        return osd.Order(key=jobs.arrival * 0 + [ranked[job] for job in jobs.ids])


class Order:
    """In the order of the file."""

    name, knowledge = "order", "non-clairvoyant"

    def order(self, jobs: Any) -> osd.Order:
        return osd.Order(key=np.arange(jobs.n, dtype=float))


class Knowledge:
    """An order that looks at the jobs which have yet to arrive."""

    name, knowledge = "knowledge", "clairvoyant"

    def order(self, jobs: Any) -> osd.Order:
        return osd.Order(key=jobs.duration * (-1 if jobs.duration.max() > 12.5 else 1))


class Asks(Good):
    """Asks for what it says it does not know."""

    name, knowledge = "asks", "non-clairvoyant"


class Memory(Good):
    """Remembers how often it has been asked, in all runs."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view: Any) -> Iterator[Any]:
        self.asked += 1
        yield from super().decide(view)

    def key(self, view: Any, job: int) -> Any:
        return view.duration(job) * (-1 if self.asked > 40 else 1), view.arrival(job)


class Pickles(Good):
    """Holds a function that has no name."""

    def __init__(self) -> None:
        self.sign: Callable[[float], float] = lambda value: value

    def key(self, view: Any, job: int) -> Any:
        return self.sign(view.duration(job)), view.arrival(job)


class Parameters(Good):
    """Refuses what it takes by default, and means no time at all."""

    restart = -1.0

    def __init__(self, patience: int = 3) -> None:
        self.patience = patience + 1


class Sleeper(Good):
    """Wakes itself every five seconds: it has seconds of its own."""

    def decide(self, view: Any) -> Iterator[Any]:
        yield from super().decide(view)
        if view.waiting:
            yield osd.Wake(view.now + 5)
