"""The method ``partial-schedules``: rigid gangs by partial schedules, bounded by prices of slots of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optsched.bounds.certificate import Certificate
from optsched.bounds.lp_dual import Integers, Prices, integers, price_certificate
from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Ints
from optsched.solvers.linear_program import Size
from optsched.solvers.list_schedule import FEW, list_schedule
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.solve_state import EXCLUSIVE, SolveState
from optsched.solvers.start_prices import BEYOND, Clock, StartBounds, StartJobs, Times, alike

# Bounded dynamic programming over partial schedules of gangs: an optimum, or a better schedule and a better bound.
#
# **States** (S, v, cost): the jobs S have started, in the order of their starts; v_1 <= ... <= v_G are the times at
# which the GPUs are free for the other jobs. The next job j starts at e_j = max(r_j, v_{g_j}), and for the jobs behind
# it no GPU is free earlier. Every left-shifted schedule is that of its own order. Level k has the states with |S| = k.
# **Pruning** leaves out: of two states with the same S one with no less cost and no earlier GPU; a next job before
# whose start another one could run and end (moved there, that one costs no more and starts earlier); of jobs that are
# alike but for their arrival, the later one before the other; starts that are not open; and states whose bound (over
# the remaining jobs on the free GPUs: `optsched.solvers.start_prices`) is above a limit, whose schedules are too
# expensive. By induction over levels, some state of every level has a completion of optimal cost if that is within the
# limit: take the one with the smallest sum of starts, and of these the one with jobs that are alike in turn.
# **Width**: a level keeps a limited number of states, those with the least bounds. If none was left out for that, the
# result is the optimum, or no schedule is within the limit. Else no schedule is below the least bound of those left
# out, and the result is the schedule of a beam search.
# **Groups**: the bound of a state counts what the remaining jobs pay. Jobs that have started in all states of a group do not
# count. Groups are small and similar: states are sorted by the jobs that most nearly half of the level has started.
# **Times** of states are in fine units, prices in slots of as many units as necessary: a schedule remains feasible when
# all its times are rounded down, and costs no more (`optsched.solvers.start_prices`).
# **Arithmetic** in integers. **Complexity** O(width n (n + G)) a level.
# **References**: for one machine: Tanaka, Fujikuma and Araki, J. Sched. 12 (2009); bounded dynamic programming:
# Bautista and Pereira, European J. Oper. Res. 194 (2009). States of gangs, and their bound: derived here.

# jobs in a word of S; bits of a hash; number of states with which a state is compared
WORD, HASH, COMPARED = 62, (1 << 62) - 1, 200
TOGETHER, SPARE = 32, 2  # similar states that share what the other jobs pay; room for children, times the width
DIVIDING = 60  # jobs by which similar states are found: one bit of a key each


@dataclass(frozen=True, eq=False)
class Searched:
    """Result of a search, in units of `StartBounds`.

    ``order`` i64[n] of the best schedule within the limit, or None; its ``cost``, and the ``bound`` that no schedule is
    below, or BEYOND if no state was left out; ``finished`` unless the time was up.
    """

    order: Ints | None
    cost: int
    bound: int
    finished: bool


class States(NamedTuple):
    """Partial schedules as columns.

    ``gone`` i64[M, words] the bits of S, ``free`` i64[M, G], ``cost``, ``bound``, and their ``parent`` and last
    ``job``, i64[M].
    """

    gone: Ints
    free: Ints
    cost: Ints
    bound: Ints
    parent: Ints
    job: Ints

    @classmethod
    def empty(cls, states: int, words: int, total: int) -> States:
        """Return columns for a number of states.

        Parameters
        ----------
        states
            Number of states M.
        words
            Number of words of S.
        total
            Number of GPUs G.
        """
        columns = (np.zeros(states, dtype=np.int64) for _ in range(4))
        return cls(np.zeros((states, words), dtype=np.int64), np.zeros((states, total), dtype=np.int64), *columns)

    def take(self, chosen: Ints) -> States:
        """Return some states, copied.

        Parameters
        ----------
        chosen
            Numbers of the states, i64[k].
        """
        return States(*(column[chosen] for column in self))

    def gone_everywhere(self, jobs: int) -> Bools:
        """Return the jobs that have started in every state, bool[n].

        Parameters
        ----------
        jobs
            Number of jobs n.
        """
        common, job = np.bitwise_and.reduce(self.gone, axis=0), np.arange(jobs)
        return np.asarray((common[job // WORD] >> (job % WORD)) & 1, dtype=bool)

    def similar_together(self, jobs: int) -> Ints:
        """Return an order in which states that have started nearly the same jobs are neighbours, i64[M].

        States are sorted by the jobs that most nearly half of them have started. States with the same jobs keep their order.

        Parameters
        ----------
        jobs
            Number of jobs n.
        """
        job = np.arange(jobs)
        started = (self.gone[:, job // WORD] >> (job % WORD)) & 1
        dividing = np.argsort(np.abs(started.mean(axis=0) - 0.5), kind="stable")[:DIVIDING]
        key = started[:, dividing] @ (1 << np.arange(dividing.size, dtype=np.int64)[::-1])
        return np.argsort(key, kind="stable")


def search_states(bounds: StartBounds, times: Times, limit: int, width: int, deadline: Deadline) -> Searched:
    """Return the best schedule within a limit, as far as ``width`` and ``deadline`` allow.

    Parameters
    ----------
    bounds
        Bounds of the prices.
    times
        Times of the jobs.
    limit
        Largest cost, in units of ``bounds``.
    width
        Largest number of states of a level.
    deadline
        Time at which to stop.
    """
    jobs = bounds.jobs
    n, words = jobs.release.size, -(-jobs.release.size // WORD)
    given = times, jobs.gpus, bounds.bits, bounds.paid, bounds.least, bounds.later
    spare, table = States.empty(SPARE * width, words, jobs.total), np.full(1 << (2 * SPARE * width).bit_length(), -1)
    level, left_out = States.empty(1, words, jobs.total), BEYOND
    level.free[:], level.bound[:] = times.release.min(), bounds.value
    path: list[tuple[Ints, Ints]] = []
    for _ in range(n):
        count, cut = 0, limit + 1
        payers = bounds.payers(level.gone_everywhere(n))
        table[:] = -1
        for begin in range(0, level.cost.size, TOGETHER):
            if deadline.passed:
                least = min(left_out, int(level.bound.min()))
                return Searched(None, BEYOND, least, False)
            part = level.take(np.arange(begin, min(begin + TOGETHER, level.cost.size)))
            soonest = int(part.free[:, 0].min()) >> times.shift
            after = bounds.after(part.gone_everywhere(n), payers, soonest)
            count, cut = _expand(part, begin, given, after, cut, width, spare, count, table)
        if cut <= limit:
            left_out = min(left_out, cut)
        kept = np.flatnonzero(_undominated(spare.gone[:count], spare.free[:count], spare.cost[:count]))
        kept = kept[np.argsort(spare.bound[kept], kind="stable")]
        if kept.size > width:
            left_out, kept = min(left_out, int(spare.bound[kept[width]])), kept[:width]
        if not kept.size:
            return Searched(None, BEYOND, left_out, True)
        level = spare.take(kept)
        level = level.take(level.similar_together(n))
        path.append((level.parent.astype(np.int32), level.job.astype(np.int16)))
    order, at = [], 0  # begin at the first state of the last level
    for parent, job in reversed(path):
        order.append(int(job[at]))
        at = int(parent[at])
    return Searched(np.array(order[::-1], dtype=np.int64), int(level.cost[0]), left_out, True)


# --- compiled ------------------------------------------------------------------------------------------------------------


@njit
def _held(before, free, start, gang, length):  # type: ignore[no-untyped-def]
    """Set ``free``, ascending, to when GPUs are free after a gang has started on those of ``before``.

    No other gang starts earlier than this one.
    """
    end, k = start + length, gang
    while k < before.size and before[k] < end:
        free[k - gang] = max(before[k], start)
        k += 1
    for i in range(k, before.size):
        free[i] = before[i]
    for i in range(k - gang, k):
        free[i] = end


@njit
def _expand(states, first, given, after, cut, width, found, count, table):  # type: ignore[no-untyped-def]
    """Add the children of states to those ``found`` so far.

    Returns (number of states found, bound from which on they are left out).
    """
    gone, free, cost, before_bound, _, _ = states
    (release, length, shift, rise, base, before), gpus, bits, paid, least, later = given
    all_gone, all_free, all_cost, all_bound, parent, last_job = found
    dearest = float(BEYOND >> bits)
    waiting, earliest = np.empty(release.size, dtype=np.int64), np.empty(release.size, dtype=np.int64)
    gpu_free, key = np.empty(free.shape[1], dtype=np.int64), np.empty(gone.shape[1], dtype=np.int64)
    for q in range(gone.shape[0]):
        left, over, next_ = 0, BEYOND, 0
        # jobs behind these arrive when another job could already be complete
        while next_ < release.size and release[next_] < over:
            if not (gone[q, next_ // WORD] >> (next_ % WORD)) & 1:
                waiting[left], earliest[left] = next_, max(release[next_], free[q, gpus[next_] - 1])
                over = min(over, earliest[left] + length[next_])
                left += 1
            next_ += 1
        for x in range(left):
            j, start = waiting[x], earliest[x]
            if before[j] >= 0 and not (gone[q, before[j] // WORD] >> (before[j] % WORD)) & 1:
                continue
            if start >= over or start >> shift >= paid.shape[1] or paid[j, start >> shift] == BEYOND:
                continue
            _held(free[q], gpu_free, start, gpus[j], length[j])
            paid_now = min(max(rise[j] * (start - release[j]) + base[j], 0.0), dearest)
            total = cost[q] + (math.floor(paid_now) << bits)
            rest = _rest(waiting[:left], next_, j, gpu_free, release, gpus, shift, least, later, after)
            bound = max(total + rest, before_bound[q])
            if bound >= cut:
                continue
            key[:] = gone[q]
            key[j // WORD] |= 1 << (j % WORD)
            at = _place(key, gpu_free, all_gone, all_free, table)
            index = table[at]
            if index < 0:
                if count == all_cost.size:
                    count, cut = _cut(found, width, table)
                    if bound >= cut:
                        continue
                    at = _place(key, gpu_free, all_gone, all_free, table)
                index, table[at] = count, count
                all_gone[index], all_free[index], all_cost[index] = key, gpu_free, total + 1
                count += 1
            if total < all_cost[index]:
                all_cost[index], all_bound[index], parent[index], last_job[index] = total, bound, first + q, j
    return count, cut


@njit
def _rest(waiting, next_, gone, free, release, gpus, shift, least, later, after):  # type: ignore[no-untyped-def]
    """Return the least cost of the waiting jobs and of all from ``next_`` on.

    ``free`` rises to the moment at which the first of them can start.
    """
    soonest, bound, last, jobs = BEYOND, 0, after.shape[1] - 1, release.size
    for x in range(waiting.size + jobs - next_):
        i = waiting[x] if x < waiting.size else next_ + x - waiting.size
        if x >= waiting.size and release[i] >= free[-1]:  # from here on no job has to wait
            soonest, bound = min(soonest, release[i]), bound + later[i]
            break
        if i != gone:
            start = max(release[i], free[gpus[i] - 1])
            soonest = min(soonest, start)
            bound += least[i, start >> shift] if start >> shift < least.shape[1] else BEYOND
            if bound >= BEYOND:
                return bound
    if soonest == BEYOND:  # no job waits
        return 0
    for c in range(free.size):
        free[c] = max(free[c], soonest)
    for c in range(free.size):  # c + 1 GPUs are free between this moment and the next
        bound -= after[c + 1, min(free[c] >> shift, last)]
        if c + 1 < free.size:
            bound += after[c + 1, min(free[c + 1] >> shift, last)]
    return bound


@njit
def _mixed(words, mixed):  # type: ignore[no-untyped-def]
    """Return a hash of integers, of 62 bits."""
    for word in words:
        mixed = ((mixed ^ int(word)) * 1000003) & HASH
        mixed ^= mixed >> 31
    return mixed


@njit
def _place(key, free, all_gone, all_free, table):  # type: ignore[no-untyped-def]
    """Return the position of a state in the hash table, or the one where it can be added."""
    at = _mixed(free, _mixed(key, 0)) & (table.size - 1)
    while table[at] >= 0:
        same = True
        for w in range(key.size):
            same = same and all_gone[table[at], w] == key[w]
        for c in range(free.size):
            same = same and all_free[table[at], c] == free[c]
        if same:
            break
        at = (at + 1) & (table.size - 1)
    return at


@njit
def _cut(found, width, table):  # type: ignore[no-untyped-def]
    """Keep the ``width`` best states in a new hash table; return (states kept, the least bound of those left out)."""
    gone, free, cost, bound, parent, job = found
    order = np.argsort(bound, kind="mergesort")
    cut = bound[order[width]]
    table[:] = -1
    for to, at in enumerate(np.sort(order[:width])):
        gone[to], free[to], cost[to], bound[to] = gone[at], free[at], cost[at], bound[at]
        parent[to], job[to] = parent[at], job[at]
        table[_place(gone[to], free[to], gone, free, table)] = to
    return width, cut


@njit
def _undominated(gone, free, cost):  # type: ignore[no-untyped-def]
    """Return bool[M]: no state with the same jobs gone, of the cheapest, costs no more and has all GPUs free no later."""
    kept, mixed = np.ones(cost.size, dtype=np.bool_), np.zeros(cost.size, dtype=np.int64)
    for q in range(cost.size):
        mixed[q] = _mixed(gone[q], 0)
    order = np.argsort(cost, kind="mergesort")
    order, begin = order[np.argsort(mixed[order], kind="mergesort")], 0
    for end in range(order.size):
        b = order[end]
        begin = end if mixed[b] != mixed[order[begin]] else begin
        for a in order[begin : min(end, begin + COMPARED)]:
            if kept[a] and kept[b]:
                better = True
                for w in range(gone.shape[1]):
                    better = better and gone[a, w] == gone[b, w]
                for c in range(free.shape[1]):
                    better = better and free[a, c] <= free[b, c]
                kept[b] = not better
    return kept


NAME = "partial-schedules"
CELLS, GPUS = 4_000_000, 128  # jobs times slots; GPUs in units of all gangs
STEPS = (300, 2000, 2000, 2000)  # steps of the ascents; between them starts are given up
SMALL, LEFT = 8, 0.9  # jobs that need no prices; part of the starts: giving up fewer does not justify another ascent
FIRST, WIDER, BYTES = 1000, 4, 400_000_000  # states of a level at first; factor of the next pass; memory of all levels
# states beyond which a limit between bound and value proves more; steps of the ascent below it
WIDE, AGAIN = 16_000, 300
BUDGET, PART, ENDLESS = 100_000, 0.2, 10**15  # budget of the local search, times n^2, and its largest part of the time


def _applies(state: SolveState) -> str | None:
    if reason := state.misfit():
        return reason
    if state.value is None:
        return "there is no schedule to begin with"
    n = state.instance.n
    # each job takes at least one unit of time, so there are at least n slots; counting them exactly takes fractions
    if n**2 > CELLS:
        return f"{n} jobs are too many"
    clock = Clock.of(state)
    units = state.instance.cluster.gpus // int(np.gcd.reduce(state.instance.gpus))
    if n * clock.slots > CELLS or units > GPUS:
        return f"{n} jobs x {clock.slots} slots on {units} GPUs are too many"
    return "some jobs are too short compared with all jobs together" if (clock.grid.duration == 0).any() else None


class Search:
    """One search: the starts that are left, their prices, and the interval in steps of values."""

    def __init__(self, state: SolveState) -> None:
        self.state, self.clock = state, (clock := Clock.of(state))
        self.order = order = np.argsort(clock.grid.release, kind="stable")
        release, length, gpus = (a[order] for a in (clock.grid.release, clock.grid.duration, state.instance.gpus))
        self.times = Times(release, length, clock.shift, clock.rise[order], clock.base[order], alike(state, order))
        unit, slot = int(np.gcd.reduce(gpus)), np.arange(clock.slots)
        # a start within a slot costs at least as much as at its beginning, or on arrival
        cost = self.times.cost(np.maximum(slot << clock.shift, release[:, None]))
        release, length = release >> clock.shift, length >> clock.shift
        open_: Bools = cost <= self.limit + 1  # starts of schedules that are no worse than the incumbent
        open_ &= (slot >= release[:, None]) & (slot + length[:, None] < slot.size)
        last = int(np.flatnonzero(open_.any(axis=0))[-1]) + 1
        total = state.instance.cluster.gpus // unit
        # one memory layout, so that the loops are compiled once
        cost, open_ = np.ascontiguousarray(cost[:, :last]), np.ascontiguousarray(open_[:, :last])
        self.jobs = StartJobs(release, length, gpus // unit, total, cost, open_)
        self.passes = 0

    @property
    def limit(self) -> int:
        """Largest value of a better schedule in steps; -1: rounded times are less than the least cost of the jobs."""
        return max(int((there(self.state.value) - self.clock.margin - self.clock.zero) // self.clock.step), -1)

    def raise_bound(self, steps: int) -> None:
        """Take a bound on schedules of open starts.

        Parameters
        ----------
        steps
            The bound in steps.
        """
        bound, finest = self.clock.zero + min(steps, self.limit + 1) * self.clock.step, self.state.finest_step
        if finest is not None:  # from the least possible value on, values are multiples of it
            bound = self.clock.zero + math.ceil((bound - self.clock.zero) / finest) * finest
        self.state.raise_bound(bound, "solver", tell=False, up_to_value=True)
        self.state.report(self.passes)

    def certificate(self, bounds: StartBounds) -> Certificate:
        """Return the certificate that prices prove over all starts.

        Parameters
        ----------
        bounds
            Bounds of the prices.
        """
        state, grid, step = self.state, self.clock.grid, self.clock.step
        own = list[tuple[int, Integers]]()
        for row in bounds.prices[np.argsort(self.order)]:
            paid = [price * step.numerator for price in np.trim_zeros(row).tolist()]
            own.append((int((row > 0).argmax()), integers(paid)))
        size = step.denominator << bounds.bits
        prices = Prices(
            "rigid-time-indexed", Fraction(grid.origin), grid.unit * 2**self.clock.shift, size, (), tuple(own)
        )
        return price_certificate(state.instance, state.goal.name, EXCLUSIVE, prices)

    def price(self) -> StartBounds | None:
        """Find prices, and give up starts that they prove useless; return None if no better schedule is left."""
        own, deadline = np.zeros((self.jobs.release.size, self.jobs.slots)), self.state.deadline.share(0.5)
        if self.jobs.release.size <= SMALL:
            given, goal = self.state.schedule, self.state.goal.name
            self.state.offer_certificate(lp_bound(self.state.instance, goal, schedule=given, deadline=deadline))
            return None if self.state.closed else self.jobs.prove(own)
        for steps in STEPS:
            own = self.jobs.ascend(own, steps, deadline)
            bounds = self.jobs.prove(own)
            self.raise_bound(bounds.steps)
            if steps != STEPS[0]:
                self.state.offer_certificate(self.certificate(bounds))
            fewer = self.jobs.without(bounds, self.limit)
            if fewer is None or self.state.closed:
                self.raise_bound(self.limit + 1)
                return None
            settled = fewer.open.sum() > LEFT * self.jobs.open.sum()
            self.jobs = fewer
            if settled or deadline.passed:
                break
        return self.jobs.prove(own)

    def run(self) -> None:
        """Make passes up to the proof, the deadline or the end of memory: wider ones, at last with limits that rise."""
        bounds, width, gain = self.price(), FIRST, 1
        most = BYTES // (8 * (self.jobs.release.size + 3 * self.jobs.total))
        target, proved = self.limit, 0 if bounds is None else bounds.steps
        while bounds is not None and not self.state.late:
            searched = self.search(bounds, target, width)
            whole = searched.finished and searched.bound == BEYOND
            reached = min(target + 1, searched.cost >> bounds.bits) if whole else -(-searched.bound >> bounds.bits)
            self.raise_bound(reached)
            if self.state.closed or not searched.finished or (target >= self.limit if whole else width == most):
                return
            width = width if whole else min(WIDER * width, most)
            gain, proved = 2 * gain if whole else reached - proved, max(proved, reached)
            gain = max(gain, (self.limit - proved) // 4)
            target = min(self.limit, proved + gain) if width > WIDE and 2 * gain < self.limit - proved else self.limit

    def search(self, bounds: StartBounds, target: int, width: int) -> Searched:
        """Make one pass for schedules of at most ``target`` steps, at prices for the starts that are then left.

        Parameters
        ----------
        bounds
            Bounds of the prices.
        target
            Largest value of a schedule, in steps.
        width
            Largest number of states of a level.
        """
        self.passes += 1
        jobs = self.jobs.without(bounds, target)
        if jobs is None:
            return Searched(None, BEYOND, BEYOND, True)
        own, steps = bounds.prices / 2.0**bounds.bits, AGAIN if jobs.release.size > SMALL else 0
        own = jobs.ascend(own, steps, self.state.deadline)
        bounds_left = jobs.prove(own, bounds.bits)
        searched = search_states(bounds_left, self.times, target << bounds_left.bits, width, self.state.deadline)
        if searched.order is not None:
            self.state.offer(list_schedule(self.state.instance, self.order[searched.order]))
        return searched


def _run(state: SolveState) -> MethodReport:
    if state.instance.n > FEW:
        state.search(BUDGET * state.instance.n**2, part=PART)
    search = Search(state)
    search.run()
    if not state.closed and state.left < math.inf:
        state.search(ENDLESS)
    ended = "the time limit" if state.late else "the limit of memory"
    note = "" if state.closed else f"{ended} came after {search.passes} passes"
    size = Size(state.instance.n, int(search.jobs.open.sum()))
    return MethodReport("dynamic programming", size, search.passes, note=note)


add_method(NAME, _applies, _run)
