"""Pools of GPUs, by which prices and capacities are counted: nodes of one GPU type that the same jobs may use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import View


@dataclass(frozen=True, eq=False)
class GpuPools:
    """P pools of H nodes.

    ``pool`` i64[H]: pool of every node. ``size`` i64[H]: GPUs of every node. ``type`` i64[P]: GPU type of every pool.
    ``first`` i64[P]: first node of every pool.
    """

    pool: Ints
    size: Ints
    type: Ints
    first: Ints

    @cached_property
    def capacity(self) -> Ints:
        """GPUs of every pool, i64[P]."""
        return np.bincount(self.pool, weights=self.size, minlength=self.type.size).astype(np.int64)

    @cached_property
    def largest(self) -> Ints:
        """GPUs of the largest node of every pool, i64[P]."""
        largest = np.zeros(self.type.size, dtype=np.int64)
        np.maximum.at(largest, self.pool, self.size)
        return largest

    def rates(self, view: View, job: int) -> tuple[Floats, Floats]:
        """Return the rates (together, spread) of a job that has arrived, f64[P] each.

        Parameters
        ----------
        view
            State of the run.
        job
            Number of the job.

        Returns
        -------
        tuple
            Units of work a second on one node and over several nodes; 0 where the job may not run.
        """
        speeds = view.speeds
        may = view.eligible(job)[self.first]
        together = np.where(may, speeds.together[job, self.type], 0.0)
        if speeds.one_gpu_nodes:
            return together, together
        return together, np.where(may, speeds.spread[job, self.type], 0.0)


def gpu_pools(view: View) -> GpuPools:
    """Return the pools of the cluster: one a GPU type, more if nodes of one type suit different jobs.

    Parameters
    ----------
    view
        State of the run.
    """
    speeds = view.speeds
    _, first, pool = np.unique(view.node_kind, return_index=True, return_inverse=True)
    order = np.argsort(first)  # pools in the order of their first nodes
    first = first[order].astype(np.int64)
    return GpuPools(np.argsort(order)[pool].astype(np.int64), speeds.node_gpus, speeds.node_type[first], first)
