"""`UtilitySolve`: the most total utility, sum w_j N_j / (C_j - r_j), of preemptive gangs on GPUs of several types.

The value comes from schedules in rounds (`optsched.solvers.round_packing`), with shorter and shorter rounds while there is
time. In its last round a job completes as soon as its work is done, and the next job on its GPUs starts then. The upper
bound is the best certificate of the class ``gang``, which holds for all schedules, in rounds or not. The gap is not closed:
with short rounds their LP is large, and the certificate is that of a fluid.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from optsched.bounds import bound as best_bound
from optsched.bounds.certificate import Certificate
from optsched.bounds.priced_time import priced_certificate
from optsched.check.referee import check_schedule
from optsched.deadline import Deadline
from optsched.errors import InputError, OptschedError
from optsched.models.hadar_rounds import ENOUGH, RoundProblem, round_problem
from optsched.models.program import rounds_of
from optsched.problem.arrays import Floats
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective
from optsched.problem.schedule import Schedule
from optsched.solvers.linear_program import Size
from optsched.solvers.round_packing import pack_rounds
from optsched.solvers.round_places import Placed
from optsched.solvers.session import Progress, Session
from optsched.solvers.solution import Solution
from optsched.speeds.duration import seconds_alone

Row = tuple[int, float, float, float, tuple[tuple[int, int, int], ...]]  # job, start, end, work, cells
CLASS, METHOD = "gang", "utility-rounds"
FIRST, FINER, MOST = 150, 4, 9_600  # rounds at first; factor of their number after that; largest number
SHORT = 64  # rounds in the time that a short job takes alone; a quarter of the jobs is shorter
PROVED = 200_000  # jobs x rounds x types: a verifier checks them one by one
NOTE = "the best schedule in rounds and the best certificate; no method proves an optimum of total utility"


@dataclass
class UtilitySolve:
    """One solve under way; `run` it, and meanwhile ask for its result `so_far`."""

    instance: Instance
    goal: Objective
    deadline: Deadline
    progress: Callable[[Progress], None] | None = None
    began: float = field(default_factory=time.perf_counter)
    certificate: Certificate | None = None
    best: tuple[Fraction, Schedule] | None = None
    trace: list[Progress] = field(default_factory=list)
    rounds: str = ""
    size: Size = field(default_factory=Size)

    def __post_init__(self) -> None:
        if not np.isnan(self.instance.restart).all() and bool((np.nan_to_num(self.instance.restart) > 0).any()):
            raise InputError("jobs that pay for restarts are not modelled in rounds", field="restart", legal="none")

    def run(self) -> Solution:
        """Solve until rounds are as short as they get, or the deadline."""
        relative = self.instance.relative
        if self.instance.n:
            first = best_bound(relative, self.goal.name, CLASS, deadline=self.deadline)
            first.verify(relative)
            self.certificate = first
            self._report()
            count = FIRST
            enough = float(np.quantile(seconds_alone(relative), 0.25)) / SHORT
            seconds = math.inf
            while count <= MOST and seconds > enough and not (self.best and self.deadline.passed):
                rounds = rounds_of(relative, round=rounds_of(relative, rounds=1).seconds / count)  # enough for all jobs
                problem = round_problem(relative, rounds.seconds * rounds.rounds / count, count)
                self._try(problem)
                count, seconds = count * FINER, problem.seconds
        return self.so_far(NOTE)

    def _try(self, problem: RoundProblem) -> None:
        relative = self.instance.relative
        packed = pack_rounds(problem, deadline=self.deadline.share(0.5))
        self.size = Size(packed.price[0].size * problem.rounds + problem.n, packed.columns)
        if self.certificate is not None and problem.n * problem.rounds * problem.types <= PROVED:
            # The certificate of the packing's prices: prices by type and second, such that all devices of a round cost
            # the same.
            moments: Floats = problem.seconds * np.arange(problem.rounds + 1.0)
            worth = (packed.price * problem.devices).sum(axis=1)  # f64[T, R]
            prices: Floats = worth / np.maximum(problem.devices.sum(axis=0) * problem.seconds, problem.seconds)
            proved = priced_certificate(relative, self.goal.name, CLASS, moments, prices)
            if proved is not None and proved.value < self.certificate.value:
                proved.verify(relative)
                self.certificate = proved
        if not all(packed.chosen):
            return
        schedule = schedule_of(relative, problem, packed.chosen)
        broken = check_schedule(relative, schedule)
        if broken:
            raise OptschedError(f"{METHOD}: the referee rejects a schedule: {broken[0]}")
        value = self.goal.exact_of(relative, schedule.completion.tolist())
        if self.best is None or value > self.best[0]:
            self.best, self.rounds = (value, schedule), f"; rounds of {problem.seconds:.6g} s"
        self._report()

    def _report(self) -> None:
        value = float(self.best[0]) if self.best else float("nan")
        bound = float(self.certificate.value) if self.certificate else float("nan")
        event = Progress(value, bound, (bound - value) / value if value else 0.0, 0, time.perf_counter() - self.began)
        self.trace.append(event)
        if self.progress is not None:
            self.progress(event)

    def so_far(self, why: str) -> Solution:
        """Return the best schedule and bound by now.

        Parameters
        ----------
        why
            Sentence for the note: why the proof is not complete.
        """
        value, schedule = self.best or (Fraction(0) if not self.instance.n else None, None)
        bound = self.certificate.value if self.certificate else value
        closed = value is not None and value == bound
        solution = Solution(
            objective=self.goal.name,
            status="optimal" if closed else "limit",
            value_exact=value,
            bound_exact=bound,
            bound_by="certificate",
            schedule=schedule,
            certificate=self.certificate,
            model=METHOD,
            solver=f"columns, {Session.solver}",
            seconds=time.perf_counter() - self.began,
            size=self.size,
            note="" if closed else why + self.rounds,
            trace=tuple(self.trace),
        )
        return solution.on_clock(self.instance).named()


def schedule_of(instance: Instance, problem: RoundProblem, placed: Placed) -> Schedule:
    """Return schedules in rounds as one schedule; a job ends when its work is done, and keeps its GPUs from round to round.

    Parameters
    ----------
    instance
        Jobs and cluster.
    problem
        The problem in rounds.
    placed
        Rounds and cells of every job.
    """
    rows = list[Row]()
    length = problem.seconds
    for j, rounds in enumerate(placed):
        left = float(problem.work[j])
        for t, cells in rounds:
            alone = problem.together is not None and len({h for h, _, _ in cells}) == 1
            table = problem.together if alone and problem.together is not None else problem.speed
            # the slowest type determines the speed
            rate = float(problem.tasks[j]) * min(float(table[j, r]) for _, r, _ in cells)
            last = left <= rate * length / ENOUGH
            done, end = (
                (left, min(t * length + left / rate, (t + 1) * length)) if last else (rate * length, (t + 1) * length)
            )
            before = rows[-1] if rows else None
            if before and before[0] == j and before[2] == t * length and before[4] == cells:
                rows[-1] = (j, before[1], end, before[3] + done, cells)
            else:
                rows.append((j, t * length, end, done, cells))
            left -= done
            if last:
                break
    rows = _earlier(rows, problem, instance.arrival.tolist())
    job = np.array([row[0] for row in rows], dtype=np.int64)
    start, end_of, work = np.array([row[1:4] for row in rows], dtype=np.float64).reshape(-1, 3).T.copy()
    offset = np.cumsum([0, *(len(row[4]) for row in rows)])
    held = np.array([(h, k) for *_, cells in rows for h, _, k in cells], dtype=np.int64).reshape(-1, 2)
    nodes = node_first(instance)
    return Schedule.from_counts(instance, job, start, end_of, work, offset, held[:, 0], held[:, 1], nodes)


def _earlier(rows: list[Row], problem: RoundProblem, arrival: list[float]) -> list[Row]:
    """Move all segments to the left as far as their order on every machine allows.

    A job that ends within a round leaves its GPUs at once.
    """
    # times from which each GPU is free
    free = {(h, r): [0.0] * int(k) for (h, r), k in np.ndenumerate(problem.devices)}
    ended, moved = list(arrival), list[Row]()
    for j, start, end, work, cells in sorted(rows, key=lambda row: row[1]):
        begin = max(ended[j], *(sorted(free[h, r])[k - 1] for h, r, k in cells))
        ended[j] = begin + (end - start)
        for h, r, k in cells:
            free[h, r] = [ended[j]] * k + sorted(free[h, r])[k:]
        moved.append((j, begin, ended[j], work, cells))
    return moved
