"""Queues in an order that follows from predictions: the baselines of A-SRPT, a row each."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.policies import POLICIES
from optsched.policies.predictors import predictor
from optsched.policies.ties import leading, leading_of
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Order, Policy, Start, View
from optsched.simulation.predictor import Predictor


@dataclass
class PredictedQueue(Policy):
    """Jobs wait in the order of ``key``, computed at their arrival; the head starts as soon as it fits.

    ``key`` is a function of n^_j alpha_min_j seconds, g_j and r_j (numbers, or arrays of all jobs); ties, up to
    rounding, go by index. ``work_conserving``: jobs that do not fit are passed over; otherwise the head blocks. Not
    preemptive. Jobs of one kind fit or do not fit together, so each kind has its own heap. **Complexity** O(log n) an
    event and a placement a kind.

    Parameters
    ----------
    predictor
        Predictor of lengths, ``NAME[/key=value]...``.
    """

    predictor: str = "perfect"

    knowledge = Knowledge.PREDICTED
    default_placement = "heavy-edge"
    work_conserving: ClassVar[bool]
    key: ClassVar[Any]

    def __post_init__(self) -> None:
        predictor(self.predictor)

    def make_predictor(self) -> Predictor:
        """Return the predictor of a run."""
        return predictor(self.predictor)

    def accelerator(self, jobs: KnownJobs) -> Order:
        """Return the same queue as an order.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        key = self.key(jobs.predicted * jobs.pace_range[0], jobs.gpus, jobs.arrival)
        return Order(key=leading(key), skip=self.work_conserving)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._heaps: dict[int, list[tuple[float, int]]] = {}

    def decide(self, view: View) -> Iterator[Decision]:
        """Queue the jobs that have arrived; start the jobs that fit in the order of the queue.

        Parameters
        ----------
        view
            State of the run.
        """
        for j in view.arrived:
            key = float(self.key(view.predicted(j) * view.pace_range(j)[0], view.gpus(j), view.arrival(j)))
            heapq.heappush(self._heaps.setdefault(view.kind(j), []), (leading_of(key), j))
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
_PASSES = """narrow jobs that keep coming delay a wide one for ever: n one-GPU jobs (release k, length 2)
and many short two-GPU jobs on 2 GPUs, a ratio that grows with n"""
_COMMON = """{}

**Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by ``predictor``
(`optsched.policies.predictors`).

**Guarantee** none. **Counterexample** {}. **Complexity** O(log n) an event and a placement a kind of jobs.
**Reference** a baseline of the A-SRPT study (Luo, Liu, Lee, Shroff, INFOCOM 2025); its exact definition is this
project's own.

Parameters
----------
predictor
    Predictor of lengths, ``NAME[/key=value]...``.
"""


def _predicted(name: str, *, work_conserving: bool) -> Callable[[Callable[[Any, Any, Any], Any]], Any]:
    """Return a decorator that turns the ``key`` of a `PredictedQueue` into the policy ``name``."""

    def registered(key: Callable[[Any, Any, Any], Any]) -> Any:
        members = {
            "name": name,
            "work_conserving": work_conserving,
            "key": staticmethod(key),
            "__doc__": _COMMON.format(str(key.__doc__).partition("\n")[0], _PASSES if work_conserving else _BLOCKS),
            "__module__": __name__,
        }
        return POLICIES.register(name)(type(key.__name__, (PredictedQueue,), members))

    return registered


@_predicted("spjf", work_conserving=False)
def spjf(seconds: Any, gpus: Any, arrival: Any) -> Any:
    """Shortest predicted job first: by predicted duration n^_j alpha_min; the head blocks.

    Parameters
    ----------
    seconds
        Predicted durations.
    gpus
        Sizes of gangs.
    arrival
        Release dates, in seconds.
    """
    return seconds


@_predicted("spwf", work_conserving=False)
def spwf(seconds: Any, gpus: Any, arrival: Any) -> Any:
    """Smallest predicted workload first: by predicted workload g_j n^_j alpha_min; the head blocks.

    Parameters
    ----------
    seconds
        Predicted durations.
    gpus
        Sizes of gangs.
    arrival
        Release dates, in seconds.
    """
    return gpus * seconds


@_predicted("wcs-duration", work_conserving=True)
def wcs_duration(seconds: Any, gpus: Any, arrival: Any) -> Any:
    """Work-conserving, shortest predicted duration first: by n^_j alpha_min; jobs that do not fit are passed over.

    Parameters
    ----------
    seconds
        Predicted durations.
    gpus
        Sizes of gangs.
    arrival
        Release dates, in seconds.
    """
    return seconds


@_predicted("wcs-workload", work_conserving=True)
def wcs_workload(seconds: Any, gpus: Any, arrival: Any) -> Any:
    """Work-conserving, smallest predicted workload first: by g_j n^_j alpha_min; jobs that do not fit are passed over.

    Parameters
    ----------
    seconds
        Predicted durations.
    gpus
        Sizes of gangs.
    arrival
        Release dates, in seconds.
    """
    return gpus * seconds


@_predicted("wcs-subtime", work_conserving=True)
def wcs_subtime(seconds: Any, gpus: Any, arrival: Any) -> Any:
    """Work-conserving, first submitted first: FIFO that passes over jobs that do not fit.

    Parameters
    ----------
    seconds
        Predicted durations.
    gpus
        Sizes of gangs.
    arrival
        Release dates, in seconds.
    """
    return arrival
