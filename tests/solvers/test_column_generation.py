"""Column generation against the whole program, and what it says when it is not at the end."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from optsched.errors import OptschedError
from optsched.problem.arrays import Floats
from optsched.solvers.column_generation import Generated, PricedColumns, generate_columns
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Progress, Session

ROLL = 20


class Rolls:
    """Cutting stock: every pattern of pieces that a roll has, which is what the pricing problem chooses from."""

    def __init__(self, length: list[int], wanted: list[int]) -> None:
        some = itertools.product(*(range(ROLL // piece + 1) for piece in length))
        self.patterns = np.array([p for p in some if 0 < np.dot(p, length) <= ROLL], dtype=float)
        self.wanted = np.array(wanted, dtype=float)
        self.asked = 0

    def whole(self) -> float:
        k = len(self.patterns)
        program = LinearProgram.from_arrays(
            np.ones(k), sp.csc_array(self.patterns.T), self.wanted, np.full(self.wanted.size, math.inf)
        )
        value = Session(program).solve().value
        assert value is not None
        return value

    def price(self, duals: Floats) -> PricedColumns:
        self.asked += 1
        worth = self.patterns @ duals
        bound = float(duals @ self.wanted / max(1.0, worth.max()))
        return PricedColumns(np.ones(1), sp.csc_array(self.patterns[[worth.argmax()]].T), bound)

    def solve(self, **options: object) -> Generated:
        single = PricedColumns(np.ones(self.wanted.size), sp.csc_array(np.eye(self.wanted.size)), math.nan)
        upper = np.full(self.wanted.size, math.inf)
        return generate_columns(self.price, self.wanted, upper, start=single, **options)  # type: ignore[arg-type]


rolls = st.integers(2, 4).flatmap(
    lambda k: st.builds(
        Rolls,
        st.lists(st.integers(3, ROLL), min_size=k, max_size=k),
        st.lists(st.integers(1, 30), min_size=k, max_size=k),
    )
)


@given(problem=rolls, smoothing=st.sampled_from([0.0, 0.5, 0.9]))
def test_the_interval_closes_at_the_optimum_of_the_whole_program(problem: Rolls, smoothing: float) -> None:
    found = problem.solve(smoothing=smoothing)
    assert found.finished
    assert found.value == pytest.approx(problem.whole(), rel=1e-6)
    assert found.bound == pytest.approx(problem.whole(), rel=1e-6)
    assert problem.price(found.duals).bound == pytest.approx(found.bound)


@given(problem=rolls, most=st.integers(1, 3))
def test_what_is_not_at_its_end_is_an_interval_with_a_solution(problem: Rolls, most: int) -> None:
    found = problem.solve(most_rounds=most)
    assert problem.asked <= most
    assert found.bound <= problem.whole() * (1 + 1e-9) <= found.value * (1 + 2e-9)
    assert (found.columns.A @ found.x >= problem.wanted - 1e-6).all()
    assert found.value == pytest.approx(found.x.sum())


def test_a_maximisation_begins_with_nothing() -> None:
    # a knapsack's LP: items are columns, the pricing problem names the best that is left
    worth, size = np.array([6.0, 5.0, 4.0]), np.array([[3.0, 2.0, 4.0]])

    def price(duals: Floats) -> PricedColumns:
        gain = worth - duals @ np.vstack([size, np.eye(3)])
        bound = float(np.maximum(worth - duals[0] * size[0] - duals[1:], 0).sum() + duals @ [6, 1, 1, 1])
        best = [int(gain.argmax())]
        return PricedColumns(worth[best], sp.csc_array(np.vstack([size, np.eye(3)])[:, best]), bound)

    reports = list[Progress]()
    upper = np.array([6.0, 1.0, 1.0, 1.0])
    found = generate_columns(price, np.full(4, -np.inf), upper, sense=-1, progress=reports.append)
    assert found.value == pytest.approx(6 + 5 + 1)
    assert found.bound == pytest.approx(12)
    assert [r.nodes for r in reports] == list(range(1, found.rounds + 1))
    assert all(r.incumbent <= 12 + 1e-9 <= r.bound + 2e-9 for r in reports)


def test_a_start_without_a_solution_is_an_error() -> None:
    problem = Rolls([5, 7], [3, 3])
    one = PricedColumns(np.ones(1), sp.csc_array(np.array([[1.0], [0.0]])), math.nan)
    with pytest.raises(OptschedError, match="restricted master is infeasible"):
        generate_columns(problem.price, problem.wanted, np.full(2, math.inf), start=one)
