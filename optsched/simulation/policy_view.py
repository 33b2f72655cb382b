"""The view of a policy: the part of the engine's state that it may read, and the executions that ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.speeds.goodput_rates import Goodputs
from optsched.speeds.type_speeds import GroupRates, TypeSpeeds


@dataclass(frozen=True, slots=True)
class Ended:
    """An execution that ended, by itself or because it was stopped.

    Attributes
    ----------
    job
        Index of the job.
    on
        (node, GPUs there) for every node that it held.
    work
        Units of work that it did.
    seconds
        Time that it ran, without overhead.
    """

    job: int
    on: Places
    work: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class EndedCopies:
    """Executions that ended, as arrays: the same as a list of `Ended`, in less time.

    Attributes
    ----------
    job
        Index of the job, i64[k].
    node
        First node that it held, i64[k].
    nodes
        Number of nodes that it held, i64[k].
    work
        Units of work that it did, f64[k].
    seconds
        Time that it ran, without overhead, f64[k].
    """

    job: Ints
    node: Ints
    nodes: Ints
    work: Floats
    seconds: Floats

    def chosen(self, rows: Bools) -> EndedCopies:
        """Return some of the executions.

        Parameters
        ----------
        rows
            Which of them, bool[k].
        """
        return EndedCopies(self.job[rows], self.node[rows], self.nodes[rows], self.work[rows], self.seconds[rows])

    def followed_by(self, others: EndedCopies) -> EndedCopies:
        """Return these executions and then others.

        Parameters
        ----------
        others
            The others.
        """
        columns = ("job", "node", "nodes", "work", "seconds")
        return EndedCopies(*(np.concatenate([getattr(self, name), getattr(others, name)]) for name in columns))


class View(Protocol):
    """The part of the engine's state that a policy sees at one instant.

    Jobs are indices; times are in seconds since the first arrival of the log. A view is always current: it reads the
    engine's state, also between two decisions.

    ``remaining``, ``left``, ``left_of``, ``duration`` and ``alone`` raise `KnowledgeError` for a policy that is not
    clairvoyant, ``predicted`` for a policy without a predictor, ``walltime`` for a policy that declares to be
    non-clairvoyant, and every method for a job that has not arrived. A
    policy that keeps its own queue reads ``arrived`` and ``finished``. The engine keeps ``waiting`` and ``running`` up
    to date once a policy has asked for them, and copies them at every request.
    """

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times of the view."""

    @property
    def epoch(self) -> float:
        """The reading of the log's clock at time 0, in seconds: ``now + epoch`` is a time on that clock."""

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that are not running and not finished, in order of (arrival, index)."""

    @property
    def running(self) -> list[int]:
        """Running jobs in order of (arrival, index)."""

    @property
    def free_gpus(self) -> int:
        """GPUs that no job holds."""

    @property
    def arrived(self) -> list[int]:
        """Jobs that arrived since the policy was last asked, in order of (arrival, index)."""

    @property
    def finished(self) -> list[int]:
        """Jobs that completed since the policy was last asked."""

    @property
    def cluster_gpus(self) -> int:
        """G, the GPUs of the whole cluster."""

    @property
    def active(self) -> Ints:
        """Arrived jobs that are not finished, in order of (arrival, index), i64[]."""

    @property
    def left(self) -> Floats:
        """Units of work that every job has left at this instant, f64[n]; use the entries of active jobs."""

    def left_of(self, jobs: Ints) -> Floats:
        """Return the units of work that the given jobs have left, f64[jobs].

        Parameters
        ----------
        jobs
            Indices of jobs, each at most once, i64[].
        """

    def done(self, jobs: Ints) -> Floats:
        """Return the units of work that the given jobs have done, f64[jobs]; every policy may observe them.

        Parameters
        ----------
        jobs
            Indices of jobs, each at most once, i64[].
        """

    @property
    def free(self) -> Ints:
        """A copy of the number of free GPUs of every node, i64[N], for policies that use nodes."""

    @property
    def speeds(self) -> TypeSpeeds:
        """Rates of jobs by GPU type (use the entries of jobs that have arrived), and the nodes' types and sizes."""

    @property
    def node_kind(self) -> Ints:
        """The kind of every node, i64[N]; nodes of one kind (GPU type, memory of a GPU) suit the same jobs."""

    def eligible(self, job: int) -> Bools:
        """Return for every node whether ``job`` may use its GPUs, bool[N].

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def held(self, job: int) -> tuple[tuple[int, int], ...]:
        """Return (node, GPUs there) for every node that a job holds in all its copies; () while it does not run.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def runs(self, jobs: Ints) -> Bools:
        """Return whether each of the given jobs runs now, bool[jobs].

        Parameters
        ----------
        jobs
            Indices of jobs that have arrived, i64[].
        """

    def starts(self, job: int) -> int:
        """Return the number of starts of a job so far.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    @property
    def ended(self) -> list[Ended]:
        """Executions that ended since the policy was last asked, also by its decisions now.

        For policies that use copies.
        """

    def ended_from(self, first: int) -> EndedCopies:
        """Return the executions that have ended in this run, without the first ones, as arrays.

        For policies that use copies.

        Parameters
        ----------
        first
            Number of executions that are left out, from the beginning of the run.
        """

    @property
    def groups(self) -> GroupRates:
        """Rates of jobs on one node of every group of alike nodes, for policies that know rates."""

    @property
    def goodputs(self) -> Goodputs:
        """Rates of jobs on any number of GPUs (`optsched.speeds.goodput_rates`)."""

    def fits(self, job: int) -> bool:
        """Return whether the placement would find a place for a job now.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def kind(self, job: int) -> int:
        """Return the kind of a job; jobs of one kind (gang size, eligible nodes) fit or do not fit together.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def offer(self, job: int) -> float | None:
        """Return the seconds that a unit of a job's work would take on the GPUs that the placement would give it now.

        Parameters
        ----------
        job
            Index of a job that has arrived.

        Returns
        -------
        float | None
            1 for a job with a duration; the iteration time on those GPUs for a job with a profile; None if the job does
            not fit.
        """

    def pace_on_idle(self, job: int) -> float:
        """Return the seconds that a unit of work takes on the GPUs that the placement chooses in an idle cluster.

        Parameters
        ----------
        job
            Index of a job that has arrived.

        Returns
        -------
        float
            Seconds a unit of work, as from `offer`; inf if the placement finds no GPUs.
        """

    def pace_range(self, job: int) -> tuple[float, float]:
        """Return the least and greatest seconds that a unit of work can take on this cluster: alpha_min and alpha_max.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def idle(self, job: int) -> list[tuple[int, int]]:
        """Return the idle GPUs that a job may use, as (node, index).

        This method and those up to `stretch` are for policies that share GPUs.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def open(self, job: int, option: int = 0) -> list[tuple[int, int]]:
        """Return the GPUs with one resident which a job may share and on which its sub-batch fits, as (node, index).

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch.
        """

    def residents(self, gpu: tuple[int, int]) -> tuple[int, ...]:
        """Return the jobs on a GPU: none, one or two.

        Parameters
        ----------
        gpu
            The GPU as (node, index).
        """

    def options(self, job: int) -> int:
        """Return the number of sub-batches that a job may choose from; the first one is the largest.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def slowdown(self, job: int, other: int) -> float:
        """Return xi, the slow-down of a job that shares a GPU with another job; inf if the two never share.

        Parameters
        ----------
        job
            Index of the job whose slow-down is asked.
        other
            Index of the job that shares its GPU.
        """

    def alone(self, job: int, option: int = 0) -> float:
        """Return the seconds that a job takes alone with a sub-batch; for a running job, the seconds that are left.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch; a running job keeps the one it has.

        Raises
        ------
        KnowledgeError
            The policy is not clairvoyant.
        """

    def stretch(self, job: int, option: int) -> float:
        """Return the ratio, >= 1, of a job's time alone with a sub-batch to its best time with the first one.

        The ratio is the cost of gradient accumulation in sub-steps.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch.
        """

    def predicted(self, job: int) -> float:
        """Return the length that was predicted at a job's arrival: iterations of a job with a profile, else seconds.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def arrival(self, job: int) -> float:
        """Return the release date r_j in seconds since the first arrival.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def gpus(self, job: int) -> int:
        """Return g_j, the number of GPUs in the gang of a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def weight(self, job: int) -> float:
        """Return the weight w_j of a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def restart(self, job: int, usual: float) -> float:
        """Return the seconds that it costs to resume a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        usual
            Seconds that the policy charges a job of which the instance says nothing.
        """

    def due(self, job: int) -> float:
        """Return the due date of a job in seconds since the first arrival; inf if it has none.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def walltime(self, job: int) -> float:
        """Return the limit in seconds that the user of a job stated at its submission; inf if there is none.

        Parameters
        ----------
        job
            Index of a job that has arrived.

        Raises
        ------
        KnowledgeError
            The policy declares to be non-clairvoyant.
        """

    def user(self, job: int) -> str | None:
        """Return the user of a job; None if the instance does not say.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def attained(self, job: int) -> float:
        """Return the GPU-seconds that a job has held so far.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """

    def duration(self, job: int) -> float:
        """Return the seconds that a job takes alone at full speed.

        Parameters
        ----------
        job
            Index of a job that has arrived.

        Raises
        ------
        KnowledgeError
            The policy is not clairvoyant.
        """

    def remaining(self, job: int) -> float:
        """Return the units of work that a job has left: iterations with a profile, else seconds.

        Parameters
        ----------
        job
            Index of a job that has arrived.

        Raises
        ------
        KnowledgeError
            The policy is not clairvoyant.
        """
