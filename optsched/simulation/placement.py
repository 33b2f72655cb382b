"""`Placement`: a compiled rule that chooses the GPUs of a gang; `SharedRule`: the same where jobs share GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from optsched.compiled import njit, types
from optsched.speeds.speed_tables import tables_of

TABLES = numba.typeof(tables_of([], np.zeros(0, dtype=np.int64), None))
# place(job, gpus, free[P], size[P], eligible[P], random[1], tables, out_node[W], out_count[W]) -> entries, 0: no place
SIGNATURE = types.int64(
    types.int64,
    types.int64,
    types.int64[::1],
    types.int64[::1],
    types.boolean[::1],
    types.uint64[::1],
    TABLES,
    types.int64[::1],
    types.int64[::1],
)


# place(gpus, open[G], load[G], gpu_node[G], node_first[N + 1], random[1], numbers, out_gpu) -> gpus, 0: no place
SHARED_SIGNATURE = types.int64(
    types.int64,
    types.boolean[::1],
    types.float64[::1],
    types.int64[::1],
    types.int64[::1],
    types.uint64[::1],
    types.float64[::1],
    types.int64[::1],
)


@dataclass(frozen=True)
class SharedRule:
    """A placement rule of the task level.

    ``place(gpus, open, load, gpu_node, node_first, random, numbers, out_gpu)`` writes the GPUs of the workers in order and
    returns how many, or 0. ``open``: the GPUs that suit the job and have enough free memory (scratch of the engine: it may
    be changed); ``load`` seconds of work that their residents still have; GPU g is on node ``gpu_node[g]``, node m has the
    GPUs ``node_first[m]`` .. ``node_first[m + 1] - 1``. A gang fits when as many GPUs are open as it has workers, and then
    it must be placed.
    ``seconds_per_byte``: what a byte counts in ``load``: an iteration of a job that spans nodes counts so many seconds a
    byte of its message, on top of forward and backward; None: b of the instance's contention.
    """

    place: Callable[..., int]
    numbers: tuple[float, ...] = ()
    seconds_per_byte: float | None = None


@dataclass(frozen=True)
class Placement:
    """A placement rule.

    ``place(job, gpus, free, size, eligible, random, tables, out_node, out_count)`` writes which nodes give how many GPUs
    and returns the number of entries, 0 when the gang has to wait. The entries hold the replicas of a job with a profile
    in order, stage after stage (a node may appear in several); such a rule may look at ``tables``
    (`optsched.speeds.speed_tables`). It is compiled with `SIGNATURE`, must depend on nothing else, must not change
    ``free``, and must be monotone: what fits stays possible when more GPUs are free. Whether a job fits must depend on its
    gang and its eligible nodes alone.
    ``pooled``: the rule never looks at nodes, so that alike nodes are one pool (GPUs get their names after the run), where
    no job's speed depends on its nodes.
    ``any_free``: a gang fits whenever as many eligible GPUs are free: an assumption of theorems on gangs.
    ``shared``: the same rule at the task level, where jobs share GPUs; None: it knows whole GPUs only.
    """

    name: str
    place: Callable[..., int]
    pooled: bool = False
    any_free: bool = False
    seed: int = 0
    shared: SharedRule | None = None

    def random_state(self) -> Any:
        """Fresh state of a rule's own random numbers, u64[1]: a run starts from the seed, whatever ran before."""
        return np.array([self.seed * 0x9E3779B97F4A7C15 % 2**64 or 0x2545F4914F6CDD1D], dtype=np.uint64)


def compiled(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a placement rule (and kept on disk)."""
    result: Callable[..., int] = njit(signature=SIGNATURE)(function)
    return result


def compiled_shared(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a placement rule of the task level (and kept on disk)."""
    result: Callable[..., int] = njit(signature=SHARED_SIGNATURE)(function)
    return result
