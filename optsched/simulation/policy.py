"""What an online algorithm is, what it may know, and what it may say.

A policy sees only what has been revealed to it. Two ways to write one:

* `OrderedPolicy`: a queue order. ``order(jobs)`` returns keys; the engine serves the smallest first, compiled.
* any object with ``name``, ``knowledge`` and ``decide(view)``: plain Python, asked once per event time; it yields
  `Start`, `Stop` and `Wake` decisions, each applied before the next is asked for, or `Moves`, many at once. What it sees
  is a `View` (`optsched.simulation.view`).

A policy that `optsched.policies.POLICIES` knows by name is written the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numba
import numpy as np

from optsched.compiled import njit, types
from optsched.errors import InputError, KnowledgeError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.view import Ended as Ended, Knowledge as Knowledge, View as View
from optsched.speeds.duration import paces
from optsched.speeds.speed_tables import tables_of

_NOBODY = np.zeros(0, dtype=np.int64)

# --- what it may know and do ------------------------------------------------------------------------------------------


class Use(StrEnum):
    """What a policy in plain Python may do beside starting, stopping and waking: its ``uses`` name it."""

    NODES = "nodes"  # say on which nodes a job runs
    SHARING = "sharing"  # say on which GPUs, perhaps beside another job
    WIDTHS = "widths"  # give a job another number of GPUs than it asks for
    COPIES = "copies"  # run a job in several copies at once
    ROUNDS = "rounds"  # be asked only every ``round`` seconds


PLACES = frozenset({Use.NODES, Use.SHARING, Use.WIDTHS, Use.COPIES})  # who uses one of these names its nodes itself


def uses_of(policy: object) -> frozenset[Use]:
    """What it says that it uses; `InputError` for what there is not, and for what no judge of schedules knows together."""
    said = getattr(policy, "uses", ())
    legal = ", ".join(Use)
    if isinstance(said, str) or not all(each in list(Use) for each in said):
        raise InputError("invalid", field=f"{type(policy).__name__}.uses", value=said, legal=f"some of {legal}")
    uses = frozenset(map(Use, said))
    apart = sorted(uses & {Use.SHARING, Use.WIDTHS, Use.COPIES})
    if len(apart) > 1:
        legal = "one of them: schedules with several are of no class that has bounds"
        raise InputError("not possible together", field=f"{type(policy).__name__}.uses", value=said, legal=legal)
    return uses


# --- what it may say --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Start (or resume) job ``job`` on the GPUs that the placement chooses, or on those that the policy names.

    ``on``: (node, GPUs there) for every node used, g_j GPUs in all; a policy that names nodes says so, as all that follows,
    in its ``uses``. ``gpus``: g_j GPUs by name, (node, index), each with at most one other job, and ``option``, which of
    the job's sub-batches it runs with there (sharing). Without either the placement chooses among idle GPUs.
    ``on`` may have another number of GPUs (widths). With ``work`` it is a copy, which does at most so many units of the
    job's work; others may run beside it on other nodes, and a `Stop` stops them all (copies).
    """

    job: int
    on: tuple[tuple[int, int], ...] | None = None
    gpus: Sequence[tuple[int, int]] | None = None
    option: int = 0
    work: float | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt the running job ``job``; its work so far is kept.

    ``at``: not now but at that time (seconds since the first arrival, later than now), unless it ends or is stopped before;
    the policy is not asked then. Another stop of the job takes the place of one that is planned.
    """

    job: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at ``time`` (seconds since the first arrival, later than now) even if nothing happens until then."""

    time: float


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many stops, then many starts, in arrays: the same as a list of them, in less time.

    ``stop`` i64[]: these jobs stop, all now, or at the times ``at`` f64[stop] (seconds since the first arrival, later than
    now). ``start`` i64[k]: these start; job ``start[i]`` on ``count[e]`` GPUs of ``node[e]``, first[i] <= e < first[i + 1],
    ``first`` i64[k + 1]. A policy that starts jobs so says that it uses nodes. Other types, shapes, or a move that is not
    possible are a `SimulationError`, which names it. O(jobs and entries).
    """

    stop: Ints = field(default_factory=lambda: _NOBODY)
    at: Floats | None = None
    start: Ints = field(default_factory=lambda: _NOBODY)
    first: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    node: Ints = field(default_factory=lambda: _NOBODY)
    count: Ints = field(default_factory=lambda: _NOBODY)

    def stops(self) -> list[Stop]:
        """One by one."""
        times = [None] * self.stop.size if self.at is None else self.at.tolist()
        return [Stop(job, at=time) for job, time in zip(self.stop.tolist(), times, strict=True)]

    def starts(self) -> list[Start]:
        """One by one."""
        on = list(zip(self.node.tolist(), self.count.tolist(), strict=True))
        ends = self.first.tolist()
        return [Start(job, on=tuple(on[ends[i] : ends[i + 1]])) for i, job in enumerate(self.start.tolist())]


Decision = Start | Stop | Wake | Moves


# --- what it is -------------------------------------------------------------------------------------------------------


@runtime_checkable
class Policy(Protocol):
    """An online algorithm in plain Python: a name, what it knows, and what it decides at an event time.

    A policy may have more. ``begin(view)`` is called once before a run; ``make_predictor()`` gives the `Predictor` of a
    run; ``notes()`` is called after it, and what it returns (names to arrays over all jobs) is kept as `Run.notes`, for
    audits (``noted_times`` names those that are times: the run puts them on the log's clock); ``default_placement`` names
    the placement where none is asked for; ``restart`` is the cost of resuming a job, ``first_start`` of its first start
    (a job of which the instance says what resuming costs pays that instead of either that is not 0).

    ``uses`` says what else it may do (`Use`, see `Start`): ``("sharing",)``, where the instance has interference;
    ``("copies",)``, at most ``copies`` of a job at once (0: one a node); ``("widths", "rounds")``: asked only at multiples
    of ``round`` seconds after the first arrival, while jobs run or have come. ``rigid = True``: one that resizes, and is
    made for jobs that keep their gang, too: suites and tests give it both. ``knows_rates = False``: it may not ask how
    fast jobs are where they have not run. ``form(instance)`` gives the policy that runs in its stead, with other ``uses``
    perhaps: which data an instance has may decide what is done, what is yet to come may not.

    ``accelerator(jobs)`` may give the same decisions as an `Order`, which runs compiled, or None; it is not asked where a
    predictor learns during the run.
    """

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may ask for."""

    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        """Decisions at ``view.now``, after all events of that time; each is applied before the next is asked for.

        A list of them is carried out at once, which is faster where many jobs move.
        """


@dataclass(frozen=True)
class Order:
    """A queue order: smaller (level, key, index) is served first.

    ``key`` f64[n] at arrival; it grows by ``slope[j]`` per second of work that job j does (srtf: -1). A job enters at
    level 0 and drops a level each time its attained service reaches the next of ``thresholds`` (GPU-seconds).
    ``starvation`` > 0: a job that has waited ``starvation`` times as long as it ran returns to level 0.
    ``restart``: seconds of overhead whenever a job resumes; with ``first`` also when it starts. ``by_time``: service is the
    time for which a job held its gang, whatever its size, and thresholds are seconds. ``requeue``: a job that changes its
    level goes behind the jobs that are there (its key becomes the time, with ``round`` that of the end of the round); only
    where the key is a time and has no slope.

    ``rule``: a compiled choice (`optsched.simulation.ordered.sharing_rule`), with its ``numbers``, of a policy that uses
    sharing: everybody who waits is asked about in order, where and beside whom he starts; without ``skip`` the first who has
    to wait blocks the others. Of the rest ``key`` and ``round`` count.
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


class OrderedPolicy(Protocol):
    """A policy that is a queue order; the engine runs it compiled."""

    @property
    def name(self) -> str:
        """Shown in reports, with its parameters."""

    @property
    def knowledge(self) -> Knowledge:
        """What ``order`` may ask for."""

    def order(self, jobs: KnownJobs) -> Order:
        """Keys and rules for these jobs."""


class KnownJobs:
    """What is revealed of jobs to a queue order, or to decisions in compiled form: arrays over all jobs.

    As far as ``knowledge`` reveals it at arrival; times are seconds since the first arrival. An order may use a job's
    entries only for that job: the engine serves a job after it has arrived.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, seconds: Floats | None = None) -> None:
        self._knowledge, self._instance = Knowledge(knowledge), instance
        self._predicted: Floats | None = None
        self._seconds = instance.duration if seconds is None else seconds
        self.n = instance.n
        self.arrival, self.gpus = instance.arrival, instance.gpus
        self.weight, self.due = instance.weight, instance.due

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
    def ids(self) -> tuple[str, ...]:
        """Names of the jobs."""
        return self._instance.ids

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


