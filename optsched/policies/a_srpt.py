"""A-SRPT: a virtual single machine decides the order, the cluster follows, non-preemptively."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

import numpy as np

from optsched.errors import InputError
from optsched.policies import POLICIES
from optsched.policies.a_srpt_rule import a_srpt_rule
from optsched.policies.predictors import predictor
from optsched.policies.shadow_queue import ShadowQueue
from optsched.policies.virtual_machine import VirtualMachine
from optsched.problem.arrays import Floats
from optsched.registry import near_matches
from optsched.simulation.decision_rule import DecisionRule
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Predictor, Start, View, Wake

VIRTUAL_ALPHA = ("min", "max", "heavy-edge")
BACKFILL = ("none", "shadow", "unrestricted")


@POLICIES.register("a-srpt")
@dataclass
class ASrpt:
    """A-SRPT: jobs start in the order in which SRPT completes them on one virtual machine as fast as the cluster.

    Job j becomes a virtual job of length ``p_j = g_j n^_j alpha~_j / G`` (n^_j predicted iterations, alpha~_j nominal
    iteration time: ``virtual_alpha``). When the machine has done ``beta p_j`` of it, j joins a strict queue; the head
    starts as soon as g_j GPUs are free, or, if it is communication heavy (alpha_max >= ``heavy_threshold`` alpha_min) and
    offered more than (1 + ``eps``) alpha_min while others run, waits for a better placement, at most ``tau p_j`` seconds.
    ``backfill``: ``shadow`` lets later jobs start where no earlier one can lose by it (it needs true lengths as upper
    bounds), ``unrestricted`` wherever they fit.

    **Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by ``predictor``.

    **Guarantee** sum C <= [lam_o rho_1 (1 + (tau + lam_u rho_2 kappa)/beta) + rho] OPT, kappa = G/(G - g_max + 1), with
    predictions in [n/lam_u, lam_o n], rho_1 = max alpha~/alpha_min, rho_2 = max alpha_max/alpha~, rho = max
    alpha_max/alpha_min (`optsched.guarantees.a_srpt`); none with ``backfill=unrestricted``. **Counterexamples** the factor
    kappa is real: with gangs as wide as the cluster strict order loses about G/2; unrestricted backfilling has no bound at
    all. **Complexity** O(log n) an event for the virtual machine, plus one placement for each time the head is looked at.
    **Reference** Luo, Liu, Lee, Shroff, INFOCOM 2025 (arXiv 2501.05563); delay rule, beta points, shadow
    backfilling and this theorem are this project's own.
    """

    virtual_alpha: str = "min"
    beta: float = 1.0
    tau: float = 0.5
    heavy_threshold: float = 1.5
    eps: float = 0.05
    backfill: str = "none"
    predictor: str = "perfect"

    name: ClassVar[str] = "a-srpt"
    default_placement: ClassVar[str] = "heavy-edge"
    noted_times: ClassVar[tuple[str, ...]] = ("eligible",)

    _machine: VirtualMachine = field(init=False, repr=False)
    _queue: deque[int] = field(init=False, repr=False)
    _gang: dict[int, int] = field(init=False, repr=False)  # g_j
    _length: dict[int, float] = field(init=False, repr=False)  # p_j
    _eligible: dict[int, float] = field(init=False, repr=False)  # B_j
    _patience: dict[int, float] = field(init=False, repr=False)  # seconds of delay left
    _expires: tuple[int, float] | None = field(init=False, repr=False)  # the job that waits, and until when
    _shadow: ShadowQueue | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self.virtual_alpha in VIRTUAL_ALPHA, "virtual_alpha", self.virtual_alpha, ", ".join(VIRTUAL_ALPHA))
        _require(self.backfill in BACKFILL, "backfill", self.backfill, near_matches(self.backfill, list(BACKFILL)))
        _require(0 < self.beta <= 1, "beta", self.beta, "0 < beta <= 1")
        _require(0 <= self.tau < math.inf, "tau", self.tau, "a finite number >= 0")
        _require(0 <= self.eps < math.inf, "eps", self.eps, "a finite number >= 0")
        _require(self.heavy_threshold >= 1, "heavy_threshold", self.heavy_threshold, "a number >= 1")
        predictor(self.predictor)

    @property
    def knowledge(self) -> Knowledge:
        """Predicted lengths; true ones for shadow backfilling, which needs upper bounds that hold."""
        return Knowledge.CLAIRVOYANT if self.backfill == "shadow" else Knowledge.PREDICTED

    def make_predictor(self) -> Predictor:
        """The predictor of a run."""
        return predictor(self.predictor)

    def accelerator(self, jobs: KnownJobs) -> DecisionRule | None:
        """The same decisions, compiled; not of a policy derived from this one."""
        return a_srpt_rule(self, jobs) if type(self) is ASrpt else None

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._machine, self._queue = VirtualMachine(self.beta), deque()
        self._gang, self._length, self._eligible, self._patience, self._expires = {}, {}, {}, {}, None
        self._shadow = ShadowQueue(view.cluster_gpus) if self.backfill == "shadow" else None

    def decide(self, view: View) -> Iterator[Decision]:
        """Advance the virtual machine, queue what it is done with, start from the head."""
        for j in view.finished:
            if self._shadow is not None:
                self._shadow.finish(j)
        for j in self._machine.advance(view.now):
            self._join(j, view)
        for j in view.arrived:
            self._gang[j] = view.gpus(j)
            self._length[j] = self._gang[j] * view.predicted(j) * self._nominal(j, view) / view.cluster_gpus
            self._machine.release(j, view.now, self._length[j])
        # Again, for jobs so short that the clock does not see them: no later event would come.
        for j in self._machine.advance(view.now):
            self._join(j, view)
        while self._queue and self._starts(self._queue[0], view):
            yield Start(self._leave(self._queue[0], view.now))
        if self.backfill != "none":
            yield from self._overtake(view)
            if self._expires is not None and not view.fits(self._expires[0]):
                self._pause(view.now)  # they took the room in which the head waited for a better one
        yield from self._wake(view.now)

    def _nominal(self, j: int, view: View) -> float:
        if self.virtual_alpha == "heavy-edge":
            return view.pace_on_idle(j)
        return view.pace_range(j)[self.virtual_alpha == "max"]

    def _join(self, j: int, view: View) -> None:
        fastest, slowest = view.pace_range(j)
        heavy = slowest >= self.heavy_threshold * fastest and slowest > fastest
        self._eligible[j] = view.now
        self._patience[j] = self.tau * self._length[j] if heavy else 0.0
        self._queue.append(j)
        if self._shadow is not None:
            longest = view.remaining(j) * slowest
            self._shadow.add(j, view.now, self._gang[j], longest, self._patience[j])

    def _starts(self, j: int, view: View) -> bool:
        # Does the head start now? If not, it waits for GPUs, or for a better placement while its patience lasts.
        pace = view.offer(j)
        if pace is None:
            self._pause(view.now)
            return False
        if self._shadow is not None and view.now >= self._shadow.latest_start(j):
            return True
        # In an idle cluster there is nothing better to wait for (a gang may be larger than any node).
        poor = pace > (1 + self.eps) * view.pace_range(j)[0] and view.free_gpus < view.cluster_gpus
        if poor and self._delays(j, view.now):
            return False
        return self._shadow is None or self._shadow.may_start(j, view.now)

    def _delays(self, j: int, now: float) -> bool:
        if self._expires is None:
            if self._patience[j] <= 0:
                return False
            self._expires = (j, now + self._patience[j])
        return now < self._expires[1]

    def _pause(self, now: float) -> None:
        # The clock of the delay runs only while there is room.
        if self._expires is not None:
            job, until = self._expires
            self._patience[job], self._expires = max(0.0, until - now), None

    def _leave(self, j: int, now: float) -> int:
        self._queue.remove(j)
        if self._expires is not None and self._expires[0] == j:
            self._expires = None
        if self._shadow is not None:
            self._shadow.start(j, now)
        return j

    def _overtake(self, view: View) -> Iterator[Decision]:
        # Jobs behind the head, in the order of the queue.
        free = view.free_gpus
        for j in [k for k in islice(self._queue, 1, None) if self._gang[k] <= free]:
            allowed = self._gang[j] <= free and (self._shadow is None or self._shadow.may_start(j, view.now))
            if allowed and view.fits(j):
                yield Start(self._leave(j, view.now))
                free = view.free_gpus

    def _wake(self, now: float) -> Iterator[Decision]:
        times = [self._machine.next_event()]
        times += [] if self._expires is None else [self._expires[1]]
        times += [] if self._shadow is None else [self._shadow.next_start(now)]
        later = [t for t in times if now < t < math.inf]
        if later:
            yield Wake(min(later))

    def notes(self) -> dict[str, Floats]:
        """``virtual_length`` p_j and ``eligible`` B_j of every job, f64[n] seconds; nan for a job that has none."""
        n = max(self._length, default=-1) + 1
        found = {"virtual_length": np.full(n, np.nan), "eligible": np.full(n, np.nan)}
        for j, length in self._length.items():
            found["virtual_length"][j] = length
            found["eligible"][j] = self._eligible.get(j, math.nan)
        return found


def _require(holds: bool, field: str, value: object, legal: str) -> None:
    if not holds:
        raise InputError("invalid", field=f"a-srpt: {field}", value=value, legal=legal)
