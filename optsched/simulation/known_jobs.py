"""`KnownJobs`: what is revealed of jobs to a queue order, or to decisions in compiled form."""

from __future__ import annotations

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.knowledge import Knowledge
from optsched.speeds.duration import paces


class KnownJobs:
    """The jobs' numbers as far as ``knowledge`` reveals them at arrival: arrays over all jobs.

    Times are seconds since the first arrival.

    An order may use a job's entries only for that job: the engine serves a job after it has arrived.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, seconds: Floats | None = None) -> None:
        self._knowledge, self._instance = Knowledge(knowledge), instance
        self._predicted: Floats | None = None
        self._seconds = instance.duration if seconds is None else seconds
        self.n = instance.n
        self.ids = instance.ids
        self.arrival, self.gpus, self.weight, self.due = (
            instance.arrival,
            instance.gpus,
            instance.weight,
            instance.due,
        )

    @property
    def duration(self) -> Floats:
        """Seconds alone at full speed, f64[n], e_j; `KnowledgeError` for a policy that is not clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._seconds
        raise KnowledgeError(f"a {self._knowledge} policy asked for durations")

    @property
    def predicted(self) -> Floats:
        """What a predictor that does not learn says of every job, f64[n]; `KnowledgeError` where there is none."""
        if self._predicted is None:
            raise KnowledgeError("a policy without such a predictor asked for predictions")
        return self._predicted

    @predicted.setter
    def predicted(self, predicted: Floats | None) -> None:
        self._predicted = predicted

    @property
    def cluster_gpus(self) -> int:
        """G."""
        return self._instance.cluster.gpus

    @property
    def kind(self) -> Ints:
        """Jobs of one kind (gang size, eligible nodes) fit or do not fit together, i64[n]."""
        return self._instance.job_class

    @property
    def pace_range(self) -> tuple[Floats, Floats]:
        """Least and greatest seconds that a unit of work can take on this cluster, f64[n] each."""
        return paces(self._instance)
