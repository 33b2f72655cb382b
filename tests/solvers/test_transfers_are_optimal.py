"""What is called the optimum of transfers is it: every exact method against exhaustion, on clocks, with ties, in any unit.

Methods: the closed form of two, the branch and bound in fractions and in floats, a linear program for every order of events,
and the mixed-integer program. The tolerance of floats is relative to the flow and to the time since the first release.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from examples import studied

from optsched.models.event_completions import transfer_completions
from optsched.models.link_contention import build, starts
from optsched.problem.transfers import TransferProblem
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session
from optsched.solvers.transfer_search import best_event_order, transfer_optimum, two_transfer_optimum
from solvers.clocked_transfers import clocked_transfers, least_sum_of_completions

LP = 1e-7  # relative to the flow: tolerance of the linear programs


def flow(problem: TransferProblem, best: Fraction) -> Fraction:
    return best - sum(map(Fraction, problem.release.tolist()))


def rounding(problem: TransferProblem, best: Fraction) -> float:
    """16 ulps a transfer of the latest time that counts: where a release is no number that the log's clock resolves."""
    return 16 * problem.n * math.ulp(float(best) / problem.n)


def by_the_program(problem: TransferProblem) -> Fraction:
    """The value of the starts that the mixed-integer program finds, as the referee sees them in fractions."""
    model = build(problem.relative)
    program = compile(model)
    outcome = Session(program).solve()
    assert outcome.status == "optimal"
    assert outcome.x is not None
    program.load(outcome.x)
    begin = np.maximum(starts(model), problem.relative.release)
    ends = transfer_completions(problem.relative, begin.tolist(), exact=True)
    assert outcome.value == pytest.approx(float(sum(ends)), rel=LP)
    return sum(ends, Fraction(0)) + problem.n * Fraction(problem.epoch)


def tried(seed: int, *, program: bool = False) -> Counter[str]:
    """How often each method was asked; asserts that none is wrong."""
    problem, count = clocked_transfers(seed), Counter[str]()
    best = least_sum_of_completions(problem)
    stay, ulps = float(flow(problem, best)), rounding(problem, best)

    def agrees(method: str, value: float | Fraction, share: float) -> None:
        count[method] += 1
        off = abs(float(Fraction(value) - best))
        assert off <= share * stay + ulps * (share > 0), (seed, method, off, stay)

    exact = transfer_optimum(problem, exact=True)
    assert (exact.proved, exact.bound) == (True, best)
    assert sum(exact.completion) == best
    assert tuple(transfer_completions(problem, exact.start, exact=True)) == exact.completion
    agrees("branch and bound, fractions", exact.value, 0)
    found = transfer_optimum(problem)
    assert found.proved
    agrees("branch and bound", found.value, 1e-9)
    if problem.n == 2:
        agrees("closed form", two_transfer_optimum(problem), 0)
    if problem.n <= 3:
        agrees("orders", best_event_order(problem).value, LP)
    if program and problem.n <= 3:
        agrees("program", by_the_program(problem), LP)
    return count


@pytest.mark.parametrize(("first", "many"), [(0, 80), *(studied(1000 + 300 * part, 300) for part in range(4))])
def test_the_optimum_of_transfers_is_never_wrong(first: int, many: int) -> None:
    count = sum((tried(seed, program=seed % 4 == 0) for seed in range(first, first + many)), Counter[str]())
    print("transfers", first, dict(count))  # figures of the study
    assert len(count) == 5
