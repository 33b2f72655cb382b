"""What a readable formulation costs against raw arrays: the LP relaxation built, passed, solved and loaded back.

The floor is the same program, as arrays that already lie there, passed to HiGHS, solved and read: nothing that has to
build anything can be below 1. ``ratio`` is cold / floor, ``resolve`` the same for new costs on the live object; CPU
time, the least of some rounds, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.models import FORMULATIONS
from optsched.problem.instance import Instance
from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session

ROUNDS = (3, 2, 1)  # by size
OBJECTIVE = "total_weighted_completion_time"
# jobs for about 5k, 50k and 500k nonzeros
SIZES = {
    "time-indexed": (("machines", {"machines": 4, "longest": 12, "heaviest": 10}), (16, 40, 95)),
    "rigid-time-indexed": (("rigid", {"longest": 12, "heaviest": 10}), (14, 32, 75)),
    "rigid-placed": (
        ("poisson", {"cluster": "3x2", "gpus": "weights:1=2,2=1", "duration": "uniform:low=1,high=9"}),
        (9, 22, 50),
    ),
    "positional": (("machines", {}), (36, 115, 350)),
    "disjunctive": (("machines", {"heaviest": 10}), (42, 130, 410)),
    "srpt-mean-busy-time": (("machines", {"longest": 12}), (28, 80, 230)),
    "srpt-mean-busy-time-cvxpy": (("machines", {"longest": 12}), (28, 80, 230)),
}
CASES = [(model, size) for model in SIZES for size in range(3)]


def instance_of(model: str, size: int) -> Instance:
    """The instance whose program has about 5k, 50k or 500k nonzeros."""
    (recipe, parameters), jobs = SIZES[model]
    whole = {"whole": True, "load": 1.2} if recipe == "poisson" else {}
    return generate(recipe, 0, jobs=jobs[size], **parameters, **whole)


def least_cpu(work: Callable[[], Any], rounds: int) -> float:
    """The least CPU time of some runs."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def raw(program: LinearProgram) -> highspy.Highs:
    """The arrays passed straight to HiGHS."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    A = program.A
    kinds = np.zeros(len(program.c), dtype=np.int32)
    matrix = (A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data)
    bounds = (program.c, program.lower, program.upper, program.row_lower, program.row_upper)
    shape = (len(program.c), len(program.row_lower), program.A.nnz)
    assert highs.passModel(*shape, 1, program.sense, program.offset, *bounds, *matrix, kinds) == highspy.HighsStatus.kOk
    return highs


def solved(highs: highspy.Highs) -> Any:
    """Run, and read the solution."""
    highs.run()
    return np.asarray(highs.getSolution().col_value)


@pytest.mark.bench
@pytest.mark.parametrize(("model", "size"), CASES)
def test_cold_and_again(benchmark: Any, model: str, size: int) -> None:
    formulation = FORMULATIONS.get(model)
    instance = instance_of(model, size)
    objective = OBJECTIVE if OBJECTIVE in formulation.objectives else "total_completion_time"

    def cold() -> Session:
        program = compile(formulation.build(instance, objective, relax=True))
        session = Session(program, relax=True)
        outcome = session.solve()
        program.load(outcome.x, session.duals())
        return session

    rounds = ROUNDS[size]
    session = benchmark.pedantic(cold, rounds=1)
    program = session.program
    floor = least_cpu(lambda: solved(raw(program)), rounds)
    cost = program.c * np.random.default_rng(1).uniform(0.5, 1.5, program.c.size)
    columns = np.arange(len(program.c), dtype=np.int32)
    ours, theirs = session, raw(program)
    solved(theirs)

    def again() -> None:
        for c in (cost, program.c):
            ours.set_cost(c)
            ours.solve()

    def again_raw() -> None:
        for c in (cost, program.c):
            theirs.changeColsCost(columns.size, columns, c)
            solved(theirs)

    benchmark.extra_info["nonzeros"] = program.A.nnz
    benchmark.extra_info["ratio"] = least_cpu(cold, rounds) / floor
    benchmark.extra_info["resolve"] = least_cpu(again, rounds) / max(least_cpu(again_raw, rounds), 1e-9)
    benchmark.extra_info["floor_seconds"] = floor
    assert program.A.nnz > 0
