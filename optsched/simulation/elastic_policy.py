"""What an elastic policy sees and says: rounds, at the end of which every job may be given another number of GPUs.

A job that runs at a scaling profile (`optsched.problem.scaling`) is elastic: it runs on any number of GPUs, where its
profile states iterations by batch also with any of those batches, and does the same work (`optsched.speeds.goodput`).
Other jobs are rigid: their own gang or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from optsched.problem.cluster import Places
from optsched.simulation.policy import Knowledge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Job ``job`` has the GPUs ``on``, (node, GPUs there) of every node once, until the next decision or its end."""

    job: int
    on: Places


class ElasticView(Protocol):
    """What an elastic policy sees at the end of a round: n jobs, N nodes, G GPUs. Seconds, and work as `Instance.work`.

    Use jobs of ``active`` only.
    """

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times here are."""

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0: ``now + epoch`` is a time that people know."""

    @property
    def active(self) -> Ints:
        """Arrived jobs that are not finished, in order of (arrival, index), i64[]."""

    @property
    def arrival(self) -> Floats:
        """r_j, f64[n]."""

    @property
    def weight(self) -> Floats:
        """w_j, f64[n]."""

    @property
    def left(self) -> Floats:
        """Work left of every job, f64[n]; `KnowledgeError` unless the policy is clairvoyant."""

    @property
    def node_gpus(self) -> Ints:
        """GPUs of every node, i64[N]."""

    @property
    def gpus(self) -> Ints:
        """The gangs g_j that jobs ask for, i64[n]; rigid jobs have no others."""

    def eligible(self, job: int) -> npt.NDArray[np.bool_]:
        """Nodes whose GPU type and memory suit the job, bool[N]."""

    def rates(self, job: int) -> Floats:
        """Most work a second with r GPUs on one node [r, 0], over several [r, 1], f64[G + 1, 2]; 0: it cannot run."""

    def rate(self, job: int, on: Places) -> float:
        """Work a second on these GPUs, with the best batch there; 0 where it cannot run."""

    def held(self, job: int) -> Places:
        """The GPUs that it has now, () if none."""

    def starts(self, job: int) -> int:
        """How often it was given other GPUs so far, the first time included."""


class ElasticPolicy(Protocol):
    """An online algorithm that resizes jobs: asked every ``round`` seconds from the first arrival on, while jobs are left.

    One that gives nobody anything while nobody runs is asked again when the next job has come, and not before.
    A job that is given other GPUs than it has holds them for ``restart`` seconds (its first start included) before it works.
    ``notes()`` may give arrays over all jobs. A policy that keeps something between rounds forgets it in ``begin()``, if it
    has one.
    """

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may know about the length of a job."""

    @property
    def round(self) -> float:
        """Seconds between decisions, > 0."""

    @property
    def restart(self) -> float:
        """Seconds that a job loses when its GPUs change, >= 0."""

    def allocate(self, view: ElasticView) -> Iterable[Allocation]:
        """Who has which GPUs from now on; a job that is not named has none."""
