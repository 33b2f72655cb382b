"""`EngineView`: the engine's implementation of the `View` that a policy in plain Python sees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.neighbourhood import Neighbourhood
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Ended, EndedCopies, Knowledge, View
from optsched.simulation.records import FREE, FUTURE, RUNNING, SIZE
from optsched.speeds.duration import paces
from optsched.speeds.goodput_rates import Goodputs
from optsched.speeds.type_speeds import GroupRates, TypeSpeeds, type_speeds


@dataclass(slots=True)
class News:
    """The news for a policy that is asked: arrivals and completions since it was last asked.

    Attributes
    ----------
    arrived
        Jobs that have arrived, in order of (arrival, index).
    finished
        Jobs that have completed.
    heard
        Number of segments in the log when the policy was last asked.
    """

    arrived: list[int] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    heard: int = 0  # segments


class EngineView(View):
    """A `View` of the engine's state.

    It reads the arrays of the state themselves, so that it is current between two decisions, too. `View` describes its
    methods.

    Parameters
    ----------
    engine
        Compiled functions of the engine, with the state of the run.
    placement
        The rule that chooses GPUs.
    instance
        Jobs and a cluster.
    knowledge
        What the policy may ask.
    news
        What the engine says when it asks the policy; the engine changes it.
    predicted
        Predictions by job, f64[n]; None if the policy has no predictor.
    beside
        The jobs on every GPU if jobs share GPUs, else None.
    knows_rates
        Whether the policy may ask for rates of jobs where they have not run.
    """

    def __init__(
        self,
        engine: EntryPoints,
        placement: Placement,
        instance: Instance,
        knowledge: Knowledge,
        news: News,
        predicted: Floats | None = None,
        beside: Neighbourhood | None = None,
        *,
        knows_rates: bool = True,
    ) -> None:
        state = engine.state
        self._engine, self._jobs, self._executions = engine, state.jobs, state.executions
        self._engine_record, self._status = state.engine[0], state.jobs["status"]
        self._now, self._free = state.engine["now"], state.engine["free"]
        self._placement, self._instance, self._knowledge, self._news = placement, instance, knowledge, news
        self._predicted, self._beside, self._knows_rates = predicted, beside, knows_rates

    @property
    def now(self) -> float:
        return float(self._now[0])

    @property
    def epoch(self) -> float:
        return self._instance.zero

    @property
    def waiting(self) -> list[int]:
        return self._engine.lists.waiting

    @property
    def running(self) -> list[int]:
        return self._engine.lists.running

    @property
    def free_gpus(self) -> int:
        return int(self._free[0])

    @property
    def arrived(self) -> list[int]:
        return self._news.arrived

    @property
    def finished(self) -> list[int]:
        return self._news.finished

    @property
    def cluster_gpus(self) -> int:
        return self._instance.cluster.gpus

    @property
    def active(self) -> Ints:
        return self._engine.lists.active

    @property
    def left(self) -> Floats:
        return self.left_of(np.arange(self._instance.n))

    def left_of(self, jobs: Ints) -> Floats:
        """Return the units of work that the given jobs have left, f64[jobs].

        Parameters
        ----------
        jobs
            Indices of jobs, each at most once, i64[].
        """
        self._reveals("remaining work")
        return self._engine.work_left(jobs)

    def done(self, jobs: Ints) -> Floats:
        """Return the units of work that the given jobs have done, f64[jobs]; every policy may observe them.

        Parameters
        ----------
        jobs
            Indices of jobs, each at most once, i64[].
        """
        return self._instance.work[jobs] - self._engine.work_left(jobs)

    @property
    def free(self) -> Ints:
        return self._engine.state.pools[FREE].copy()

    @cached_property
    def speeds(self) -> TypeSpeeds:
        if not self._knows_rates:
            raise KnowledgeError("a policy that does not know rates asked how fast jobs run by GPU type")
        return type_speeds(self._instance)

    @cached_property
    def _users(self) -> list[str | None]:
        return self._instance.table["user"].to_list()

    @property
    def node_kind(self) -> Ints:
        return self._instance.cluster.node_kind

    def eligible(self, job: int) -> Bools:
        """Return for every node whether ``job`` may use its GPUs, bool[N].

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return self._instance.eligible(self._arrived(job))

    def held(self, job: int) -> tuple[tuple[int, int], ...]:
        """Return (node, GPUs there) for every node that a job holds in all its copies; () while it does not run.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        s = self._engine.state
        x = int(s.jobs["execution"][self._arrived(job)])
        if x < 0:
            return ()
        if s.executions["other"][x] >= 0:
            return tuple(place for copy in self._copies(job) for place in self._on(copy))
        if self._beside is not None:
            nodes, counts = np.unique([node for node, _ in self._beside.held(s, job)], return_counts=True)
            return tuple(zip(nodes.tolist(), counts.tolist(), strict=True))
        return self._on(x)

    def _on(self, x: int) -> tuple[tuple[int, int], ...]:
        s, at = self._engine.state, x * int(self._engine_record.width)
        return tuple(s.parts[at : at + s.executions["entries"][x]].tolist())

    def _copies(self, job: int) -> Iterator[int]:
        x = int(self._jobs["execution"][job])
        while x >= 0:
            yield x
            x = int(self._executions["other"][x])

    def runs(self, jobs: Ints) -> Bools:
        """Return whether each of the given jobs runs now, bool[jobs].

        Parameters
        ----------
        jobs
            Indices of jobs that have arrived, i64[].
        """
        return np.asarray(self._status[jobs] == RUNNING)

    def starts(self, job: int) -> int:
        """Return the number of starts of a job so far.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return int(self._jobs["ran"][self._arrived(job)])

    @property
    def ended(self) -> list[Ended]:
        s = self._engine.state
        new = s.segments[self._news.heard : self._engine_record.segments]
        if not new.size:
            return []
        seconds = np.maximum(new["end"] - new["start"] - self._engine_record.first_start, 0.0).tolist()
        begin = int(new["first"][0])
        parts = s.parts[begin : self._engine_record.logged].tolist()
        ends = (new["first"] + new["entries"] - begin).tolist()
        rows = zip(
            new["job"].tolist(), (new["first"] - begin).tolist(), ends, new["work"].tolist(), seconds, strict=True
        )
        return [Ended(job, tuple(parts[first:end]), work, held) for job, first, end, work, held in rows]

    def ended_from(self, first: int) -> EndedCopies:
        """Return the executions that have ended in this run, without the first ones, as arrays.

        Parameters
        ----------
        first
            Number of executions that are left out, from the beginning of the run.
        """
        s = self._engine.state
        new = s.segments[first : self._engine_record.segments]
        seconds = np.maximum(new["end"] - new["start"] - self._engine_record.first_start, 0.0)
        columns = (new["job"], s.parts["pool"][new["first"]], new["entries"], new["work"])
        job, node, nodes, work = (np.ascontiguousarray(column) for column in columns)
        return EndedCopies(job, node, nodes, work, seconds)

    @cached_property
    def groups(self) -> GroupRates:
        return GroupRates(self._instance, known=self._knows_rates)

    @cached_property
    def goodputs(self) -> Goodputs:
        return Goodputs(self._instance, resized=self._beside is None)

    def fits(self, job: int) -> bool:
        """Return whether the placement would find a place for a job now.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return self.offer(job) is not None

    def kind(self, job: int) -> int:
        """Return the kind of a job; jobs of one kind (gang size, eligible nodes) fit or do not fit together.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return int(self._instance.job_class[self._arrived(job)])

    def offer(self, job: int) -> float | None:
        """Return the seconds that a unit of a job's work would take on the GPUs that the placement would give it now.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return None if self._instance.gpus[self._arrived(job)] > self._free[0] else self._pace_on(job, FREE)

    def pace_on_idle(self, job: int) -> float:
        """Return the seconds that a unit of work takes on the GPUs that the placement chooses in an idle cluster.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        pace = self._pace_on(self._arrived(job), SIZE)
        return math.inf if pace is None else pace

    def _pace_on(self, job: int, row: int) -> float | None:
        random = self._engine.context.random
        before = random[0]  # a question must not change what a random placement does next
        entries = self._engine.place(self._placement.place, job, row)
        random[0] = before
        return self._engine.pace(job) if entries > 0 else None

    def pace_range(self, job: int) -> tuple[float, float]:
        """Return the least and greatest seconds that a unit of work can take on this cluster: alpha_min and alpha_max.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        fastest, slowest = self._paces
        return float(fastest[self._arrived(job)]), float(slowest[job])

    @cached_property
    def _paces(self) -> tuple[Floats, Floats]:
        return paces(self._instance)

    def idle(self, job: int) -> list[tuple[int, int]]:
        """Return the idle GPUs that a job may use, as (node, index).

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return self._shared.fitting(self._arrived(job), 0, 0)

    def open(self, job: int, option: int = 0) -> list[tuple[int, int]]:
        """Return the GPUs with one resident which a job may share and on which its sub-batch fits, as (node, index).

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch.
        """
        return self._shared.fitting(self._arrived(job), option, 1)

    def residents(self, gpu: tuple[int, int]) -> tuple[int, ...]:
        """Return the jobs on a GPU: none, one or two.

        Parameters
        ----------
        gpu
            The GPU as (node, index).
        """
        return self._shared.residents(gpu)

    def options(self, job: int) -> int:
        """Return the number of sub-batches that a job may choose from; the first one is the largest.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return int(self._shared.beside.sharers[self._arrived(job)].options)

    def slowdown(self, job: int, other: int) -> float:
        """Return xi, the slow-down of a job that shares a GPU with another job; inf if the two never share.

        Parameters
        ----------
        job
            Index of the job whose slow-down is asked.
        other
            Index of the job that shares its GPU.
        """
        return self._shared.slowdown(self._arrived(job), self._arrived(other))

    def alone(self, job: int, option: int = 0) -> float:
        """Return the seconds that a job takes alone with a sub-batch; for a running job, the seconds that are left.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch; a running job keeps the one it has.
        """
        self._reveals("seconds alone")
        x = int(self._jobs[self._arrived(job)].execution)
        if x >= 0:
            run = self._executions[x]
            done = max(0.0, self.now - run.paid) / (run.pace * run.slow)
            return float(max(run.left - done, 0.0) * run.pace)
        return float(self._shared.beside.sharers[job].alone) * self.stretch(job, option)

    def stretch(self, job: int, option: int) -> float:
        """Return the ratio, >= 1, of a job's time alone with a sub-batch to its best time with the first one.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        option
            Index of the job's sub-batch.
        """
        beside = self._shared.beside
        return float(beside.stretch[self._arrived(job), option, beside.sharers[job].spans])

    @property
    def _shared(self) -> Neighbourhood:
        if self._beside is None:
            raise KnowledgeError("a policy asked who shares GPUs, and does not say that it uses sharing")
        return self._beside

    def predicted(self, job: int) -> float:
        """Return the length that was predicted at a job's arrival: iterations of a job with a profile, else seconds.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        if self._predicted is None:
            raise KnowledgeError("a policy without a predictor asked for a prediction")
        return float(self._predicted[self._arrived(job)])

    def arrival(self, job: int) -> float:
        """Return the release date r_j in seconds since the first arrival.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return float(self._instance.arrival[self._arrived(job)])

    def gpus(self, job: int) -> int:
        """Return g_j, the number of GPUs in the gang of a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return int(self._instance.gpus[self._arrived(job)])

    def weight(self, job: int) -> float:
        """Return the weight w_j of a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return float(self._instance.weight[self._arrived(job)])

    def restart(self, job: int, usual: float) -> float:
        """Return the seconds that it costs to resume a job.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        usual
            Seconds that the policy charges a job of which the instance says nothing.
        """
        seconds = float(self._instance.restart[self._arrived(job)])
        return usual if math.isnan(seconds) else seconds

    def due(self, job: int) -> float:
        """Return the due date of a job in seconds since the first arrival; inf if it has none.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return float(self._instance.due[self._arrived(job)])

    def walltime(self, job: int) -> float:
        """Return the limit in seconds that the user of a job stated at its submission; inf if there is none.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        if self._knowledge is Knowledge.NON_CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for the walltime of a job")
        return float(self._instance.walltime[self._arrived(job)])

    def user(self, job: int) -> str | None:
        """Return the user of a job; None if the instance does not say.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        return self._users[self._arrived(job)]

    def attained(self, job: int) -> float:
        """Return the GPU-seconds that a job has held so far.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        record = self._jobs[self._arrived(job)]
        held = float(record.attained)
        return (
            held + float(record.gpus * record.copies * (self.now - record.mark)) if record.status == RUNNING else held
        )

    def duration(self, job: int) -> float:
        """Return the seconds that a job takes alone at full speed.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        self._reveals("duration")
        return float(self._instance.work[self._arrived(job)]) * self.pace_range(job)[0]

    def remaining(self, job: int) -> float:
        """Return the units of work that a job has left: iterations with a profile, else seconds.

        Parameters
        ----------
        job
            Index of a job that has arrived.
        """
        self._reveals("remaining work")
        record = self._jobs[self._arrived(job)]
        if record.status != RUNNING:
            return float(record.left)
        if record.copies > 1:
            return float(self.left[job])
        run = self._executions[record.execution]
        rest = float(run.left - max(0.0, self.now - float(run.paid)) / (run.pace * run.slow))
        return rest if run.target == record.left else float(record.left - run.target + rest)

    def _reveals(self, what: str) -> None:
        if self._knowledge is not Knowledge.CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for the {what} of a job")

    def _arrived(self, job: int) -> int:
        if not 0 <= job < self._instance.n or self._status[job] == FUTURE:
            raise KnowledgeError(f"there is no job {job} at {self.now + self.epoch:.12g} s: not arrived yet, or never")
        return job
