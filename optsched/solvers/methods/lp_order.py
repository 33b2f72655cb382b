"""The method ``lp-order``: jobs in an order of a linear program on one machine, within 1.7451 of it; no more is proved.

**Problem** 1 | r_j | sum w_j C_j. **Program** that in mean busy times M_j (`LpSchedule`).
**Orders** By M_j: every prefix S of that order has p(S) M_j >= sum_{k in S} p_k M_k >= p(S)^2 / 2 for its last job j, and
r_k <= M_k <= M_j, so that C_j <= max r_k + p(S) <= 3 M_j. By alpha points, for every alpha that gives another order: if
alpha is drawn from the density e^alpha / (e^delta - 1) on [0, delta], the expectation is within 1.7451 of the program
(`optsched.guarantees.weighted_completion_times` has the proof), and the best alpha is no worse. The best of all is kept.
**Complexity** O(n^2 log n). **Reference** Hall, Schulz, Shmoys and Wein, Math. Oper. Res. 22 (1997), 513-544; Goemans et
al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optsched.problem.schedule import Schedule
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.solve_state import PLACED, SolveState
from optsched.speeds.duration import fixed_durations

DIGITS = 12  # significant digits, of the 15 of a float


@dataclass(frozen=True)
class ServedPiece:
    """Service of ``job`` in [``start``, ``end``); its done fraction rises from ``before`` to ``after``."""

    job: int
    start: Fraction
    end: Fraction
    before: Fraction
    after: Fraction

    def point(self, alpha: Fraction) -> Fraction:
        """Return the time at which a fraction of the job is done.

        Parameters
        ----------
        alpha
            The fraction, in [before, after].
        """
        return self.start + (self.end - self.start) * (alpha - self.before) / (self.after - self.before)


@dataclass(frozen=True)
class LpSchedule:
    """Schedule of 1 | r_j, pmtn | sum w_j M_j, where the mean busy time M_j is the mean of the times at which j is served.

    Preemptive WSPT: the released job with the least p_j / w_j runs. **Guarantee** optimal; no schedule, with or without
    preemption, has sum w_j C_j less than sum w_j (M_j + p_j / 2). O(n log n). Goemans et al.
    ``release`` r_j, ``seconds`` p_j > 0 of n jobs, ``pieces`` in order of time; in fractions.
    """

    release: tuple[Fraction, ...]
    seconds: tuple[Fraction, ...]
    pieces: tuple[ServedPiece, ...]

    @classmethod
    def of(cls, release: Sequence[float], seconds: Sequence[float], rank: Sequence[float]) -> LpSchedule:
        """Serve the released job of the least ``rank``, ties by index. O(n log n).

        Parameters
        ----------
        release
            r_j in seconds.
        seconds
            p_j > 0 in seconds.
        rank
            Rank of every job; p_j / w_j is that of the program.
        """
        r, p = tuple(map(Fraction, release)), tuple(map(Fraction, seconds))
        coming, left, now = sorted(range(len(r)), key=lambda j: (r[j], j)), list(p), Fraction(0)
        waiting, pieces, next_one = list[tuple[float, int]](), list[ServedPiece](), 0
        while waiting or next_one < len(coming):
            if not waiting:
                now = max(now, r[coming[next_one]])
            while next_one < len(coming) and r[coming[next_one]] <= now:
                heapq.heappush(waiting, (rank[coming[next_one]], coming[next_one]))
                next_one += 1
            j = waiting[0][1]
            end = now + left[j] if next_one == len(coming) else min(now + left[j], r[coming[next_one]])
            before, left[j] = 1 - left[j] / p[j], left[j] - (end - now)
            if pieces and pieces[-1].job == j and pieces[-1].end == now:
                now, before = pieces[-1].start, pieces.pop().before
            pieces.append(ServedPiece(j, now, end, before, 1 - left[j] / p[j]))
            if not left[j]:
                heapq.heappop(waiting)
            now = end
        return cls(r, p, tuple(pieces))

    @cached_property
    def of_job(self) -> tuple[tuple[ServedPiece, ...], ...]:
        """Pieces of every job."""
        pieces: list[list[ServedPiece]] = [[] for _ in self.seconds]
        for piece in self.pieces:
            pieces[piece.job].append(piece)
        return tuple(map(tuple, pieces))

    @cached_property
    def mean_busy(self) -> tuple[Fraction, ...]:
        """Mean busy times M_j in seconds."""
        return tuple(
            sum(((piece.end - piece.start) * (piece.start + piece.end) / 2 for piece in pieces), Fraction(0)) / p
            for pieces, p in zip(self.of_job, self.seconds, strict=True)
        )

    def value(self, weight: Sequence[float]) -> Fraction:
        """Return sum w_j (M_j + p_j / 2): no schedule has less sum w_j C_j, if the rank was p_j / w_j.

        Parameters
        ----------
        weight
            w_j of every job.
        """
        parts = zip(weight, self.mean_busy, self.seconds, strict=True)
        return sum((Fraction(w) * (m + p / 2) for w, m, p in parts), Fraction(0))

    def points(self, alpha: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the time at which a fraction of every job is done.

        Parameters
        ----------
        alpha
            The fraction of every job, in (0, 1].
        """
        return tuple(
            next(piece for piece in pieces if share <= piece.after).point(share)
            for pieces, share in zip(self.of_job, alpha, strict=True)
        )

    def one_after_the_other(self, order: Sequence[int]) -> tuple[Fraction, ...]:
        """Return completions without preemption in ``order``.

        Each job starts when it is released and the one before it is done.

        Parameters
        ----------
        order
            The jobs in order.
        """
        done, now = [Fraction(0)] * len(order), Fraction(0)
        for j in order:
            now = max(now, self.release[j]) + self.seconds[j]
            done[j] = now
        return tuple(done)


def leading_digits(value: float | Fraction) -> float:
    """Return a value rounded to `DIGITS` significant digits: rounding must not decide between values that are equal.

    Parameters
    ----------
    value
        The value.
    """
    return float(f"{float(value):.{DIGITS}g}")


NAME = "lp-order"
OBJECTIVES = ("total_completion_time", "total_weighted_completion_time")


def lp_orders(program: LpSchedule) -> Iterator[list[int]]:
    """Yield the order of mean busy times, then that of alpha points for one alpha of every interval in which it is the same.

    Parameters
    ----------
    program
        The program's schedule.
    """
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
    return "it does not support a horizon" if state.horizon is not None else None


def _run(state: SolveState) -> MethodReport:
    instance = state.instance
    weight = instance.weight.tolist() if state.goal.weighted else [1.0] * instance.n
    seconds = fixed_durations(instance).tolist()
    rank = [leading_digits(p / w) if w else math.inf for p, w in zip(seconds, weight, strict=True)]
    program = LpSchedule.of(instance.arrival.tolist(), seconds, rank)
    orders = list(lp_orders(program))
    pairs = (zip(map(Fraction, weight), program.one_after_the_other(order), strict=True) for order in orders)
    cost = [sum((w * c for w, c in each), Fraction(0)) for each in pairs]
    now, starts = 0.0, [0.0] * instance.n
    for j in orders[cost.index(min(cost))]:
        starts[j] = max(now, float(instance.arrival[j]))
        now = starts[j] + seconds[j]
    state.offer(Schedule.from_starts(instance, starts, policy=NAME))
    note = f"the best of {len(orders)} orders of the linear program, at most 1.7451 times its optimum"
    return MethodReport(NAME, note=note, status="feasible")


add_method(NAME, _applies, _run, exact=False)
