"""Speeds that depend on the GPU types of a gang, and on whether it is on one node: what models of them have in common.

A gang of several types works in step, at the slowest of them. In a cluster of one-GPU nodes nobody knows who sits beside
whom, and the rate of a gang that sits together applies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.job_speeds import JobSpeeds, Nodes, TypePaces
from optsched.speeds.type_speeds import TypeSpeeds, eligible_types


class RatesByType(JobSpeeds, ABC):
    """The rates of the slowest type of a gang; a model says those of a gang on one type."""

    sees_types = True

    @abstractmethod
    def rates(self, profile: str, gang: int, gpu: str) -> tuple[float, float]:
        """Iterations/s of a gang of that size on GPUs of one type, on one node and over several; 0: not at all."""

    @cached_property
    def _rows(self) -> tuple[Ints, Floats, Floats]:
        # (row of each job, together[K, T], spread[K, T]) of K different (profile, gang size)
        types = self.instance.cluster.gpu_types
        kinds = list(zip(self.names, self.instance.gpus[self.jobs].tolist(), strict=True))
        number = {kind: k for k, kind in enumerate(dict.fromkeys(kinds))}
        together, spread = np.zeros((len(number), len(types))), np.zeros((len(number), len(types)))
        for (profile, gang), k in number.items():
            for t, gpu in enumerate(types):
                together[k, t], spread[k, t] = self.rates(profile, gang, gpu)
        return np.array([number[kind] for kind in kinds], dtype=np.int64), together, spread

    @cached_property
    def _rates(self) -> TypeSpeeds:
        instance, cluster = self.instance, self.instance.cluster
        together, spread = self.rates_by_type(eligible_types(instance)[self.jobs].astype(np.float64))
        gangs = instance.gpus[self.jobs]
        return TypeSpeeds(cluster.gpu_types, cluster.node_type, cluster.node_gpus, gangs, together, spread)

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        row, together, spread = self._rows
        return np.where(may > 0, together[row], 0.0), np.where(may > 0, spread[row], 0.0)

    def paces(self) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore"):  # inf is out of range
            return self.in_range(1.0 / self._rates.fastest, 1.0 / self._rates.slowest)

    def solo(self) -> tuple[Floats, Bools]:
        self.paces()
        known: dict[tuple[int, int], float] = {}
        seconds = np.zeros(self.jobs.size)
        for k, (j, row) in enumerate(zip(self.jobs.tolist(), self._rows[0].tolist(), strict=True)):
            key = row, int(self.instance.job_class[j])
            if key not in known:
                known[key] = self._best_rate(k, self.instance.eligible(j))
            seconds[k] = self.instance.work[j] / known[key]
        return seconds, np.ones(self.jobs.size, dtype=np.bool_)

    def _best_rate(self, k: int, eligible: Bools) -> float:
        """The best rate of a gang: on a node that holds it, or over several whose slowest type is as fast as can be."""
        speeds = self._rates
        gang, node_type = int(speeds.gang[k]), speeds.node_type
        nodes = np.flatnonzero(eligible)
        whole = nodes[speeds.node_gpus[nodes] >= gang]
        best = float(speeds.together[k, node_type[whole]].max(initial=0.0))
        table = speeds.together if speeds.one_gpu_nodes else speeds.spread
        rate = table[k, node_type[nodes]]
        order = np.argsort(-rate, kind="stable")
        room = np.cumsum(speeds.node_gpus[nodes[order]])
        enough = (room >= gang) & (np.arange(1, nodes.size + 1) >= 2)  # the fastest nodes that hold it, two at least
        if gang > 1 and enough.any():
            best = max(best, float(rate[order[int(np.argmax(enough))]]))
        return best

    @cached_property
    def _position(self) -> dict[int, int]:
        return {j: k for k, j in enumerate(self.jobs.tolist())}

    def alike(self, job: int) -> tuple[int, int]:
        return int(self._rows[0][self._position[job]]), int(self.instance.job_class[job])

    def pace(self, job: int, nodes: Nodes) -> float:
        rate = self._rates.rate(self._position[job], nodes)
        return 1.0 / rate if rate > 0 else np.inf

    def compiled(self) -> tuple[TypePaces]:
        row, together, spread = self._rows
        if self._rates.one_gpu_nodes:
            spread = together  # nobody knows who sits beside whom
        with np.errstate(divide="ignore"):
            return (TypePaces(row, np.array([1.0 / together, 1.0 / spread])),)
