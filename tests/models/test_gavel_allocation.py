"""Data and shared pieces of Gavel's allocation problems."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from allocation_problems import problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models.gavel_allocation import (
    AllocationProblem,
    effective_throughput,
    equal_share,
    fill_levels,
    isolated,
)


def data(**changes: Any) -> dict[str, Any]:
    return {"throughputs": [[4.0, 1.0], [2.0, 0.0]], "scale": [1, 2], "capacity": [2.0, 1.0]} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"throughputs": [[0.0, 0.0], [2.0, 1.0]]},
            r"job 0 can run on no GPU type \(expected: > 0 on a type with at least 1 GPUs",
        ),
        ({"throughputs": [[1.0, 1.0], [0.0, 3.0]]}, "job 1 can run on no GPU type.*at least 2 GPUs"),
        ({"throughputs": [[1.0, -1.0], [2.0, 1.0]]}, r"throughputs\[0, 1\] = -1.0: invalid \(expected: steps/s >= 0\)"),
        ({"throughputs": [[1.0, np.nan], [2.0, 1.0]]}, r"throughputs\[0, 1\] = nan"),
        ({"throughputs": [["fast", 1.0], [2.0, 1.0]]}, "throughputs.*not numbers"),
        ({"throughputs": [1.0, 2.0]}, "not a table of jobs by GPU types"),
        ({"throughputs": np.zeros((0, 2)), "scale": []}, "there are no jobs"),
        ({"scale": [0, 1]}, r"scale\[0\] = 0.0: invalid \(expected: whole numbers >= 1\)"),
        ({"scale": [1.5, 1]}, r"scale\[0\] = 1.5"),
        ({"scale": [1]}, r"scale = \(1,\): wrong shape \(expected: \(2,\)\)"),
        ({"capacity": [2.0, -1.0]}, r"capacity\[1\] = -1.0"),
        ({"capacity": [2.0]}, "capacity.*wrong shape"),
        ({"weights": [1.0, 0.0]}, r"weights\[1\] = 0.0.*numbers > 0"),
        ({"left": [0.0, 1.0]}, r"left\[0\] = 0.0.*steps > 0"),
        ({"elapsed": [-1.0, 1.0]}, r"elapsed\[0\] = -1.0"),
        ({"iso_so_far": [np.inf, 1.0]}, r"iso_so_far\[0\] = inf"),
        ({"time_left": [np.nan, 1.0]}, r"time_left\[0\] = nan"),
        ({"cost": [1.0, 0.0]}, r"cost\[1\] = 0.0.*prices > 0"),
    ],
)
def test_what_is_not_legal_is_said_in_one_line(changes: dict[str, Any], message: str) -> None:
    AllocationProblem(**data())
    with pytest.raises(InputError, match=message) as caught:
        AllocationProblem(**data(**changes))
    assert "\n" not in str(caught.value)


def test_the_data_cannot_be_changed_behind_its_back() -> None:
    given_rates = np.array([[4.0, 1.0], [2.0, 0.0]])
    problem = AllocationProblem(**data(throughputs=given_rates))
    given_rates[0, 0] = -1
    assert problem.throughputs[0, 0] == 4
    with pytest.raises(ValueError, match="read-only"):
        problem.capacity[0] = 9
    assert problem.w.tolist() == [1, 1]
    with pytest.raises(InputError, match="left = None: makespan needs it"):
        problem.required("left", "makespan")


def test_equal_and_isolated_shares_in_exact_fractions() -> None:
    capacity = np.array([8.0, 16.0, 24.0])
    assert [Fraction(share).limit_denominator(100) for share in equal_share(capacity)] == [
        Fraction(1, 6),
        Fraction(1, 3),
        Fraction(1, 2),
    ]
    # 12 jobs: 4 GPUs each; a gang of 8 gets 1/2 of its time, smaller ones are rescaled to all of theirs
    rows = isolated(12, np.array([8, 4, 1]), capacity)
    expected = [[Fraction(k, 12) for k in (1, 2, 3)], [Fraction(k, 6) for k in (1, 2, 3)]]
    for row, exact in zip(rows, [*expected, expected[1]], strict=True):
        assert row == pytest.approx([float(x) for x in exact], rel=1e-15)


def test_effective_throughput_takes_a_table_or_one_row() -> None:
    problem = AllocationProblem(**data())
    assert effective_throughput(problem.throughputs, np.array([[0.5, 0.25], [1.0, 0.0]])).tolist() == [2.25, 2.0]
    assert effective_throughput(problem.throughputs, np.array([0.5, 0.5])).tolist() == [2.5, 1.0]
    # scale thr(X) / thr(X^equal), X^equal = (2/3, 1/3): job 0 has 3, job 1 has 4/3
    levels = fill_levels(problem, np.array([[1.0, 0.0], [0.5, 0.0]]))
    assert levels == pytest.approx([4 / 3, 2 * 1 / (4 / 3)], rel=1e-15)


def test_an_agnostic_problem_knows_no_types() -> None:
    problem = AllocationProblem(**data())
    assert (problem.agnostic().throughputs == 1).all()
    assert problem.agnostic(0).throughputs.tolist() == [[4, 4], [2, 2]]
    assert problem.agnostic(1).throughputs.tolist() == [[1, 1], [2, 2]]  # job 1 does not run on type 1


@settings(max_examples=30)
@given(problems(), st.integers(1, 50))
def test_isolated_shares_fit(problem: AllocationProblem, more: int) -> None:
    X = isolated(problem.n, problem.scale, problem.capacity)
    assert (X.sum(axis=1) <= 1 + 1e-12).all()
    assert (problem.scale @ X <= problem.capacity * (1 + 1e-12)).all()
    assert equal_share(problem.capacity).sum() == pytest.approx(1, rel=1e-12)
    # a row is the job's part of the cluster, all of its time, or both
    part = problem.scale * X.sum(axis=1) / problem.capacity.sum()
    assert (np.isclose(part, 1 / problem.n) | np.isclose(X.sum(axis=1), 1)).all()
    # more jobs never mean a larger part
    assert (isolated(problem.n + more, problem.scale, problem.capacity) <= X + 1e-12).all()
