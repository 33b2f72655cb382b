"""The method ``partial-schedules``: rigid gangs on a grid of time, partial schedules bounded by prices of slots."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Certificate
from optsched.bounds.lp_dual import Integers, Prices, integers, price_certificate
from optsched.deadline import NEVER
from optsched.models.latest_starts import latest_completions
from optsched.problem.arrays import Ints
from optsched.problem.schedule import Schedule
from optsched.solvers.list_schedule import FEW
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.method import EXCLUSIVE, MethodReport, add_method, there
from optsched.solvers.methods.sequence_branching import machine_of
from optsched.solvers.partial_schedules import Searched, bytes_of, search_states
from optsched.solvers.size import Size
from optsched.solvers.solve_state import SolveState
from optsched.solvers.start_prices import BEYOND, StartBounds, StartJobs
from optsched.speeds.duration import fixed_durations

NAME = "partial-schedules"
SLOTS, GPUS, LARGEST = 4_000_000, 128, 1 << 44  # jobs times slots; in units of all gangs; a value in steps
STEPS = (300, 2000, 2000, 2000)  # of ascents, between which starts are given up
SMALL = 8  # jobs whose states are so few that prices would not pay, nor the compiler
LEFT = 0.9  # of the starts: another ascent for so few would not pay
FIRST, WIDER, BYTES = 1000, 4, 400_000_000  # states of a level; times those of the pass before; of all that it keeps
WIDE, AGAIN = 16_000, 300  # states beyond which a limit between bound and value proves more; steps of ascent below it
BUDGET, PART, ENDLESS = 100_000, 0.2, 10**15  # of the local search, times n^2, but no more than this part of the time


def _applies(state: SolveState) -> str | None:
    if reason := state.misfit():
        return reason
    if state.grid is None or state.step is None:
        return "the times or the values are multiples of no useful unit"
    if state.value is None or state.steps(state.value) >= LARGEST:
        return "there is no schedule to begin with, or values are too large for exact arithmetic"
    unit, slots = int(np.gcd.reduce(state.instance.gpus)), int(_last_starts(state).max()) + 1
    if state.instance.n * slots > SLOTS or state.instance.cluster.gpus // unit > GPUS:
        return f"{state.instance.n} jobs x {slots} slots on {state.instance.cluster.gpus // unit} GPUs are too many"
    return None


def _last_starts(state: SolveState) -> Ints:
    """Of jobs in left-shifted schedules that are not worse than the incumbent, in slots."""
    grid = there(state.grid)
    latest = latest_completions(state.instance, state.goal.name, float(there(state.value)))
    some = int(grid.release.max() + grid.duration.sum())
    ends = np.where(np.isfinite(latest), np.minimum(grid.slots(np.where(np.isfinite(latest), latest, 0.0)), some), some)
    return np.maximum(ends - grid.duration, grid.release)


class Search:
    """One search: the starts that are left, their prices, and the interval in steps of values."""

    def __init__(self, state: SolveState) -> None:
        self.state, self.grid = state, there(state.grid)
        self.order = np.argsort(self.grid.release, kind="stable")
        last, gpus = _last_starts(state)[self.order], state.instance.gpus[self.order]
        unit, slot = int(np.gcd.reduce(gpus)), np.arange(int(last.max()) + 1)
        release, length = self.grid.release[self.order], self.grid.duration[self.order]
        open_ = (slot >= release[:, None]) & (slot <= last[:, None])
        cost = machine_of(state, slot.size).cost[self.order, : slot.size]
        total = state.instance.cluster.gpus // unit
        self.jobs = StartJobs(release, length, gpus // unit, total, cost, open_)
        self.passes = 0

    @property
    def limit(self) -> int:
        """The value in steps that a better schedule has at most."""
        return self.state.steps(there(self.state.value)) - 1

    def raise_bound(self, steps: int) -> None:
        """No schedule of open starts is below."""
        steps = min(steps, self.limit + 1)
        self.state.raise_bound(self.state.values_from + steps * there(self.state.step), "solver", tell=False)
        self.state.report(self.passes)

    def certificate(self, bounds: StartBounds) -> Certificate:
        """What prices prove of all starts."""
        state, grid, step = self.state, self.grid, there(self.state.step)
        own = list[tuple[int, Integers]]()
        for row in bounds.prices[np.argsort(self.order)]:
            paid = np.flatnonzero(row)
            first, last = (int(paid[0]), int(paid[-1]) + 1) if paid.size else (0, 0)
            own.append((first, integers([price * step.numerator for price in row[first:last].tolist()])))
        size = step.denominator << bounds.bits
        prices = Prices("rigid-time-indexed", Fraction(grid.origin), grid.unit, size, (), tuple(own))
        return price_certificate(state.instance, state.goal.name, EXCLUSIVE, prices)

    def price(self) -> StartBounds | None:
        """Prices, and without the starts that they prove to be of no use; None where no better schedule is left."""
        own, deadline = np.zeros((self.jobs.release.size, self.jobs.slots)), self.state.deadline.share(0.5)
        if self.jobs.release.size <= SMALL:
            state = self.state
            state.offer_certificate(
                lp_bound(state.instance, state.goal.name, schedule=state.schedule, deadline=deadline)
            )
            return None if state.closed else self.jobs.prove(own)
        for steps in STEPS:
            own = self.jobs.ascend(own, steps, deadline)
            bounds = self.jobs.prove(own)
            self.raise_bound(bounds.steps)
            if steps != STEPS[0]:
                self.state.offer_certificate(self.certificate(bounds))
            fewer = self.jobs.without(bounds, self.limit)
            if fewer is None or self.state.closed:
                return None
            settled = fewer.open.sum() > LEFT * self.jobs.open.sum()
            self.jobs = fewer
            if settled or deadline.passed:
                break
        return self.jobs.prove(own)

    def run(self) -> None:
        """Pass after pass to the proof, the deadline or the end of memory: wider ones, at last with limits that rise."""
        bounds, width, most, gain = self.price(), FIRST, BYTES // bytes_of(self.jobs), 1
        target, proved = self.limit, 0 if bounds is None else bounds.steps
        while bounds is not None and not self.state.late:
            found = self.search(bounds, target, width)
            whole = found.finished and found.bound == BEYOND
            reached = target + 1 if whole else -(-found.bound >> bounds.bits)
            self.raise_bound(reached)
            if self.state.closed or not found.finished or not (whole or width < most):
                return
            width = width if whole else min(WIDER * width, most)
            gain, proved = 2 * gain if whole else reached - proved, max(proved, reached)
            gain = max(gain, (self.limit - proved) // 4)
            target = min(self.limit, proved + gain) if width > WIDE and 2 * gain < self.limit - proved else self.limit

    def search(self, bounds: StartBounds, target: int, width: int) -> Searched:
        """A pass for schedules of at most ``target`` steps, at prices for what is left of the starts then."""
        self.passes += 1
        jobs = self.jobs.without(bounds, target)
        if jobs is None:
            return Searched(None, BEYOND, BEYOND, True)
        own = bounds.prices / 2.0**bounds.bits
        if jobs.release.size > SMALL:
            own = jobs.ascend(own, AGAIN, self.state.deadline)
        here = jobs.prove(own, bounds.bits)
        found = search_states(here, target << here.bits, width, self.state.deadline)
        if found.starts is not None:
            starts = self.grid.seconds(found.starts[np.argsort(self.order)])
            duration = fixed_durations(self.state.instance)
            self.state.offer(Schedule.from_starts(self.state.instance, starts, duration=duration, policy=NAME))
        return found


def _run(state: SolveState) -> MethodReport:
    if state.instance.n > FEW:
        state.search(BUDGET * state.instance.n**2, part=PART)
    search = Search(state)
    search.run()
    if not state.closed and state.deadline is not NEVER:
        state.search(ENDLESS)
    note = "" if state.closed else f"the limit of time or memory came after {search.passes} passes"
    return MethodReport("states", Size(), search.passes, note=note)


add_method(NAME, _applies, _run)
