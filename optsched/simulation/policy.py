"""The protocol of online algorithms: what a policy declares, what it sees, and what it decides.

A policy is a subclass of `Policy` with a ``name``, its ``knowledge`` and ``decide(view)``, in plain Python. The engine asks
it once at every time at which something happens; it sees a `View`, which reveals only what the declared knowledge allows,
and yields decisions: `Start`, `Stop`, `Wake`, or many at once as `Moves`. Each is applied before the next is asked for.

A policy that only orders the queue is a subclass of `OrderedPolicy`: ``order(jobs)`` returns keys (`Order`), and the engine
serves the smallest first in compiled code. Policies of a class of schedules that
orders something else have a base class in its folder (`optsched.classes`).

A plain class with ``name``, ``knowledge`` and ``decide`` or ``order`` (or the method of a class of schedules) works as well:
whatever it does not declare has the default of the base class (`optsched.simulation.adopted`).
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from optsched.classes import ScheduleClass, class_of_means, every_class
from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats, Ints, is_whole
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.registry import extensions
from optsched.simulation.knowledge import Knowledge as Knowledge
from optsched.simulation.predictor import Predictor as Predictor
from optsched.simulation.queue_order import KnownJobs as KnownJobs, Order as Order
from optsched.speeds.goodput_rates import Goodputs
from optsched.speeds.type_speeds import GroupRates, TypeSpeeds

HERE = "optsched.simulation"  # this package and its parts in the folders of classes have the base classes
NEAR = 0.85  # likeness of two names, 0 to 1, from which one is a misspelling of the other: use, uses
_NOBODY = np.zeros(0, dtype=np.int64)


class Use(StrEnum):
    """A means that a policy in plain Python declares in ``uses``, beside starting, stopping and waking."""

    NODES = "nodes"  # it names the nodes on which a job runs
    SHARING = "sharing"  # it names GPUs, which may have another job
    WIDTHS = "widths"  # it gives a job another number of GPUs than the job asks for
    COPIES = "copies"  # it runs a job in several copies at once
    ROUNDS = "rounds"  # it is asked only every ``round`` seconds


PLACES = frozenset({Use.NODES, Use.SHARING, Use.WIDTHS, Use.COPIES})  # a policy with one of them names nodes itself


# --- what a policy decides --------------------------------------------------------------------------------------------


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


# --- what a policy sees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """An execution that ended, by itself or stopped: ``work`` units in ``seconds``, overhead not counted, ``on`` nodes."""

    job: int
    on: Places
    work: float
    seconds: float


class View(Protocol):
    """What a policy sees at one instant. Jobs are indices; times in seconds since the first arrival of the log.

    ``remaining``, ``left``, ``left_of``, ``duration`` and ``alone`` raise `KnowledgeError` for a policy that is not
    clairvoyant, ``predicted`` for one without a predictor, and all of them for a job that has not arrived. A policy that
    keeps its own queue reads ``arrived`` and ``finished``; ``waiting`` and ``running`` are kept up to date once they have
    been asked for, and copied each time. Always current: it looks at the engine's state, also between two decisions.
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

    def left_of(self, jobs: Ints) -> Floats:
        """Units of work left of these jobs, each named once, f64[jobs]."""

    def done(self, jobs: Ints) -> Floats:
        """Units of work that these jobs have done, each named once, f64[jobs]: what a scheduler sees of any job."""

    @property
    def free(self) -> Ints:
        """Free GPUs of every node, i64[N]: a copy. For policies that name nodes."""

    @property
    def speeds(self) -> TypeSpeeds:
        """How fast jobs run by GPU type (use the entries of jobs that have arrived), and the nodes' types and sizes."""

    @property
    def node_kind(self) -> Ints:
        """Nodes of one kind (GPU type, memory of a GPU) suit the same jobs, i64[N]."""

    def eligible(self, job: int) -> Bools:
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
        """How fast jobs run on any number of GPUs: see `optsched.speeds.goodput_rates`."""

    def fits(self, job: int) -> bool:
        """Would the placement find a place for ``job`` now?"""

    def kind(self, job: int) -> int:
        """Jobs of one kind (gang size, eligible nodes) fit or do not fit together."""

    def offer(self, job: int) -> float | None:
        """Seconds that a unit of the job's work would take on the GPUs that the placement would give it now, or None.

        1 for a job with a duration; for one with a profile its iteration time there.
        """

    def pace_on_idle(self, job: int) -> float:
        """The same on the GPUs that the placement would choose in an idle cluster; inf where it would find none."""

    def pace_range(self, job: int) -> tuple[float, float]:
        """Least and greatest seconds that a unit of the job's work can take on this cluster: alpha_min and alpha_max."""

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

    def stretch(self, job: int, option: int) -> float:
        """Seconds that it takes alone with that sub-batch over those with its first, at best: what sub-steps cost, >= 1."""

    def predicted(self, job: int) -> float:
        """Units of work that the predictor said at the job's arrival: iterations with a profile, else seconds."""

    def arrival(self, job: int) -> float:
        """r_j, since the first arrival."""

    def gpus(self, job: int) -> int:
        """g_j."""

    def weight(self, job: int) -> float:
        """w_j."""

    def restart(self, job: int, usual: float) -> float:
        """Seconds that it costs to resume it: as the instance says, else ``usual``, what the policy itself says."""

    def due(self, job: int) -> float:
        """Due date, since the first arrival; inf where there is none."""

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has held so far."""

    def duration(self, job: int) -> float:
        """Seconds alone at full speed."""

    def remaining(self, job: int) -> float:
        """Units of work left: iterations with a profile, else seconds."""


# --- what a policy is -------------------------------------------------------------------------------------------------


def declared_names(kind: type) -> frozenset[str]:
    """Names that a kind of policy declares: attributes and methods of the base classes that it derives from."""
    bases = [base for base in kind.__mro__ if _is_base(base)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return frozenset(name for name in names if not name.startswith("_"))


def _is_base(kind: type) -> bool:
    package = kind.__module__.rpartition(".")[0]
    return package == HERE or package in extensions(HERE)


def refuse_near_names(own: type, kind: type) -> None:
    """`InputError` for a name in the class ``own`` that is nearly, but not quite, one that policies of ``kind`` declare."""
    declared = sorted(declared_names(kind))
    for base in own.__mro__:
        if base is object or _is_base(base):
            continue
        for name in (*vars(base), *vars(base).get("__annotations__", ())):
            if name.startswith("_") or name in declared:
                continue
            if near := difflib.get_close_matches(name, declared, n=1, cutoff=NEAR):
                legal = f"{near[0]}; a name of your own that begins with _ is never taken for one of these"
                raise InputError("no policy declares this name", field=f"{own.__name__}.{name}", legal=legal)


class BasePolicy:
    """What every policy declares; a name that is nearly one of these is refused when the class is made.

    Attributes
    ----------
    name : shown in reports.
    knowledge : what it may ask about jobs that have not completed.
    default_placement : the placement where none is named.
    uses : the means that it needs (`Use`, see `Start`). What it does not declare it may not do.
    rigid : a policy that resizes jobs serves jobs that keep their gang, too: suites and tests give it both.
    """

    name: str = ""
    knowledge: Knowledge | str = ""
    default_placement: str = "count"
    uses: Sequence[str] = ()
    rigid: bool = False

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        refuse_near_names(cls, cls)

    def form(self, instance: Instance) -> BasePolicy:
        """Return the policy that runs on this instance in its stead, perhaps with other ``uses``; default: itself.

        Which kinds of data an instance has may decide; what is yet to come may not.
        """
        return self

    def make_predictor(self) -> Predictor | None:
        """Return a new `Predictor` for one run; default: None, the policy asks for no predictions."""
        return None


class Policy(BasePolicy, ABC):
    """An online algorithm in plain Python: ``decide`` is asked whenever something has happened.

    Attributes
    ----------
    restart : seconds that it costs to resume a job, ``first_start`` to start it for the first time. A job of which the
        instance says what resuming costs pays that instead of either that is not 0.
    round : with ``uses = ("rounds",)``: it is asked only at multiples of so many seconds after the first arrival, while jobs
        run or have come.
    copies : with ``uses = ("copies",)``: the most copies of a job at once; 0: one a node.
    knows_rates : False: it may not ask how fast jobs are where they have not run.
    noted_times : which of its ``notes`` are times; the run puts them on the log's clock.
    plays_rounds : it keeps rounds of ``round`` seconds by itself, by waking; too many are refused before they are played.
    sleeps : it does not wake for a round while all jobs have the best GPUs.
    """

    restart: float = 0.0
    first_start: float = 0.0
    round: float = 0.0
    copies: int = 0
    knows_rates: bool = True
    noted_times: Sequence[str] = ()
    plays_rounds: bool = False
    sleeps: bool = False

    @abstractmethod
    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        """Return or yield decisions at ``view.now``, after all events of that time.

        Each is applied before the next is asked for; a list is applied at once, which is faster where many jobs move.
        """

    def begin(self, view: View) -> None:
        """Prepare for a new run: forget the last one."""

    def accelerator(self, jobs: KnownJobs) -> Order | None:
        """Return an `Order` with the same decisions, which runs compiled; default: None.

        It is not asked where a predictor learns during the run.
        """
        return None

    def notes(self) -> Mapping[str, Floats]:
        """Return arrays over all jobs by name, kept as `Run.notes` for audits; asked after a run."""
        return {}


class OrderedPolicy(BasePolicy, ABC):
    """A policy that is a queue order; the engine runs it compiled."""

    @abstractmethod
    def order(self, jobs: KnownJobs) -> Order:
        """Return keys and rules for these jobs."""


def uses_of(policy: BasePolicy | type[BasePolicy]) -> frozenset[str]:
    """Return the means that a policy declares.

    `InputError` for one that does not exist, and for several that no class of schedules with bounds allows together.
    """
    said, kind = policy.uses, policy if isinstance(policy, type) else type(policy)
    of_classes = {made.means for made in every_class() if made.means}
    known = dict.fromkeys((*map(str, Use), *sorted(of_classes)))
    if isinstance(said, str) or not all(each in known for each in said):
        legal = f"some of {', '.join(known)}"
        raise InputError("invalid", field=f"{kind.__name__}.uses", value=said, legal=legal)
    uses = frozenset(map(str, said))
    if len(uses & of_classes) > 1:
        legal = "one of them: schedules with several are of no class that has bounds"
        raise InputError("not possible together", field=f"{kind.__name__}.uses", value=said, legal=legal)
    return uses


def class_of(policy: BasePolicy | type[BasePolicy]) -> ScheduleClass:
    """Return the class of schedules that a policy makes, as far as what it declares says.

    Parameters
    ----------
    policy
        A policy, or a class of policies.
    """
    return class_of_means(uses_of(policy))


def most_copies(policy: Policy, instance: Instance) -> int:
    """Return the most copies of a job that a policy may run at once.

    Parameters
    ----------
    policy
        The policy; its ``copies`` is 0 for one a node.
    instance
        Jobs and a cluster.
    """
    nodes, copies = instance.cluster.node_count, policy.copies
    check_legal(is_whole(copies) and copies >= 0, f"{policy.name}: copies", copies, "an integer >= 1; 0: one a node")
    return min(int(copies), nodes) if copies else nodes
