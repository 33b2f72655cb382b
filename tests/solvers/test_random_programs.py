"""Models with random bounds, rows and starts: status, value, bound, and every bound on the way, against two referees.

A program is drawn in whole quarters, so that bounds and right-hand sides are fractions more often than not, and is solved as
a Pyomo model, as a CVXPY problem, or as a formulation of ours that was changed. The referees are given whole numbers, and
nothing of a model: enumeration of all points, and CP-SAT in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import optsched as osd
from optsched.errors import InfeasibleError
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Progress, Session

REFEREE = Path(__file__).with_name("cpsat_referee.py")
MODELS, PARTS = 5_000, 50
CLOSE = 1e-6  # relative to the largest term; values are multiples of 1/4
FAR = 10**5  # to which the referee lets a column go that has no bound: an optimum there is none


@dataclass
class Drawn:
    """Bounds None: none. ``rows``: (lower, upper, {column: coefficient})."""

    sense: int
    cost: list[Fraction]
    bounds: list[tuple[Fraction | None, Fraction | None]]
    rows: list[tuple[Fraction | None, Fraction | None, dict[int, Fraction]]]
    start: dict[int, float] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @property
    def unlimited(self) -> bool:
        return any(None in bounds for bounds in self.bounds)

    def whole(self, far: int = FAR) -> dict[str, Any]:
        """The program in integers, values four times as large; ``far`` in place of bounds that are missing."""
        columns = [
            (-far if low is None else math.ceil(low), far if high is None else math.floor(high))
            for low, high in self.bounds
        ]
        rows = [
            (
                None if low is None else math.ceil(4 * low),
                None if high is None else math.floor(4 * high),
                {j: int(4 * value) for j, value in terms.items()},
            )
            for low, high, terms in self.rows
        ]
        return {"sense": self.sense, "cost": [int(4 * value) for value in self.cost], "columns": columns, "rows": rows}


def drawn(seed: int) -> Drawn:
    """Two to eight integer columns, some binary; every tenth program has columns without bounds."""
    rng = np.random.default_rng(seed)

    def quarters(low: int, high: int) -> Fraction:
        return Fraction(int(rng.integers(4 * low, 4 * high + 1)), 4)

    n, free = int(rng.integers(2, 9)), seed % 10 == 0
    bounds = list[tuple[Fraction | None, Fraction | None]]()
    for _ in range(n):
        low = quarters(-2, 1)
        high = low + quarters(0, 3) + (rng.random() < 0.97)
        if rng.random() < 0.4:
            low, high = (Fraction(0), quarters(0, 1)) if rng.random() < 0.7 else (quarters(0, 1), Fraction(1))
        missing = rng.random(2) < (0.4 if free else 0)
        bounds.append((None if missing[0] else low, None if missing[1] else high))
    point = [Fraction(0 if None in pair else math.floor(pair[1])) for pair in bounds]  # most rows allow it
    rows = []
    for _ in range(int(rng.integers(1, 6))):
        terms = {j: quarters(-4, 6) for j in range(n) if rng.random() < 0.6}
        terms = {j: value for j, value in terms.items() if value}
        if not terms:
            continue
        kind, width = int(rng.integers(0, 5)), quarters(0, 8)
        low = sum((value * point[j] for j, value in terms.items()), Fraction(0)) - quarters(0, 2) * (kind != 4)
        low = quarters(-6, 4) if rng.random() < 0.1 else low
        rows.append((None if kind == 1 else low, None if kind == 0 else low + width * (kind != 4), terms))
    cost = [quarters(-5, 9) or Fraction(1) for _ in range(n)]  # so that the model has all columns
    start = {j: float(rng.integers(-2, 5)) + 0.5 * float(rng.random() < 0.1) for j in range(n) if rng.random() < 0.6}
    return Drawn(-1 if rng.random() < 0.4 else 1, cost, bounds, rows, start if rng.random() < 0.8 else {})


def changed(seed: int) -> tuple[osd.Instance, Any, Drawn]:
    """A formulation with other bounds and one more row, and the same as numbers: of the program before it was changed."""
    rng = np.random.default_rng(seed)
    jobs = [osd.Job(str(k), gpus=int(rng.integers(1, 3)), duration=int(rng.integers(1, 4))) for k in range(3)]
    instance = osd.Instance(jobs, "1x2", name=f"drawn-{seed}")
    model = osd.formulate(instance, "rigid-time-indexed", "total_completion_time")
    program = compile(model)
    n = len(program.columns)
    cost = [Fraction(value) for value in program.c.tolist()]
    bounds: list[tuple[Fraction | None, Fraction | None]] = [(Fraction(0), Fraction(1))] * n
    A, rows = program.A.tocsr(), []
    for i, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
        part = slice(A.indptr[i], A.indptr[i + 1])
        terms = {int(j): Fraction(value) for j, value in zip(A.indices[part], A.data[part], strict=True)}
        rows.append((*(Fraction(each) if math.isfinite(each) else None for each in (low, high)), terms))
    for j in rng.choice(n, 3, replace=False).tolist():
        low, high = Fraction(int(rng.integers(0, 2) * rng.integers(0, 2)), 2), Fraction(int(rng.integers(1, 5)), 4)
        bounds[j] = low, max(low, high)
        program.columns[j].setlb(float(bounds[j][0]))
        program.columns[j].setub(float(bounds[j][1]))
    terms = {j: Fraction(int(rng.integers(-3, 6)), 4) for j in rng.choice(n, 4, replace=False).tolist()}
    most = Fraction(int(rng.integers(0, 8)), 4)
    model.drawn = pyo.Constraint(
        expr=sum(float(value) * program.columns[j] for j, value in terms.items()) <= float(most)
    )
    return instance, model, Drawn(1, cost, bounds, [*rows, (None, most, terms)], {}, Fraction(program.offset))


def in_pyomo(given: Drawn) -> Any:
    model = pyo.ConcreteModel()
    bounds = {j: tuple(None if each is None else float(each) for each in pair) for j, pair in enumerate(given.bounds)}
    model.x = pyo.Var(range(len(bounds)), bounds=bounds, within=pyo.Integers)
    for j, value in given.start.items():
        model.x[j].set_value(value, skip_validation=True)
    model.row = pyo.ConstraintList()
    for low, high, terms in given.rows:
        total = sum(float(value) * model.x[j] for j, value in terms.items())
        model.row.add((None if low is None else float(low), total, None if high is None else float(high)))
    goal = sum(float(value) * model.x[j] for j, value in enumerate(given.cost))
    model.goal = pyo.Objective(expr=goal + 0 * model.x[0], sense=pyo.minimize if given.sense == 1 else pyo.maximize)
    return model


def in_cvxpy(given: Drawn) -> Any:
    ends = zip(*given.bounds, strict=True)
    low, high = (
        np.array([far if each is None else float(each) for each in end])
        for end, far in zip(ends, (-np.inf, np.inf), strict=True)
    )
    x = cp.Variable(len(given.bounds), integer=True, bounds=[low, high])
    rows = []
    for least, most, terms in given.rows:
        total = sum(float(value) * x[j] for j, value in terms.items())
        rows += [] if least is None else [total >= float(least)]
        rows += [] if most is None else [total <= float(most)]
    goal = np.array([float(value) for value in given.cost]) @ x
    return cp.Problem(cp.Minimize(goal) if given.sense == 1 else cp.Maximize(goal), rows)


def enumerated(program: dict[str, Any]) -> list[Any]:
    """The referee that tries every point."""
    ranges = [range(low, high + 1) for low, high in program["columns"]]
    points = np.array(list(itertools.product(*ranges)), dtype=np.int64).reshape(-1, len(ranges))
    held = np.ones(len(points), dtype=bool)
    for low, high, terms in program["rows"]:
        total = points[:, list(terms)] @ np.array(list(terms.values()), dtype=np.int64)
        held &= (total >= (low if low is not None else -(2**60))) & (total <= (high if high is not None else 2**60))
    if not held.any():
        return ["infeasible"]
    values = points[held] @ np.array(program["cost"], dtype=np.int64)
    return ["optimal", int(values.min() if program["sense"] == 1 else values.max())]


@contextmanager
def cpsat() -> Iterator[Any]:
    """Asks the process of CP-SAT."""
    command = [sys.executable, str(REFEREE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(program: dict[str, Any]) -> list[Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(program) + "\n")
            process.stdin.flush()
            return list(json.loads(process.stdout.readline()))

        yield ask
        process.stdin.close()  # type: ignore[union-attr]


def judge(given: Drawn, ask: Any) -> tuple[str, float | None]:
    """Status and value, as the referee has them."""
    answer = ask(given.whole())
    if answer[0] == "infeasible":
        return "infeasible", None
    if given.unlimited and ask(given.whole(2 * FAR))[1] != answer[1]:
        return "unbounded", None
    return "optimal", answer[1] / 4 + float(given.constant)


def check(seed: int, ask: Any) -> str:
    """Solve what the seed draws; returns the status, in which all agree."""
    if seed % 5 == 4:
        instance, model, given = changed(seed)
        expected, value = judge(given, ask)
        found = osd.solve_model(instance, model)
        assert (found.status, found.value) == (expected, value), seed
        assert found.bound == (value if expected == "optimal" else None), seed
        return expected
    given = drawn(seed)
    expected, value = judge(given, ask)
    seen = list[Progress]()
    try:
        program = compile((in_cvxpy if seed % 5 == 3 else in_pyomo)(given))
    except InfeasibleError:
        assert expected == "infeasible", seed
        return expected
    session = Session(program)
    x, known = program.values()
    if known.any():
        session.mip_start(x, known)
    found = session.solve(progress=seen.append)
    assert found.status == expected, (seed, found, expected)
    if value is None:
        assert (found.value, found.bound, found.x) == (None, None, None), (seed, found)
        return expected
    assert found.value is not None
    assert found.bound is not None
    off = CLOSE * (1 + float(np.abs(program.c * found.x).sum()))
    assert abs(found.value - value) <= off, (seed, found, value)
    assert abs(found.bound - value) <= off, (seed, found, value)
    for event in seen:  # nan: none yet
        assert not given.sense * (event.bound - value) > off, (seed, event, value)
        assert not given.sense * (value - event.incumbent) > off, (seed, event, value)
    return expected


def test_models_with_fractional_bounds_are_solved_as_all_points_say() -> None:
    seeds = [seed for seed in range(130) if seed % 5 != 4 and not drawn(seed).unlimited]
    statuses = [check(seed, enumerated) for seed in seeds if math.prod(sizes(drawn(seed))) <= 20_000]
    assert len(statuses) > 60
    assert set(statuses) == {"optimal", "infeasible"}


def sizes(given: Drawn) -> list[int]:
    return [max(0, high - low + 1) for low, high in given.whole()["columns"]]


@pytest.mark.study
@pytest.mark.parametrize("part", range(PARTS))
def test_models_with_random_bounds_rows_and_starts_are_solved_as_cpsat_says(part: int) -> None:
    pytest.importorskip("optsched.solvers.methods.cpsat")
    each = MODELS // PARTS
    with cpsat() as ask:
        statuses = [check(seed, ask) for seed in range(part * each, (part + 1) * each)]
    assert statuses.count("optimal") > each / 3
