"""unified: order, number of GPUs, GPU type, nodes and moves of every job, all by one price of GPU time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.goodput_allocation import best_counts
from optsched.policies.predictors import predictor
from optsched.policies.ties import leading
from optsched.policies.unified_guests import Guests
from optsched.policies.unified_places import Widths, Wish, places
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.policy import Decision, Knowledge, Predictor, Start, Stop, View

BITS = 30  # of values in the knapsack
LEAST = 1e-9  # of the largest weight: who weighs less, or nothing, runs where GPUs are left
SHORTEST = 1e-3  # of a restart: GPUs are kept for at least so long, as far as their value goes


@POLICIES.register("unified")
@dataclass
class Unified:
    """Every job gets the GPUs on which its progress is worth most, where GPU time is worth what it saves the jobs behind.

    At every event the active jobs are ranked by W_j / w_j, with W_j = min_r r n_j / v_j(r) the GPU-seconds that job j still
    needs (n_j its predicted work left, v_j(r) its best rate on r GPUs). One GPU-second of j delays those behind it by 1/G s
    each: its price is A_j = sum of w_i over i behind j / G, the dual of the relaxation to one machine as fast as the
    cluster. A unit of work of j is then worth p_j = min_r (w_j + A_j r) / v_j(r), what it costs j in time and the others in
    GPU time with the number of GPUs that suits that price. The GPUs are dealt by a knapsack (exact to 2^-30):

        max  sum_j p_j v_j(r_j)    s.t.  sum_j r_j <= G,    r_j = 0 or a corner of the concave hull of v_j

    (for rigid jobs: g_j or 0, worth w_j + A_j g_j). Then by value every job takes the GPU type on which it is fastest,
    exchanges are made while the total value grows, and nodes follow: twice, with those who may stay in place first, and all
    anew, the widest first on the fewest nodes; the better plan is taken (`optsched.policies.unified_places`). What is left
    goes to whoever fits there. ``resize`` = false: every job keeps its gang.

    **Two jobs on a GPU**, where nobody is resized (no job can be, or ``resize`` = false) and the instance says what sharing
    costs, unless ``share`` = false: who was dealt no GPUs may be a guest beside one who was, while its own progress there
    is worth more than what that costs the owner (`optsched.policies.unified_guests`).

    Who has started once pays ``restart`` seconds, or its own, whenever its GPUs change. So a change is worth h / (h +
    restart) of itself and staying (h + restart) / h, where h is how long such GPUs will be kept: the age of the job (at
    least one restart) over the number of its starts, and at most until it ends. Another place must be 5 % better to be worth
    a move. A job that has outlived its prediction is expected to take twice that, and so on.

    **Problem** P | r_j, size_j or any number of GPUs, pmtn, online-r_j | sum w_j (C_j - r_j); speeds by type, nodes, number,
    or partners.
    **Knowledge** predicted, by ``predictor``; rates. **Guarantee** none known. With one GPU, w = 1,
    the truth predicted and free restarts it is SRPT, optimal.
    **Not here** resizing and sharing in one run: no bound knows such schedules; tasks of jobs. Of contention it knows only
    that few nodes are better.
    **Complexity** O(n k G + n T N + m^2) an event: n active jobs with k corners each, m of them dealt GPUs, G GPUs, T types,
    N nodes; O(m^2) for every exchange; O(O N G log G) for every guest that comes, with O sub-batches.
    **Reference** this project. Its parts: SRPT, prices of the relaxed machine, Hadar's types, Pollux's numbers of GPUs.
    """

    predictor: str = "perfect"
    restart: float = 30.0
    resize: bool = True
    share: bool = True
    uses: tuple[str, ...] = field(default=("widths",), init=False, repr=False)

    name: ClassVar[str] = "unified"
    knowledge: ClassVar[Knowledge] = Knowledge.PREDICTED
    rigid: ClassVar[bool] = True

    _widths: dict[int, Widths] = field(init=False, repr=False)
    _guests: Guests | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_legal(0 <= self.restart < math.inf, "unified: restart", self.restart, "a finite number of seconds >= 0")
        predictor(self.predictor)

    def make_predictor(self) -> Predictor:
        """The predictor of a run."""
        return predictor(self.predictor)

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._widths = {}
        self._guests = Guests(view) if "sharing" in self.uses else None

    def form(self, instance: Instance) -> Unified:
        """What it is on an instance: one that shares GPUs where nobody is resized and the cost is known; else this one."""
        shares = self.share and instance.interference is not None and not (self.resize and instance.elastic)
        if not shares:
            return self
        sharing = replace(self, resize=False)
        sharing.uses = ("sharing",)
        return sharing

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """The deal of this instant; who is given other GPUs gives his own back first."""
        for j in view.finished:
            self._widths.pop(j, None)
        for j in view.arrived:
            self._widths[j] = self._widths_of(j, view)
        jobs = [j for j in view.active.tolist() if self._widths[j].gpus.size]  # the others run nowhere
        if not jobs:
            return
        wishes = self._deal(view, jobs)
        plan = places(view, wishes)
        if self._guests is not None:
            yield from self._guests.moves(wishes, plan)
            return
        held = {wish.job: wish.held for wish in wishes}
        yield [Stop(j) for j, on in held.items() if on and plan.get(j) != on]
        yield [Start(j, on=on) for j, on in plan.items() if on != held[j]]

    def _widths_of(self, j: int, view: View) -> Widths:
        rate = view.goodputs.table(j).max(axis=1)
        gpus = np.flatnonzero(rate)
        gpus = gpus if self.resize else gpus[gpus == view.gpus(j)]
        hull = _hull(gpus, rate[gpus])
        return Widths(gpus[hull], rate[gpus[hull]], {})

    def _left(self, view: View, jobs: list[int]) -> Floats:
        predicted = np.array([view.predicted(j) for j in jobs])
        done = view.done(np.array(jobs))
        ratio = np.maximum(leading(done / predicted), 0.5)
        times = np.where(ratio < 1, 1.0, 2.0 ** (np.floor(np.log2(ratio)) + 1))
        return np.maximum(predicted * times - done, 1e-9 * predicted)

    def _deal(self, view: View, jobs: list[int]) -> list[Wish]:
        """What every job wishes for: those who are dealt GPUs, then the others, each by falling value of a GPU."""
        n, left = len(jobs), self._left(view, jobs)
        weight = np.array([view.weight(j) for j in jobs])
        weight = np.maximum(weight, LEAST * weight.max()) if weight.any() else np.ones(n)
        need = left * np.array([float((self._widths[j].gpus / self._widths[j].rate).min()) for j in jobs])
        order = np.lexsort((np.arange(n), leading(need / weight)))
        behind = np.maximum(weight.sum() - np.cumsum(weight[order]), 0.0)
        wishes = []
        for k, price in zip(order.tolist(), (behind / view.cluster_gpus).tolist(), strict=True):
            j = jobs[k]
            wishes.append(self._wish(view, j, float(left[k]), float(weight[k]), price))
        if self._guests is not None:
            self._guests.reckon(wishes)
        deal(wishes, view.cluster_gpus)
        return sorted(wishes, key=lambda wish: (wish.dealt == 0, -wish.density))  # stable: ties by rank

    def _wish(self, view: View, j: int, left: float, weight: float, price: float) -> Wish:
        gpus, rate, ideal = self._widths[j]
        unit = float(((weight + price * gpus) / rate).min())
        starts, restart, held = view.starts(j), view.restart(j, self.restart), view.held(j)
        age = max(view.now - view.arrival(j), restart)
        stay = np.maximum(np.minimum(left / rate, age / max(starts, 1)), SHORTEST * restart)
        return Wish(j, gpus, rate, ideal, unit, restart if starts else 0.0, stay, held)


def deal(wishes: Sequence[Wish], gpus: int) -> None:
    """Deal ``gpus`` GPUs so that the total value is largest, exactly up to 2^-`BITS` of the largest value. O(n k gpus)."""
    if sum(int(wish.gpus[wish.value.argmax()]) for wish in wishes) <= gpus:
        for wish in wishes:
            if wish.value.max() > 0:
                wish.take(int(wish.value.argmax()))
        return
    most = max(float(wish.value.max()) for wish in wishes)
    values = []
    for wish in wishes:
        value = np.full(gpus + 1, -np.inf)
        value[wish.gpus] = np.rint(wish.value / most * 2.0**BITS)  # integers: sums are exact, ties are ties
        value[0] = 0.0
        values.append(value)
    for wish, count in zip(wishes, best_counts(values, gpus), strict=True):
        if count:
            wish.take(int(np.searchsorted(wish.gpus, count)))


def _hull(gpus: Ints, rate: Floats) -> list[int]:
    # The points of the least concave function above (0, 0) and (gpus, rate), as far as it rises.
    found: list[int] = []
    x, y, at = 0, 0.0, 0
    while at < gpus.size:
        slope = leading((rate[at:] - y) / (gpus[at:] - x))
        at += int(slope.argmax())
        if slope.max() <= 0:
            break
        found.append(at)
        x, y, at = int(gpus[at]), float(rate[at]), at + 1
    return found
