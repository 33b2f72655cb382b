"""What a placement rule is to the task level, where jobs share GPUs: a compiled function from a gang to the GPUs it takes.

``place(gpus, open, load, gpu_node, node_first, random, numbers, out_gpu) -> gpus, or 0`` writes the GPUs of the workers in
order. ``open`` bool[G]: the GPUs that suit the job and have enough free memory (scratch of the engine: it may be changed);
``load`` f64[G] seconds of work that their residents still have; GPU g is on node ``gpu_node[g]``, node m has the GPUs
``node_first[m]`` .. ``node_first[m + 1] - 1``.
A gang fits when as many GPUs are open as it has workers, and then it must be placed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optsched.compiled import njit, types

SIGNATURE = types.int64(
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
    """A placement rule of the task level, its ``numbers``, and what a byte counts in ``load``.

    ``seconds_per_byte``: an iteration of a job that spans nodes counts so many seconds a byte of its message, on top of
    forward and backward; None: b of the instance's contention.
    """

    place: Callable[..., int]
    numbers: tuple[float, ...] = ()
    seconds_per_byte: float | None = None


def compiled_shared(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a placement rule of the task level (and kept on disk)."""
    result: Callable[..., int] = njit(SIGNATURE)(function)
    return result
