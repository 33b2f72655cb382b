"""What a policy yields that is no decision, or an order with values that are none, is one line that names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import optsched as osd

TWO = osd.Instance([osd.Job("a", duration=100), osd.Job("b", arrival=3, duration=50)], "1x2")


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@dataclass
class Odd:
    """Yields one thing, or returns it."""

    what: Any
    whole: bool = False
    name: str = "odd"
    knowledge: str = "clairvoyant"

    def decide(self, view: Any) -> Any:
        return self.what if self.whole else iter([osd.Start(0), self.what] if view.waiting else [])


@pytest.mark.parametrize(
    ("what", "whole", "said"),
    [
        (osd.Start(True), False, "Start: there is no job True"),
        (osd.Stop(False), False, "Stop: there is no job False"),
        (osd.Start(10**5000), False, "there is no job a int"),
        (osd.Wake(10**400), False, r"Wake.*is at no time \(expected: a number of seconds"),  # type: ignore[arg-type]
        (osd.Wake(10**5000), False, "a Wake is at no time"),  # type: ignore[arg-type]
        (osd.Wake(True), False, "is at no time"),
        (osd.Wake(0), False, "is not later than now"),
        (osd.Stop(0, at=10**400), False, "is to be stopped at 10000"),
        (nested(5000), False, "a list is not a decision"),
        (nested(5000), True, "a list is not a decision"),
        ([[osd.Start(0)]], True, r"\[Start.* is not a decision"),
        ([[osd.Start(1)]], False, r"\[Start.* is not a decision"),
    ],
)
def test_what_is_no_decision(what: Any, whole: bool, said: str) -> None:
    with pytest.raises(osd.SimulationError, match=rf"^policy odd at 0 s: .*{said}") as caught:
        osd.simulate(TWO, Odd(what, whole))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ([osd.Start(True, on=[(0, 1)]), osd.Start(0, on=[(0, 1)])], "Start: there is no job True"),
        ([osd.Start(0, on=[(0, 1)]), osd.Start(np.True_, on=[(0, 1)])], "Start: there is no job"),  # type: ignore[arg-type]
        ([osd.Start(0, on=[(False, True)]), osd.Start(1, on=[(0, 1)])], "names no GPUs"),
        ([osd.Start(0, on=[(0, 1)]), osd.Stop(False), osd.Stop(0)], "Stop: there is no job False"),
        ([osd.Start(0, on=[(0, 1)]), osd.Stop(False, at=5.0), osd.Stop(0, at=6.0)], "Stop: there is no job False"),
        ([osd.Start(0, on=[(0, 1)]), osd.Stop(0, at=True), osd.Stop(0, at=6.0)], "is to be stopped at True"),
    ],
)
def test_a_truth_value_among_numbers_of_a_list_is_no_number(decisions: list[Any], said: str) -> None:
    class Naming(Odd):
        uses = ("nodes",)

    with pytest.raises(osd.SimulationError, match=rf"^policy odd at 0 s: .*{said}"):
        osd.simulate(osd.Instance([osd.Job("a", duration=9), osd.Job("b", duration=5)], "1x2"), Naming(decisions, True))


@pytest.mark.parametrize("hook", ["order", "accelerator"])
def test_who_asks_too_much_before_the_run_is_named(hook: str) -> None:
    curious = type("Curious", (Odd,), {hook: lambda self, jobs: jobs.duration})
    with pytest.raises(osd.KnowledgeError, match=r"^policy odd at 0 s: a non-clairvoyant policy asked for durations"):
        osd.simulate(TWO, curious(None, knowledge="non-clairvoyant"))
