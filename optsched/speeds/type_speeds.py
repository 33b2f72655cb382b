"""Speeds of jobs by GPU type, and by group of alike nodes, for policies on heterogeneous clusters.

This is the readable form of the rate model. A gang whose GPUs are all of type t runs at the rate of that type for its
size, consolidated (one node) or not (several). A gang of several types works in step, so it runs at the slowest of its
types. In a cluster of one-GPU nodes it is not known which nodes share a machine: the rate of a consolidated gang
applies, as in the simulator that throughput tables come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_columns import JobColumns
from optsched.problem.job_speeds import JobSpeeds, Nodes, TypePaces
from optsched.speeds.duration import segment_paces


@dataclass(frozen=True, eq=False)
class TypeSpeeds:
    """Speeds of n jobs on T GPU types and N nodes.

    ``together``, ``spread`` f64[n, T]: units of work a second of a job's whole gang on GPUs of one type, consolidated
    on one node and over several; 0 where it may not run. ``node_type``, ``node_gpus`` i64[N]; ``capacity`` i64[T]
    GPUs.
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
        """True if all nodes hold one GPU; then every gang runs at the rate of a consolidated one."""
        return bool((self.node_gpus == 1).all())

    @cached_property
    def largest_node(self) -> Ints:
        """GPUs of the largest node of every type, i64[T]."""
        largest = np.zeros(len(self.types), dtype=np.int64)
        np.maximum.at(largest, self.node_type, self.node_gpus)
        return largest

    def rate(self, job: int, nodes: Iterable[int]) -> float:
        """Return the units of work a second of a job with its gang on some nodes; 0 where it may not run.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Nodes of the gang.
        """
        used = sorted(set(nodes))
        table = self.together if len(used) == 1 or self.one_gpu_nodes else self.spread
        return float(min(table[job, self.node_type[node]] for node in used))

    @cached_property
    def reachable(self) -> tuple[Floats, Floats]:
        """(together, spread) f64[n, T], with 0 where no placement of the gang on that type reaches the rate.

        A gang larger than every node of a type is never consolidated there; one GPU, or a cluster of one-GPU nodes, is
        never spread over nodes. (A gang over several nodes may take GPUs of other types too, at the rate of the
        slowest.)
        """
        gang = self.gang[:, None]
        fits = np.ones_like(gang, dtype=bool) if self.one_gpu_nodes else gang <= self.largest_node[None, :]
        apart = (gang > 1) & (not self.one_gpu_nodes) & (self.node_type.size > 1)
        return np.where(fits, self.together, 0.0), np.where(apart, self.spread, 0.0)

    @cached_property
    def fastest(self) -> Floats:
        """Best rate of every job on any placement, f64[n]: a mixed gang is no faster than its types alone."""
        together, spread = self.reachable
        best: Floats = np.maximum(together, spread).max(axis=1, initial=0.0)
        return best

    @cached_property
    def slowest(self) -> Floats:
        """Worst rate of every job on GPUs that it may use, f64[n]."""
        worst = np.full(self.gang.size, np.inf)
        for table in self.reachable:
            worst = np.minimum(worst, np.where(table > 0, table, np.inf).min(axis=1, initial=np.inf))
        return worst


def type_speeds(instance: Instance) -> TypeSpeeds:
    """Return the speeds of all jobs by GPU type.

    They are from the throughput table, 1 for jobs with durations, 1/alpha_min for stage profiles. For a job at a
    scaling profile they are those of its fastest placements on one node and over several, equal for all types (in a
    cluster of one-GPU nodes, `rate` reads the one over several nodes). O(n T) plus one look-up a distinct kind of job.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        A profile or a bandwidth that it needs is missing.
    """
    cluster = instance.cluster
    may = eligible_types(instance)
    together, spread = may.astype(np.float64), may.astype(np.float64)
    for speeds in instance.speeds:
        together[speeds.jobs], spread[speeds.jobs] = speeds.rates_by_type(together[speeds.jobs])
    return TypeSpeeds(cluster.gpu_types, cluster.node_type, cluster.node_gpus, instance.gpus, together, spread)