# --- who says how long jobs will run ----------------------------------------------------------------------------------


class JobFacts:
    """What is known of the jobs at their submission, for predictors: never how long they run.

    Arrays over all jobs; a predictor may use the entries of jobs that have arrived. ``length`` is revealed to oracles.
    """

    def __init__(self, instance: Instance, *, revealed: bool = False) -> None:
        self._instance = instance
        self.n = instance.n
        self.ids, self.arrival, self.gpus = instance.ids, instance.arrival, instance.gpus
        table = instance.table
        self.user, self.group, self.model, self.profile = (
            tuple(table[column].to_list()) for column in ("user", "group", "model", "profile")
        )
        self.gpu_types = tuple(table["gpu_types"].to_list())
        self.profiled: tuple[bool, ...] = tuple(instance.profiled.tolist())  # counted in iterations, not in seconds
        known = instance.profiles
        self.stages = tuple(len(known[name].stages) if name in known else 1 for name in self.profile)
        self._length = instance.work if revealed else None

    @cached_property
    def fastest(self) -> Floats:
        """Seconds that a unit of length takes where the job runs best, f64[n]: alpha_min of a profile, else 1."""
        return paces(self._instance)[0]

    @property
    def length(self) -> Floats:
        """True lengths, f64[n]: iterations of jobs with a profile, else seconds; `KnowledgeError` unless revealed."""
        if self._length is None:
            raise KnowledgeError("a predictor that is no oracle asked for the true lengths")
        return self._length


