"""Policies in plain Python that tests make: one that answers, and one that is asked about every waiting job in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from optsched import Start


@dataclass
class Asked:
    """Whatever a test wants: ``answer(view)`` at every question; remembers when it was asked."""

    answer: Callable[[Any], Any]
    knowledge: str = "clairvoyant"
    name: str = "asked"
    uses: tuple[str, ...] = ()
    restart: float = 0.0
    times: list[float] = field(default_factory=list)

    def decide(self, view: Any) -> Any:
        self.times.append(view.now)
        return self.answer(view)


@dataclass
class Ordered:
    """The queue order that ``order(jobs)`` gives."""

    order: Callable[[Any], Any]
    knowledge: str = "clairvoyant"
    name: str = "ordered"
    uses: tuple[str, ...] = ()


class OneByOne:
    """`choose` says where a job starts, None: it waits. ``strict``: the first who has to wait blocks the others."""

    name, knowledge, uses, strict = "mine", "clairvoyant", ("sharing",), False

    def decide(self, view: Any) -> Iterator[Any]:
        for job in sorted(view.waiting, key=lambda j: (self.key(view, j), j)):
            start = self.choose(view, job)
            if start is not None:
                yield start
            elif self.strict:
                return

    def key(self, view: Any, job: int) -> float:
        return float(view.alone(job))

    def choose(self, view: Any, job: int) -> Start | None:
        raise NotImplementedError


class FirstFree(OneByOne):
    """Every job in order of arrival on the first free GPUs, counted by node; who does not fit is passed over."""

    name, knowledge = "first-free", "non-clairvoyant"

    def __init__(self, *uses: str) -> None:
        self.uses = uses  # type: ignore[assignment]

    def key(self, view: Any, job: int) -> float:
        return float(view.arrival(job))

    def choose(self, view: Any, job: int) -> Start | None:
        missing, on = view.gpus(job), []
        for node, free in enumerate(view.free.tolist()):
            if free and missing:
                on.append((node, min(free, missing)))
                missing -= on[-1][1]
        return None if missing else Start(job, on=tuple(on))
