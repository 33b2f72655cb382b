"""Queues whose order follows from predictions: the baselines of A-SRPT, a row each."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from optsched.policies import POLICIES
from optsched.policies.predictors import predictor
from optsched.policies.ties import leading, leading_of
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Order, Predictor, Start, View


class Foreseen(NamedTuple):
    """What is known of a job at its arrival: numbers; or of all jobs: arrays."""

    seconds: Any  # n^_j alpha_min_j: what it would take at its best placement if the prediction were true
    gpus: Any  # g_j
    arrival: Any  # r_j


@dataclass
class PredictedQueue(ABC):
    """Jobs wait in the order of ``key``, said at their arrival; the head starts as soon as it fits.

    ``work_conserving``: jobs that do not fit are passed over; otherwise the head blocks. Not preemptive. Jobs of one kind
    fit or do not fit together, so each kind has its own heap. **Complexity** O(log n) an event and a placement a kind.
    """

    predictor: str = "perfect"

    knowledge: ClassVar[Knowledge] = Knowledge.PREDICTED
    default_placement: ClassVar[str] = "heavy-edge"
    work_conserving: ClassVar[bool] = False

    _heaps: dict[int, list[tuple[float, int]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        predictor(self.predictor)

    @abstractmethod
    def key(self, foreseen: Foreseen) -> Any:
        """Smaller is served first; ties, up to rounding, by index."""

    def make_predictor(self) -> Predictor:
        """The predictor of a run."""
        return predictor(self.predictor)

    def accelerator(self, jobs: KnownJobs) -> Order | None:
        """The same queue as an order; not of a policy that decides in another way."""
        if type(self).decide is not PredictedQueue.decide:
            return None
        foreseen = Foreseen(jobs.predicted * jobs.pace_range[0], jobs.gpus, jobs.arrival)
        return Order(key=leading(self.key(foreseen)), skip=self.work_conserving)

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._heaps = {}

    def decide(self, view: View) -> Iterator[Decision]:
        """Queue what arrived, start what fits in the order of the queue."""
        for j in view.arrived:
            foreseen = Foreseen(view.predicted(j) * view.pace_range(j)[0], view.gpus(j), view.arrival(j))
            heapq.heappush(self._heaps.setdefault(view.kind(j), []), (leading_of(float(self.key(foreseen))), j))
        full: set[int] = set()
        while view.free_gpus > 0:
            heads = [(heap[0], kind) for kind, heap in self._heaps.items() if heap and kind not in full]
            if not heads:
                return
            (_, j), kind = min(heads)
            if view.fits(j):
                heapq.heappop(self._heaps[kind])
                yield Start(j)
            elif self.work_conserving:
                full.add(kind)
            else:
                return


_BLOCKS = "with gangs as wide as the cluster the head leaves nearly everything idle: a factor about G/2"
_PASSES = """narrow jobs that keep coming hold a wide one up for ever: n one-GPU jobs (release k, length 2)
and many short two-GPU jobs on 2 GPUs, a ratio that grows with n"""
_ALL_OF_THEM = """

**Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by ``predictor``
(`optsched.policies.predictors`).

**Guarantee** none. **Counterexample** {}. **Complexity** O(log n) an event and a placement a kind of jobs.
**Reference** a baseline of the A-SRPT study (Luo, Liu, Lee, Shroff, INFOCOM 2025); its exact definition is this
project's own.
"""


def _predicted(name: str, *, work_conserving: bool) -> Callable[[Callable[[Foreseen], Any]], Any]:
    """Decorator: the ``key`` of a `PredictedQueue` becomes the policy ``name``."""

    def registered(key: Callable[[Foreseen], Any]) -> Any:
        members = {
            "name": name,
            "work_conserving": work_conserving,
            "key": staticmethod(key),
            "__doc__": f"{key.__doc__}{_ALL_OF_THEM.format(_PASSES if work_conserving else _BLOCKS)}",
            "__module__": __name__,
        }
        return POLICIES.register(name)(type(key.__name__, (PredictedQueue,), members))

    return registered


@_predicted("spjf", work_conserving=False)
def spjf(foreseen: Foreseen) -> Any:
    """Shortest predicted job first: by predicted duration n^_j alpha_min, the head blocks."""
    return foreseen.seconds


@_predicted("spwf", work_conserving=False)
def spwf(foreseen: Foreseen) -> Any:
    """Smallest predicted workload first: by predicted workload g_j n^_j alpha_min, the head blocks."""
    return foreseen.gpus * foreseen.seconds


@_predicted("wcs-duration", work_conserving=True)
def wcs_duration(foreseen: Foreseen) -> Any:
    """Work-conserving, shortest predicted duration first: by n^_j alpha_min, passing over jobs that do not fit."""
    return foreseen.seconds


@_predicted("wcs-workload", work_conserving=True)
def wcs_workload(foreseen: Foreseen) -> Any:
    """Work-conserving, smallest predicted workload first: by g_j n^_j alpha_min, passing over jobs that do not fit."""
    return foreseen.gpus * foreseen.seconds


@_predicted("wcs-subtime", work_conserving=True)
def wcs_subtime(foreseen: Foreseen) -> Any:
    """Work-conserving, first submitted first: FIFO that passes over jobs that do not fit."""
    return foreseen.arrival
