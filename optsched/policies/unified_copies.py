"""What a job does with GPUs under `optsched.policies.unified`: it runs as one gang, or in copies of its gang on nodes.

**One gang** (`OneGang`), of any number of GPUs where it may be resized, at the rate that its scaling profile says.

**Copies** (`Copies`): k g_j GPUs are a gang of g_j on each of k nodes, and what the copies do adds up,

    v_j(on) = sum over nodes h of X_jh,    v_j(k g_j) <= the k largest X_jh,

X_jh the rate of the gang on node h: concave in k. A copy takes ``restart`` seconds to load, o_h, all but the first one of
a job that has never run; of the work left each gets X_jh (T - o_h), sum_h X_jh (T - o_h) = left: all end at T together.
Copies that would load for longer than T are not started. A gang larger than any node has no copies.
"""

from __future__ import annotations

import numpy as np

from optsched.policies.goodput_allocation import fewest_nodes
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import Start, View

EACH = 16  # every number of copies up to here; beyond it the knapsack over all nodes would take longer than it gains


class OneGang:
    """Jobs that run as one gang, with ``resize`` of other sizes, too."""

    def __init__(self, view: View, resize: bool, restart: float) -> None:
        self._view, self._resize, self._restart = view, resize, restart

    def sizes(self, j: int) -> tuple[Ints, Floats]:
        """Numbers of GPUs that a job may have, ascending, and its best rates on them, in units of work a second."""
        rate = self._view.goodputs.table(j).max(axis=1)
        gpus = np.flatnonzero(rate)
        gpus = gpus if self._resize else gpus[gpus == self._view.gpus(j)]
        return gpus, rate[gpus]

    def rate(self, j: int, on: Places) -> float:
        """Units of work a second of a job on these GPUs."""
        return self._view.goodputs.rate(j, on)

    def nodes(self, j: int, gpus: int, free: Ints) -> Places:
        """Where ``gpus`` GPUs of the ``free`` ones, i64[N], are best for a job; () where too few are free."""
        return fewest_nodes(gpus, free)

    def held(self, j: int) -> Places:
        """(node, GPUs there) that the job was given, while it runs."""
        return self._view.held(j)

    def given(self, j: int) -> int:
        """How often the job was given GPUs."""
        return self._view.starts(j)

    def restart(self, j: int) -> float:
        """Seconds that a job pays when its GPUs change."""
        return self._view.restart(j, self._restart)

    def begin(self, j: int, on: Places) -> list[Start]:
        """What starts a job on these GPUs."""
        return [Start(j, on=on)]


class Copies(OneGang):
    """Jobs that run in copies of their gang; ``restart`` seconds a copy, or what a job says itself where that is more."""

    def __init__(self, view: View, restart: float) -> None:
        super().__init__(view, False, restart)
        self._rates, self._group = view.groups.rates, view.groups.node_group
        self._last: dict[int, Places] = {}
        self._given: dict[int, int] = {}

    def sizes(self, j: int) -> tuple[Ints, Floats]:
        """g_j, 2 g_j, ... GPUs, from `EACH` copies on in steps of a quarter, and the sums of so many largest rates."""
        on_nodes = self._on_nodes(j)
        rate = np.cumsum(np.sort(on_nodes[on_nodes > 0])[::-1])
        if not rate.size:
            return super().sizes(j)
        copies = list(range(1, min(rate.size, EACH) + 1))
        while copies[-1] < rate.size:
            copies.append(min(copies[-1] * 5 // 4, rate.size))
        return self._view.gpus(j) * np.array(copies), rate[np.array(copies) - 1]

    def rate(self, j: int, on: Places) -> float:
        """The sum of its copies' rates."""
        return float(self._each(j, on).sum()) if self._copied(j, on) else super().rate(j, on)

    def nodes(self, j: int, gpus: int, free: Ints) -> Places:
        """Nodes for one copy each: the fastest, of these the ones with the fewest free GPUs that suffice."""
        gang, rate = self._view.gpus(j), self._on_nodes(j)
        fits = np.flatnonzero((free >= gang) & (rate > 0))
        if gpus == gang and not fits.size:
            return super().nodes(j, gpus, free)
        best = fits[np.lexsort((free[fits], -leading(rate[fits])))][: gpus // gang]
        return tuple((node, gang) for node in sorted(best.tolist())) if best.size * gang == gpus else ()

    def held(self, j: int) -> Places:
        """Also the nodes of copies that were not worth loading."""
        return self._last[j] if self._view.held(j) else ()

    def given(self, j: int) -> int:
        """How often it was given nodes, however many."""
        return self._given.get(j, 0)

    def restart(self, j: int) -> float:
        """Of every copy."""
        return max(self._restart, self._view.restart(j, self._restart))

    def begin(self, j: int, on: Places) -> list[Start]:
        """Its copies, which share out what is left; none if nothing is."""
        left = self._view.remaining(j)
        if not left > 0:
            return []
        first = self.given(j) == 0
        self._last[j], self._given[j] = on, self.given(j) + 1
        if not self._copied(j, on):
            return [Start(j, on=on, work=left)]
        load = np.full(len(on), self.restart(j))
        load[0] *= not first
        parts = split(left, self._each(j, on), load).tolist()
        return [Start(j, on=(place,), work=work) for place, work in zip(on, parts, strict=True) if work]

    def _copied(self, j: int, on: Places) -> bool:
        gang = self._view.gpus(j)
        return all(count == gang for _, count in on)

    def _on_nodes(self, j: int) -> Floats:
        return self._rates[j, self._group]  # X_j; of all jobs it would be n N numbers

    def _each(self, j: int, on: Places) -> Floats:
        return self._on_nodes(j)[[node for node, _ in on]]


def split(left: float, rate: Floats, load: Floats) -> Floats:
    """Work of copies at these rates after loading for ``load`` seconds each, f64[k], so that those with any end together.

    The least T with sum_h rate_h max(0, T - load_h) = left. O(k log k).
    """
    order = np.argsort(load, kind="stable")
    end = (left + np.cumsum((rate * load)[order])) / np.cumsum(rate[order])
    work = rate * np.maximum(end.min() - load, 0.0)
    return work * (left / work.sum())
