"""How fast jobs run on one node of every group of alike nodes: what a policy asks that trains copies on several of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.segment_paces import segment_paces
from optsched.speeds.type_speeds import type_speeds


def group_rates(instance: Instance) -> Floats:
    """Units of work a second of a job's gang on one node of every node group, f64[n, M]; 0 where it may not or cannot run.

    O(n M) by the readable formulas of `optsched.speeds.segment_paces`.
    """
    cluster, n = instance.cluster, instance.n
    rates = np.zeros((n, len(cluster.nodes)))
    first = np.searchsorted(cluster.node_group, np.arange(len(cluster.nodes)))
    may = instance.class_eligible[:, first][instance.job_class] if n else np.zeros(rates.shape, dtype=np.bool_)
    job, group = np.nonzero(may & (instance.gpus[:, None] <= cluster.node_gpus[first]))
    gangs = instance.gpus[job]
    offset = np.concatenate([[0], np.cumsum(gangs)]).astype(np.int64)
    pace = segment_paces(instance, job, offset, np.repeat(first[group], gangs))
    rates[job, group] = np.where(np.isfinite(pace) & (pace > 0), 1.0 / pace, 0.0)
    return rates


class GroupRates:
    """n jobs, N nodes in M groups of alike nodes (`Cluster.nodes`). A policy uses the entries of jobs that have arrived.

    ``node_group``, ``node_gpus``: of every node, i64[N]; ``gpu``: GPU type of every group. ``known`` False:
    `KnowledgeError` for who asks how fast jobs run where they have not run.
    """

    def __init__(self, instance: Instance, *, known: bool = True) -> None:
        self._instance, self._known = instance, known
        self.node_group: Ints = instance.cluster.node_group
        self.node_gpus: Ints = instance.cluster.node_gpus
        self.gpu = tuple(group.gpu for group in instance.cluster.nodes)

    @cached_property
    def _real(self) -> Floats:
        return group_rates(self._instance)

    @property
    def whole_nodes(self) -> bool:
        """Is every gang as large as every node?"""
        return bool((self._instance.gpus[:, None] == self.node_gpus[None, :]).all()) and self._instance.n > 0

    @property
    def hosts(self) -> Bools:
        """May a gang of job j run on one node of group m? bool[n, M]: it fits, and it has a rate there."""
        found: Bools = self._real > 0
        return found

    @property
    def rates(self) -> Floats:
        """Work a second of a gang of job j on one node of group m, f64[n, M], 0 where it may not run: a copy."""
        self._require("where they have not run yet")
        return self._real.copy()

    @property
    def spread_rates(self) -> Floats:
        """The same for a gang that is spread over several nodes of the type of group m, f64[n, M]."""
        self._require("over several nodes")
        return self._spread

    @cached_property
    def _spread(self) -> Floats:
        speeds = type_speeds(self._instance)
        first = np.searchsorted(self.node_group, np.arange(len(self.gpu)))
        return (speeds.together if speeds.one_gpu_nodes else speeds.spread)[:, speeds.node_type[first]]

    def reference(self, job: int) -> tuple[int, float]:
        """(group, rate there) of the first group that can host the job, on which everybody has tried it."""
        group = int(np.argmax(self._real[job] > 0))
        return group, float(self._real[job, group])

    def _require(self, where: str) -> None:
        if not self._known:
            raise KnowledgeError(f"a policy that does not know rates asked how fast jobs run {where}")
