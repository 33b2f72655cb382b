"""`Placement`: a compiled rule that chooses the GPUs of a gang; `SharedRule`: its form for jobs that share GPUs."""

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

    ``place(gpus, open, load, gpu_node, node_first, random, numbers, out_gpu)`` writes the GPUs of the workers in order
    and returns their number, or 0. A gang fits if at least as many GPUs are open as it has workers, and then the rule
    must place it.

    Attributes
    ----------
    place
        The compiled rule. ``open`` marks the GPUs that suit the job and have enough free memory (scratch of the engine,
        which the rule may change); ``load`` is seconds of work that the residents of every GPU still have; GPU g is on
        node ``gpu_node[g]``; node m has the GPUs ``node_first[m]`` .. ``node_first[m + 1] - 1``.
    numbers
        Parameters of the rule.
    seconds_per_byte
        Seconds that a byte counts in ``load``: an iteration of a job that spans nodes counts this many seconds for each
        byte of its message, in addition to forward and backward passes. None: b of the instance's contention model.
    """

    place: Callable[..., int]
    numbers: tuple[float, ...] = ()
    seconds_per_byte: float | None = None


@dataclass(frozen=True)
class Placement:
    """A placement rule.

    ``place(job, gpus, free, size, eligible, random, tables, out_node, out_count)`` writes the nodes and the GPUs that
    each of them gives, and returns the number of entries, 0 if the gang has to wait. The entries hold the replicas of a
    job with a profile in order, stage after stage; a node may appear in several of them. Such a rule may read
    ``tables`` (`optsched.speeds.speed_tables`).

    The rule is compiled with `SIGNATURE`. It depends on nothing else, does not change ``free``, and is monotone: a gang
    that fits still fits if more GPUs are free. Whether a job fits depends on its gang and its eligible nodes alone.

    Attributes
    ----------
    name
        Name on the command line and in reports.
    place
        The compiled rule.
    pooled
        True if the rule never looks at nodes. Alike nodes are then one pool if no job's speed depends on its nodes, and
        GPUs get their names after the run.
    any_free
        True if a gang fits whenever enough eligible GPUs are free; theorems on gangs assume it.
    seed
        Seed of the rule's random numbers.
    shared
        The same rule at the task level, where jobs share GPUs; None if the rule gives whole GPUs only.
    """

    name: str
    place: Callable[..., int]
    pooled: bool = False
    any_free: bool = False
    seed: int = 0
    shared: SharedRule | None = None

    def random_state(self) -> Any:
        """Return a new state of the rule's own random numbers, u64[1], so that every run starts from the seed."""
        return np.array([self.seed * 0x9E3779B97F4A7C15 % 2**64 or 0x2545F4914F6CDD1D], dtype=np.uint64)


def compiled(function: Callable[..., int]) -> Callable[..., int]:
    """Compile a function with the signature of a placement rule, `SIGNATURE`, and keep the code on disk.

    Parameters
    ----------
    function
        The rule: ``(job, gpus, free, size, eligible, random, tables, out_node, out_count)`` to the number of entries.
    """
    result: Callable[..., int] = njit(signature=SIGNATURE)(function)
    return result


def compiled_shared(function: Callable[..., int]) -> Callable[..., int]:
    """Compile a function with the signature of a placement rule of the task level, and keep the code on disk.

    Parameters
    ----------
    function
        The rule: ``(gpus, open, load, gpu_node, node_first, random, numbers, out_gpu)`` to the number of GPUs.
    """
    result: Callable[..., int] = njit(signature=SHARED_SIGNATURE)(function)
    return result
