"""A stop that a policy plans is carried out as one that it wakes for, and it is not asked about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from examples import few

from optsched.check.referee import check_schedule
from optsched.compiled import without_interpreting
from optsched.errors import SimulationError
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Decision, Knowledge, Moves, Start, Stop, View, Wake
from optsched.simulation.run import Run
from simulation.plain_policies import Asked


@dataclass
class Slices:
    """Whoever fits runs for ``length`` seconds, then another: by stops that are planned, or at which it is asked."""

    length: float
    planned: bool
    one_by_one: bool = False
    asked: int = field(default=0, init=False)
    until: dict[int, float] = field(default_factory=dict, init=False)
    served: list[int] = field(default_factory=list, init=False)

    name: ClassVar[str] = "slices"
    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("nodes",)

    def decide(self, view: View) -> list[Decision]:
        """Only every length seconds, at an arrival or at a completion; those served longest ago first."""
        self.asked += 1
        decisions: list[Decision] = []
        for j in view.finished:
            self.until.pop(j)
        if not self.planned:
            due = sorted((time, j) for j, time in self.until.items() if time <= view.now)
            decisions = [Stop(j) for _, j in due]
            over = {j for _, j in due}
        else:
            over = {j for j, time in self.until.items() if time <= view.now}
        free = view.free
        for j in over:
            del self.until[j]
            if not self.planned:
                free[0] += view.gpus(j)
        if over or view.arrived or view.finished:
            for j in sorted((j for j in view.active.tolist() if j not in self.until), key=self._turn):
                if view.gpus(j) <= free[0]:
                    free[0] -= view.gpus(j)
                    self.until[j] = view.now + self.length * (1 + j % 3)
                    self.served.append(j)
                    decisions.append(Start(j, on=((0, view.gpus(j)),)))
                    if self.planned:
                        decisions.append(Stop(j, at=self.until[j]))
        if self.until:
            # Who plans is asked when the last of the slices ends; who wakes, at every end of one.
            decisions.append(Wake(max(self.until.values()) if self.planned else min(self.until.values())))
        return decisions

    def _turn(self, j: int) -> tuple[int, int]:
        return (len(self.served) - self.served[::-1].index(j) if j in self.served else 0, j)


@dataclass
class InArrays(Slices):
    """The same in arrays, in any order, each stop planned twice."""

    def decide(self, view: View) -> list[Decision]:
        decisions = super().decide(view)
        later = [each for each in decisions if isinstance(each, Stop) and each.at is not None][::-1]
        jobs = np.array([stop.job for stop in later], dtype=np.int64)
        times = np.array([stop.at for stop in later], dtype=np.float64)
        others = [each for each in decisions if each not in later]
        both = np.column_stack([times, jobs])  # in steps of two
        return [*others, Moves(stop=jobs, at=times + 1), Moves(stop=np.column_stack([jobs, jobs])[:, 0], at=both[:, 0])]


def alone_in_turn(rng: np.random.Generator) -> Instance:
    # As wide as the node: one runs at a time, so that both policies decide at the same moments.
    jobs = [
        Job(f"{j}", arrival=float(rng.integers(0, 12)), gpus=4, duration=float(rng.integers(1, 9)))
        for j in range(int(rng.integers(2, 7)))
    ]
    return Instance(jobs, "1x4")


def segments(run: Run) -> list[tuple[int, float, float, float]]:
    s = run.schedule
    return sorted(zip(s.job.tolist(), s.start.tolist(), s.end.tolist(), s.work.tolist(), strict=True))


@pytest.mark.compiled
@pytest.mark.parametrize("length", [0.75, 1.0, 2.5])
def test_planned_stops_make_the_schedule_that_woken_ones_make(length: float) -> None:
    rng = np.random.default_rng(5)
    for _ in few(range(40), 12):  # with whole numbers stops, arrivals and completions fall into one instant
        instance = alone_in_turn(rng)
        planned, woken = (simulate(instance, Slices(length, planned=each)) for each in (True, False))
        with without_interpreting():
            compiled = simulate(instance, InArrays(length, planned=True))
        assert segments(planned) == segments(woken) == segments(compiled)
        assert check_schedule(instance, planned.schedule) == []
        assert planned.metrics == woken.metrics


def once(stops: tuple[Stop | Moves | Start, ...], again: float = 10.0) -> Asked:
    """Starts all at 0 with these stops; the rest of it starts when asked again."""

    def decide(view: View) -> list[Decision]:
        starts = [Start(j, on=((j, 1),)) for j in view.waiting]
        if view.now == 0:
            return [*starts, *stops, Wake(again)]
        return starts if view.now >= again else []

    return Asked(decide, "non-clairvoyant", uses=("nodes",))


FOUR = Instance([Job(f"{j}", duration=d) for j, d in enumerate((4, 6, 8, 2))], "4x1")


@pytest.mark.parametrize(
    "plans",
    [
        (Stop(0, at=1.0), Stop(1, at=2.0), Stop(2, at=3.0)),
        (Moves(stop=np.array((0, 1, 2)), at=np.array((1.0, 2.0, 3.0))),),
        (Moves(stop=np.array((2, 0, 1)), at=np.array((3.0, 1.0, 2.0))),),
        (Moves(stop=np.array((0, 1, 2, 0)), at=np.array((7.0, 2.0, 3.0, 1.0))),),
    ],
)
def test_a_policy_is_not_asked_when_a_planned_stop_comes(plans: tuple[Stop | Moves, ...]) -> None:
    policy = once(plans)
    run = simulate(FOUR, policy)
    assert policy.times == [0, 2, 10, 13, 14, 15]  # job 3 ends at 2, where job 1 is stopped, too
    assert run.schedule.completion.tolist() == [13, 14, 15, 2]
    assert run.metrics["gpu_hours"]["busy"] * 3600 == pytest.approx(20)


def test_a_later_plan_takes_the_place_of_an_earlier_one_and_a_stop_ends_it() -> None:
    replaced = once((Stop(0, at=1.0), Stop(0, at=3.0)))
    assert simulate(FOUR, replaced).schedule.completion[0] == 11
    ended = once((Stop(0, at=3.0), Stop(0), Start(0, on=((0, 1),))))  # one instant: it was never stopped
    assert simulate(FOUR, ended).schedule.completion[0] == 4


def test_who_stops_and_starts_again_loses_its_own_plan_only() -> None:
    zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    moved = Moves(stop=zero, start=zero, first=np.array([0, 1]), node=zero, count=one)
    again = once((Stop(0, at=3.0), Stop(1, at=2.0), moved))
    assert simulate(FOUR, again).schedule.completion.tolist() == [4, 14, 8, 2]


def test_a_plan_for_a_job_that_has_ended_does_nothing() -> None:
    assert simulate(FOUR, once((Stop(3, at=5.0), Stop(1, at=9.0)))).schedule.completion.tolist() == [4, 6, 8, 2]
    assert simulate(FOUR, once((Stop(3, at=2.0),))).schedule.completion.tolist() == [4, 6, 8, 2]  # it ends then


@pytest.mark.parametrize(
    ("stops", "message"),
    [
        ((Stop(0, at=0.0),), r"job '0' is to be stopped at 0.0 \(expected: a time later than now\)"),
        (
            (Stop(0, at=float("nan")), Stop(1, at=1.0)),
            r"job '0' is to be stopped at nan \(expected: a time later than now\)",
        ),
        ((Stop(0, at=float("inf")),), r"job '0' is to be stopped at inf"),
        ((Stop(0, at="soon"),), r"job '0' is to be stopped at 'soon'"),  # type: ignore[arg-type]
        ((Stop(0), Stop(0, at=1.0)), "job '0' is stopped but does not run"),
        ((Stop(7, at=1.0), Stop(8, at=1.0)), "there is no job 7"),
    ],
)
def test_a_plan_that_is_not_possible_is_told_in_a_line(stops: tuple[Stop, ...], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        simulate(FOUR, once(stops))
