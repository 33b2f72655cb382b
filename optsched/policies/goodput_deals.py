"""The rounds of `optsched.policies.goodput` in arrays, with a compiled knapsack and compiled places.

A job is looked at again only for what a round changes: its age, which discounts other numbers of GPUs. The numbers on
which it can run, its rates and its restart are kept from its arrival on, and its rate on its present GPUs from its last
start on. If all numbers of GPUs are those of the last round, the places of all jobs packed again are, too. **No
decision** is needed while every active job runs and has a duration: each has its only number of GPUs, at its only rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from optsched.compiled import KERNEL, NESTED, entry, njit, types
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Start, Stop, View

SMALL = 4000  # steps of the knapsack that are never worth a compilation
ROUNDED = 1e-9  # relative, of sums of values


_I, _F = types.int64, types.float64


def _is_small(numbers: Ints, values: Floats, first: Ints, best: Floats, chosen: Ints, counts: Ints) -> bool:
    return numbers.size * best.shape[1] < SMALL


@njit(signature=types.void(_I[::1], _F[::1], _I[::1], _F[:, ::1], _I[:, ::1], _I[::1]), interpreted=_is_small, **KERNEL)
def best_numbers(numbers: Ints, values: Floats, first: Ints, best: Floats, chosen: Ints, counts: Ints) -> None:
    """Choose the number of GPUs of every job, as `optsched.policies.goodput_allocation.best_counts` does.

    O(G) for each number of each job.

    Parameters
    ----------
    numbers
        Possible numbers of all jobs, ascending for each job and with 0, i64[].
    values
        Their values, f64[].
    first
        First number of each job, i64[m + 1].
    best
        Scratch, f64[2, G + 1].
    chosen
        Scratch, i64[m, G + 1].
    counts
        Output: the number of each job, i64[m].
    """
    gpus, row = best.shape[1] - 1, 0
    best[0, :] = 0.0
    for j in range(counts.size):
        other = 1 - row
        for g in range(gpus + 1):
            most, number = -np.inf, 0
            for i in range(first[j], first[j + 1]):
                if numbers[i] > g:
                    break
                total = best[row, g - numbers[i]] + values[i]
                if total > most:
                    most, number = total, numbers[i]
            best[other, g], chosen[j, g] = most, number
        row = other
    room = gpus
    for j in range(counts.size - 1, -1, -1):
        counts[j] = chosen[j, room]
        room -= counts[j]


@njit(**NESTED)
def _fewest_nodes(need: int, free: Ints, may: Bools, node: Ints, count: Ints, at: int) -> int:
    # The places of a gang as `optsched.policies.goodput_allocation.fewest_nodes` finds them, from position ``at`` on and
    # sorted by node; returns the position after them, ``at`` if too few GPUs are free.
    total = 0
    for m in range(free.size):
        total += free[m] if may[m] else 0
    if need > total:
        return at
    end = at
    while need > 0:
        tightest, fullest = -1, -1
        for m in range(free.size):
            if not may[m] or free[m] <= 0:
                continue
            if free[m] >= need and (tightest < 0 or free[m] < free[tightest]):
                tightest = m
            if fullest < 0 or free[m] > free[fullest]:
                fullest = m
        m = tightest if tightest >= 0 else fullest
        taken = min(need, free[m])
        need -= taken
        free[m] -= taken
        k = end
        while k > at and node[k - 1] > m:
            node[k], count[k] = node[k - 1], count[k - 1]
            k -= 1
        node[k], count[k] = m, taken
        end += 1
    return end


@njit(
    signature=types.void(_I[::1], _I[::1], _I[::1], types.boolean[:, ::1], _I[::1], _I[::1], _I[::1], _I[::1]), **KERNEL
)
def place_gangs(
    jobs: Ints, counts: Ints, row: Ints, eligible: Bools, free: Ints, node: Ints, count: Ints, first: Ints
) -> None:
    """Place gangs in order on the fewest nodes; one for which too few GPUs are free has no places.

    Parameters
    ----------
    jobs
        Positions of the gangs in the order in which they are placed, i64[k].
    counts
        GPUs of every job, i64[m].
    row
        Row of ``eligible`` of every job, i64[m].
    eligible
        Nodes that jobs may use, bool[rows, N].
    free
        Free GPUs of every node, i64[N]; it is changed.
    node, count
        Output: places, i64[G].
    first
        Output: where the places of each gang begin, i64[k + 1].
    """
    first[0] = 0
    for i in range(jobs.size):
        j = jobs[i]
        first[i + 1] = _fewest_nodes(counts[j], free, eligible[row[j]], node, count, first[i])


class GoodputDeals:
    """The active jobs of a run: numbers of GPUs on which they can run, rates there, and the GPUs that they hold.

    Parameters
    ----------
    view
        State of the run.
    worth
        Summand of the power mean for speed-ups, f64[] to f64[].
    restart
        Overhead of a restart, in seconds.
    """

    def __init__(self, view: View, worth: Callable[[Floats], Floats], restart: float) -> None:
        self._view, self._worth, self._restart = view, worth, restart
        self._gpus, self._sizes = view.cluster_gpus, view.groups.node_gpus.astype(np.int64)
        self._none = float(worth(np.zeros(1))[0])
        self._rows: dict[int, int] = {}
        self._eligible: Bools = np.zeros((0, self._sizes.size), dtype=np.bool_)
        self._options: dict[int, tuple[Ints, Floats]] = {}  # of active jobs: numbers with 0, and rates
        self._held: dict[int, Places] = {}
        self._jobs: Ints = np.zeros(0, dtype=np.int64)
        self._settled = False
        self._best = np.zeros((2, self._gpus + 1))
        self._chosen = np.zeros((0, self._gpus + 1), dtype=np.int64)
        self._node, self._count = np.zeros((2, self._gpus), dtype=np.int64)
        self._packed: tuple[Ints, dict[int, Places], Floats] | None = (
            None  # counts, places and rates of the last packing
        )

    def decide(self) -> Iterator[list[Decision]]:
        """Yield the stops of the jobs whose GPUs change, then the starts of the jobs on their new GPUs."""
        view, jobs = self._view, self._view.active
        if not np.array_equal(jobs, self._jobs):
            self._list(jobs)
        elif self._settled:
            return
        plan = self._plan()
        moved = [j for j, on in self._held.items() if plan.get(j) != on]
        moved.sort(key=self._position.__getitem__)
        for j in moved:
            del self._held[j]
            self._hold(j, ())
        yield [Stop(j) for j in moved]
        begun = {j: on for j, on in plan.items() if j not in self._held}
        yield [Start(j, on=on) for j, on in begun.items()]
        for j, on in begun.items():
            self._hold(j, on)
            self._starts[self._position[j]] = view.starts(j)
        self._settled = self._is_settled()

    def _is_settled(self) -> bool:
        # Each keeps its GPUs if that is worth more by far than a sum of all values is rounded; a restart is worth nothing.
        if len(self._held) < self._jobs.size or not self._view.goodputs.steady[self._jobs].all():
            return False
        value = self._worth(self._rate_held * self._unit)
        return bool((value - self._none).min() > ROUNDED * (np.abs(value).sum() + self._jobs.size * abs(self._none)))

    def _hold(self, j: int, on: Places) -> None:
        at = self._position[j]
        if on:
            self._held[j] = on
        self._has[at] = sum(count for _, count in on)
        self._rate_held[at] = self._view.goodputs.rate(j, on) if on else 0.0

    def _list(self, jobs: Ints) -> None:
        # The active jobs have changed.
        view, active = self._view, jobs.tolist()
        self._jobs, self._position, self._packed = jobs, {j: k for k, j in enumerate(active)}, None
        self._held = {j: on for j, on in self._held.items() if j in self._position}
        self._options = {j: self._options.get(j) or self._options_of(j) for j in active}
        numbers = [self._options[j][0] for j in active]
        self._numbers = np.concatenate(numbers)
        self._rates = np.concatenate([self._options[j][1] for j in active])
        self._first = np.concatenate([[0], np.cumsum([each.size for each in numbers])]).astype(np.int64)
        self._of = np.repeat(np.arange(jobs.size), np.diff(self._first))
        self._row = np.array([self._row_of(j) for j in active], dtype=np.int64)
        fair = -(-self._gpus // jobs.size)
        self._unit = self._sizes.size / self._gpus / np.array([_fair_rate(*self._options[j], fair) for j in active])
        self._arrival = np.array([view.arrival(j) for j in active])
        self._overhead = np.array([view.restart(j, self._restart) for j in active])
        self._starts = np.array([view.starts(j) for j in active], dtype=np.int64)
        self._has, self._rate_held = np.zeros(jobs.size, dtype=np.int64), np.zeros(jobs.size)
        for j, on in self._held.items():
            self._hold(j, on)
        if self._chosen.shape[0] < jobs.size:
            self._chosen = np.zeros((2 * jobs.size, self._gpus + 1), dtype=np.int64)

    def _options_of(self, j: int) -> tuple[Ints, Floats]:
        view, goodputs = self._view, self._view.goodputs
        if goodputs.of(j) is None:  # its gang alone; a table would have a row for every GPU of the cluster
            sizes, gang = self._sizes[view.eligible(j)], view.gpus(j)
            fits = gang <= sizes.max(initial=0) or (2 <= gang <= sizes.sum() and sizes.size > 1)
            rate = 1.0 / view.pace_range(j)[0] if fits else 0.0
            return (np.array([0, gang]), np.array([0.0, rate])) if rate > 0 else (np.array([0]), np.zeros(1))
        rates = goodputs.table(j).max(axis=1)
        numbers = np.append(0, np.flatnonzero(rates))
        return numbers, rates[numbers]

    def _row_of(self, j: int) -> int:
        kind = self._view.kind(j)
        if kind not in self._rows:
            self._rows[kind] = self._eligible.shape[0]
            self._eligible = np.concatenate([self._eligible, self._view.eligible(j)[None]])
        return self._rows[kind]

    def _plan(self) -> dict[int, Places]:
        # The numbers of GPUs, then the places of every job: jobs that keep their number keep their GPUs, or all are packed
        # again, if that is better.
        view, counts = self._view, np.zeros(self._jobs.size, dtype=np.int64)
        age = view.now - self._arrival
        whole = (self._starts == 0) | (self._overhead == 0)  # a first start cannot be avoided
        life = np.where(whole, 1.0, age + self._overhead)
        share = np.where(whole, 1.0, np.maximum(age - (self._starts - 1) * self._overhead, 0.0) / life)
        rate = self._rates * share[self._of]
        holds = (self._has[self._of] == self._numbers) & (self._numbers > 0)
        rate[holds] = self._rate_held[self._of[holds]]
        values = self._worth(rate * self._unit[self._of])
        values[self._first[:-1]] = self._none
        choose = entry(best_numbers)
        choose(self._numbers, values, self._first, self._best, self._chosen[: counts.size], counts)
        keeps = (counts > 0) & (counts == self._has)
        jobs = self._jobs.tolist()
        plan = {jobs[k]: self._held[jobs[k]] for k in np.flatnonzero(keeps).tolist()}
        rates = np.where(keeps, self._rate_held, 0.0)
        free = self._sizes.copy()
        for on in plan.values():
            for node, count in on:
                free[node] -= count
        self._place(np.flatnonzero((counts > 0) & ~keeps), counts, free, plan, rates)
        value = self._total(rates, np.where(keeps, 1.0, share))
        if self._packed is None or not np.array_equal(self._packed[0], counts):
            packed, rates = dict[int, Places](), np.zeros(counts.size)
            self._place(np.flatnonzero(counts), counts, self._sizes.copy(), packed, rates)
            self._packed = counts, packed, rates
        _, packed, rates = self._packed
        same = [self._position[j] for j, on in packed.items() if self._held.get(j) == on]
        share[same] = 1.0
        return packed if self._total(rates, share) > value else plan

    def _place(self, gangs: Ints, counts: Ints, free: Ints, plan: dict[int, Places], rates: Floats) -> None:
        if not gangs.size:
            return
        order = gangs[np.argsort(-counts[gangs], kind="stable")]
        first = np.zeros(order.size + 1, dtype=np.int64)
        place = entry(place_gangs)
        place(order, counts, self._row, self._eligible, free, self._node, self._count, first)
        places = list(zip(self._node[: first[-1]].tolist(), self._count[: first[-1]].tolist(), strict=True))
        for i, k in enumerate(order.tolist()):
            if first[i] < first[i + 1]:
                j, on = int(self._jobs[k]), tuple(places[first[i] : first[i + 1]])
                plan[j], rates[k] = on, self._view.goodputs.rate(j, on)

    def _total(self, rates: Floats, share: Floats) -> float:
        return float(self._worth(rates * share * self._unit).sum())


def _fair_rate(numbers: Ints, rates: Floats, fair: int) -> float:
    # The rate with a fair share, or with the next smaller number of GPUs on which the job can run.
    if numbers.size == 1:
        return 1.0
    return float(rates[max(int(np.searchsorted(numbers, fair, side="right")) - 1, 1)])
