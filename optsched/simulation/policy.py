"""What an online algorithm is, what it may know, and what it may say.

A policy sees only what has been revealed to it. Two ways to write one:

* `OrderedPolicy`: a queue order. ``order(jobs)`` returns keys; the engine serves the smallest first, compiled.
* any object with ``name``, ``knowledge`` and ``decide(view)``: plain Python, asked once per event time; it yields
  `Start`, `Stop` and `Wake` decisions, each applied before the next is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, KnowledgeError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces
from optsched.speeds.goodput import Goodputs
from optsched.speeds.group_rates import GroupRates


class Knowledge(StrEnum):
    """What a policy knows about the length of a job when it arrives."""

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    NON_CLAIRVOYANT = "non-clairvoyant"


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
        raise InputError("not legal", field=f"{type(policy).__name__}.uses", value=said, legal=f"some of {legal}")
    uses = frozenset(map(Use, said))
    apart = sorted(uses & {Use.SHARING, Use.WIDTHS, Use.COPIES})
    if len(apart) > 1:
        legal = "one of them: schedules with several are of no class that has bounds"
        raise InputError("not possible together", field=f"{type(policy).__name__}.uses", value=said, legal=legal)
    return uses


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
    """Preempt the running job ``job``; its work so far is kept."""

    job: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at ``time`` (seconds since the first arrival, later than now) even if nothing happens until then."""

    time: float


Decision = Start | Stop | Wake


@dataclass(frozen=True, slots=True)
class Ended:
    """An execution that ended, by itself or stopped: ``work`` units in ``seconds``, overhead not counted, ``on`` nodes."""

    job: int
    on: Places
    work: float
    seconds: float


class Speeds(Protocol):
    """How fast jobs run by GPU type: see `optsched.speeds.type_speeds.TypeSpeeds`. n jobs, T types, N nodes."""

    @property
    def types(self) -> tuple[str, ...]:
        """The GPU types of the cluster."""

    @property
    def node_type(self) -> Ints:
        """i64[N]."""

    @property
    def node_gpus(self) -> Ints:
        """i64[N]."""

    @property
    def capacity(self) -> Ints:
        """GPUs of every type, i64[T]."""

    @property
    def together(self) -> Floats:
        """Units of work a second of a job's whole gang on one node of a type, f64[n, T]; 0: it may not run there."""

    @property
    def spread(self) -> Floats:
        """The same over several nodes."""

    @property
    def one_gpu_nodes(self) -> bool:
        """Do all nodes hold one GPU? Then ``together`` applies to every gang."""

    def rate(self, job: int, nodes: Iterable[int]) -> float:
        """Of ``job`` with its gang on these nodes: its slowest type rules."""


