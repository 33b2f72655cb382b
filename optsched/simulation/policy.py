"""The protocol of online algorithms: what a policy declares, what it sees, and what it decides.

A policy is a subclass of `Policy` with a ``name``, its ``knowledge`` and ``decide(view)``, in plain Python. The engine
asks it once at every time at which something happens. The policy sees a `View`, which reveals only what the declared
knowledge allows, and yields decisions: `Start`, `Stop`, `Wake`, or many at once as `Moves`. The engine applies each
decision before it asks for the next one.

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
    """A means that a policy in plain Python declares in ``uses``, in addition to starting, stopping and waking."""

    NODES = "nodes"  # it names the nodes on which a job runs
    SHARING = "sharing"  # it names GPUs, which may have another job
    WIDTHS = "widths"  # it gives a job another number of GPUs than the job asks for
    COPIES = "copies"  # it runs a job in several copies at once
    ROUNDS = "rounds"  # it is asked only every ``round`` seconds


PLACES = frozenset({Use.NODES, Use.SHARING, Use.WIDTHS, Use.COPIES})  # a policy with one of them names nodes itself


# --- what a policy decides --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Start (or resume) a job on the GPUs that the placement chooses, or on those that the policy gives.

    A policy that gives ``on``, ``gpus`` or ``work`` declares the means for it in its ``uses``. Without ``on`` and
    ``gpus`` the placement chooses among idle GPUs.

    Attributes
    ----------
    job
        Index of the job.
    on
        (node, GPUs there) for every node that the job uses, g_j GPUs in all. A policy that uses widths may give another
        number of GPUs.
    gpus
        The g_j GPUs as (node, index), each with at most one other job (sharing).
    option
        Index of the sub-batch with which the job runs on ``gpus`` (sharing).
    work
        If given, the job starts a copy that does at most this number of units of the job's work. Other copies may run
        on other nodes at the same time; a `Stop` stops all of them (copies).
    """

    job: int
    on: tuple[tuple[int, int], ...] | None = None
    gpus: Sequence[tuple[int, int]] | None = None
    option: int = 0
    work: float | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt a running job, which keeps the work that it has done.

    Attributes
    ----------
    job
        Index of the job.
    at
        If given, the job stops at this time (seconds since the first arrival, later than now), unless it ends or is
        stopped before; the policy is not asked at that time. Another stop of the job replaces a planned one.
    """

    job: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask the policy again at ``time`` even if nothing happens until then.

    Attributes
    ----------
    time
        Seconds since the first arrival, later than now.
    """

    time: float


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many stops, then many starts, as arrays: the same as a list of decisions, in less time.

    A policy that starts jobs in this way declares that it uses nodes. Arrays of other types or shapes, and a move that
    is not possible, raise a `SimulationError` that says which one. Complexity O(jobs and entries).

    Attributes
    ----------
    stop
        Jobs that stop, i64[]: all of them now, or at the times ``at``.
    at
        Times of the stops, f64[stop], in seconds since the first arrival and later than now; None for now.
    start
        Jobs that start, i64[k]; job ``start[i]`` starts on ``count[e]`` GPUs of ``node[e]``, first[i] <= e < first[i +
        1].
    first
        Where the entries of every start begin, i64[k + 1].
    node
        Node of every entry, i64[].
    count
        GPUs of every entry, i64[].
    work
        Units of work of every start, f64[k], if the starts are copies (`Start.work`), else None.
    """

    stop: Ints = field(default_factory=lambda: _NOBODY)
    at: Floats | None = None
    start: Ints = field(default_factory=lambda: _NOBODY)
    first: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    node: Ints = field(default_factory=lambda: _NOBODY)
    count: Ints = field(default_factory=lambda: _NOBODY)
    work: Floats | None = None

    def stops(self) -> list[Stop]:
        """Return the stops as a list of single decisions."""
        times = [None] * self.stop.size if self.at is None else self.at.tolist()
        return [Stop(job, at=time) for job, time in zip(self.stop.tolist(), times, strict=True)]

    def starts(self) -> list[Start]:
        """Return the starts as a list of single decisions."""
        on = list(zip(self.node.tolist(), self.count.tolist(), strict=True))
        ends, work = self.first.tolist(), [None] * self.start.size if self.work is None else self.work.tolist()
        jobs = zip(self.start.tolist(), work, strict=True)
        return [Start(job, on=tuple(on[ends[i] : ends[i + 1]]), work=part) for i, (job, part) in enumerate(jobs)]


Decision = Start | Stop | Wake | Moves


# --- what a policy sees -----------------------------------------------------------------------------------------------


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


# --- what a policy is -------------------------------------------------------------------------------------------------


def declared_names(kind: type) -> frozenset[str]:
    """Return the public attributes and methods that the base classes of a kind of policy declare.

    Parameters
    ----------
    kind
        A class that derives from `BasePolicy`.
    """
    bases = [base for base in kind.__mro__ if _is_base(base)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return frozenset(name for name in names if not name.startswith("_"))


def _is_base(kind: type) -> bool:
    package = kind.__module__.rpartition(".")[0]
    return package == HERE or package in extensions(HERE)


def refuse_near_names(own: type, kind: type) -> None:
    """Refuse a class with a name that is nearly, but not exactly, one that policies of a kind declare.

    Parameters
    ----------
    own
        The class whose names are checked; names that begin with an underscore are not.
    kind
        The base class whose declared names count.

    Raises
    ------
    InputError
        A name of ``own`` resembles a declared one, for example ``use`` and ``uses``.
    """
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
    """The declarations that every policy has; a name that is nearly one of them is refused when the class is made.

    Attributes
    ----------
    name
        Name in reports.
    knowledge
        What the policy may ask about jobs that have not completed.
    default_placement
        Name of the placement if the user chooses none.
    uses
        The means that the policy needs (`Use`, see `Start`). The policy may do only what it declares.
    rigid
        True for a policy that resizes jobs and serves jobs with a fixed gang as well: suites and tests give it both.
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
        """Return the policy that runs on an instance in place of this one; default: this one.

        The returned policy may have other ``uses``.

        The choice may depend on the kinds of data that the instance has, but not on jobs that are yet to arrive.

        Parameters
        ----------
        instance
            The instance that the policy is to run on.
        """
        return self

    def properties(self, instance: Instance) -> tuple[str, ...]:
        """Return the properties of finished schedules that every schedule of the policy has, which each run is checked for.

        Parameters
        ----------
        instance
            Jobs and the cluster of the run.

        Returns
        -------
        tuple of str
            Names of `optsched.check.properties`; none by default.
        """
        return ()

    def make_predictor(self) -> Predictor | None:
        """Return a new `Predictor` for one run; default: None, the policy asks for no predictions."""
        return None


