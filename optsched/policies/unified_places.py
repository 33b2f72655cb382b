"""Places of the jobs under `optsched.policies.unified`: first the GPU type of every job, then nodes.

**Types.** By falling value of a GPU every job takes the type with enough GPUs left on which it is fastest. Then jobs
move to another type, or two change places, the best exchange first, while the total value grows, at most once for
every job. This is a local search for max sum_j u_j(t_j), subject to the GPUs of every type. **Nodes.** In every type
the widest jobs are placed first: on the node with the fewest free GPUs that suffice; if no node suffices, on as few
nodes as possible. A place that is held is kept unless another is `KEEP` times as fast. A job that finds no type, or no
nodes there, takes GPUs of several types that are left; then follow the jobs without GPUs, those of largest value a GPU
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import numpy as np

from optsched.policies.ties import TIE, leading, leading_of
from optsched.policies.unified_copies import OneGang
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import View

BITS = 30  # of values in the knapsack
LEAST = 1e-9  # of the largest weight: jobs of less weight run where GPUs are left
SHORTEST = 1e-3  # of a restart: the value of GPUs assumes that they are kept for at least this long
KEEP = 1.05  # factor by which another place must be better to be worth a move


class Widths(NamedTuple):
    """Numbers of GPUs that a job may have, i64[k] ascending, and its best rates on them, f64[k] units of work a second.

    ``ideal`` caches its rate on (type, GPUs) in an idle cluster.
    """

    gpus: Ints
    rate: Floats
    ideal: dict[tuple[int, int], float]


@dataclass(slots=True)
class Wish:
    """Numbers of GPUs that a job may have, i64[k] ascending, with its best rates there f64[k] and their values.

    ``ideal``: see `Widths`. ``unit``: value of a unit of work. ``restart``: seconds that the job pays if its GPUs
    change, 0 before its first start. ``stay`` f64[k]: seconds for which such GPUs would be kept. ``kept`` f64[k]:
    factor by which the value of a rate is multiplied if the job stays, and divided if it moves. ``dealt``: GPUs dealt
    so far, 0 or one of the numbers; ``worth``: their value. ``now``: value of a second of a guest
    (`optsched.policies.unified`) on its present GPUs.
    """

    job: int
    gpus: Ints
    rate: Floats
    ideal: dict[tuple[int, int], float]
    unit: float
    restart: float
    stay: InitVar[Floats]
    held: Places
    kept: Floats = field(init=False)
    value: Floats = field(init=False)
    dealt: int = 0
    worth: float = 0.0
    now: float = 0.0

    def __post_init__(self, stay: Floats) -> None:
        self.kept = 1 + self.restart / stay if self.restart else np.ones(stay.size)
        stays = self.gpus == _count(self.held)
        self.value = self.unit * self.rate * np.where(stays, self.kept, 1 / self.kept)

    def value_on(self, on: Places, rate: float) -> float:
        """Return the value of a second on some GPUs: more if the job need not move, less if it must.

        Parameters
        ----------
        on
            (node, GPUs) of the job.
        rate
            Rate there, in units of work a second.
        """
        at = int(np.searchsorted(self.gpus, _count(on)))
        return self.moved(self.unit * rate, at, stays=on == self.held) - self.now

    def moved(self, worth: float, at: int = 0, *, stays: bool) -> float:
        """Return a value adjusted for the overhead of a move: more if the job stays, less if it moves.

        Parameters
        ----------
        worth
            Value before the adjustment.
        at
            Position of the number of GPUs.
        stays
            The job keeps its GPUs.
        """
        return worth * float(self.kept[at] if stays else 1 / self.kept[at])

    def become_guest(self, now: float) -> None:
        """Record that the job is a guest: GPUs of its own are worth what they add.

        Parameters
        ----------
        now
            Value of a second as a guest.
        """
        self.held, self.now = (), now
        self.value = self.unit * self.rate / self.kept - now

    def take(self, i: int) -> None:
        """Deal the i-th number of GPUs to the job.

        Parameters
        ----------
        i
            Position of the number of GPUs.
        """
        self.dealt, self.worth = int(self.gpus[i]), float(self.value[i])

    @property
    def density(self) -> float:
        """Value of a GPU, of those dealt to the job; if there are none, of the best number."""
        if self.dealt:
            return leading_of(self.worth / self.dealt)
        return leading_of(float((self.value / self.gpus).max()))


class FreeNodes:
    """Free GPUs of every node and type while places are given.

    Parameters
    ----------
    view
        State of the run.
    gangs
        The way in which jobs use GPUs: one gang or copies.
    """

    def __init__(self, view: View, gangs: OneGang) -> None:
        self.view, self.gangs, self.total = view, gangs, 0.0
        self.free, self.type = view.groups.node_gpus.copy(), view.node_kind
        self.types = int(self.type.max()) + 1
        self.plan: dict[int, Places] = {}
        self._size = view.groups.node_gpus

    def here(self, wish: Wish) -> int:
        """Return the type on which a job runs, if it may stay with the GPUs dealt to it; -1: none, or several.

        Parameters
        ----------
        wish
            The job.
        """
        held = wish.held if _count(wish.held) == wish.dealt else ()
        types = {int(self.type[node]) for node, _ in held}
        return types.pop() if len(types) == 1 else -1

    def ideal(self, wish: Wish, kind: int) -> float:
        """Return the job's rate on the number of GPUs dealt to it, on a type in an idle cluster; cached.

        Parameters
        ----------
        wish
            The job.
        kind
            GPU type.
        """
        key = kind, wish.dealt
        if key not in wish.ideal:
            may = np.where(self.view.eligible(wish.job) & (self.type == kind), self._size, 0)
            on = self.gangs.nodes(wish.job, wish.dealt, may)
            wish.ideal[key] = self.gangs.rate(wish.job, on) if on else 0.0
        return wish.ideal[key]

    def put(self, wish: Wish, gpus: int, kinds: Sequence[int]) -> bool:
        """Give a job free GPUs on the best of some types, or the GPUs that it holds; return True if that is possible.

        Parameters
        ----------
        wish
            The job.
        gpus
            Number of GPUs.
        kinds
            GPU types; -1: several together.
        """
        may = np.where(self.view.eligible(wish.job), self.free, 0)
        chosen: Places = ()
        best = 0.0
        if _count(wish.held) == gpus and all(may[node] >= count for node, count in wish.held):
            chosen, best = wish.held, wish.value_on(wish.held, self.gangs.rate(wish.job, wish.held)) * KEEP
        for kind in kinds:
            on = self.gangs.nodes(wish.job, gpus, may if kind < 0 else np.where(self.type == kind, may, 0))
            value = wish.value_on(on, self.gangs.rate(wish.job, on)) if on else 0.0
            if value > best * (1 + TIE):
                chosen, best = on, value
        if chosen:
            self.plan[wish.job] = chosen
            self.total += best
            for node, count in chosen:
                self.free[node] -= count
        return bool(chosen)


def places(view: View, wishes: Sequence[Wish], gangs: OneGang) -> dict[int, Places]:
    """Return (node, GPUs) of every job that runs now.

    Two plans are made, one of which places the jobs that may stay first; the plan of the larger value is taken.

    Parameters
    ----------
    view
        State of the run.
    wishes
        Active jobs by falling value of a GPU, those with GPUs dealt first.
    gangs
        The way in which jobs use GPUs: one gang or copies.
    """
    types = _types([wish for wish in wishes if wish.dealt], FreeNodes(view, gangs))
    clusters = [_placed(FreeNodes(view, gangs), wishes, types, stay=stay) for stay in (True, False)]
    return max(clusters, key=lambda cluster: leading_of(cluster.total)).plan


def _placed(cluster: FreeNodes, wishes: Sequence[Wish], types: Mapping[int, int], *, stay: bool) -> FreeNodes:
    def first(wish: Wish) -> tuple[bool, int]:
        return not (stay and cluster.here(wish) == types[wish.job]), -wish.dealt

    for wish in sorted((wish for wish in wishes if wish.job in types), key=first):
        cluster.put(wish, wish.dealt, [types[wish.job]])
    everywhere = [*range(cluster.types), -1]
    for wish in wishes:
        if wish.job not in cluster.plan:
            room = int(cluster.free.sum())
            if not room:
                break
            sizes = wish.gpus[wish.gpus <= min(room, wish.dealt or room)]
            any(cluster.put(wish, gpus, everywhere) for gpus in sizes[::-1].tolist())
    return cluster


def _count(on: Places) -> int:
    return sum(count for _, count in on)


def _types(wishes: Sequence[Wish], cluster: FreeNodes) -> dict[int, int]:
    """Return the type of every job that finds one."""
    stock = np.bincount(cluster.type, weights=cluster.free, minlength=cluster.types).astype(np.int64)
    value, chosen, placed = [], [], []
    for wish in wishes:
        rate = np.array([cluster.ideal(wish, kind) for kind in range(cluster.types)])
        if (present := cluster.here(wish)) >= 0:
            kept = wish.kept[np.searchsorted(wish.gpus, wish.dealt)]
            rate[present] *= KEEP * (kept * kept)
        rate = leading(rate)
        open_to = np.where(stock >= wish.dealt, rate, 0.0)
        if open_to.any():
            kind = int(open_to.argmax())
            stock[kind] -= wish.dealt
            placed.append(wish)
            chosen.append(kind)
            value.append(np.where(rate > 0, wish.worth / rate.max() * rate, -np.inf))
    if not placed:
        return {}
    kinds = np.array(chosen)
    exchange(np.array(value), np.array([wish.dealt for wish in placed]), kinds, stock)
    return {wish.job: kind for wish, kind in zip(placed, kinds.tolist(), strict=True)}


def exchange(value: Floats, gpus: Ints, kind: Ints, stock: Ints) -> None:
    """Improve the types of jobs in place, by moves and exchanges, the best first, while the total value grows.

    At most m exchanges of O(m^2).

    Parameters
    ----------
    value
        Value of every job on every type, f64[m, T]; -inf where it cannot run.
    gpus
        GPUs of every job, i64[m].
    kind
        Type of every job, i64[m]; changed in place.
    stock
        GPUs left of every type, i64[T]; changed in place.
    """
    everyone = np.arange(kind.size if value.shape[1] > 1 else 0)
    for _ in everyone:
        now = value[everyone, kind]
        gain = value - now[:, None]
        alone = np.where(stock >= gpus[:, None], gain, -np.inf)
        # [a, b]: True if a fits the type of b after b has left it
        room = stock[kind] + gpus - gpus[:, None] >= 0
        both = np.where(room & room.T & (kind[:, None] != kind), gain[:, kind] + gain[:, kind].T, -np.inf)
        least = TIE * float(now.sum())
        if max(alone.max(), both.max()) <= least:
            return
        if alone.max() >= both.max():
            a, target = np.unravel_index(int(leading(alone).argmax()), alone.shape)
            moves = [(int(a), int(target))]
        else:
            a, b = np.unravel_index(int(leading(both).argmax()), both.shape)
            moves = [(int(a), int(kind[b])), (int(b), int(kind[a]))]
        for job, goal in moves:
            stock[kind[job]] += gpus[job]
            stock[goal] -= gpus[job]
            kind[job] = goal
