"""A queue whose order follows from predictions: what the baselines of A-SRPT have in common."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from optsched.policies.predictors import predictor
from optsched.simulation.policy import Decision, Knowledge, Predictor, Start, View


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
    def key(self, job: int, view: View) -> float:
        """Smaller is served first; ties by index."""

    def make_predictor(self) -> Predictor:
        """The predictor of a run."""
        return predictor(self.predictor)

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._heaps = {}

    def decide(self, view: View) -> Iterator[Decision]:
        """Queue what arrived, start what fits in the order of the queue."""
        for j in view.arrived:
            heapq.heappush(self._heaps.setdefault(view.kind(j), []), (self.key(j, view), j))
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


def predicted_seconds(job: int, view: View) -> float:
    """n^_j alpha_min_j: what the job would take at its best placement if the prediction were true."""
    return view.predicted(job) * view.pace_range(job)[0]
