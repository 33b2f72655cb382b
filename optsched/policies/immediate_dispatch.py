"""Immediate dispatch on unrelated machines: a job goes at once to the GPU where it adds least to the objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optsched.policies import POLICIES
from optsched.policies.slot_queues import Slot, places_of
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Floats
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, Stop, View


@POLICIES.register("immediate-dispatch")
@dataclass
class ImmediateDispatch(Policy):
    """Immediate dispatch, preemptive: on arrival a job is bound to the GPU where it adds least to the objective.

    The objective is sum w_j (C_j - r_j). Every GPU serves its jobs by the largest density, weight / time left there.
    So a job of weight w that takes p adds w (p + the time left of denser jobs) + p (the weight of the other jobs).
    Ties are broken by arrival, by node, by GPU. A gang is bound to GPUs of one node if one is large enough, otherwise
    to GPUs of one type. It runs when no denser job holds any of them.

    **Problem** R | r_j, pmtn, online-r_j | sum w_j (C_j - r_j); here also with gangs. **Knowledge** clairvoyant.

    **Guarantee** one-GPU jobs, restart = 0, on GPUs 1 + eps times as fast: 1 + 2 / eps; at any speed the dual solution
    of every run proves a ratio for it (`optsched.guarantees.unrelated_machines`). None for gangs. **Tight family**
    none known; at speed 1 no ratio is constant: jobs for two machines, then short ones for one of them
    (``divided-evenly``). **Complexity** O(n + G) an arrival, O(n) any other event, n jobs active. **Reference**
    Chadha, Garg, Kumar and Muralidhara, STOC 2009; Anand, Garg and Kumar, SODA 2012, for dual fitting.

    Parameters
    ----------
    restart
        Overhead of every resumption, in seconds.
    """

    restart: Seconds = 0.0

    name = "immediate-dispatch"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        slots = [(node, gpu) for node, free in enumerate(view.free.tolist()) for gpu in range(free)]
        self._queue: dict[Slot, list[int]] = {slot: [] for slot in slots}  # active jobs by density, densest first
        self._slots: dict[int, tuple[Slot, ...]] = {}  # GPUs of every job that has arrived
        self._seconds: dict[int, float] = {}  # seconds of a unit of work there
        self._left: dict[int, float] = {}  # seconds left of active jobs, at the last arrival or stop
        self._order: list[int] = []  # active jobs by density, which only arrivals can change

    def notes(self) -> dict[str, Floats]:
        """Return ``dispatch_slot``, the first GPU of every job, counted over all nodes, for audits."""
        number = {slot: float(k) for k, slot in enumerate(self._queue)}
        return {"dispatch_slot": np.array([number[self._slots[j][0]] for j in sorted(self._slots)])}

    def decide(self, view: View) -> Iterator[Decision]:
        """Bind the jobs that have arrived; on every GPU run the densest of its jobs.

        Parameters
        ----------
        view
            State of the run.
        """
        for job in view.finished:
            del self._left[job]
            self._order.remove(job)
            for slot in self._slots[job]:
                self._queue[slot].remove(job)
        if view.arrived:
            for job in view.running:
                self._left[job] = view.remaining(job) * self._seconds[job]
            for job in view.arrived:
                self._dispatch(view, job)
            self._order = self._by_density(view, list(self._left))
        taken, chosen = set[Slot](), list[int]()
        for job in self._order:
            if taken.isdisjoint(self._slots[job]):
                taken.update(self._slots[job])
                chosen.append(job)
        running = set(view.running)
        for job in sorted(running.difference(chosen)):
            self._left[job] = view.remaining(job) * self._seconds[job]
            yield Stop(job)
        for job in chosen:
            if job not in running:
                nodes, counts = np.unique([node for node, _ in self._slots[job]], return_counts=True)
                yield Start(job, on=tuple(zip(nodes.tolist(), counts.tolist(), strict=True)))

    def _dispatch(self, view: View, job: int) -> None:
        """Bind a job to the GPUs on which it adds least, summed over its GPUs."""
        choices = []
        for part in places_of(view, job, self._queue):
            seconds = view.remaining(job) / view.speeds.rate(job, {node for node, _ in part})
            added = {slot: leading_of(self._added(view, job, slot, seconds)) for slot in part}
            slots = tuple(sorted(part, key=lambda slot: (added[slot], slot))[: view.gpus(job)])
            choices.append((leading_of(sum(added[slot] for slot in slots)), slots))
        _, self._slots[job] = min(choices)
        self._seconds[job] = 1.0 / view.speeds.rate(job, {node for node, _ in self._slots[job]})
        self._left[job] = view.remaining(job) * self._seconds[job]
        for slot in self._slots[job]:
            self._queue[slot] = self._by_density(view, [*self._queue[slot], job])

    def _added(self, view: View, job: int, slot: Slot, seconds: float) -> float:
        """Return what a job adds to the weighted flow time of one GPU, if no job arrives after it."""
        weight, density = view.weight(job), leading_of(view.weight(job) / (seconds * view.gpus(job)))
        ahead, behind = 0.0, 0.0
        for other in self._queue[slot]:
            if self._density(view, other) >= density:
                ahead += self._left[other]
            else:
                behind += view.weight(other)
        return weight * (ahead + seconds) + seconds * behind

    def _by_density(self, view: View, jobs: list[int]) -> list[int]:
        return sorted(jobs, key=lambda job: (-self._density(view, job), view.arrival(job), job))

    def _density(self, view: View, job: int) -> float:
        """Return weight / GPU-seconds left, rounded: rounding errors must not break ties."""
        left = self._left[job] * view.gpus(job)
        return leading_of(view.weight(job) / left) if left > 0 else float("inf")
