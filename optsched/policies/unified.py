"""unified: order, number of GPUs, GPU type, nodes and moves of every job, all by one price of GPU time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from optsched.classes import offered, usual_class
from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.goodput_allocation import best_counts
from optsched.policies.predictors import predictor
from optsched.policies.ties import TIE, leading, leading_of
from optsched.policies.unified_copies import Copies, OneGang
from optsched.policies.unified_gangs import RigidGangs
from optsched.policies.unified_places import BITS, LEAST, SHORTEST, Widths, Wish, places
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.registry import Seconds
from optsched.simulation.policy import BasePolicy, Decision, Knowledge, Policy, Start, Stop, View, class_of
from optsched.simulation.predictor import Predictor

FOR_TASKS = "leader-first"  # the policy for jobs with tasks


@POLICIES.register("unified")
@dataclass
class Unified(Policy):
    """Give every job the GPUs where its progress is worth most; GPU time costs the delay of the jobs behind.

    At every event the active jobs are ranked by W_j / w_j, with W_j = min_r r n_j / v_j(r) the GPU-seconds that job j
    still needs (n_j its predicted work left, v_j(r) its best rate on r GPUs). One GPU-second of j delays each job
    behind it by 1/G s: its price is A_j = sum of w_i over i behind j / G, the dual of the relaxation to one machine as
    fast as the cluster. A unit of work of j is then worth p_j = min_r (w_j + A_j r) / v_j(r), its cost in time to j
    and in GPU time to the other jobs, with the number of GPUs that suits that price. The GPUs are dealt by a knapsack
    (exact to 2^-30):

        max  sum_j p_j v_j(r_j)    s.t.  sum_j r_j <= G,    r_j = 0 or a corner of the concave hull of v_j

    (for rigid jobs: g_j or 0, worth w_j + A_j g_j). Then every job, by falling value, takes the GPU type on which it
    is fastest, and exchanges are made while the total value grows. Nodes follow, in two plans: one places the jobs
    that may stay first, the other places all jobs again, the widest first on the fewest nodes. The better plan is
    taken (`optsched.policies.unified_places`). GPUs that are left go to any job that fits there.

    **Two jobs on a GPU** are possible if no job is resized (none can be, or ``resize`` = false), the instance states
    the cost of sharing, and ``share`` is true. A job that was dealt no GPUs may then be a guest next to one that was,
    while its own progress there is worth more than the loss of the owner (`optsched.policies.unified`).

    **Copies**, with ``fork`` = true: every job may train in several copies of its gang on different nodes, whose work
    adds up, as under `hadar-e`; no job is resized or shares GPUs. v_j is the sum of the fastest nodes' rates, and the
    rest as above (`optsched.policies.unified_copies`).

    A job that has started once pays ``restart`` seconds, or its own overhead, whenever its GPUs change. So the value
    of a change is multiplied by h / (h + restart), and that of staying by (h + restart) / h, where h is the expected
    time for which such GPUs are kept: the age of the job (at least one restart) over the number of its starts, and at
    most until it ends. Another place must be 5 % better to be worth a move. A job that has outlived its prediction is
    expected to take twice that, and so on.

    **Problem** P | r_j, size_j or any number of GPUs, pmtn, online-r_j | sum w_j (C_j - r_j); speeds by type, nodes,
    number, or partners. **Knowledge** predicted, by ``predictor``; rates; with ``fork`` clairvoyant: copies share out
    the work that is left. **Guarantee** none known. With one GPU, or with copies on alike nodes of one, w = 1, perfect
    predictions and free restarts it is SRPT, optimal. **Jobs with tasks** (computing and all-reduces one by one) are
    served by ``leader-first`` and its placement, clairvoyant. **Limits** No run combines two of resizing, sharing and
    copies: no bound is known for such schedules. For jobs without tasks, the policy models contention only by
    preferring few nodes. **Complexity** O(n k G + n T N + m^2) an event: n active jobs with k corners each, m of them
    dealt GPUs, G GPUs, T types, N nodes; O(m^2) for every exchange; O(O N G log G) for every guest that comes, with O
    sub-batches. Rigid gangs without partners are served by compiled steps, with the same schedule
    (`optsched.policies.unified_gangs`). **Reference** this project. Its parts: SRPT, prices of the relaxed machine,
    Hadar's types, Pollux's numbers of GPUs.

    Parameters
    ----------
    predictor
        Predictor of lengths, ``NAME[/key=value]...``.
    restart
        Overhead of a job that has started before, in seconds, if the job states none of its own.
    resize
        Change the number of GPUs of jobs; false: every job keeps its gang.
    share
        Let two jobs share a GPU.
    fork
        Let jobs train in copies.
    """

    predictor: str = "perfect"
    restart: Seconds = 30.0
    resize: bool = True
    share: bool = True
    fork: bool = False
    uses: tuple[str, ...] = field(default=("widths",), init=False, repr=False)

    name = "unified"
    compiled: ClassVar[bool] = True  # rigid gangs by `RigidGangs`; False: by the readable form
    knowledge = Knowledge.PREDICTED
    rigid = True

    def __post_init__(self) -> None:
        check_legal(0 <= self.restart < math.inf, "unified: restart", self.restart, "a finite number of seconds >= 0")
        predictor(self.predictor)
        legal = "perfect, where fork=true: copies share out the work that is left"
        check_legal(not self.fork or self.predictor == "perfect", "unified: predictor", self.predictor, legal)

    def make_predictor(self) -> Predictor:
        """Return the predictor of a run."""
        return predictor(self.predictor)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._widths: dict[int, Widths] = {}
        self._guests = None if class_of(self).alone else Guests(view)
        self._gangs = Copies(view, self.restart) if self.fork else OneGang(view, self.resize, self.restart)
        rigid = self.compiled and self._guests is None and not self.fork
        self._rigid = RigidGangs(view, self.restart) if rigid else None

    def form(self, instance: Instance) -> BasePolicy:
        """Return the form of the policy on an instance.

        With ``fork``: a policy that forks. If no job is resized and the cost of sharing is known: one that shares
        GPUs. For jobs with tasks: ``leader-first``, which knows the iterations left, unless lengths are predicted.
        Otherwise: this policy.

        Parameters
        ----------
        instance
            The instance of the run.
        """
        kind = usual_class(instance)
        if not kind.whole and self.predictor == "perfect":
            return POLICIES.get(FOR_TASKS)()
        if self.fork:
            return Forking(restart=self.restart, fork=True)
        resized = self.resize and any(made.widths for made in offered(instance))
        shares = self.share and kind.whole and not kind.alone and not resized
        if not shares:
            return self
        sharing = replace(self, resize=False)
        sharing.uses = ("sharing",)
        return sharing

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """Deal the GPUs; stop the jobs whose GPUs change, then start the jobs on their new GPUs.

        Parameters
        ----------
        view
            State of the run.
        """
        if self._rigid is not None and self._rigid.hear():
            yield from self._rigid.decide()
            return
        self._rigid = None  # for the rest of the run
        for j in view.finished:
            self._widths.pop(j, None)
        active = view.active.tolist()
        for j in active:
            if j not in self._widths:
                gpus, rate = self._gangs.sizes(j)
                hull = _hull(gpus, rate)
                self._widths[j] = Widths(gpus[hull], rate[hull], {})
        jobs = [j for j in active if self._widths[j].gpus.size]  # the others cannot run
        if not jobs:
            return
        wishes = self._deal(view, jobs)
        plan = places(view, wishes, self._gangs)
        if self._guests is not None:
            yield from self._guests.moves(wishes, plan)
            return
        held = {wish.job: wish.held for wish in wishes}
        yield [Stop(j) for j, on in held.items() if on and plan.get(j) != on]
        yield [start for j, on in plan.items() if on != held[j] for start in self._gangs.begin(j, on)]

    def _left(self, view: View, jobs: list[int]) -> Floats:
        predicted = np.array([view.predicted(j) for j in jobs])
        done = view.done(np.array(jobs))
        ratio = np.maximum(leading(done / predicted), 0.5)
        times = np.where(ratio < 1, 1.0, 2.0 ** (np.floor(np.log2(ratio)) + 1))
        return np.maximum(predicted * times - done, 1e-9 * predicted)

    def _deal(self, view: View, jobs: list[int]) -> list[Wish]:
        """Return the wishes of the jobs: those that are dealt GPUs, then the others, each by falling value of a GPU."""
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
        starts, restart, held = self._gangs.given(j), self._gangs.restart(j), self._gangs.held(j)
        age = max(view.now - view.arrival(j), restart)
        stay = np.maximum(np.minimum(left / rate, age / max(starts, 1)), SHORTEST * restart)
        return Wish(j, gpus, rate, ideal, unit, restart if starts else 0.0, stay, held)


@dataclass
class Forking(Unified):
    """`Unified` with copies of every job; it knows the work that is left."""

    uses: tuple[str, ...] = field(default=("copies",), init=False, repr=False)

    knowledge = Knowledge.CLAIRVOYANT


def deal(wishes: Sequence[Wish], gpus: int) -> None:
    """Deal GPUs so that the total value is largest, exactly up to 2^-`BITS` of the largest value. O(n k G).

    Parameters
    ----------
    wishes
        Jobs with the values of their numbers of GPUs; the numbers dealt are written to them.
    gpus
        GPUs of the cluster, G.
    """
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
    # The points of the least concave function above (0, 0) and (gpus, rate), up to its maximum.
    corners: list[int] = []
    x, y, at = 0, 0.0, 0
    while at < gpus.size:
        slope = leading((rate[at:] - y) / (gpus[at:] - x))
        at += int(slope.argmax())
        if slope.max() <= 0:
            break
        corners.append(at)
        x, y, at = int(gpus[at]), float(rate[at]), at + 1
    return corners


# Two jobs on a GPU under `optsched.policies.unified`: its owner and a guest.
#
# The owners are the jobs of the plan of `optsched.policies.unified_places`. Any other job may be a guest, on GPUs with
# one owner or none and no other guest, with the sub-batch o that is best there, if its value is more than the loss of the
# owners R,
#
#     u_A v_A / (xi_A stretch_A(o)) m  >  sum_R u_R v_R (1 / slow_R - 1 / max(slow_R, xi_R)),
#
# with u the value of a unit of work, v the rate alone on these GPUs, xi_A and xi_R the largest slow-downs that A and R
# cause each other, slow_R that of R next to its present guests, and m the factor for staying, or its inverse for a
# move, as in the plan. Running jobs, also those that owned GPUs until now, are first considered for staying. Then the
# others, by falling value of a GPU, come to the owners that lose least for a GPU, on one node or anywhere. For a guest,
# GPUs of its own have the value that they add.

Gpu = tuple[int, int]  # (node, index)


class Seat(NamedTuple):
    """GPUs of a job by name, and the sub-batch with which it runs there."""

    gpus: tuple[Gpu, ...]
    option: int = 0

    @property
    def nodes(self) -> Places:
        """(node, GPUs there)."""
        return tuple(sorted(Counter(node for node, _ in self.gpus).items()))


class Guests:
    """Jobs on every GPU during a run: one owner and one guest at most.

    Parameters
    ----------
    view
        State of the run.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._seats: dict[int, Seat] = {}
        self._owner: dict[Gpu, int] = {}
        self._guest: dict[Gpu, int] = {}
        self._value: dict[int, float] = {}  # value of a second of the owners, alone

    def reckon(self, wishes: Sequence[Wish]) -> None:
        """Set the wishes of guests: GPUs of their own, worth what they add to the value of being a guest.

        Parameters
        ----------
        wishes
            Jobs with the values of their numbers of GPUs; changed in place.
        """
        for j in self._view.finished:
            self._leave(j)
        self._value = {wish.job: self._worth(wish, wish.held) for wish in wishes if wish.held}
        guests = set(self._guest.values())
        for wish in wishes:
            if wish.job in guests and self._hosts(wish.job, self._seats[wish.job]):
                wish.become_guest(self._gain(wish, self._seats[wish.job], stays=True))

    def moves(self, wishes: Sequence[Wish], plan: Mapping[int, Places]) -> Iterator[list[Decision]]:
        """Yield the decisions that carry out the plan; then guests stay, leave and come.

        Parameters
        ----------
        wishes
            All active jobs, by falling value of a GPU.
        plan
            (node, GPUs) of every owner.
        """
        guests, self._owner, self._guest = set(self._guest.values()), {}, {}
        owners = sorted((wish for wish in wishes if wish.job in plan), key=lambda wish: wish.job in guests)
        others = [wish for wish in wishes if wish.job not in plan]
        self._value = {wish.job: self._worth(wish, plan[wish.job]) for wish in owners}
        comes = [wish.job for wish in owners if not self._owns(wish.job, plan[wish.job])]
        yield [self._leave(j) for j in comes if j in self._seats]
        for j in comes:
            self._seats[j] = self._seat(j, plan[j])
        yield [self._leave(wish.job) for wish in others if wish.job in self._seats and not self._may_stay(wish)]
        for j in comes:
            gpus, fits = self._seats[j].gpus, {*self._view.idle(j), *self._view.open(j)}
            yield [self._leave(r) for r in {r for g in gpus if g not in fits for r in self._view.residents(g)}]
            yield [Start(j, gpus=gpus)]
        for wish in others:
            if wish.job not in self._seats and (seat := self._best_seat(wish)):
                self._join(wish.job, seat)
                yield [Start(wish.job, gpus=seat.gpus, option=seat.option)]

    def _owns(self, j: int, on: Places) -> bool:
        # True if the job holds GPUs on the nodes of the plan that no other job owns; then it owns them.
        seat = self._seats.get(j)
        if seat is None or seat.nodes != tuple(sorted(on)) or any(g in self._owner for g in seat.gpus):
            return False
        self._owner.update(dict.fromkeys(seat.gpus, j))
        return True

    def _seat(self, j: int, on: Places) -> Seat:
        idle, shared, gpus = set(self._view.idle(j)), set(self._view.open(j)), list[Gpu]()
        for node, count in on:
            size = int(self._view.groups.node_gpus[node])
            free = [(node, k) for k in range(size) if (node, k) not in self._owner]
            gpus += sorted(free, key=lambda g: (g not in idle, g not in shared))[:count]
        self._owner.update(dict.fromkeys(gpus, j))
        return Seat(tuple(gpus))

    def _leave(self, j: int) -> Stop:
        for g in self._seats.pop(j).gpus:
            for residents in (self._owner, self._guest):
                if residents.get(g) == j:
                    del residents[g]
        return Stop(j)

    def _may_stay(self, wish: Wish) -> bool:
        seat = self._seats[wish.job]
        stays = not any(g in self._guest for g in seat.gpus) and self._gain(wish, seat, stays=True) > 0
        if stays:
            self._join(wish.job, seat)
        return stays

    def _join(self, j: int, seat: Seat) -> None:
        self._seats[j] = seat
        self._guest.update(dict.fromkeys(seat.gpus, j))

    def _hosts(self, j: int, seat: Seat) -> list[int]:
        return sorted({self._owner[g] for g in seat.gpus if g in self._owner} - {j})

    def _worth(self, wish: Wish, on: Places) -> float:
        return wish.unit * self._view.goodputs.rate(wish.job, on)

    def _loss(self, j: int, r: int) -> float:
        guests = {self._guest[g] for g in self._seats[r].gpus if g in self._guest} - {j}
        slow = max((self._view.slowdown(r, guest) for guest in guests), default=1.0)
        return self._value[r] * (1 / slow - 1 / max(slow, self._view.slowdown(r, j)))

    def _gain(self, wish: Wish, seat: Seat, *, stays: bool) -> float:
        # Value of a second of the job as a guest there, less the loss of the owners; 0 if there is no gain.
        j, hosts = wish.job, self._hosts(wish.job, seat)
        slow = max((self._view.slowdown(j, r) for r in hosts), default=1.0) * self._view.stretch(j, seat.option)
        value = wish.moved(self._worth(wish, seat.nodes) / slow, stays=stays)
        gain = value - sum(self._loss(j, r) for r in hosts)
        return gain if gain > TIE * value else 0.0

    def _best_seat(self, wish: Wish) -> Seat | None:
        j, gang, best, best_seat = wish.job, int(wish.gpus[0]), 0.0, None
        if self._view.cluster_gpus - len(self._guest) < gang:
            return None
        for option in range(self._view.options(j)):
            free = [g for g in (*self._view.open(j, option), *self._view.idle(j)) if g not in self._guest]
            for only in (*sorted({node for node, _ in free}), None):
                choice = [g for g in free if only in (None, g[0])]
                if len(choice) < gang:
                    continue
                seat = Seat(self._cheapest(j, choice, gang), option)
                gain = self._gain(wish, seat, stays=False)
                if gain > best * (1 + TIE):
                    best, best_seat = gain, seat
        return best_seat

    def _cheapest(self, j: int, free: Sequence[Gpu], gang: int) -> tuple[Gpu, ...]:
        # Idle GPUs, then those of the owners that lose least for a GPU.
        room = Counter(self._owner.get(g, -1) for g in free)
        cost = {r: leading_of(self._loss(j, r) / min(gang, room[r])) if r >= 0 else -1.0 for r in room}
        return tuple(sorted(free, key=lambda g: (cost[r := self._owner.get(g, -1)], r))[:gang])
