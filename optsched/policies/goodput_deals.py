"""The rounds of `optsched.policies.goodput` in arrays, with a compiled knapsack and compiled places.

A round computes only what it can change:

* The numbers of GPUs on which a job can run, and its rates there, are known from its arrival on; jobs of one kind share them
  (`optsched.speeds.job_goodput.Options`). The rate on its present GPUs is known from its last start on.
* Between arrivals, completions and starts only the ages of the jobs change. Numbers of GPUs other than the present one are
  worth more from round to round, since a restart is a smaller share of a longer life. So if all jobs keep their GPUs by more
  than the rounding of sums with the values of a later time, then they keep them in all rounds until that time, and these
  rounds compute nothing.
* All jobs are packed again only if some job has not the best places for its number of GPUs, and only if the numbers are not
  those that were packed last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from optsched.compiled import entry
from optsched.policies.goodput_numbers import ROUNDED, best_numbers
from optsched.policies.goodput_places import place_gangs
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Start, Stop, View
from optsched.speeds.job_goodput import Options

AHEAD = (math.inf, 16.0, 4.0, 1.0)  # rounds for which all jobs may keep their GPUs, tried in this order

# A job: its first number of GPUs in the table of options, how many there are, its row of eligible nodes; seconds; its rate
# with a fair share; and the GPUs that it holds, its rate on them, and its starts.
JOB = np.dtype(
    [(name, np.int64) for name in ("options", "size", "row", "has", "starts")]
    + [(name, np.float64) for name in ("arrival", "overhead", "fair", "rate")]
)
# A number of GPUs of a kind of job: rate of the best places, the most that a rate there can be, and the rates on one node
# and on several; nan if these depend on the nodes.
OPTION = np.dtype([("gpus", np.int64), *((name, np.float64) for name in ("rate", "limit", "together", "spread"))])

Plan = tuple[list[int], dict[int, Places]]  # jobs that stop, and jobs that start with their places


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
    length
        Seconds between two rounds.
    """

    def __init__(self, view: View, worth: Callable[[Floats], Floats], restart: float, length: float) -> None:
        self._view, self._worth, self._restart, self._length = view, worth, restart, length
        self._gpus, self._sizes = view.cluster_gpus, view.groups.node_gpus.astype(np.int64)
        self._none = float(worth(np.zeros(1))[0])
        self._rows: dict[int, int] = {}
        self._eligible: Bools = np.zeros((0, self._sizes.size), dtype=np.bool_)
        self._table = np.zeros(0, dtype=OPTION)
        self._kinds: dict[tuple[bytes, bytes, bytes, bool], tuple[int, int]] = {}  # first row and rows in the table
        self._job = np.zeros(0, dtype=JOB)  # by number of the job
        self._fair = 0  # GPUs of a fair share
        self._held: dict[int, Places] = {}
        self._free = self._sizes.copy()
        self._jobs: Ints = np.zeros(0, dtype=np.int64)
        self._quiet, self._attempt = -math.inf, 0  # all keep their GPUs until then; position in `AHEAD` to try next
        self._packed: tuple[Ints, dict[int, Places], Floats] | None = (
            None  # numbers, places and rates of the last packing
        )
        self._best, self._chosen = np.zeros((2, self._gpus + 1)), np.zeros(1000, dtype=np.int64)
        self._whole, self._real = _scratch(100)
        self._node, self._count = np.zeros((2, self._gpus), dtype=np.int64)

    def decide(self) -> Iterator[list[Decision]]:
        """Yield the stops of the jobs whose GPUs change, then the starts of the jobs on their new GPUs."""
        view, jobs = self._view, self._view.active
        if not np.array_equal(jobs, self._jobs):
            self._list(jobs)
        elif view.now <= self._quiet or self._all_stay(view.now):
            return
        moved, begun = self._plan(view.now)
        for j in moved:
            self._hold(j, ())
        yield [Stop(j) for j in moved]
        yield [Start(j, on=on) for j, on in begun.items()]
        for j, on in begun.items():
            self._hold(j, on)
            self._job["starts"][j] = view.starts(j)
        if moved or begun:
            self._renew()

    def _hold(self, j: int, on: Places) -> None:
        for node, count in self._held.pop(j, ()):
            self._free[node] += count
        for node, count in on:
            self._free[node] -= count
        if on:
            self._held[j] = on
        self._job["has"][j] = sum(count for _, count in on)
        self._job["rate"][j] = self._view.goodputs.rate(j, on) if on else 0.0

    def _list(self, jobs: Ints) -> None:
        # The active jobs have changed.
        for j in self._held.keys() - set(jobs.tolist()):
            self._hold(j, ())
        last = int(jobs.max())
        if last >= self._job.size:
            self._job = np.concatenate([self._job, np.zeros(last + 1, dtype=JOB)])
        new = jobs[self._job["size"][jobs] == 0].tolist()
        for j in new:
            self._meet(j)
        fair = -(-self._gpus // jobs.size)
        for j in new if fair == self._fair else jobs.tolist():
            self._job["fair"][j] = self._view.goodputs.rate_within(j, fair)
        self._jobs, self._fair, self._packed, case = jobs, fair, None, self._job[jobs]
        self._first = np.zeros(jobs.size + 1, dtype=np.int64)
        np.cumsum(case["size"], out=self._first[1:])
        self._of = np.repeat(np.arange(jobs.size), case["size"])
        self._option = np.arange(self._of.size) + (case["options"] - self._first[:-1])[self._of]
        self._numbers, self._rates = self._table["gpus"][self._option], self._table["rate"][self._option]
        self._row, self._unit = np.ascontiguousarray(case["row"]), self._sizes.size / self._gpus / case["fair"]
        self._unit_of = self._unit[self._of]
        if self._of.size + 2 > self._whole.shape[1]:  # every job has a number, 0
            self._whole, self._real = _scratch(2 * self._of.size)
        self._renew()

    def _meet(self, j: int) -> None:
        # A job has arrived.
        view = self._view
        options, kind = view.goodputs.options(j), view.kind(j)
        if kind not in self._rows:
            self._rows[kind] = self._eligible.shape[0]
            self._eligible = np.concatenate([self._eligible, view.eligible(j)[None]])
        at, size = self._options_of(options)
        self._job[j] = at, size, self._rows[kind], 0, 0, view.arrival(j), view.restart(j, self._restart), 0.0, 0.0

    def _options_of(self, options: Options) -> tuple[int, int]:
        # Where the options are in the table, and how many.
        key = options.gpus.tobytes(), options.together.tobytes(), options.spread.tobytes(), options.by_nodes
        if key not in self._kinds:
            rows = np.zeros(options.gpus.size + 1, dtype=OPTION)
            rows["gpus"][1:], rows["rate"][1:] = options.gpus, options.rates
            rows["limit"][1:] = math.inf if options.by_nodes else options.rates
            rows["together"][1:] = math.nan if options.by_nodes else options.together
            rows["spread"][1:] = math.nan if options.by_nodes else options.spread
            self._kinds[key] = self._table.size, rows.size
            self._table = np.concatenate([self._table, rows])
        return self._kinds[key]

    def _renew(self) -> None:
        # The active jobs, or what they hold, have changed.
        case = self._job[self._jobs]
        self._has, self._rate = np.ascontiguousarray(case["has"]), np.ascontiguousarray(case["rate"])
        self._arrival, self._overhead = case["arrival"], case["overhead"]
        self._unbroken = (case["starts"] == 0) | (case["overhead"] == 0)  # a first start cannot be avoided
        self._lost = (case["starts"] - 1) * case["overhead"]
        self._present = np.flatnonzero(self._numbers == self._has[self._of])
        self._quiet, self._attempt = -math.inf, 0

    def _all_stay(self, now: float) -> bool:
        # Does every job keep its GPUs in this round? Then until when?
        while self._attempt < len(AHEAD):
            at = now + AHEAD[self._attempt] * self._length
            if self._all_stay_until(at):
                self._quiet = at
                return True
            self._attempt += 1
        return False

    def _all_stay_until(self, at: float) -> bool:
        share, values = self._values(at)
        present = values[self._present]
        if self._none >= 0 or values.max() <= 0:  # of one sign: a sum is rounded in proportion to itself
            size = 2 * np.abs(present).sum()
        else:
            size = present.size * (np.abs(values).max() + abs(self._none))
        margin = ROUNDED * (present.size + 8) * float(size)
        values[self._present] = present - margin
        picks = self._choose(values)
        if not np.array_equal(picks, self._present):
            return False
        if self._have_best_places(self._rate, picks):
            return True
        _, rates = self._all_again(picks, share)
        return self._total(rates, share) + margin <= self._total(self._rate, 1.0)

    def _values(self, at: float) -> tuple[Floats, Floats]:
        # At a time: the share of its life that restarts leave each job if it is resized, and values of numbers of GPUs.
        if at == math.inf:
            share = np.ones(self._jobs.size)
        else:
            age = at - self._arrival
            life = np.where(self._unbroken, 1.0, age + self._overhead)
            share = np.where(self._unbroken, 1.0, np.maximum(age - self._lost, 0.0) / life)
        rate = self._rates * share[self._of]
        rate[self._present] = self._rate
        values = self._worth(rate * self._unit_of)
        values[self._first[:-1]] = self._none
        return share, values

    def _choose(self, values: Floats) -> Ints:
        # The position of the number of GPUs of every job.
        picks, choose = np.zeros(self._jobs.size, dtype=np.int64), entry(best_numbers)
        while True:
            states = choose(
                self._numbers, values, self._first, self._best, self._whole, self._real, self._chosen, picks
            )
            if states <= self._chosen.size:
                return picks
            self._chosen = np.zeros(2 * states, dtype=np.int64)

    def _plan(self, now: float) -> Plan:
        # The numbers of GPUs, then the places: jobs that keep their number keep their GPUs, or all are packed again, if that
        # is better.
        share, values = self._values(now)
        picks = self._choose(values)
        counts, jobs = self._numbers[picks], self._jobs
        keeps = (counts > 0) & (counts == self._has)
        moved: list[int] = jobs[(self._has > 0) & ~keeps].tolist()
        free = self._free.copy()
        for j in moved:
            for node, count in self._held[j]:
                free[node] += count
        rates = np.where(keeps, self._rate, 0.0)
        begun = self._place(np.flatnonzero((counts > 0) & ~keeps), picks, free, rates)
        if self._have_best_places(rates, picks):
            return moved, begun
        value = self._total(rates, np.where(keeps, 1.0, share))
        packed, rates = self._all_again(picks, share)
        if not self._total(rates, share) > value:
            return moved, begun
        moved = [j for j in jobs[self._has > 0].tolist() if packed.get(j) != self._held[j]]
        return moved, {j: on for j, on in packed.items() if self._held.get(j) != on}

    def _all_again(self, picks: Ints, share: Floats) -> tuple[dict[int, Places], Floats]:
        # All jobs packed again: places and rates. A job that finds its present places has no restart: its share becomes 1.
        if self._packed is None or not np.array_equal(self._packed[0], picks):
            rates = np.zeros(picks.size)
            places = self._place(np.flatnonzero(self._numbers[picks]), picks, self._sizes.copy(), rates)
            self._packed = picks, places, rates
        _, places, rates = self._packed
        for k in np.flatnonzero(self._numbers[picks] == self._has).tolist():
            j = int(self._jobs[k])
            if self._has[k] and places.get(j) == self._held[j]:
                share[k] = 1.0
        return places, rates

    def _place(self, gangs: Ints, picks: Ints, free: Ints, rates: Floats) -> dict[int, Places]:
        # Place gangs, the largest first; sets their rates. A job for which too few GPUs are left is absent.
        plan: dict[int, Places] = {}
        if not gangs.size:
            return plan
        counts = self._numbers[picks]
        order = gangs[np.argsort(-counts[gangs], kind="stable")]
        first = np.zeros(order.size + 1, dtype=np.int64)
        scratch = np.zeros((3, max(int(self._sizes.max()), self._eligible.shape[0]) + 1), dtype=np.int64)
        place = entry(place_gangs)
        place(order, counts, self._row, self._eligible, free, scratch, self._node, self._count, first)
        nodes, option = np.diff(first), self._table[self._option[picks[order]]]
        rates[order] = np.where(nodes > 1, option["spread"], np.where(nodes == 1, option["together"], 0.0))
        places = list(zip(self._node[: first[-1]].tolist(), self._count[: first[-1]].tolist(), strict=True))
        for k, begin, end in zip(order.tolist(), first[:-1].tolist(), first[1:].tolist(), strict=True):
            if begin < end:
                j, on = int(self._jobs[k]), tuple(places[begin:end])
                plan[j] = on
                if math.isnan(rates[k]):
                    rates[k] = self._view.goodputs.rate(j, on)
        return plan

    def _have_best_places(self, rates: Floats, picks: Ints) -> bool:
        # No other places of the same numbers of GPUs are faster for any job.
        return bool((rates >= self._table["limit"][self._option[picks]]).all())

    def _total(self, rates: Floats, share: Floats | float) -> float:
        return float(self._worth(rates * share * self._unit).sum())


def _scratch(size: int) -> tuple[Ints, Floats]:
    return np.zeros((9, size), dtype=np.int64), np.zeros((3, size))
