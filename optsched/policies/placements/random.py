"""``random``: free GPUs drawn without replacement."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import NESTED, njit
from optsched.errors import check_legal
from optsched.policies.placements import PLACEMENTS
from optsched.simulation.placement import Placement, SharedRule, compiled, compiled_shared


@njit(**NESTED)
def uniform(random: Any) -> float:
    """Return the next of uniform numbers in [0, 1): xorshift64*, 53 bits.

    Parameters
    ----------
    random
        State of the random numbers, u64[]; changed in place.
    """
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return ((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def _random(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    total = 0
    for p in range(free.size):
        if eligible[p]:
            total += free[p]
    if total < gpus:
        return 0
    entries = 0
    left = gpus
    for p in range(free.size):  # selection sampling: every set of `gpus` free GPUs is equally likely
        if not eligible[p]:
            continue
        taken = 0
        for _ in range(free[p]):
            if uniform(random) * total < left:
                taken += 1
                left -= 1
            total -= 1
        if taken > 0:
            out_node[entries] = p
            out_count[entries] = taken
            entries += 1
    return entries


@compiled_shared
def _random_open(
    gpus: int, open: Any, load: Any, gpu_node: Any, node_first: Any, random: Any, numbers: Any, out_gpu: Any
) -> int:
    total = 0
    for g in range(open.size):
        total += open[g]
    if total < gpus:
        return 0
    taken = 0
    for g in range(open.size):
        if not open[g]:
            continue
        if uniform(random) * total < gpus - taken:
            out_gpu[taken] = g
            taken += 1
        total -= 1
    return taken


@PLACEMENTS.register("random")
def random(seed: int = 0) -> Placement:
    """g free eligible GPUs, every set equally likely; the same ``seed`` gives the same run. Complexity O(free GPUs).

    Where jobs share GPUs: g of those with enough free memory.

    Parameters
    ----------
    seed
        Seed of the random numbers.

    Raises
    ------
    InputError
        For an illegal value.
    """
    check_legal(seed >= 0, "random: seed", seed, "an integer >= 0")
    return Placement("random", _random, any_free=True, seed=seed, shared=SharedRule(_random_open))
