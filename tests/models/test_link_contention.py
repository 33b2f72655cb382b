"""The event-slot program of transfers on links gives the optimum of the other methods, with starts anywhere in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loaded_optimum import loaded_optimum
from random_transfers import random_transfers

from optsched.classes.task_sharing.models.link_contention import build, starts
from optsched.classes.task_sharing.models.transfer_completions import transfer_completions
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.classes.task_sharing.solvers.transfer_search import transfer_optimum, two_transfer_optimum
from optsched.errors import InputError
from optsched.models.event_slots import latest_completions, one_at_a_time
from optsched.problem.contention import ETHERNET_10G, Contention

CLOSE = 1e-7  # relative; integers are 1e-9 off at most, and weigh as much as the latest completion
Solve = Callable[[Any], float]


def times(problem: TransferProblem) -> tuple[list[float], list[float]]:
    """Releases and seconds alone."""
    return problem.release.tolist(), problem.alone.tolist()


def solved(problem: TransferProblem, value: float | None = None) -> float:
    """The optimum of the program; its starts, seen by the referee, have that value."""
    model = build(problem, value=value)
    best = loaded_optimum(model)
    begin = np.maximum(starts(model), problem.release)
    assert sum(transfer_completions(problem, begin.tolist())) == pytest.approx(best, rel=CLOSE)
    return best


def test_the_unit_of_the_data_does_not_matter_and_a_known_value_is_kept() -> None:
    problem = TransferProblem([0.0, 0.01], [1e8, 1e7], ETHERNET_10G)  # the second one joins the first
    optimum = float(two_transfer_optimum(problem))
    assert optimum < one_at_a_time(*times(problem)) * 0.8
    assert solved(problem) == pytest.approx(optimum, rel=CLOSE)
    assert solved(problem, optimum) == pytest.approx(optimum, rel=CLOSE)


def test_pyomos_own_road(solve: Solve) -> None:
    problem = TransferProblem([0, 0.25], [3, 1], Contention(1.0, 0.25))
    assert solve(build(problem)) == pytest.approx(float(two_transfer_optimum(problem)), abs=1e-5)


def test_latest_completions_are_later_than_those_of_every_optimum() -> None:
    for seed in range(20):
        problem = random_transfers(5, seed, links=2)
        best = transfer_optimum(problem)
        for value in (None, best.value):
            for end, latest in zip(best.completion, latest_completions(*times(problem), value), strict=True):
                assert end <= latest


def test_one_at_a_time_is_what_separate_starts_give() -> None:
    problem = TransferProblem([0, 1, 2], [3, 2, 1], Contention(1.0, 1.0))
    assert one_at_a_time(*times(problem)) == 3 + 4 + 6 == sum(transfer_completions(problem, [0, 4, 3]))
    assert one_at_a_time([0.0, 1.0, 9.0], problem.alone.tolist()) == 3 + 5 + 10


def test_what_is_not_legal_is_named() -> None:
    with pytest.raises(InputError, match="n = 0"):
        build(TransferProblem([], [], Contention(1.0)))
    for value in (1.0, float("nan")):
        with pytest.raises(InputError, match=r"value = .*at least 3\.0"):
            build(TransferProblem([0, 0], [1, 2], Contention(1.0)), value=value)
