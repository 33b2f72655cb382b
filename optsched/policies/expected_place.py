"""When will a gang find as few nodes as an idle cluster has for it, if running jobs end as predicted?"""

from __future__ import annotations

import math
from typing import NamedTuple

from optsched.policies.ties import TIE
from optsched.simulation.policy import View


class _Expected(NamedTuple):
    start: float
    seconds: float

    def end(self, now: float) -> float:
        # What has outlived its prediction is expected to take as long again.
        seconds = self.seconds
        while self.start + (1 - TIE) * seconds <= now and seconds > 0:
            seconds = max(2 * seconds, math.ulp(now))
        return self.start + seconds


class ExpectedPlaces:
    """Running jobs with their predicted ends; a prediction that has passed is doubled until it has not.

    **Complexity** O(R N log N) for R running jobs on N nodes, once a kind of job between two starts.
    """

    def __init__(self) -> None:
        self._running: dict[int, _Expected] = {}
        self._fewest: dict[int, int] = {}  # by kind of job
        self._wait: dict[int, float] = {}  # by kind of job, at the time `_known`
        self._known = -1.0

    def start(self, job: int, now: float, seconds: float) -> None:
        """The job starts and is expected to run so long."""
        self._running[job] = _Expected(now, seconds)
        self._wait.clear()

    def finish(self, job: int) -> None:
        """The job has completed."""
        self._running.pop(job, None)

    def fewest(self, job: int, view: View) -> int:
        """Nodes that its gang needs in an idle cluster."""
        kind = view.kind(job)
        if kind not in self._fewest:
            nodes, missing = 0, view.gpus(job)
            for size in sorted(view.speeds.node_gpus[view.eligible(job)].tolist(), reverse=True):
                if missing <= 0:
                    break
                nodes, missing = nodes + 1, missing - size
            self._fewest[kind] = nodes
        return self._fewest[kind]

    def wait(self, job: int, view: View) -> float:
        """Seconds until so few nodes have GPUs for its gang, if nobody else takes it; 0: now."""
        if view.now != self._known:
            self._wait.clear()
            self._known = view.now
        kind = view.kind(job)
        if kind not in self._wait:
            self._wait[kind] = self._seconds(view.gpus(job), self.fewest(job, view), job, view)
        return self._wait[kind]

    def _seconds(self, gang: int, nodes: int, job: int, view: View) -> float:
        now, eligible, free = view.now, view.eligible(job).tolist(), view.free.tolist()
        if len(free) < len(eligible):  # GPUs are only counted, by type: no node is better than another
            return 0.0
        free = [count if may else 0 for count, may in zip(free, eligible, strict=True)]
        if _most(free, nodes) >= gang:
            return 0.0
        for end, k in sorted((each.end(now), k) for k, each in self._running.items()):
            for node, count in view.held(k):
                free[node] += count if eligible[node] else 0
            if _most(free, nodes) >= gang:
                return end - now
        return math.inf


def _most(free: list[int], nodes: int) -> int:
    return max(free) if nodes == 1 else sum(sorted(free)[-nodes:])