@runtime_checkable
class Predictor(Protocol):
    """Says how long a job will run, at its arrival: iterations of a job with a profile, else seconds alone.

    A predictor with ``oracle = True`` is given the true lengths (to be perfect, or wrong by a controlled amount). One with
    ``learns = False`` says the same of a job whenever it is asked, whatever has completed.
    """

    @property
    def name(self) -> str:
        """Shown in reports, with its parameters."""

    def begin(self, jobs: JobFacts) -> None:
        """Forget everything; these jobs will come."""

    def predict(self, job: int, now: float) -> float:
        """A length > 0; asked once, when the job arrives at ``now``."""

    def observe(self, job: int, now: float, length: float) -> None:
        """The job completed at ``now``; this was its length."""


# --- where its jobs go: a compiled function from a job and free GPUs to counts per node ---------------------------------

TABLES = numba.typeof(tables_of([], np.zeros(0, dtype=np.int64), None))
# place(job, gpus, free[P], size[P], eligible[P], random[1], tables, out_node[W], out_count[W]) -> entries, 0: no place
SIGNATURE = types.int64(
    types.int64,
    types.int64,
    types.int64[::1],
    types.int64[::1],
    types.boolean[::1],
    types.uint64[::1],
    TABLES,
    types.int64[::1],
    types.int64[::1],
)


# place(gpus, open[G], load[G], gpu_node[G], node_first[N + 1], random[1], numbers, out_gpu) -> gpus, 0: no place
SHARED_SIGNATURE = types.int64(
    types.int64,
    types.boolean[::1],
    types.float64[::1],
    types.int64[::1],
    types.int64[::1],
    types.uint64[::1],
    types.float64[::1],
    types.int64[::1],
)


@dataclass(frozen=True)
class SharedRule:
    """A placement rule of the task level.

    ``place(gpus, open, load, gpu_node, node_first, random, numbers, out_gpu)`` writes the GPUs of the workers in order and
    returns how many, or 0. ``open``: the GPUs that suit the job and have enough free memory (scratch of the engine: it may
    be changed); ``load`` seconds of work that their residents still have; GPU g is on node ``gpu_node[g]``, node m has the
    GPUs ``node_first[m]`` .. ``node_first[m + 1] - 1``. A gang fits when as many GPUs are open as it has workers, and then
    it must be placed.
    ``seconds_per_byte``: what a byte counts in ``load``: an iteration of a job that spans nodes counts so many seconds a
    byte of its message, on top of forward and backward; None: b of the instance's contention.
    """

    place: Callable[..., int]
    numbers: tuple[float, ...] = ()
    seconds_per_byte: float | None = None


@dataclass(frozen=True)
class Placement:
    """A placement rule.

    ``place(job, gpus, free, size, eligible, random, tables, out_node, out_count)`` writes which nodes give how many GPUs
    and returns the number of entries, 0 when the gang has to wait. The entries hold the replicas of a job with a profile
    in order, stage after stage (a node may appear in several); such a rule may look at ``tables``
    (`optsched.speeds.speed_tables`). It is compiled with `SIGNATURE`, must depend on nothing else, must not change
    ``free``, and must be monotone: what fits stays possible when more GPUs are free. Whether a job fits must depend on its
    gang and its eligible nodes alone.
    ``pooled``: the rule never looks at nodes, so that alike nodes are one pool (GPUs get their names after the run), where
    no job's speed depends on its nodes.
    ``any_free``: a gang fits whenever as many eligible GPUs are free: an assumption of theorems on gangs.
    ``shared``: the same rule at the task level, where jobs share GPUs; None: it knows whole GPUs only.
    """

    name: str
    place: Callable[..., int]
    pooled: bool = False
    any_free: bool = False
    seed: int = 0
    shared: SharedRule | None = None

    def random_state(self) -> Any:
        """Fresh state of a rule's own random numbers, u64[1]: a run starts from the seed, whatever ran before."""
        return np.array([self.seed * 0x9E3779B97F4A7C15 % 2**64 or 0x2545F4914F6CDD1D], dtype=np.uint64)


def compiled(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a placement rule (and kept on disk)."""
    result: Callable[..., int] = njit(SIGNATURE)(function)
    return result


def compiled_shared(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a placement rule of the task level (and kept on disk)."""
    result: Callable[..., int] = njit(SHARED_SIGNATURE)(function)
    return result
