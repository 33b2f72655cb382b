"""The best schedule that may stop, move and change its jobs at any moment: every order of events, a linear program each.

Between two events (an arrival or a completion) it matters how long each *mix* of jobs on GPUs lasts, not when. In a given
order of the events the best schedule is therefore a linear program over the seconds of every mix between every two of them,
and the best order is the optimum of a class that allows preemption: ``gang``, ``forking``, ``elastic`` or ``gpu-sharing``.
Orders are gone through depth first; a beginning ends where its own program, with each job left as fast as it is alone from
its last event on, is no better than the best order so far. In floats, for up to six jobs where few mixes matter (tenths of a
second), else three or four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np
import numpy.typing as npt

from bounds.shared_cases import Placed, RunContext
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

Way = tuple[tuple[int, ...], Fraction]  # GPUs of every node, seconds
Floats = npt.NDArray[np.float64]
# moments so close are the same
FEASIBILITY = ("primal_feasibility_tolerance", 1e-10), ("dual_feasibility_tolerance", 1e-10)
DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # the second decides what the first leaves open


# --- who can run beside whom: [mix, job], the part of the job that is done in a second -------------------------------------


def undominated(rows: Floats) -> Floats:
    """The rows that no other is at least as large as everywhere."""
    left, kept = rows[np.argsort(-rows.sum(axis=1), kind="stable")], [rows[:0]]
    while len(left):
        kept.append(left[:1])
        left = left[(left > left[0]).any(axis=1)]
    return np.vstack(kept)


def exclusive_mixes(ways: Sequence[Sequence[Way]], room: Sequence[int], *, copies: bool = False) -> Floats:
    """Of jobs that run in one of their ways, or, with ``copies``, in several at once, which add up."""
    nodes = len(room)
    mixes = np.array([room], dtype=float)  # free GPUs of every node, then the rates of the jobs so far
    for own in ways:
        steps = np.array([[0.0] * (nodes + 1), *([*(-h for h in held), float(1 / seconds)] for held, seconds in own)])
        once = taken = undominated(steps)
        more = copies
        while more:
            both = (taken[:, None] + once[None]).reshape(-1, nodes + 1)
            before, taken = taken, undominated(both[(both[:, :nodes] >= -np.array(room)).all(axis=1)])
            more = set(map(tuple, taken)) != set(map(tuple, before))
        free = (mixes[:, None, :nodes] + taken[None, :, :nodes]).reshape(-1, nodes)
        rates = np.repeat(mixes[:, nodes:], len(taken), axis=0)
        grown = np.hstack([free, rates, np.tile(taken[:, nodes:], (len(mixes), 1))])
        mixes = undominated(grown[(free >= 0).all(axis=1)])
    return mixes[:, nodes:]


def mixes_of(instance: Instance, schedule_class: str, ways: Callable[[int], Sequence[Way]]) -> Floats:
    """Of the jobs of an instance in a class that allows preemption; ``ways`` of a job, where it shares no GPU."""
    if schedule_class == "gpu-sharing":
        return sharing_mixes(instance)
    copies = schedule_class == "forking"
    if schedule_class != "elastic" and instance.unrestricted and not instance.profiled.any():
        return counted_mixes(instance, copies=copies)
    return exclusive_mixes([ways(j) for j in range(instance.n)], instance.cluster.node_gpus.tolist(), copies=copies)


def counted_mixes(instance: Instance, *, copies: bool = False) -> Floats:
    """Of jobs with durations that may use every GPU, so that only the number of GPUs counts."""
    rows = zip(instance.gpus.tolist(), instance.duration.tolist(), strict=True)
    ways = [[((gpus,), Fraction(seconds))] for gpus, seconds in rows]
    return exclusive_mixes(ways, [instance.cluster.gpus], copies=copies)


def sharing_mixes(instance: Instance) -> Floats:
    """Of jobs that may be two on a GPU and slow each other down."""
    site, work = RunContext(instance), instance.work.tolist()

    def rest(j: int, running: dict[int, Placed]) -> Iterator[tuple[float, ...]]:
        if j == instance.n:
            seconds = {k: float(site.seconds_a_unit(k, running)) * work[k] for k in running}
            yield tuple(1 / seconds[k] if k in seconds else 0.0 for k in range(instance.n))
            return
        yield from rest(j + 1, running)
        for placed in site.starts(j, running):
            yield from rest(j + 1, {**running, j: placed})

    return np.array(list(rest(0, {})))


# --- what an order costs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """sum or maximum of weight (C_j - start), where ``late`` of those above 0."""

    weight: Floats
    start: Floats
    late: bool
    maximum: bool

    @classmethod
    def of(cls, instance: Instance, objective: str, second: float) -> Goal:
        weight = instance.weight if "weighted" in objective else np.ones(instance.n)
        if late := "tardiness" in objective:
            dated = np.isfinite(instance.due)
            return cls(np.where(dated, weight, 0.0), np.where(dated, instance.due, 0.0) * second, late, maximum=False)
        goal = get_objective(objective)
        if fair := objective == "max_fair_slowdown":
            weight = 1 / goal.dates(instance)
        start = instance.arrival if fair or "flow" in objective else np.zeros(instance.n)
        return cls(weight, start * second, late, goal.maximum)


def least_cost(cost: Floats, rows: Floats, right: Floats, equal: int) -> float:
    """min cost x, x >= 0: the first ``equal`` rows are equations, the others ``>=``; inf where nothing is feasible."""
    solver, lp = highspy.Highs(), highspy.HighsLp()
    for option, value in (("output_flag", False), ("presolve", "off"), *FEASIBILITY):
        solver.setOptionValue(option, value)
    lp.num_row_, lp.num_col_ = rows.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(cost.size), np.full(cost.size, np.inf)
    lp.row_lower_, lp.row_upper_ = right, np.where(np.arange(right.size) < equal, right, np.inf)
    row, column = np.nonzero(rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=right.size))])
    lp.a_matrix_.index_, lp.a_matrix_.value_ = column, rows[row, column]
    solver.passModel(lp)
    for strategy in (DUAL_SIMPLEX, PRIMAL_SIMPLEX):
        solver.setOptionValue("simplex_strategy", strategy)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return np.inf
        if status == highspy.HighsModelStatus.kOptimal:
            return float(solver.getInfo().objective_function_value)
        solver.clearSolver()
    raise AssertionError(status)


class PreemptiveOptimum:
    """The search over one instance, of which ``mixes`` says who can run beside whom; its times count from its epoch.

    An order is a list of events: j >= 0 the completion of job j, -k the k-th of the later times of arrival.
    """

    def __init__(self, instance: Instance, mixes: Floats) -> None:
        self.instance, self.n = instance, instance.n
        mixes = undominated(mixes)
        self.second = float(mixes.max(axis=0).min())  # times are counted in the seconds of the longest job
        self.mixes: Floats = mixes / self.second
        self.alone: Floats = 1 / self.mixes.max(axis=0)  # the least time of every job
        self.release: list[float] = (instance.arrival * self.second).tolist()
        self.times = sorted(set(self.release))
        self._best_of = dict[frozenset[int], Floats]()

    def value(self, objective: str) -> Fraction:
        """The least value of ``objective``, which is a sum or maximum of terms that are not negative."""
        goal, best = Goal.of(self.instance, objective, self.second), np.inf
        todo: list[tuple[float, list[int]]] = [(0.0, [])]
        while todo:
            bound, order = todo.pop()
            if bound >= best * (1 - 1e-12):  # as good, but for the last digits
                continue
            if len(order) == self.n + len(self.times) - 1:
                best = bound
                continue
            todo += sorted(((self.program(goal, longer), longer) for longer in self._longer(order)), reverse=True)
        return Fraction(max(best, 0.0) / self.second)

    def _there(self, order: list[int]) -> frozenset[int]:
        now = self.times[sum(event < 0 for event in order)]
        return frozenset(j for j in range(self.n) if j not in order and self.release[j] <= now)

    def _longer(self, order: list[int]) -> list[list[int]]:
        arrived = 1 + sum(event < 0 for event in order)
        return [[*order, j] for j in self._there(order)] + ([[*order, -arrived]] if arrived < len(self.times) else [])

    def _mixes(self, order: list[int]) -> Floats:
        able = self._there(order)
        if able not in self._best_of:
            there = np.isin(np.arange(self.n), list(able))
            self._best_of[able] = np.vstack([undominated(self.mixes * there), np.zeros((1, self.n))])
        return self._best_of[able]

    def program(self, goal: Goal, order: list[int]) -> float:
        """The least cost of schedules whose events begin in this order; inf: there are none.

        Variables: the seconds of every mix before every event, then what each job costs, or one for the dearest. Jobs that
        are not in the order end, at the earliest, when what is left of them is done as fast as it is alone from the last
        event on, and as long after their arrival as they take alone.
        """
        spans = [self._mixes(order[:k]) for k in range(len(order))]
        rates = np.concatenate([np.zeros((0, self.n)), *spans])
        span = np.repeat(np.arange(len(spans)), [len(mixes) for mixes in spans])
        owner = np.zeros(self.n, dtype=int) if goal.maximum else np.arange(self.n)
        costs = np.eye(1 + int(owner.max()))[owner]
        rows, right, first = list[Floats](), list[float](), self.times[0]
        for k, event in enumerate(order):
            rows.append(rates[:, event] if event >= 0 else 1.0 * (span <= k))
            right.append(1.0 if event >= 0 else self.times[-event] - first)
        equal = len(rows)
        rows = [np.concatenate([row, np.zeros(costs.shape[1])]) for row in rows]
        for j, (weight, start) in enumerate(zip(goal.weight, goal.start, strict=True)):
            if j in order:
                ends, after = 1.0 * (span <= order.index(j)), first
            else:
                ends, after = 1 - rates[:, j] * self.alone[j], first + self.alone[j]
                rows.append(np.concatenate([np.zeros(span.size), costs[j]]))
                right.append(weight * (self.release[j] + self.alone[j] - start))
            rows.append(np.concatenate([-weight * ends, costs[j]]))
            right.append(weight * (after - start))
        cost = np.concatenate([np.zeros(span.size), np.ones(costs.shape[1])])
        return least_cost(cost, np.array(rows), np.array(right), equal)
