"""What a forking policy sees and says: rounds, in each of which a job may have several copies on different nodes.

A parent job of N_j units of work is forked into copies; a copy is a whole gang of g_j GPUs on one node that does part of the
parent's work. What the copies of a round did adds up, and the parent ends when nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from optsched.problem.cluster import Places
from optsched.simulation.policy import Knowledge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of job ``job`` for one round: g_j GPUs ``on`` its nodes do at most ``target`` units of work.

    Copies of one job are on different nodes. A copy is on one node, unless no node can hold the gang.
    """

    job: int
    on: Places
    target: float


@dataclass(frozen=True, slots=True)
class CopyDone:
    """What a copy did in its round: ``work`` units in ``seconds`` (the overhead of the round not counted)."""

    copy: Copy
    work: float
    seconds: float


class ForkingView(Protocol):
    """What a forking policy sees when a round begins: n jobs, N nodes in M groups of alike nodes (`Cluster.nodes`).

    Use the entries of ``active`` jobs only. Times in seconds, work in the units of `Instance.work`.
    """

    @property
    def now(self) -> float:
        """Begin of the round, in seconds since the first arrival (`Instance.epoch`)."""

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0: ``now + epoch`` is a time that people know."""

    @property
    def active(self) -> Ints:
        """Arrived jobs that are not finished, in order of (arrival, index), i64[]."""

    @property
    def left(self) -> Floats:
        """Work left of every job, f64[n]; `KnowledgeError` unless the policy is clairvoyant."""

    @property
    def gpus(self) -> Ints:
        """Gang sizes g_j, i64[n]."""

    @property
    def weight(self) -> Floats:
        """Weights w_j, f64[n]."""

    @property
    def node_gpus(self) -> Ints:
        """GPUs of every node, i64[N]."""

    @property
    def node_group(self) -> Ints:
        """Group of every node, i64[N]."""

    @property
    def group_gpu(self) -> tuple[str, ...]:
        """GPU type of every group."""

    @property
    def hosts(self) -> npt.NDArray[np.bool_]:
        """May a copy of job j run on one node of group m? bool[n, M]: it fits, and it has a rate there."""

    @property
    def rates(self) -> Floats:
        """Work a second of a copy of job j on one node of group m, f64[n, M], 0 where it may not run.

        `KnowledgeError` unless the policy says ``knows_rates``.
        """

    @property
    def spread_rates(self) -> Floats:
        """The same for a gang that is spread over several nodes of the type of group m, f64[n, M]; see ``rates``."""

    def reference(self, job: int) -> tuple[int, float]:
        """(group, rate there) of the first group that can host the job, on which everybody has tried it."""

    def eligible(self, job: int) -> npt.NDArray[np.bool_]:
        """Nodes whose GPU type and memory suit the job, bool[N]."""


class ForkingPolicy(Protocol):
    """An online algorithm that forks jobs: asked once a round for copies, told at its end what they did.

    A round is ``round`` seconds long; every copy pays ``overhead`` seconds of it (save, load, aggregate) before it works. At
    most ``copies`` copies of a job run at once (0: as many as there are nodes). ``notes()`` may give arrays over all jobs.
    """

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may know about the length of a job."""

    @property
    def knows_rates(self) -> bool:
        """May it see how fast jobs run on nodes where they have not run yet?"""

    @property
    def round(self) -> float:
        """Length L of a round, seconds."""

    @property
    def overhead(self) -> float:
        """Seconds o of a round in which a copy does no work, 0 <= o < L."""

    @property
    def copies(self) -> int:
        """Most copies of a job at once; 0: as many as there are nodes."""

    def begin(self, view: ForkingView) -> None:
        """A new run: forget the last one."""

    def assign(self, view: ForkingView) -> Iterable[Copy]:
        """The copies of the round that begins."""

    def collect(self, view: ForkingView, done: Sequence[CopyDone]) -> None:
        """The round is over; this is what its copies did."""
