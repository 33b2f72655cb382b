"""`NodePlan`: free GPUs of every node over time, as a policy believes, with reservations on nodes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from optsched.policies.free_gpus import FreeGpus
from optsched.problem.arrays import Bools, Ints
from optsched.problem.cluster import Places


class NodeProfile(FreeGpus):
    """The number of free GPUs of one node over time."""

    def holds(self, begin: float, end: float, gpus: int) -> bool:
        """Return whether a number of GPUs is free from ``begin`` until ``end``.

        Parameters
        ----------
        begin, end
            Times in seconds, not before the beginning of the profile.
        gpus
            Number of GPUs.
        """
        first = bisect_right(self.times, begin) - 1
        return all(self.free[k] >= gpus for k in range(first, len(self.times)) if self.times[k] < end)


def places_now(free: Ints, size: Ints, suits: Bools, gang: int) -> Places | None:
    """Return the nodes on which a gang starts now: the first node with enough free GPUs; None if there is none.

    A gang larger than every node takes idle nodes in their order, whole ones before the rest of the gang.

    Parameters
    ----------
    free
        Free GPUs of every node, i64[N].
    size
        GPUs of every node, i64[N].
    suits
        Whether the job may use the node, bool[N].
    gang
        GPUs of the gang.
    """
    if gang <= size[suits].max(initial=0):
        fits = suits & (free >= gang)
        node = int(fits.argmax())
        return ((node, gang),) if fits[node] else None
    return _spread((suits & (free == size)).nonzero()[0].tolist(), size, gang)


def _spread(nodes: Iterable[int], size: Ints, gang: int) -> Places | None:
    places = list[tuple[int, int]]()
    for node in nodes:
        count = min(gang, int(size[node]))
        places.append((node, count))
        gang -= count
        if gang == 0:
            return tuple(places)
    return None


class NodePlan:
    """Free GPUs of every node over time: those of now, those that running jobs release, less reservations.

    Parameters
    ----------
    now
        Time at which the plan begins, in seconds.
    free
        Free GPUs of every node, i64[N].
    size
        GPUs of every node, i64[N].
    running
        (believed end, places) of every running job.
    """

    def __init__(self, now: float, free: Ints, size: Ints, running: Iterable[tuple[float, Places]]) -> None:
        self._now, self._size = now, size
        self._nodes = [NodeProfile(now, count) for count in free.tolist()]
        for end, places in running:
            for node, count in places:
                self._nodes[node].add(end, math.inf, count)

    def take(self, begin: float, end: float, places: Places) -> None:
        """Take GPUs of nodes for some time.

        Parameters
        ----------
        begin, end
            Times in seconds; what lies before the plan is left out.
        places
            (node, GPUs) pairs.
        """
        for node, count in places:
            self._nodes[node].add(max(begin, self._now), end, -count)

    def earliest(self, gang: int, seconds: float, suits: Bools, latest: float) -> tuple[float, Places] | None:
        """Return the first start of a gang and its nodes; None if that is later than ``latest``.

        Parameters
        ----------
        gang
            GPUs of the gang.
        seconds
            Time for which it needs them.
        suits
            Whether the job may use the node, bool[N].
        latest
            Last start that counts, in seconds.
        """
        nodes = suits.nonzero()[0].tolist()
        if gang > self._size[suits].max(initial=0):
            return next(self._together(gang, seconds, nodes, latest), None)
        best, chosen = math.inf, -1
        for node in nodes:
            if self._size[node] >= gang:
                begin = self._nodes[node].earliest(seconds, gang)
                if begin < best:
                    best, chosen = begin, node
                    if begin == self._now:
                        break
        return (best, ((chosen, gang),)) if best <= latest else None

    def _together(self, gang: int, seconds: float, nodes: list[int], latest: float) -> Iterator[tuple[float, Places]]:
        """Yield the starts at which enough nodes are idle for some seconds."""
        for begin in sorted({time for node in nodes for time in self._nodes[node].times if time <= latest}):
            idle = (k for k in nodes if self._nodes[k].holds(begin, begin + seconds, int(self._size[k])))
            places = _spread(idle, self._size, gang)
            if places is not None:
                yield begin, places
