"""`Order`: a queue order as arrays of keys; `KnownJobs`: the facts about jobs from which a policy computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.knowledge import Knowledge
from optsched.speeds.duration import paces
from optsched.speeds.type_speeds import TypeSpeeds, type_speeds


@dataclass(frozen=True)
class Order:
    """A queue order: the engine serves the smallest (level, key, index) first.

    A job enters at level 0 and drops a level each time its attained service reaches the next of ``thresholds``.

    Attributes
    ----------
    key
        Key of every job at its arrival, f64[n].
    slope
        Growth of every job's key per second of work that it does, f64[n] (srtf: -1).
    preemptive
        Whether a more important job may take the GPUs of a running one.
    skip
        Whether jobs behind one that does not fit may start before it.
    thresholds
        Service at which a job drops a level, in GPU-seconds (seconds with ``by_time``), increasing.
    starvation
        If positive, a job that has waited this many times as long as it ran returns to level 0.
    round
        Seconds of a round; decisions are taken only at the end of one. 0: no rounds.
    restart
        Seconds of overhead whenever a job resumes.
    first
        Whether a job pays ``restart`` at its first start, too.
    by_time
        Whether service is the time for which a job held its gang, whatever the size of the gang.
    requeue
        Whether a job that changes its level goes behind the jobs of that level: its key becomes the time (the end of
        the round with ``round``). Only for keys that are times and have no slope.
    rule
        For policies that use sharing: a compiled choice (`optsched.simulation.ordered.sharing_rule`) of where each
        waiting job starts and which jobs it shares GPUs with. The engine asks it about all waiting jobs in order;
        without ``skip`` the first job that has to wait blocks the others. Of the other attributes only ``key`` and
        ``round`` count then.
    numbers
        Parameters of ``rule``.
    plan
        Reservations for waiting jobs (`optsched.simulation.reservation_plan.ReservationPlan`). Jobs are considered in
        order of ``key``; of the other attributes none counts then.
    loop
        For a policy with a compiled loop of its own: a function of the context of a run that returns the loop
        ``run(place, state, context, plan, events)`` (`optsched.policies.a_srpt_turns`). ``plan`` is then its state.
    step
        For such a loop that leaves some work to Python: it returns `optsched.simulation.records.ASKED`, and goes on with
        the plan that ``step(state, plan)`` returns.
    """

    key: Floats
    slope: Floats | None = None
    preemptive: bool = False
    skip: bool = True
    thresholds: tuple[float, ...] = ()
    starvation: float = 0.0
    round: float = 0.0
    restart: float = 0.0
    first: bool = False
    by_time: bool = False
    requeue: bool = False
    rule: Any = None
    numbers: tuple[float, ...] = ()
    plan: Any = None
    loop: Any = None
    step: Callable[[Any, Any], Any] | None = None


class KnownJobs:
    """Facts about all jobs, as arrays, for a queue order or for decisions in compiled form.

    It reveals what ``knowledge`` allows at a job's arrival. Times are seconds since the first arrival. An order may use
    a job's entries only for that job: the engine serves a job after it has arrived.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    knowledge
        What the policy may ask.
    seconds
        Seconds alone of every job, f64[n]; None: durations of the instance.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, seconds: Floats | None = None) -> None:
        self._knowledge, self._instance = Knowledge(knowledge), instance
        self._predicted: Floats | None = None
        self._seconds = instance.duration if seconds is None else seconds
        self.n = instance.n
        self.arrival, self.gpus = instance.arrival, instance.gpus
        self.weight, self.due = instance.weight, instance.due
        self.restart = instance.restart  # seconds that it costs to resume a job, nan where a job does not say

    @property
    def duration(self) -> Floats:
        """Seconds e_j of every job alone at full speed, f64[n]; `KnowledgeError` unless the policy is clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._seconds
        raise KnowledgeError(f"a {self._knowledge} policy asked for durations")

    @property
    def walltime(self) -> Floats:
        """Limits of the users in seconds, f64[n], inf where none; `KnowledgeError` for a non-clairvoyant policy."""
        if self._knowledge is Knowledge.NON_CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for walltimes")
        return self._instance.walltime

    @property
    def predicted(self) -> Floats:
        """Predictions for all jobs, f64[n], of a predictor that does not learn; `KnowledgeError` if there is none."""
        if self._predicted is None:
            raise KnowledgeError("a policy without such a predictor asked for predictions")
        return self._predicted

    @predicted.setter
    def predicted(self, predicted: Floats | None) -> None:
        self._predicted = predicted

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the jobs."""
        return self._instance.ids

    @property
    def cluster_gpus(self) -> int:
        """G, the GPUs of the whole cluster."""
        return self._instance.cluster.gpus

    @property
    def node_count(self) -> int:
        """Number of nodes of the cluster."""
        return self._instance.cluster.node_count

    @property
    def kind(self) -> Ints:
        """The kind of every job, i64[n]; jobs of one kind (gang size, eligible nodes) fit or do not fit together."""
        return self._instance.job_class

    @property
    def eligible(self) -> Bools:
        """For every kind of jobs and every node, True if the jobs may use its GPUs, bool[kinds, N]."""
        return self._instance.class_eligible

    @property
    def work(self) -> Floats:
        """Units of work of every job, f64[n]; `KnowledgeError` unless the policy is clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._instance.work
        raise KnowledgeError(f"a {self._knowledge} policy asked for work")

    @cached_property
    def speeds(self) -> TypeSpeeds:
        """Rates of jobs by GPU type, and the nodes' types and sizes."""
        return type_speeds(self._instance)

    @property
    def node_kind(self) -> Ints:
        """The kind of every node, i64[N]; nodes of one kind (GPU type, memory of a GPU) suit the same jobs."""
        return self._instance.cluster.node_kind

    @property
    def pace_range(self) -> tuple[Floats, Floats]:
        """Least and greatest seconds that a unit of work can take on this cluster, f64[n] each."""
        return paces(self._instance)
