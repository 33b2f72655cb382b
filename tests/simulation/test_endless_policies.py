"""A policy in plain Python that would go on for ever is stopped with one line that names it and the time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

import optsched as osd
from optsched.simulation import wakes
from optsched.simulation.wakes import Wakes
from simulation.plain_policies import Asked


class Waker:
    """Starts what fits (or, ``lazy``, nothing) and asks to be woken ``step(k)`` seconds after its k-th decision."""

    name = "waker"
    knowledge = "non-clairvoyant"

    def __init__(self, step: Callable[[int], float], *, lazy: bool = False) -> None:
        self.step, self.lazy, self.asked = step, lazy, 0

    def decide(self, view: osd.Policy) -> Iterator[object]:
        self.asked += 1
        for job in [] if self.lazy else view.waiting:
            if view.fits(job):
                yield osd.Start(job)
        yield osd.Wake(view.now + self.step(self.asked))


def two_jobs(gap: float = 50.0) -> osd.Instance:
    return osd.Instance([osd.Job("a", duration=100), osd.Job("b", arrival=gap, duration=7)], "1x1")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakes, "WOKEN_LIMIT", 1000)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Waker(lambda k: 1.0, lazy=True), r"policy waker at 10050 s: .*every 1 s on average.*nothing else will happen"),
        (Waker(lambda k: 1e-9), r"policy waker at 1e-06 s: .*the next event is at 50 s"),
        (Waker(lambda k: 1 / k**3), r"policy waker at 1\.\d+ s: .*the next event is at 50 s"),
        (Waker(lambda k: 2.0**-k), r"policy waker at 1 s: Wake.* is not later than now"),
        (Waker(lambda k: 0.0), r"policy waker at 0 s: Wake.* is not later than now"),
    ],
    ids=["nothing to come", "every nanosecond", "ever sooner", "sooner than the clock tells", "at the same time"],
)
def test_it_is_stopped_and_named(policy: Waker, message: str) -> None:
    with pytest.raises(osd.SimulationError, match=message) as caught:
        osd.simulate(two_jobs(), policy)
    assert "\n" not in str(caught.value)


def test_starting_and_stopping_every_nanosecond_is_no_way_out() -> None:
    def fidget(view: osd.Policy) -> Iterator[object]:
        running = list(view.running)
        yield from map(osd.Stop, running)
        yield from map(osd.Start, [] if running else view.waiting[:1])
        yield osd.Wake(view.now + 1e-9)

    with pytest.raises(osd.SimulationError, match=r"policy asked .*woken"):
        osd.simulate(two_jobs(), Asked(fidget))


def test_often_is_not_for_ever() -> None:
    # 10,000 wakes without an event between them: ten times the patience, and the next event is in reach.
    patient = Waker(lambda k: 0.01)
    assert osd.simulate(two_jobs(), patient).value("makespan") == 107
    assert patient.asked > 10_000


def test_a_policy_may_wait_a_while_before_it_starts() -> None:
    def late(view: osd.Policy) -> Iterator[object]:
        if view.now >= 60:
            yield from map(osd.Start, [j for j in view.waiting[:1] if view.fits(j)])
        yield osd.Wake(view.now + 0.1)

    assert osd.simulate(two_jobs(), Asked(late)).value("makespan") == pytest.approx(167, abs=1)


def test_wakes_that_have_passed_are_forgotten() -> None:
    kept = Wakes("p")
    for time in (3.0, 1.0, 2.0):
        kept.add(time)
    assert kept.due(1.0, math.inf, quiet=False, acted=False) == 2.0
    assert kept.due(3.0, math.inf, quiet=False, acted=False) == math.inf


def sliver(work: float) -> Asked:
    """Starts copies of ``work`` units for ever."""

    def copies(view: osd.Policy) -> Iterator[object]:
        if view.waiting and not view.running:
            job = view.waiting[0]
            yield osd.Start(job, on=[(0, 1)], work=min(work, view.remaining(job)))

    return Asked(copies, uses=("copies",))


def test_copies_that_do_next_to_nothing_are_stopped() -> None:
    with pytest.raises(osd.SimulationError, match=r"policy asked at .*did no work to speak of.*a ten-millionth"):
        osd.simulate(two_jobs(), sliver(1e-9))


def test_small_copies_are_no_crime() -> None:
    assert osd.simulate(two_jobs(), sliver(0.04)).value("makespan") == pytest.approx(107)


def test_a_policy_that_moves_all_jobs_before_they_have_restarted_is_stopped() -> None:
    """It went on for ever: rounds no longer than a restart, and two jobs that exchange their GPUs in every one."""
    instance = osd.load("ddl-06-3")
    with pytest.raises(osd.SimulationError, match=r"policy goodput:round=30 .*no job has worked.*restart of 30 s"):
        osd.simulate(instance, "goodput:round=30")
    slow = osd.simulate(instance, "goodput:round=31")
    assert not slow.unfinished
