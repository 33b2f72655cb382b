"""The jobs on every GPU if jobs share GPUs, in the terms of policies: jobs by index, GPUs as (node, index)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from optsched.problem.arrays import is_whole
from optsched.problem.instance import Instance
from optsched.simulation.colocation import Neighbours
from optsched.simulation.records import NUMBER
from optsched.simulation.state import State

Gpu = tuple[int, int]


class Neighbourhood:
    """The GPUs of a run and the jobs on them; it always shows the present state.

    Parameters
    ----------
    state
        State of the run.
    neighbours
        The jobs on every GPU, as the engine keeps them.
    instance
        Jobs and a cluster.
    """

    def __init__(self, state: State, neighbours: Neighbours, instance: Instance) -> None:
        self._jobs, self._executions, self._out = state.jobs, state.executions, state.out
        self._width = int(state.engine[0].width)
        self.beside, self._instance = neighbours, instance
        self._node = neighbours.gpus["node"].copy()
        self._index = np.arange(self._node.size) - neighbours.nodes["first"][self._node]

    def held(self, state: State, job: int) -> tuple[Gpu, ...]:
        """Return the GPUs of a running job in the order of its replicas; () while it does not run.

        Parameters
        ----------
        state
            State of the run.
        job
            Index of the job.
        """
        x = int(self._jobs[job].execution)
        if x < 0:
            return ()
        at = x * self._width
        return tuple(self._name_of(g) for g in state.parts["pool"][at : at + self._executions[x].entries].tolist())

    def slowdown(self, job: int, other: int) -> float:
        """Return xi, the slow-down of a job that shares a GPU with another job; inf if the two never share.

        Parameters
        ----------
        job
            Index of the job whose slow-down is asked.
        other
            Index of the job that shares its GPU.
        """
        sharers = self.beside.sharers
        return float(self.beside.slowdown[sharers[job].model, sharers[other].model])

    def choose(self, job: int, gpus: Sequence[Gpu], option: int) -> None:
        """Write GPUs to ``out``, so that a job starts on them next.

        Parameters
        ----------
        job
            Index of the job.
        gpus
            The GPUs as (node, index).
        option
            Index of the job's sub-batch.

        Raises
        ------
        ValueError
            The job may not start there; the message says what is legal, with ``%s`` for the job.
        """
        options = int(self.beside.sharers[job].options)
        if not (isinstance(option, int | np.integer) and 0 <= option < options):
            raise ValueError(f"chooses sub-batch {option!r} for %s (expected: 0..{options - 1})")
        numbers = [self._number(gpu) for gpu in gpus]
        gang, different = int(self._instance.gpus[job]), len(set(numbers))
        if different != len(numbers) or different != gang:
            raise ValueError(f"chooses {different} GPUs for %s (expected: {gang} different ones)")
        suits, need = self._instance.eligible(job), self.beside.memory[job, option]
        for g in numbers:
            gpu = self.beside.gpus[g]
            stands = all(np.isfinite(self.slowdown(job, other)) for other in self._on(g))
            if not (suits[gpu.node] and gpu.jobs <= 1 and stands) or gpu.free_memory < need:
                legal = "GPUs that suit it, with at most one job that it may run beside, and free memory for it"
                raise ValueError(f"puts %s on GPU {self._name_of(g)} (expected: {legal})")
        self._out[NUMBER, : len(numbers)] = numbers

    def lowest_idle(self, places: Iterable[tuple[int, int]]) -> list[Gpu]:
        """Return the first idle GPUs of nodes, as (node, index).

        Parameters
        ----------
        places
            (node, number of GPUs) for every node that is used.
        """
        found: list[Gpu] = []
        for node, count in places:
            first = int(self.beside.nodes[node].first)
            jobs = self.beside.gpus["jobs"][first : first + int(self._instance.cluster.node_gpus[node])]
            taken = {index for there, index in found if there == node}
            idle = [index for index in np.flatnonzero(jobs == 0).tolist() if index not in taken]
            found += [(int(node), index) for index in idle[:count]]
        return found

    def fitting(self, job: int, option: int, jobs: int) -> list[Gpu]:
        """Return the GPUs with ``jobs`` residents that a job may use and on which its sub-batch fits.

        Parameters
        ----------
        job
            Index of the job.
        option
            Index of the job's sub-batch.
        jobs
            Number of jobs on the GPU: 0 or 1.
        """
        gpus = self.beside.gpus
        suits = self._instance.eligible(job)[self._node]
        fits = gpus["free_memory"] >= self.beside.memory[job, option]
        rows = np.flatnonzero(suits & (gpus["jobs"] == jobs) & fits)
        if jobs:
            model, resident = self.beside.sharers["model"], np.maximum(gpus["one"], gpus["other"])[rows]
            rows = rows[np.isfinite(self.beside.slowdown[model[job], model[resident]])]
        return list(zip(self._node[rows].tolist(), self._index[rows].tolist(), strict=True))

    def residents(self, gpu: Gpu) -> tuple[int, ...]:
        """Return the jobs on a GPU: none, one or two.

        Parameters
        ----------
        gpu
            The GPU as (node, index).

        Raises
        ------
        ValueError
            There is no such GPU.
        """
        return self._on(self._number(gpu))

    def _on(self, g: int) -> tuple[int, ...]:
        gpu = self.beside.gpus[g]
        return tuple(sorted(int(j) for j in (gpu.one, gpu.other) if j >= 0))

    def _number(self, gpu: Gpu) -> int:
        size = self._instance.cluster.node_gpus
        whole = isinstance(gpu, tuple | list) and len(gpu) == 2 and all(map(is_whole, gpu))
        if not (whole and 0 <= gpu[0] < size.size and 0 <= gpu[1] < size[gpu[0]]):
            legal = f"(node, index) of the GPUs of {self._instance.cluster.spec}"
            raise ValueError(f"names GPU {gpu!r} (expected: {legal})")
        return int(np.searchsorted(self._node, gpu[0])) + int(gpu[1])

    def _name_of(self, g: int) -> Gpu:
        return int(self._node[g]), int(self._index[g])
