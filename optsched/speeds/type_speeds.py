"""How fast jobs run by GPU type: what policies for heterogeneous clusters look at, and the readable form of the rate model.

A gang whose GPUs are all of type t runs at the rate of that type for its size, consolidated (one node) or not (several). A
gang of several types works in step, so it runs at the slowest of its types. Of one-GPU nodes it is not known which
share a machine: the rate of a consolidated gang applies, as in the simulator that throughput tables come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import JobSpeeds, Nodes, TypePaces


@dataclass(frozen=True, eq=False)
class TypeSpeeds:
    """n jobs, T GPU types, N nodes.

    ``together``, ``spread`` f64[n, T]: units of work a second of a job's whole gang on GPUs of one type, consolidated on
    one node and over several; 0 where it may not run. ``node_type``, ``node_gpus`` i64[N]; ``capacity`` i64[T] GPUs.
    """

    types: tuple[str, ...]
    node_type: Ints
    node_gpus: Ints
    gang: Ints
    together: Floats
    spread: Floats

    @cached_property
    def capacity(self) -> Ints:
        """GPUs of every type, i64[T]."""
        return np.bincount(self.node_type, weights=self.node_gpus, minlength=len(self.types)).astype(np.int64)

    @property
    def one_gpu_nodes(self) -> bool:
        """Do all nodes hold one GPU? Then every gang runs at the rate of a consolidated one."""
        return bool((self.node_gpus == 1).all())

    @cached_property
    def largest_node(self) -> Ints:
        """GPUs of the largest node of every type, i64[T]."""
        largest = np.zeros(len(self.types), dtype=np.int64)
        np.maximum.at(largest, self.node_type, self.node_gpus)
        return largest

    def rate(self, job: int, nodes: Iterable[int]) -> float:
        """Units of work a second of ``job`` with its gang on these nodes; 0 where it may not run."""
        used = sorted(set(nodes))
        table = self.together if len(used) == 1 or self.one_gpu_nodes else self.spread
        return float(min(table[job, self.node_type[node]] for node in used))

    @cached_property
    def reachable(self) -> tuple[Floats, Floats]:
        """(together, spread) f64[n, T] with 0 where no placement of the gang on that type reaches the rate.

        A gang larger than every node of a type is never consolidated there; one GPU, or a cluster of one-GPU nodes, is
        never spread over nodes. (A gang over several nodes may take GPUs of other types too, at the rate of the slowest.)
        """
        gang = self.gang[:, None]
        fits = np.ones_like(gang, dtype=bool) if self.one_gpu_nodes else gang <= self.largest_node[None, :]
        apart = (gang > 1) & (not self.one_gpu_nodes) & (self.node_type.size > 1)
        return np.where(fits, self.together, 0.0), np.where(apart, self.spread, 0.0)

    @cached_property
    def fastest(self) -> Floats:
        """The best rate of every job on any placement, f64[n]: a mixed gang is no faster than its types alone."""
        together, spread = self.reachable
        return np.maximum(together, spread).max(axis=1, initial=0.0)

    @cached_property
    def slowest(self) -> Floats:
        """The worst rate of every job on GPUs that it may use, f64[n]."""
        worst = np.full(self.gang.size, np.inf)
        for table in self.reachable:
            worst = np.minimum(worst, np.where(table > 0, table, np.inf).min(axis=1, initial=np.inf))
        return worst


def type_speeds(instance: Instance) -> TypeSpeeds:
    """The speeds of all jobs: from the throughput table, 1 for jobs with durations, 1/alpha_min for stage profiles.

    Of a job at a scaling profile those of its fastest placements on one node and over several, alike for all types (in a
    cluster of one-GPU nodes that over several nodes is what `rate` reads). Raises `InputError` where a profile or
    a bandwidth that it needs is missing. O(n T) after one look a distinct job kind.
    """
    cluster = instance.cluster
    may = eligible_types(instance)
    together, spread = may.astype(np.float64), may.astype(np.float64)
    for speeds in instance.speeds:
        together[speeds.jobs], spread[speeds.jobs] = speeds.rates_by_type(together[speeds.jobs])
    return TypeSpeeds(cluster.gpu_types, cluster.node_type, cluster.node_gpus, instance.gpus, together, spread)


def eligible_types(instance: Instance) -> Bools:
    """Which types every job may use, bool[n, T]: nodes of one type may still differ in memory, and then some suit it."""
    cluster, types = instance.cluster, range(len(instance.cluster.gpu_types))
    if not instance.n:
        return np.zeros((0, len(types)), dtype=bool)
    suits = [instance.class_eligible[:, cluster.node_type == t].any(axis=1) for t in types]
    return np.asarray(np.stack(suits, axis=1)[instance.job_class])


class RatesByType(JobSpeeds, ABC):
    """A model whose jobs run so: it says the rates of a gang on one type."""

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

    def alike(self, job: int) -> tuple[int, int]:
        return int(self._rows[0][self._position[job]]), int(self.instance.job_class[job])

    def pace(self, job: int, nodes: Nodes) -> float:
        rate = self._rates.rate(self._position[job], nodes)
        return 1.0 / rate if rate > 0 else np.inf

    @cached_property
    def _position(self) -> dict[int, int]:
        return {j: k for k, j in enumerate(self.jobs.tolist())}

    def compiled(self) -> tuple[TypePaces]:
        row, together, spread = self._rows
        if self._rates.one_gpu_nodes:
            spread = together  # which nodes share a machine is not known
        with np.errstate(divide="ignore"):
            return (TypePaces(row, np.array([1.0 / together, 1.0 / spread])),)
