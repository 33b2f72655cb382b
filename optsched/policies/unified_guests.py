"""Two jobs on a GPU under `optsched.policies.unified`: who owns it, and who is a guest there.

The owners are the jobs of the plan of `optsched.policies.unified_places`. Everybody else may be a guest, on GPUs with one
owner or none and no other guest: with the sub-batch o that is best there, if that is worth more than what owners R lose,

    u_A v_A / (xi_A stretch_A(o)) m  >  sum_R u_R v_R (1 / slow_R - 1 / max(slow_R, xi_R)),

with u the value of a unit of work, v the rate alone on these GPUs, xi_A and xi_R the largest slow-downs that A and R cause
each other, slow_R that of R beside the guests that it has, and m what staying multiplies, or a move divides, as in the plan.
Who runs, also who owned GPUs until now, is first asked whether to stay; the others, by falling value of a GPU, come to the
owners that lose least for a GPU, on one node or anywhere. GPUs of its own are worth to a guest what they add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from optsched.policies.ties import TIE, leading_of
from optsched.policies.unified_places import Wish
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Start, Stop, View

Gpu = tuple[int, int]  # (node, index)


class Seat(NamedTuple):
    """GPUs of a job by name, and which of its sub-batches it runs with there."""

    gpus: tuple[Gpu, ...]
    option: int = 0

    @property
    def nodes(self) -> Places:
        """(node, GPUs there)."""
        return tuple(sorted(Counter(node for node, _ in self.gpus).items()))


class Guests:
    """Who runs on which GPUs during a run, as owner or guest."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._seats: dict[int, Seat] = {}
        self._owner: dict[Gpu, int] = {}
        self._guest: dict[Gpu, int] = {}
        self._value: dict[int, float] = {}  # of a second of the owners, alone

    def reckon(self, wishes: Sequence[Wish]) -> None:
        """What guests wish for: GPUs of their own, less what it is worth to be beside others."""
        for j in self._view.finished:
            self._leave(j)
        self._value = {wish.job: self._worth(wish, wish.held) for wish in wishes if wish.held}
        guests = set(self._guest.values())
        for wish in wishes:
            if wish.job in guests and self._hosts(wish.job, self._seats[wish.job]):
                wish.beside(self._gain(wish, self._seats[wish.job], stays=True))

    def moves(self, wishes: Sequence[Wish], plan: Mapping[int, Places]) -> Iterator[list[Decision]]:
        """What has to be done for the plan; then guests stay, leave and come."""
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
        # May it have what the plan gives it without a move? Then it has.
        seat = self._seats.get(j)
        if seat is None or seat.nodes != tuple(sorted(on)) or any(g in self._owner for g in seat.gpus):
            return False
        self._owner.update(dict.fromkeys(seat.gpus, j))
        return True

    def _seat(self, j: int, on: Places) -> Seat:
        idle, shared, found = set(self._view.idle(j)), set(self._view.open(j)), list[Gpu]()
        for node, count in on:
            size = int(self._view.groups.node_gpus[node])
            free = [(node, k) for k in range(size) if (node, k) not in self._owner]
            found += sorted(free, key=lambda g: (g not in idle, g not in shared))[:count]
        self._owner.update(dict.fromkeys(found, j))
        return Seat(tuple(found))

    def _leave(self, j: int) -> Stop:
        for g in self._seats.pop(j).gpus:
            for there in (self._owner, self._guest):
                if there.get(g) == j:
                    del there[g]
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
        # What it is worth that the job is a guest there; 0 where owners lose as much.
        j, hosts = wish.job, self._hosts(wish.job, seat)
        slow = max((self._view.slowdown(j, r) for r in hosts), default=1.0) * self._view.stretch(j, seat.option)
        mine = wish.moved(self._worth(wish, seat.nodes) / slow, stays=stays)
        gain = mine - sum(self._loss(j, r) for r in hosts)
        return gain if gain > TIE * mine else 0.0

    def _best_seat(self, wish: Wish) -> Seat | None:
        j, gang, best, found = wish.job, int(wish.gpus[0]), 0.0, None
        if self._view.cluster_gpus - len(self._guest) < gang:
            return None
        for option in range(self._view.options(j)):
            free = [g for g in (*self._view.open(j, option), *self._view.idle(j)) if g not in self._guest]
            for only in (*sorted({node for node, _ in free}), None):
                here = [g for g in free if only in (None, g[0])]
                if len(here) < gang:
                    continue
                seat = Seat(self._cheapest(j, here, gang), option)
                gain = self._gain(wish, seat, stays=False)
                if gain > best * (1 + TIE):
                    best, found = gain, seat
        return found

    def _cheapest(self, j: int, free: Sequence[Gpu], gang: int) -> tuple[Gpu, ...]:
        # Idle GPUs, then those of the owners that lose least for a GPU.
        room = Counter(self._owner.get(g, -1) for g in free)
        cost = {r: leading_of(self._loss(j, r) / min(gang, room[r])) if r >= 0 else -1.0 for r in room}
        return tuple(sorted(free, key=lambda g: (cost[r := self._owner.get(g, -1)], r))[:gang])
