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
from enum import StrEnum
from typing import Any

from optsched.classes import ScheduleClass, class_of_means, every_class
from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats, is_whole
from optsched.problem.instance import Instance
from optsched.registry import extensions
from optsched.simulation.knowledge import Knowledge as Knowledge
from optsched.simulation.policy_decisions import (
    Decision as Decision,
    Moves as Moves,
    Start as Start,
    Stop as Stop,
    Wake as Wake,
)
from optsched.simulation.policy_view import Ended as Ended, EndedCopies as EndedCopies, View as View
from optsched.simulation.predictor import Predictor as Predictor
from optsched.simulation.queue_order import KnownJobs as KnownJobs, Order as Order

HERE = "optsched.simulation"  # this package and its parts in the folders of classes have the base classes
NEAR = 0.85  # likeness of two names, 0 to 1, from which one is a misspelling of the other: use, uses


class Use(StrEnum):
    """A means that a policy in plain Python declares in ``uses``, in addition to starting, stopping and waking."""

    NODES = "nodes"  # it names the nodes on which a job runs
    SHARING = "sharing"  # it names GPUs, which may have another job
    WIDTHS = "widths"  # it gives a job another number of GPUs than the job asks for
    COPIES = "copies"  # it runs a job in several copies at once
    ROUNDS = "rounds"  # it is asked only every ``round`` seconds


PLACES = frozenset({Use.NODES, Use.SHARING, Use.WIDTHS, Use.COPIES})  # a policy with one of them names nodes itself


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
