"""What an online algorithm is, what it may know, and what it may say.

A policy sees only what has been revealed to it. Two ways to write one:

* `OrderedPolicy`: a queue order. ``order(jobs)`` returns keys; the engine serves the smallest first, compiled.
* any object with ``name``, ``knowledge`` and ``decide(view)``: plain Python, asked once per event time; it yields
  `Start`, `Stop` and `Wake` decisions, each applied before the next is asked for, or `Moves`, many at once.

Whoever writes a policy needs this one import: its parts, each in a file of its own, are here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from optsched.problem.arrays import Floats
from optsched.simulation.commands import Decision, Moves, Start, Stop, Wake
from optsched.simulation.knowledge import PLACES, Knowledge, Use, uses_of
from optsched.simulation.known_jobs import KnownJobs
from optsched.simulation.policy_view import Ended, Speeds, View
from optsched.simulation.predictor import JobFacts, Predictor

__all__ = [
    "PLACES",
    "Decision",
    "Ended",
    "JobFacts",
    "Knowledge",
    "KnownJobs",
    "Moves",
    "Order",
    "OrderedPolicy",
    "Policy",
    "Predictor",
    "Speeds",
    "Start",
    "Stop",
    "Use",
    "View",
    "Wake",
    "uses_of",
]


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
