"""`SolveState`: one solve under way.

The state holds the best schedule and the best bound; a method (`optsched.solvers.method`) brings both together. Nothing
enters unseen: a schedule is judged by the referee and its value recomputed in fractions; a solver's bound is only
rounded where theory says that values lie on a grid.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from optsched.bounds import bound as combinatorial_bound
from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.regular import ExactCost, exact_costs
from optsched.check.referee import check_schedule
from optsched.classes import CLASSES
from optsched.compiled import waiting_of_this_thread
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError, OptschedError
from optsched.models.mapped_modes import MappedModes, speed_depends_on_placement
from optsched.models.time_grid import TimeGrid, time_grid
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective
from optsched.problem.schedule import Schedule
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.method import EXCLUSIVE, there
from optsched.solvers.outcome import BOUND_TOLERANCE
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.session import Progress
from optsched.speeds.duration import fixed_durations

# What float64 leaves open, where it does not hold all times exactly: so many units in the last place of every completion
# time, and no fewer than jobs, since a time is a sum of durations; and where values lie on no grid this share of what is at
# stake (`SolveState.at_stake`, never of a clock).
ULPS, CLOSE = 16, 1e-9
PLACED = "the speed of its jobs depends on their placement"
JUDGED = 2000.0  # jobs of a schedule that the referee judges in a second, in fractions and on a busy machine
MOST_REPORTS = 1000  # kept for `Solution.trace`; of more, every second one is dropped
FINEST = 1e-6  # of what is at stake: a finer grid of values than this tells a float bound nothing
FLOAT = 2.0**-40  # of a value: what a solver's sums in float64 may be off
DOUBTFUL = 1e-7  # of what is at stake: a bound on no grid gives way to a doubt that is more


def common_step(parts: Iterable[Fraction]) -> Fraction:
    """The largest fraction of which all parts are integer multiples; 0 when all are 0."""
    step = Fraction(0)
    for part in parts:
        denominator = math.lcm(step.denominator, part.denominator)
        step = Fraction(math.gcd(int(step * denominator), int(part * denominator)), denominator)
    return step


class SolveState:
    """One solve: instance and objective, the interval so far, the time that is left.

    Time counts from the first arrival (`Instance.relative`); ``epoch`` is its second on the log's clock, for words only.
    """

    def __init__(
        self,
        instance: Instance,
        goal: Objective,
        *,
        deadline: Deadline = NEVER,
        horizon: float | None = None,
        progress: Callable[[Progress], None] | None = None,
        schedule_class: str = EXCLUSIVE,
        epoch: float = 0.0,
    ) -> None:
        self.instance, self.goal, self.horizon = instance, goal, horizon
        self.schedule_class, self.epoch = schedule_class, epoch
        self.kind = CLASSES.get(schedule_class)
        self.began, self._waited = time.perf_counter(), waiting_of_this_thread()
        self._compiled, self.deadline = self._waited(), deadline
        self.method = "list"  # whose turn it is
        self.schedule: Schedule | None = None
        self.value: Fraction | None = None
        self.bound: Fraction | None = None
        self.bound_by = "certificate"
        self.certificate: Certificate | None = None
        self.refuted: dict[str, str] = {}  # methods whose bound a schedule refutes: what happened, in a sentence
        self._before: tuple[Fraction | None, str] = (None, "certificate")  # the bound, when the method began
        self._progress, self.trace = progress, list[Progress]()

    # --- time and progress ---------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Since the beginning, without those that the compiler took."""
        return time.perf_counter() - self.began - (self._waited() - self._compiled)

    @property
    def left(self) -> float:
        """Seconds left, at least 0; inf without a limit."""
        return self.deadline.left

    @property
    def late(self) -> bool:
        """Is the time up?"""
        return self.deadline.passed

    def report(self, nodes: int = 0, found: float = math.nan) -> None:
        """Note the state of the proof and inform the caller; ``found``: the value of a schedule that a solver has by now."""
        value = math.nan if self.value is None else float(self.value)
        bound = math.nan if self.bound is None else float(self.bound)
        if found < value and not found < bound:
            value = found
        gap = abs(value - bound) / abs(value) if value else 0.0
        event = Progress(value, bound, gap, nodes, self.seconds)
        if len(self.trace) > 1 and self.trace[-1].interval == event.interval == self.trace[-2].interval:
            self.trace.pop()  # nothing new: of a level, its first and its last report
        self.trace.append(event)
        if len(self.trace) > MOST_REPORTS:
            del self.trace[1:-1:2]
        if self._progress is not None:
            self._progress(event)

    def misfit(self, *, maximum: bool = False) -> str | None:
        """Why no method for fixed durations on GPUs that are alike applies; ``maximum``: it takes a largest cost, too."""
        reasons = {
            "it adds up costs over jobs": self.goal.maximum and not maximum,
            PLACED: self.placed,
            "not every job may use every node": not self.instance.unrestricted,
            "it knows no horizon": self.horizon is not None,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def listen(self, event: Progress) -> None:
        """Progress of a `Session` for this state: its bound, if it is news, and a word to the caller."""
        if math.isfinite(event.bound):
            self.raise_bound(event.bound, "solver", tell=False)
        self.report(event.nodes, event.incumbent)

    @property
    def horizon_shown(self) -> str:
        """The horizon on the log's clock, for words."""
        return "" if self.horizon is None else f"{self.horizon + self.epoch:.15g}"

    # --- the interval --------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Are bound and value equal? Where float64 rounds times, or values lie on no grid: as near as rounding brings them.

        Then the gap is at most max(`ULPS`, n) units in the last place of every completion time, times its slope; and where
        values lie on no grid, so that a bound stays a float, at most `CLOSE` of `at_stake`.
        """
        if self.value is None or self.bound is None:
            return False
        if self.bound >= self.value:
            return True
        # all times are in float64, and values so far apart that a method computing in it tells them apart
        least = Fraction(FLOAT) * abs(self.value) + self.rounding_of_times
        exact = self.grid is not None and self.grid.exact and self.finest_step is not None and self.finest_step > least
        return not exact and self.value - self.bound <= self._rounding

    @cached_property
    def at_stake(self) -> Fraction:
        """What the jobs of the incumbent pay beyond what they had to pay on arrival, added up or, like the costs, the most.

        Flow time for completion times, whatever their clock and however late jobs come; 0 without an incumbent.
        """
        if self.schedule is None:
            return Fraction(0)
        times = zip(self.schedule.completion.tolist(), self.instance.arrival.tolist(), self.costs, strict=True)
        paid = [cost.at(Fraction(end)) - cost.at(Fraction(begin)) for end, begin, cost in times]
        return max(paid, default=Fraction(0)) if self.goal.maximum else sum(paid, Fraction(0))

    @cached_property
    def rounding_of_times(self) -> Fraction:
        """What max(`ULPS`, n) units in the last place of every completion time of the incumbent are worth."""
        if self.schedule is None:
            return Fraction(0)
        clock = np.maximum(np.abs(self.schedule.completion), np.abs(self.instance.arrival))
        worth = [Fraction(ulp) * cost.slope for ulp, cost in zip(np.spacing(clock).tolist(), self.costs, strict=True)]
        each = max(worth, default=Fraction(0)) if self.goal.maximum else sum(worth, Fraction(0))
        return each * max(ULPS, self.instance.n)

    @property
    def _rounding(self) -> Fraction:
        """What rounding may have done to the value of the incumbent and to a bound, and the least gap that is one."""
        share = Fraction(0) if self.step is not None else Fraction(CLOSE)
        return max(self.at_stake * share, self.rounding_of_times)

    def offer(self, schedule: Schedule) -> bool:
        """A schedule to keep if it is better; True if it is. One that the referee rejects is an error of ours."""
        if self.horizon is not None and bool(np.any(schedule.completion > self.horizon)):
            return False
        value = self.goal.exact_of(self.instance, schedule.completion.tolist())
        if self.value is not None and value >= self.value:
            return False
        broken = check_schedule(self.instance, schedule, preemptive=False)
        if broken:
            raise OptschedError(f"the referee rejects a schedule of {schedule.policy}: {broken[0]}")
        self.schedule, self.value = schedule, value
        for of_schedule in ("at_stake", "rounding_of_times"):
            self.__dict__.pop(of_schedule, None)
        if self.bound is not None and self.bound_by != "certificate" and self.bound > value + self._rounding:
            self._refute(self.bound)
        self.report()
        return True

    def offer_starts(self, starts: Floats, policy: str) -> bool:
        """The schedule with these starts and fixed durations, to keep if it is better."""
        duration = fixed_durations(self.instance)
        return self.offer(Schedule.from_starts(self.instance, starts, duration=duration, policy=policy))

    def begin(self, method: str) -> None:
        """It is the turn of a method; the bound as it stands is what is left where this one fails."""
        self.method, self._before = method, (self.bound, self.bound_by)

    def raise_bound(
        self,
        bound: float | Fraction,
        by: str,
        *,
        tell: bool = True,
        doubt: Fraction = Fraction(0),
        up_to_value: bool = False,
    ) -> None:
        """A proven lower bound to keep if it is higher; a solver's is rounded up to the grid of values, if there is one.

        ``doubt``: how far a solver's may be too high. ``up_to_value``: it speaks of schedules better than the
        incumbent, so that what is above the value says no more than that there is none. Any other bound that is above by
        more than rounding shows that the method went wrong: `refuted` says so, and nothing of its bounds is kept.
        """
        if self.method in self.refuted:
            return
        if isinstance(bound, float) and not math.isfinite(bound):  # a solver that was stopped before it had one
            return
        if isinstance(bound, float) or doubt:
            bound = self._on_grid(Fraction(bound), doubt)
        if self.value is not None and bound > self.value:
            if not up_to_value and bound > self.value + max(self._rounding, doubt):
                self._refute(bound)
                return
            bound = self.value  # what is above is rounding
        if self.bound is None or bound > self.bound:
            self.bound, self.bound_by = bound, by
            if tell:
                self.report()

    def _on_grid(self, bound: Fraction, doubt: Fraction) -> Fraction:
        # The least value on the grid that a solver's float still proves: it gives way 1e-6 of what is at stake, where steps
        # can tell, else its own doubt and what float64 leaves open.
        step, slack = self.step, Fraction(BOUND_TOLERANCE) * self.at_stake + self.rounding_of_times + doubt
        if step is None and doubt:
            finer = Fraction(FLOAT) * abs(bound) + self.rounding_of_times + doubt
            if self.finest_step is not None and finer < self.finest_step:
                step, slack = self.finest_step, finer
        if step is not None:
            return self.values_from + math.ceil((bound - slack - self.values_from) / step) * step
        return bound - doubt if doubt > Fraction(DOUBTFUL) * self.at_stake else bound

    def _refute(self, bound: Fraction) -> None:
        # A schedule is better than what the method calls a bound: the bound of before stands.
        self.refuted[self.method] = (
            f"{self.method} claimed a bound of {float(bound):.15g}, more than the {float(there(self.value)):.15g} "
            "of a schedule, so nothing of what it claimed is kept"
        )
        (self.bound, self.bound_by), certificate = self._before, self.certificate
        if certificate is not None and (self.bound is None or certificate.value >= self.bound):
            self.bound, self.bound_by = certificate.value, "certificate"
            if self.value is not None:
                self.bound = min(self.bound, self.value)
        self.report()

    def steps(self, value: Fraction) -> int:
        """A value of a schedule in steps from `values_from`; rounded times move it by much less than half a step."""
        if self.finest_step is None:
            raise AssertionError("only asked where values lie on a grid")
        return round((value - self.values_from) / self.finest_step)

    def offer_certificate(self, certificate: Certificate | None) -> None:
        """A verifiable bound, verified here: one that does not hold, or that a schedule refutes, is an error of ours."""
        if certificate is None:
            return
        try:
            certificate.verify(self.instance)
        except CertificateError as error:
            raise OptschedError(f"a certificate of kind {certificate.kind} does not hold: {error}") from None
        if self.value is not None and certificate.value > self.value + self._rounding:
            raise OptschedError(
                f"a certificate of kind {certificate.kind} proves {certificate.exact_float!r}, "
                f"more than the {float(self.value)!r} of a schedule"
            )
        if self.certificate is None or certificate.value > self.certificate.value:
            self.certificate = certificate
        if self.bound is None or certificate.value >= self.bound:
            bound = certificate.value
            if self.value is not None and self.horizon is None:
                bound = min(bound, self.value)  # rounded times may have put a schedule below the optimum
            self.bound, self.bound_by = bound, "certificate"
            self.report()

    # --- what every method needs -----------------------------------------------------------------------------------

    @cached_property
    def placed(self) -> bool:
        """Does the speed of a job depend on its placement?"""
        return speed_depends_on_placement(self.instance)

    @cached_property
    def modes(self) -> MappedModes | None:
        """All placements of all jobs where speed depends on them; None where it does not, or where they are too many."""
        try:
            return MappedModes.of(self.instance) if self.placed else None
        except InputError:
            return None

    @cached_property
    def grid(self) -> TimeGrid | None:
        """The grid of times; None when they have no common unit, or jobs share GPUs.

        Where speed depends on the placement: of all modes, with the longest duration of every job.
        """
        if self.instance.n == 0 or not self.kind.alone:
            return None  # a job beside another one ends at no multiple of anything
        try:
            if not self.placed:
                return time_grid(self.instance)
            if self.modes is None:
                return None
            grid, slots = self.modes.grid(self.instance)
            return replace(grid, duration=np.maximum.reduceat(slots, self.modes.offset[:-1]))
        except InputError:
            return None

    @cached_property
    def costs(self) -> tuple[ExactCost, ...]:
        """Costs of the jobs."""
        return exact_costs(self.goal, self.instance)

    @cached_property
    def step(self) -> Fraction | None:
        """As `finest_step` for bounds that are floats; None: it would tell them nothing."""
        step = self.finest_step
        coarse = step is not None and step > self.at_stake * Fraction(FINEST) + 4 * self.rounding_of_times
        return step if coarse else None

    @cached_property
    def finest_step(self) -> Fraction | None:
        """Values of left-shifted schedules are `values_from` plus multiples of it; None: none, or rounding hides it."""
        if self.grid is None:
            return None
        unit, origin = self.grid.unit, Fraction(self.grid.origin)
        parts = [cost.slope * common_step((unit, origin - cost.kink)) for cost in self.costs]
        if self.goal.maximum:
            parts.append(common_step(cost.base for cost in self.costs))
        step = common_step(parts) or Fraction(1)  # nobody pays for time: all values are the same
        return step if self.grid.exact or step > 4 * self.rounding_of_times else None

    @cached_property
    def values_from(self) -> Fraction:
        """The value from which steps are counted."""
        return Fraction(0) if self.goal.maximum else sum((cost.base for cost in self.costs), Fraction(0))

    def search(self, budget: int, orders: Iterable[Ints] = (), part: float = 1.0) -> bool:
        """List schedules and local search with a budget of work, less where time is short; True if it found a better one.

        It goes on from the incumbent, for no more than a ``part`` of the time that is left.
        Where speed depends on the placement there is no local search: the list schedules are made once. Where jobs share
        GPUs there are none: their methods begin with schedules of their own.
        """
        if not self.kind.alone and self.instance.n:
            return False
        if self.placed:
            if self.schedule is not None:
                return False
            return self.offer(best_placed_schedule(self.instance, self.goal.name, modes=self.modes))
        if self.late and self.schedule is not None:
            return False
        target = -math.inf if self.bound is None else float(self.bound)
        judging = min(self.instance.n / JUDGED + 0.05 * min(self.left, 20.0), 0.5 * self.left)
        deadline = NEVER if self.deadline is NEVER else Deadline(self.deadline.share(part).at - judging)
        if self.schedule is not None:
            orders = [*orders, np.argsort(self.schedule.completion - fixed_durations(self.instance), kind="stable")]
        found = best_list_schedule(
            self.instance, self.goal.name, budget=budget, target=target, orders=orders, deadline=deadline
        )
        return self.offer(found)

    def any_schedule(self) -> None:
        """See to it that there is one: where jobs share GPUs and no method found any, one in which they do not share."""
        if self.schedule is None:
            self.offer(best_list_schedule(self.instance, self.goal.name))

    def combinatorial(self) -> None:
        """The best combinatorial certificate, where there is one for this objective."""
        try:
            self.offer_certificate(
                combinatorial_bound(self.instance, self.goal.name, self.schedule_class, deadline=self.deadline)
            )
        except InputError:
            return  # no such bound is registered: other bounds must do