class Policy(BasePolicy, ABC):
    """An online algorithm in plain Python: the engine calls ``decide`` whenever something has happened.

    Attributes
    ----------
    restart
        Seconds that it costs to resume a job. If the instance gives a job a cost of its own, the job pays that instead
        of ``restart``, and of ``first_start`` where that is not 0.
    first_start
        Seconds that it costs to start a job for the first time.
    round
        With ``uses = ("rounds",)``: the length of a round in seconds. The engine asks the policy only at multiples of
        it after the first arrival, while jobs run or have come.
    copies
        With ``uses = ("copies",)``: the most copies of a job at once; 0 means one a node.
    knows_rates
        False if the policy may not ask how fast jobs are where they have not run.
    noted_times
        Names of those ``notes`` that are times; the run puts them on the log's clock.
    plays_rounds
        True if the policy keeps rounds of ``round`` seconds by itself, by waking; an instance with too many rounds is
        refused before the run.
    sleeps
        True if the policy does not wake for a round while all jobs have the best GPUs.
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

        The engine applies each decision before it asks for the next one. It applies a list at once, which is faster if
        many jobs move.

        Parameters
        ----------
        view
            What the policy may see of the engine's state.
        """

    def begin(self, view: View) -> None:
        """Prepare for a new run and forget the last one.

        Parameters
        ----------
        view
            What the policy may see, before the first event.
        """

    def accelerator(self, jobs: KnownJobs) -> Order | None:
        """Return an `Order` with the same decisions, which runs compiled; default: None.

        The engine does not ask for it if a predictor learns during the run.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs.
        """
        return None

    def notes(self) -> Mapping[str, Floats]:
        """Return arrays over all jobs by name, kept as `Run.notes` for audits; the engine calls it after a run."""
        return {}


class OrderedPolicy(BasePolicy, ABC):
    """A policy that is a queue order; the engine runs it compiled."""

    @abstractmethod
    def order(self, jobs: KnownJobs) -> Order:
        """Return keys and rules for the jobs.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs.
        """


def uses_of(policy: BasePolicy | type[BasePolicy]) -> frozenset[str]:
    """Return the means that a policy declares.

    Parameters
    ----------
    policy
        A policy, or a class of policies.

    Raises
    ------
    InputError
        A means does not exist, or no class of schedules with bounds allows two of them together.
    """
    declared, kind = policy.uses, policy if isinstance(policy, type) else type(policy)
    of_classes = {made.means for made in every_class() if made.means}
    means = dict.fromkeys((*map(str, Use), *sorted(of_classes)))
    if isinstance(declared, str) or not all(use in means for use in declared):
        legal = f"some of {', '.join(means)}"
        raise InputError("invalid", field=f"{kind.__name__}.uses", value=declared, legal=legal)
    uses = frozenset(map(str, declared))
    if len(uses & of_classes) > 1:
        legal = "one of them: schedules with several are of no class that has bounds"
        raise InputError("not possible together", field=f"{kind.__name__}.uses", value=declared, legal=legal)
    return uses


def class_of(policy: BasePolicy | type[BasePolicy]) -> ScheduleClass:
    """Return the class of schedules that contains every schedule of a policy, by what the policy declares.

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
        The policy; a ``copies`` of 0 means one a node.
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        The policy's ``copies`` is not a whole number >= 0.
    """
    nodes, copies = instance.cluster.node_count, policy.copies
    check_legal(is_whole(copies) and copies >= 0, f"{policy.name}: copies", copies, "an integer >= 1; 0: one a node")
    return min(int(copies), nodes) if copies else nodes