def eligible_types(instance: JobColumns) -> Bools:
    """Return the types that every job may use, bool[n, T]: those with a node that suits the job.

    Nodes of one type may differ in memory.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    cluster, types = instance.cluster, range(len(instance.cluster.gpu_types))
    suits = [instance.class_eligible[:, cluster.node_type == t].any(axis=1) for t in types]
    return np.asarray(np.stack(suits, axis=1)[instance.job_class])


class RatesByType(JobSpeeds, ABC):
    """A speed model that states the rates of a gang on one type."""

    sees_types = True

    @abstractmethod
    def rates(self, profile: str, gang: int, gpu: str) -> tuple[float, float]:
        """Return the iterations/s of a gang on GPUs of one type, on one node and over several; 0: it does not run.

        Parameters
        ----------
        profile
            Name of the profile.
        gang
            GPUs of the gang.
        gpu
            GPU type.
        """

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
        """Return the units of work a second on GPUs of one type, together and spread, f64[k, T] each.

        Parameters
        ----------
        may
            1 where a job may use a type, otherwise 0, f64[k, T].
        """
        row, together, spread = self._rows
        return np.where(may > 0, together[row], 0.0), np.where(may > 0, spread[row], 0.0)

    def paces(self) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore"):  # inf is out of range
            return self.in_range(1.0 / self._rates.fastest, 1.0 / self._rates.slowest)

    def solo(self) -> tuple[Floats, Bools]:
        self.paces()
        rates: dict[tuple[int, int], float] = {}
        seconds = np.zeros(self.jobs.size)
        for k, (j, row) in enumerate(zip(self.jobs.tolist(), self._rows[0].tolist(), strict=True)):
            key = row, int(self.instance.job_class[j])
            if key not in rates:
                rates[key] = self._best_rate(k, self.instance.eligible(j))
            seconds[k] = self.instance.work[j] / rates[key]
        return seconds, np.ones(self.jobs.size, dtype=np.bool_)

    def _best_rate(self, k: int, eligible: Bools) -> float:
        """Return the best rate of a gang: on a node that holds it, or over the fastest nodes that do together."""
        speeds = self._rates
        gang, node_type = int(speeds.gang[k]), speeds.node_type
        nodes = np.flatnonzero(eligible)
        whole = nodes[speeds.node_gpus[nodes] >= gang]
        best = float(speeds.together[k, node_type[whole]].max(initial=0.0))
        table = speeds.together if speeds.one_gpu_nodes else speeds.spread
        rate = table[k, node_type[nodes]]
        order = np.argsort(-rate, kind="stable")
        room = np.cumsum(speeds.node_gpus[nodes[order]])
        enough = (room >= gang) & (np.arange(1, nodes.size + 1) >= 2)  # the fastest nodes that hold it, at least two
        if gang > 1 and enough.any():
            best = max(best, float(rate[order[int(np.argmax(enough))]]))
        return best

    def alike(self, job: int) -> tuple[int, int]:
        """Return a key that jobs share if they are equally fast on the same nodes.

        Parameters
        ----------
        job
            Number of the job.
        """
        return int(self._rows[0][self._position[job]]), int(self.instance.job_class[job])

    def pace(self, job: int, nodes: Nodes) -> float:
        """Return the seconds of a unit of work of a job on some nodes.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        """
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


# --- by group of identical nodes, each of which can train a copy of a job --------------------------------------------------


def group_rates(instance: Instance) -> Floats:
    """Return the units of work a second of a gang on one node of every node group, f64[n, M]; 0: it cannot run.

    O(n M) by the readable formulas of `optsched.speeds.duration`.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    cluster, n = instance.cluster, instance.n
    rates = np.zeros((n, len(cluster.nodes)))
    first = np.searchsorted(cluster.node_group, np.arange(len(cluster.nodes)))
    may = instance.class_eligible[:, first][instance.job_class]
    job, group = np.nonzero(may & (instance.gpus[:, None] <= cluster.node_gpus[first]))
    gangs = instance.gpus[job]
    offset = np.concatenate([[0], np.cumsum(gangs)]).astype(np.int64)
    pace = segment_paces(instance, job, offset, np.repeat(first[group], gangs))
    rates[job, group] = np.where(np.isfinite(pace) & (pace > 0), 1.0 / pace, 0.0)
    return rates


class GroupRates:
    """Rates of n jobs on N nodes in M groups of alike nodes (`Cluster.nodes`).

    A policy uses the entries of jobs that have arrived. ``gang`` i64[n]: GPUs of every job. ``node_group``, ``node_gpus``
    i64[N]: group and GPUs of every node. ``gpu``: GPU type of every group.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    known
        False: raise `KnowledgeError` when a policy asks for rates where jobs have not run.
    """

    def __init__(self, instance: Instance, *, known: bool = True) -> None:
        self._instance, self._known = instance, known
        self.gang: Ints = instance.gpus
        self.node_group: Ints = instance.cluster.node_group
        self.node_gpus: Ints = instance.cluster.node_gpus
        self.gpu = tuple(group.gpu for group in instance.cluster.nodes)

    @cached_property
    def _real(self) -> Floats:
        return group_rates(self._instance)

    @property
    def whole_nodes(self) -> bool:
        """True if every gang is as large as every node."""
        return bool((self._instance.gpus[:, None] == self.node_gpus[None, :]).all()) and self._instance.n > 0

    @property
    def hosts(self) -> Bools:
        """True if a gang of job j may run on one node of group m, bool[n, M]: it fits, and it has a rate there."""
        hosts: Bools = self._real > 0
        return hosts

    @property
    def rates(self) -> Floats:
        """Work a second of a gang of job j on one node of group m, f64[n, M]; 0 where it may not run."""
        self._require("where they have not run yet")
        return self._real.copy()

    @cached_property
    def spread_rates(self) -> Floats:
        """Work a second of a gang that is spread over several nodes of the type of group m, f64[n, M]."""
        self._require("over several nodes")
        speeds = type_speeds(self._instance)
        first = np.searchsorted(self.node_group, np.arange(len(self.gpu)))
        return (speeds.together if speeds.one_gpu_nodes else speeds.spread)[:, speeds.node_type[first]]

    def reference(self, job: int) -> tuple[int, float]:
        """Return the first group that can host a job, and the rate there, which is known to all policies.

        Parameters
        ----------
        job
            Number of the job.
        """
        group = int(np.argmax(self._real[job] > 0))
        return group, float(self._real[job, group])

    def _require(self, where: str) -> None:
        if not self._known:
            raise KnowledgeError(f"a policy that does not know rates asked how fast jobs run {where}")