class View(Protocol):
    """What a policy sees at one instant. Jobs are indices; times in seconds since the first arrival of the log.

    ``remaining`` and ``duration`` raise `KnowledgeError` for a policy that is not clairvoyant, ``predicted`` for one without
    a predictor. A policy that keeps its own queue reads ``arrived`` and ``finished``; ``waiting`` and ``running`` are kept
    up to date once they have been asked for, and copied each time.
    """

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times here are."""

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0: ``now + epoch`` is a time that people know."""

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
        """Units of work left of every job at this instant, f64[n]; use the entries of active jobs."""

    @property
    def free(self) -> Ints:
        """Free GPUs of every node, i64[N]: a copy. For policies that name nodes."""

    @property
    def speeds(self) -> Speeds:
        """How fast jobs run by GPU type (use the entries of jobs that have arrived), and the nodes' types and sizes."""

    @property
    def node_kind(self) -> Ints:
        """Nodes of one kind (GPU type, memory of a GPU) suit the same jobs, i64[N]."""

    def eligible(self, job: int) -> npt.NDArray[np.bool_]:
        """Nodes whose GPUs ``job`` may use, bool[N]."""

    def held(self, job: int) -> tuple[tuple[int, int], ...]:
        """(node, GPUs there) that the running job holds, in all its copies; () while it does not run."""

    def starts(self, job: int) -> int:
        """How often it has been started so far."""

    @property
    def ended(self) -> list[Ended]:
        """What has ended since the policy was last asked, also by what it decides now; of who uses copies."""

    @property
    def groups(self) -> GroupRates:
        """How fast jobs run on one node of every group of alike nodes. For policies that know rates."""

    @property
    def goodputs(self) -> Goodputs:
        """How fast jobs run on any number of GPUs: see `optsched.speeds.goodput`."""

    def fits(self, job: int) -> bool:
        """Would the placement find a place for ``job`` now?"""

    def kind(self, job: int) -> int:
        """Jobs of one kind (gang size, eligible nodes) fit or do not fit together."""

    def offer(self, job: int) -> float | None:
        """Seconds that a unit of the job's work would take on the GPUs that the placement would give it now; None: no room.

        1 for a job with a duration; for one with a profile its iteration time there.
        """

    def pace_on_idle(self, job: int) -> float:
        """The same on the GPUs that the placement would choose in an idle cluster."""

    def pace_range(self, job: int) -> tuple[float, float]:
        """Least and greatest seconds that a unit of the job's work can take on this cluster: alpha_min, alpha_max."""

    def idle(self, job: int) -> list[tuple[int, int]]:
        """Idle GPUs that ``job`` may use, (node, index). This and the next five: for policies that share GPUs."""

    def open(self, job: int, option: int = 0) -> list[tuple[int, int]]:
        """GPUs with one job, which ``job`` may share, where that sub-batch fits beside it."""

    def residents(self, gpu: tuple[int, int]) -> tuple[int, ...]:
        """Jobs on a GPU: none, one or two."""

    def options(self, job: int) -> int:
        """How many sub-batches it may choose from; the first is the largest."""

    def slowdown(self, job: int, other: int) -> float:
        """xi of ``job`` beside ``other``; inf: they never share."""

    def alone(self, job: int, option: int = 0) -> float:
        """Seconds alone with that sub-batch; of a running job, those that are left. Clairvoyant policies only."""

    def predicted(self, job: int) -> float:
        """Units of work that the predictor said at the job's arrival: iterations with a profile, else seconds."""

    def arrival(self, job: int) -> float:
        """r_j, since the first arrival."""

    def gpus(self, job: int) -> int:
        """g_j."""

    def weight(self, job: int) -> float:
        """w_j."""

    def due(self, job: int) -> float:
        """Due date, since the first arrival; inf where there is none."""

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has held so far."""

    def duration(self, job: int) -> float:
        """Seconds alone at full speed."""

    def remaining(self, job: int) -> float:
        """Units of work left: iterations with a profile, else seconds."""


@runtime_checkable
class Policy(Protocol):
    """An online algorithm in plain Python: a name, what it knows, and what it decides at an event time.

    A policy may have more. ``begin(view)`` is called once before a run; ``make_predictor()`` gives the `Predictor` of a
    run; ``notes()`` is called after it, and what it returns (names to arrays over all jobs) is kept as `Run.notes`, for
    audits (``noted_times`` names those that are times: the run puts them on the log's clock); ``default_placement`` names
    the placement where none is asked for; ``restart`` is the cost of resuming a job, ``first_start`` of its first start.

    ``uses`` says what else it may do (`Use`, see `Start`): ``("sharing",)``, where the instance has interference;
    ``("copies",)``, at most ``copies`` of a job at once (0: one a node); ``("widths", "rounds")``: asked only at multiples
    of ``round`` seconds after the first arrival, while jobs run or have come. ``knows_rates = False``: it may not ask how
    fast jobs are where they have not run.

    ``accelerator(jobs)`` may give the same decisions in compiled form, an `Order` or an
    `optsched.simulation.decision_rule.DecisionRule`, or None; it is not asked where a predictor learns during the run.
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


class JobFacts:
    """What is known of the jobs at their submission, for predictors: never how long they run.

    Arrays over all jobs; a predictor may use the entries of jobs that have arrived. ``length`` is revealed to oracles.
    """

    def __init__(self, instance: Instance, *, revealed: bool = False) -> None:
        self.instance_name = instance.name
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

    @property
    def length(self) -> Floats:
        """True lengths, f64[n]: iterations of jobs with a profile, else seconds; `KnowledgeError` unless revealed."""
        if self._length is None:
            raise KnowledgeError("a predictor that is no oracle asked for the true lengths")
        return self._length


@runtime_checkable
class Predictor(Protocol):
    """Says how long a job will run, at its arrival: iterations of a job with a profile, else seconds alone.

    A predictor with ``oracle = True`` is told the true lengths (to be perfect, or wrong by a controlled amount). One with
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

    ``rule``: a compiled choice (`optsched.simulation.sharing_rule`), with its ``numbers``, of a policy that uses sharing:
    everybody who waits is asked about in order, where and beside whom he starts; without ``skip`` the first who has to wait
    blocks the others. Of the rest ``key`` and ``round`` count.
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
