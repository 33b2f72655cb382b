"""Pools of GPUs, by which prices and capacities are counted: nodes of one GPU type that the same jobs may use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.simulation.policy import KnownJobs, View


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


class PoolRates:
    """Rates of jobs on pools, worked out for all jobs at once.

    ``together``, ``spread`` f64[n, P]: units of work a second on one node and over several nodes of the pool's type.

    Parameters
    ----------
    view
        State of the run, or its jobs before it begins.
    pools
        Pools of the cluster.
    """

    def __init__(self, view: View | KnownJobs, pools: GpuPools) -> None:
        speeds = view.speeds
        self.together = np.ascontiguousarray(speeds.together[:, pools.type])
        self.spread = self.together
        if not speeds.one_gpu_nodes:
            self.spread = np.ascontiguousarray(speeds.spread[:, pools.type])
        self._first = pools.first
        self._forbidden: dict[int, Bools | None] = {}  # pools that a kind of jobs may not use

    def forbidden(self, view: View, job: int) -> Bools | None:
        """Return the pools that a job which has arrived may not use, bool[P]; None: it may use all of them.

        Parameters
        ----------
        view
            State of the run.
        job
            Number of the job.
        """
        kind = view.kind(job)
        if kind not in self._forbidden:
            may = view.eligible(job)[self._first]
            self._forbidden[kind] = None if may.all() else ~may
        return self._forbidden[kind]

    def of(self, view: View, job: int) -> tuple[Floats, Floats]:
        """Return the rates (together, spread) of a job that has arrived, f64[P] each; 0 where it may not run.

        Parameters
        ----------
        view
            State of the run.
        job
            Number of the job.
        """
        forbidden = self.forbidden(view, job)
        if forbidden is None:
            return self.together[job], self.spread[job]
        return np.where(forbidden, 0.0, self.together[job]), np.where(forbidden, 0.0, self.spread[job])


def gpu_pools(view: View | KnownJobs) -> GpuPools:
    """Return the pools of the cluster: one a GPU type, more if nodes of one type suit different jobs.

    Parameters
    ----------
    view
        State of the run, or its jobs before it begins.
    """
    speeds = view.speeds
    _, first, pool = np.unique(view.node_kind, return_index=True, return_inverse=True)
    order = np.argsort(first)  # pools in the order of their first nodes
    first = first[order].astype(np.int64)
    return GpuPools(np.argsort(order)[pool].astype(np.int64), speeds.node_gpus, speeds.node_type[first], first)
