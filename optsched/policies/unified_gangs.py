"""The decisions of `optsched.policies.unified` for rigid gangs, compiled: the same schedule at a fraction of the cost.

A gang here has one number of GPUs and shares none, and its rate depends only on the GPU types that it gets and on
whether they are on one node: jobs with durations, and jobs at the rates of a table. The readable form of every step is
in `optsched.policies.unified` and `optsched.policies.unified_places`. Both forms take the same decisions, bit for bit.

**No decision** is needed if nobody waits, nobody came, and every job is equally fast everywhere: in both plans each job
keeps its GPUs, since no other place is `KEEP` times as fast. **A place** is looked for only if one may be `KEEP` times
as fast as that of the job. **The knapsack** is solved for those jobs of which the linear relaxation does not say that
every optimal solution has them, or that none has.

Complexity O(m log m + s N) an event: m active jobs, s of which look for a place, N nodes; O(c G) more for a knapsack
with c undecided jobs; O(m^2) for every exchange of types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optsched.policies.goodput_allocation import fewest_nodes
from optsched.policies.unified_gang_deals import DENSITY, GANG, PLAN, RANK, SCRATCH, fill_knapsack, rank_and_price
from optsched.policies.unified_gang_places import (
    HELD,
    IDEAL,
    SPREAD,
    TOGETHER,
    choose_types,
    may_improve,
    place_jobs,
)
from optsched.policies.unified_places import BITS, LEAST, exchange
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Start, Stop, View


class RigidGangs:
    """The active jobs of a run, if all of them are rigid gangs, and the GPUs that they hold.

    Parameters
    ----------
    view
        State of the run.
    restart
        Overhead of a job that has started before, in seconds, if it states none of its own.
    """

    def __init__(self, view: View, restart: float) -> None:
        self._view, self._restart = view, restart
        self._size, self._kind = view.groups.node_gpus, view.node_kind
        self._types, nodes, gpus = int(self._kind.max()) + 1, self._kind.size, view.cluster_gpus
        self._stock = np.bincount(self._kind, weights=self._size, minlength=self._types).astype(np.int64)
        self._rows: dict[Any, tuple[int, bool]] = {}
        self._eligible: Bools = np.zeros((0, nodes), dtype=np.bool_)
        self._rates: Floats = np.zeros((0, 3, self._types))
        self._uneven: set[int] = set()  # active jobs whose rate depends on the place
        self._active = self._waiting = 0
        self._free = np.zeros(nodes, dtype=np.int64)
        self._places = np.zeros((4, 2, gpus), dtype=np.int64)
        self._best, self._knapsack = np.zeros((self._types, self._types)), np.zeros(gpus + 1)
        self._make_room(64)

    def _make_room(self, jobs: int) -> None:
        self._all, self._weights = np.zeros(jobs, dtype=GANG), np.zeros(jobs)
        self._order = np.zeros((4, jobs), dtype=np.int64)
        self._plans = np.zeros((2, 3, jobs), dtype=np.int64)
        self._key, self._value = np.zeros(jobs), np.zeros((jobs, self._types))

    @property
    def _gangs(self) -> Any:
        return self._all[: self._active]

    def hear(self) -> bool:
        """Take note of completions and arrivals; return False if a job that came is no such gang."""
        view = self._view
        for j in view.finished:
            self._leave(j)
        if view.arrived and not all(map(view.goodputs.by_type.item, view.arrived)):
            return False
        for j in view.arrived:
            rate = 1.0 / view.pace_range(j)[0]
            if rate > 0 and view.gpus(j) <= int(self._size[view.eligible(j)].sum()):  # else it cannot run
                self._enter(j, rate)
        return True

    def _leave(self, j: int) -> None:
        at = np.flatnonzero(self._gangs["job"] == j)
        if at.size:
            first, self._active = int(at[0]), self._active - 1
            for rows in (self._all, self._weights):
                rows[first : self._active] = rows[first + 1 : self._active + 1]
            self._uneven.discard(j)

    def _enter(self, j: int, rate: float) -> None:
        if self._active == self._weights.size:
            gangs, weights = self._all, self._weights
            self._make_room(2 * self._active)
            self._all[: self._active], self._weights[: self._active] = gangs, weights
        view, gpus = self._view, self._view.gpus(j)
        row, uneven = self._row(j)
        if uneven:
            self._uneven.add(j)
        gang = np.zeros((), dtype=GANG)
        gang["job"], gang["gpus"], gang["row"], gang["rate"], gang["seconds"] = j, gpus, row, rate, gpus / rate
        gang["length"], gang["arrival"] = view.predicted(j), view.arrival(j)
        gang["restart"] = view.restart(j, self._restart)
        self._all[self._active], self._weights[self._active] = gang, view.weight(j)
        self._active += 1

    def _row(self, j: int) -> tuple[int, bool]:
        # The row of the nodes and rates of a job, and whether its rate depends on the place.
        view, rates = self._view, None
        if not view.goodputs.steady[j]:
            speeds = view.speeds
            table = np.stack([speeds.together[j], speeds.together[j] if speeds.one_gpu_nodes else speeds.spread[j]])
            with np.errstate(divide="ignore"):
                rates = (1.0 / (1.0 / table))[:, speeds.node_type]  # as `Goodputs.rate`, of seconds
        key = view.kind(j), None if rates is None else rates.tobytes()
        if key not in self._rows:
            may, rate = view.eligible(j), np.ones((3, self._types))
            for kind in range(self._types):
                alike = self._kind == kind
                if rates is not None:
                    rate[: SPREAD + 1, kind] = rates[:, int(alike.argmax())]
                on = fewest_nodes(view.gpus(j), np.where(may & alike, self._size, 0))
                rate[IDEAL, kind] = rate[TOGETHER if len(on) == 1 else SPREAD, kind] if on else 0.0
            self._rows[key] = self._rates.shape[0], rates is not None
            self._eligible = np.concatenate([self._eligible, may[None]])
            self._rates = np.concatenate([self._rates, rate[None]])
        return self._rows[key]

    def decide(self) -> Iterator[list[Decision]]:
        """Yield the stops of the jobs whose GPUs change, then the starts of the jobs on their new GPUs."""
        view, gangs, order = self._view, self._gangs, self._order
        if not gangs.size or not (view.arrived or self._waiting or self._uneven):
            return
        self._deal(view)
        self._choose_types()
        rates = gangs, self._rates, self._eligible, self._kind, self._size, self._free
        stops, starts, self._waiting = place_jobs(*rates, order, self._key, self._places, self._plans)
        stopped, started = order[PLAN, :stops].tolist(), order[SCRATCH, :starts].tolist()
        if stopped:
            yield [Stop(int(gangs["job"][i])) for i in stopped]
        if started:
            yield [Start(int(gangs["job"][i]), on=self._on(i)) for i in started]
        for i in (*stopped, *started):
            gangs["starts"][i] = view.starts(int(gangs["job"][i]))

    def _on(self, i: int) -> Places:
        at = int(self._gangs["at"][i])
        return tuple(zip(*self._places[HELD, :, at : at + int(self._gangs["parts"][i])].tolist(), strict=True))

    def _deal(self, view: View) -> None:
        gangs, order, weight = self._gangs, self._order, self._weights[: self._active]
        weight = np.maximum(weight, LEAST * weight.max()) if weight.any() else np.ones(gangs.size)
        total, done = float(weight.sum()), view.done(gangs["job"])
        wanted = rank_and_price(gangs, done, weight, total, view.now, view.cluster_gpus, order, self._key)
        if wanted > view.cluster_gpus:
            rank = order[RANK, : gangs.size]
            worth, gpus = gangs["worth"][rank], gangs["gpus"][rank]
            value = np.rint(worth / worth.max() * 2.0**BITS)  # whole numbers: sums are exact, ties are ties
            chosen, taken = (
                np.zeros(gangs.size, dtype=np.int64),
                np.zeros((gangs.size, view.cluster_gpus + 1), np.bool_),
            )
            by_density = np.argsort(-value / gpus, kind="stable")
            fill_knapsack(value, gpus, view.cluster_gpus, by_density, self._knapsack, taken, chosen)
            gangs["dealt"][rank] = chosen

    def _choose_types(self) -> None:
        gangs, stock = self._gangs, self._stock.copy()
        held = self._places[HELD]
        placed = choose_types(gangs, self._rates, held, self._kind, stock, self._order, self._key, self._value)
        value = self._value[:placed]
        if self._types > 1 and may_improve(gangs, self._order, value, stock, self._best):
            rows = self._order[DENSITY, : gangs.size]
            rows = rows[gangs["type"][rows] >= 0]
            kind: Ints = gangs["type"][rows]
            exchange(value, gangs["gpus"][rows], kind, stock)
            gangs["type"][rows] = kind
