"""`SolveState`: one solve under way.

The state has the best schedule and the best bound; a method (`optsched.solvers.method`) brings both together. Everything
is checked: the referee checks a schedule, and its value is recomputed in fractions; a solver's bound is rounded
only if theory proves that values lie on a grid.
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
from optsched.solvers.list_schedule import LIKELY, best_list_schedule, list_schedule
from optsched.solvers.outcome import BOUND_TOLERANCE, there
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.session import Progress
from optsched.speeds.duration import fixed_durations

# Rounding of float64, if it does not represent all times exactly: this number of units in the last place of every
# completion time, at least the number of jobs, since a time is a sum of durations. If values lie on no grid: this part
# of what is at stake (`SolveState.at_stake`, never of a clock time).
ULPS, CLOSE = 16, 1e-9
EXCLUSIVE, SHARING = "gang-nonpreemptive", "gpu-sharing"  # classes of schedules
PLACED = "the speed of its jobs depends on their placement"
AT_ONCE = 1000  # jobs of which the best of all list schedules takes less than a second
JUDGED = 2000.0  # jobs of a schedule that the referee checks in a second, in fractions and on a busy machine
MOST_REPORTS = 1000  # reports kept for `Solution.trace`; beyond it every second one is dropped
FINEST = 1e-6  # relative to what is at stake: a finer grid of values does not improve a float bound
FLOAT = 2.0**-40  # relative to a value: error of a solver's sums in float64
DOUBTFUL = 1e-7  # relative to what is at stake: a bound on no grid is lowered by its doubt if that is larger


def common_step(parts: Iterable[Fraction]) -> Fraction:
    """Return the largest fraction of which all parts are integer multiples; 0 if all are 0.

    Parameters
    ----------
    parts
        Fractions.
    """
    step = Fraction(0)
    for part in parts:
        denominator = math.lcm(step.denominator, part.denominator)
        step = Fraction(math.gcd(int(step * denominator), int(part * denominator)), denominator)
    return step


class SolveState:
    """One solve: instance and objective, the interval so far, the time that is left.

    Time counts from the first arrival (`Instance.relative`); ``epoch`` is its second on the log's clock, for messages only.
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
        self.method = "list"  # the method that runs
        self.schedule: Schedule | None = None
        self.value: Fraction | None = None
        self.bound: Fraction | None = None
        self.bound_by = "certificate"
        self.certificate: Certificate | None = None
        self.refuted: dict[str, str] = {}  # method -> a sentence on the schedule that refutes its bound
        self._before: tuple[Fraction | None, str] = (None, "certificate")  # the bound before the method began
        self._progress, self.trace = progress, list[Progress]()

    # --- time and progress ---------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, without those of the compiler."""
        return time.perf_counter() - self.began - (self._waited() - self._compiled)

    @property
    def left(self) -> float:
        """Seconds left, at least 0; inf without a limit."""
        return self.deadline.left

    @property
    def late(self) -> bool:
        """True if the time is up."""
        return self.deadline.passed

    def report(self, nodes: int = 0, found: float = math.nan) -> None:
        """Note the state of the proof and inform the caller.

        Parameters
        ----------
        nodes
            Number of nodes so far.
        found
            Value of a schedule that a solver has found by now.
        """
        value = math.nan if self.value is None else float(self.value)
        bound = math.nan if self.bound is None else float(self.bound)
        if found < value and not found < bound:
            value = found
        gap = abs(value - bound) / abs(value) if value else 0.0
        event = Progress(value, bound, gap, nodes, self.seconds)
        if len(self.trace) > 1 and self.trace[-1].interval == event.interval == self.trace[-2].interval:
            self.trace.pop()  # the interval is unchanged: keep only its first and its last report
        self.trace.append(event)
        if len(self.trace) > MOST_REPORTS:
            del self.trace[1:-1:2]
        if self._progress is not None:
            self._progress(event)

    def misfit(self, *, maximum: bool = False) -> str | None:
        """Return why no method for fixed durations on GPUs that are alike applies, or None.

        Parameters
        ----------
        maximum
            The method also minimises a largest cost.
        """
        reasons = {
            "it minimises sums of costs over jobs": self.goal.maximum and not maximum,
            PLACED: self.placed,
            "not every job may use every node": not self.instance.unrestricted,
            "it does not support a horizon": self.horizon is not None,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def listen(self, event: Progress) -> None:
        """Take the progress of a `Session`: raise the bound if it is better, and inform the caller.

        Parameters
        ----------
        event
            The progress.
        """
        if math.isfinite(event.bound):
            self.raise_bound(event.bound, "solver", tell=False)
        self.report(event.nodes, event.incumbent)

    @property
    def horizon_shown(self) -> str:
        """Horizon on the log's clock, for messages."""
        return "" if self.horizon is None else f"{self.horizon + self.epoch:.15g}"

    # --- the interval --------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """True if bound and value are equal, up to rounding where float64 rounds times, or values lie on no grid.

        Then the gap is at most max(`ULPS`, n) units in the last place of every completion time, times its slope; and where
        values lie on no grid, so that a bound stays a float, at most `CLOSE` of `at_stake`.
        """
        if self.value is None or self.bound is None:
            return False
        if self.bound >= self.value:
            return True
        # all times are exact in float64, and values are so far apart that float64 can distinguish them
        least = Fraction(FLOAT) * abs(self.value) + self.rounding_of_times
        exact = self.grid is not None and self.grid.exact and self.finest_step is not None and self.finest_step > least
        return not exact and self.value - self.bound <= self._rounding

    @cached_property
    def at_stake(self) -> Fraction:
        """Cost of the incumbent's jobs beyond their cost on arrival: the sum, or the largest for a maximum.

        It is the flow time for completion times, whatever their clock and however late jobs come; 0 without an incumbent.
        """
        if self.schedule is None:
            return Fraction(0)
        times = zip(self.schedule.completion.tolist(), self.instance.arrival.tolist(), self.costs, strict=True)
        paid = [cost.at(Fraction(end)) - cost.at(Fraction(begin)) for end, begin, cost in times]
        return max(paid, default=Fraction(0)) if self.goal.maximum else sum(paid, Fraction(0))

    @cached_property
    def rounding_of_times(self) -> Fraction:
        """Cost of max(`ULPS`, n) units in the last place of every completion time of the incumbent."""
        if self.schedule is None:
            return Fraction(0)
        clock = np.maximum(np.abs(self.schedule.completion), np.abs(self.instance.arrival))
        worth = [Fraction(ulp) * cost.slope for ulp, cost in zip(np.spacing(clock).tolist(), self.costs, strict=True)]
        each = max(worth, default=Fraction(0)) if self.goal.maximum else sum(worth, Fraction(0))
        return each * max(ULPS, self.instance.n)

    @property
    def _rounding(self) -> Fraction:
        """Largest effect of rounding on the value of the incumbent and on a bound; only a larger gap is a gap."""
        share = Fraction(0) if self.step is not None else Fraction(CLOSE)
        return max(self.at_stake * share, self.rounding_of_times)

    def offer(self, schedule: Schedule) -> bool:
        """Keep a schedule if it is better, and return whether it is.

        Parameters
        ----------
        schedule
            The schedule.

        Raises
        ------
        OptschedError
            If the referee rejects the schedule, which is an error of this package.
        """
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
        """Keep the schedule with the given starts and fixed durations if it is better, and return whether it is.

        Parameters
        ----------
        starts
            Start of every job in seconds, f64[n].
        policy
            Name that the schedule records.
        """
        duration = fixed_durations(self.instance)
        return self.offer(Schedule.from_starts(self.instance, starts, duration=duration, policy=policy))

    def begin(self, method: str) -> None:
        """Begin the turn of a method; the current bound is kept for the case that it fails.

        Parameters
        ----------
        method
            Name of the method.
        """
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
        """Keep a proven lower bound if it is higher; a solver's is rounded up to the grid of values, if there is one.

        Any bound that is above the value by more than rounding shows that the method went wrong: `refuted` then has a
        sentence, and no bound of the method is kept.

        Parameters
        ----------
        bound
            The bound.
        by
            "solver" or "certificate".
        tell
            Report the new interval.
        doubt
            How far a solver's bound may be too high.
        up_to_value
            The bound is for schedules better than the incumbent, so a bound above the value proves only that there
            is none.
        """
        if self.method in self.refuted:
            return
        if isinstance(bound, float) and not math.isfinite(bound):  # the solver was stopped before it had a bound
            return
        if isinstance(bound, float) or doubt:
            bound = self._on_grid(Fraction(bound), doubt)
        if self.value is not None and bound > self.value:
            if not up_to_value and bound > self.value + max(self._rounding, doubt):
                self._refute(bound)
                return
            bound = self.value  # the difference is rounding
        if self.bound is None or bound > self.bound:
            self.bound, self.bound_by = bound, by
            if tell:
                self.report()

    def _on_grid(self, bound: Fraction, doubt: Fraction) -> Fraction:
        # Return the least value on the grid that a solver's float still proves. The float is first lowered by 1e-6 of
        # what is at stake, if steps are larger, else by its own doubt and the rounding of float64.
        step, slack = self.step, Fraction(BOUND_TOLERANCE) * self.at_stake + self.rounding_of_times + doubt
        if step is None and doubt:
            finer = Fraction(FLOAT) * abs(bound) + self.rounding_of_times + doubt
            if self.finest_step is not None and finer < self.finest_step:
                step, slack = self.finest_step, finer
        if step is not None:
            return self.values_from + math.ceil((bound - slack - self.values_from) / step) * step
        return bound - doubt if doubt > Fraction(DOUBTFUL) * self.at_stake else bound

    def _refute(self, bound: Fraction) -> None:
        # A schedule is better than the method's bound: restore the earlier bound.
        self.refuted[self.method] = (
            f"{self.method} claimed a bound of {float(bound):.15g}, more than the {float(there(self.value)):.15g} "
            "of a schedule, so none of its bounds is kept"
        )
        (self.bound, self.bound_by), certificate = self._before, self.certificate
        if certificate is not None and (self.bound is None or certificate.value >= self.bound):
            self.bound, self.bound_by = certificate.value, "certificate"
            if self.value is not None:
                self.bound = min(self.bound, self.value)
        self.report()

    def steps(self, value: Fraction) -> int:
        """Return a value of a schedule in steps from `values_from`; rounded times move it by much less than half a step.

        Parameters
        ----------
        value
            The value.
        """
        if self.finest_step is None:
            raise AssertionError("only asked where values lie on a grid")
        return round((value - self.values_from) / self.finest_step)

    def offer_certificate(self, certificate: Certificate | None) -> None:
        """Verify a certificate, and keep it if it is better.

        Parameters
        ----------
        certificate
            The certificate; None: there is none.

        Raises
        ------
        OptschedError
            If the certificate does not hold, or a schedule refutes it, which is an error of this package.
        """
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
        """True if the speed of a job depends on its placement."""
        return speed_depends_on_placement(self.instance)

    @cached_property
    def modes(self) -> MappedModes | None:
        """All placements of all jobs if speed depends on them; None if it does not, or if they are too many."""
        try:
            return MappedModes.of(self.instance) if self.placed else None
        except InputError:
            return None

    @cached_property
    def grid(self) -> TimeGrid | None:
        """Grid of times; None if they have no common unit, or jobs share GPUs.

        If speed depends on the placement: that of all modes, with the longest duration of every job.
        """
        if self.instance.n == 0 or not self.kind.alone:
            return None  # a job that shares GPUs ends on no grid
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
        """Step of values as in `finest_step`, if it is large enough to round bounds that are floats; else None."""
        step = self.finest_step
        coarse = step is not None and step > self.at_stake * Fraction(FINEST) + 4 * self.rounding_of_times
        return step if coarse else None

    @cached_property
    def finest_step(self) -> Fraction | None:
        """Step of values, or None if there is none or rounding hides it.

        Values of left-shifted schedules are `values_from` plus multiples of it.
        """
        if self.grid is None:
            return None
        unit, origin = self.grid.unit, Fraction(self.grid.origin)
        parts = [cost.slope * common_step((unit, origin - cost.kink)) for cost in self.costs]
        if self.goal.maximum:
            parts.append(common_step(cost.base for cost in self.costs))
        step = common_step(parts) or Fraction(1)  # no job pays for time: all values are the same
        return step if self.grid.exact or step > 4 * self.rounding_of_times else None

    @cached_property
    def values_from(self) -> Fraction:
        """Value from which steps are counted."""
        return Fraction(0) if self.goal.maximum else sum((cost.base for cost in self.costs), Fraction(0))

    def search(self, budget: int, orders: Iterable[Ints] = (), part: float = 1.0) -> bool:
        """Make list schedules and search locally; return whether a better schedule was found.

        The search goes on from the incumbent. If speed depends on the placement there is no local search: the list
        schedules are made once. If jobs share GPUs there are no list schedules: their methods begin with schedules of
        their own.

        Parameters
        ----------
        budget
            Amount of work; less is done if time is short.
        orders
            Further orders to try, i64[n] each.
        part
            Largest part of the remaining time to use.
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
        schedule = best_list_schedule(
            self.instance, self.goal.name, budget=budget, target=target, orders=orders, deadline=deadline
        )
        return self.offer(schedule)

    def any_schedule(self) -> None:
        """Make a schedule if there is none: for many jobs of one order, since somebody waits for it.

        If jobs may share GPUs and no method found a schedule, they do not share in this one.
        """
        if self.schedule is not None:
            return
        if self.instance.n > AT_ONCE:
            self.offer(list_schedule(self.instance, LIKELY, self.goal.name))
        else:
            self.offer(best_list_schedule(self.instance, self.goal.name))

    def combinatorial(self) -> None:
        """Take the best combinatorial certificate, if there is one for this objective."""
        try:
            self.offer_certificate(
                combinatorial_bound(self.instance, self.goal.name, self.schedule_class, deadline=self.deadline)
            )
        except InputError:
            return  # no such bound is registered: other bounds are used
