"""The method ``lp-order``: jobs in an order of a linear program on one machine, within 1.7451 of it; no more is proved.

**Problem** 1 | r_j | sum w_j C_j. **Program** that in mean busy times M_j (`optsched.solvers.lp_schedule`).
**Orders** By M_j: every prefix S of that order has p(S) M_j >= sum_{k in S} p_k M_k >= p(S)^2 / 2 for its last job j, and
r_k <= M_k <= M_j, so that C_j <= max r_k + p(S) <= 3 M_j. By alpha points, for every alpha that gives another order: of
alpha drawn from the density e^alpha / (e^delta - 1) on [0, delta] the expectation is within 1.7451 of the program
(`optsched.guarantees.alpha_points` has the proof), and the best alpha is no worse. The best of all is kept.
**Complexity** O(n^2 log n). **Reference** Hall, Schulz, Shmoys and Wein, Math. Oper. Res. 22 (1997), 513-544; Goemans et
al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from optsched.problem.schedule import Schedule
from optsched.solvers.lp_schedule import LpSchedule, leading_digits, smith_ranks
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.solve_state import PLACED, SolveState
from optsched.speeds.duration import fixed_durations

NAME = "lp-order"
OBJECTIVES = ("total_completion_time", "total_weighted_completion_time")


def lp_orders(program: LpSchedule) -> Iterator[list[int]]:
    """The order of mean busy times, then that of alpha points for one alpha of every interval in which it is the same."""
    jobs = range(len(program.seconds))
    yield sorted(jobs, key=lambda j: (leading_digits(program.mean_busy[j]), j))
    for alpha in sorted({piece.after for piece in program.pieces}):  # the last alpha of each interval
        points = program.points([alpha] * len(jobs))
        yield sorted(jobs, key=lambda j: (leading_digits(points[j]), j))


def _applies(state: SolveState) -> str | None:
    if state.placed:
        return PLACED
    if state.instance.cluster.gpus != 1:
        return "more than one machine"
    if state.goal.name not in OBJECTIVES:
        return f"the objective is none of {', '.join(OBJECTIVES)}"
    return "it knows no horizon" if state.horizon is not None else None


def _run(state: SolveState) -> MethodReport:
    instance = state.instance
    weight = instance.weight.tolist() if state.goal.weighted else [1.0] * instance.n
    seconds = fixed_durations(instance).tolist()
    program = LpSchedule.of(instance.arrival.tolist(), seconds, smith_ranks(seconds, weight))
    orders = list(lp_orders(program))
    pairs = (zip(map(Fraction, weight), program.one_after_the_other(order), strict=True) for order in orders)
    cost = [sum((w * c for w, c in each), Fraction(0)) for each in pairs]
    now, starts = 0.0, [0.0] * instance.n
    for j in orders[cost.index(min(cost))]:
        starts[j] = max(now, float(instance.arrival[j]))
        now = starts[j] + seconds[j]
    state.offer(Schedule.from_starts(instance, starts, policy=NAME))
    note = f"the best of {len(orders)} orders of the linear program, within 1.7451 of it, or better"
    return MethodReport(NAME, note=note, status="feasible")


add_method(NAME, _applies, _run, exact=False)
