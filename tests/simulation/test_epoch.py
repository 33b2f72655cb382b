"""Policies see seconds since the first arrival; what people read is on the log's clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from optsched.errors import SimulationError
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, Start, Stop, View

UNIX = 1.7e9
JOBS = [Job("a", arrival=UNIX, duration=3), Job("b", arrival=UNIX + 2, duration=1, due=UNIX + 5)]


@dataclass
class Looks:
    """Starts what it can, and writes down what it sees."""

    seen: list[tuple[float, ...]]
    stops: bool = False
    name: str = "looks"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT

    def decide(self, view: View) -> Iterator[Any]:
        self.seen += [(view.now, view.epoch, view.arrival(j), view.due(j)) for j in view.arrived]
        if self.stops and view.now > 2:
            yield Stop(1)
        yield from (Start(j) for j in view.waiting if view.fits(j))


def test_a_view_counts_from_the_first_arrival_and_says_when_that_was() -> None:
    policy = Looks([])
    made = simulate(Instance(JOBS, "1x1"), policy)
    assert policy.seen == [(0.0, UNIX, 0.0, float("inf")), (2.0, UNIX, 2.0, 5.0)]
    assert (made.schedule.start - UNIX).tolist() == [0.0, 3.0]


def test_an_error_of_a_policy_is_told_on_the_clock_of_the_log() -> None:
    with pytest.raises(SimulationError, match="at 1700000003 s: job 'b' is stopped but does not run"):
        simulate(Instance(JOBS, "1x1"), Looks([], stops=True))
