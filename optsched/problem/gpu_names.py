"""The GPUs that the segments of a schedule occupy, if it is known how many of each pool they take.

A pool is a run of alike GPUs (a node, or many nodes whose GPUs nobody named), numbered consecutively. As long as the
counts never exceed the size of a pool, giving every segment the lowest free numbers at its start always succeeds.
"""

from __future__ import annotations

import math

import numpy as np

from optsched.compiled import KERNEL, njit, types
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance

BITS = 62  # free GPUs in a word: the lowest bit of a word is found without a loop, and no sign is in the way

# One form for arrays that may be written and for those that may not.
_ints, _floats = (types.Array(kind, 1, "C", readonly=True) for kind in (types.int64, types.float64))
_changed = types.int64[::1]


@njit(signature=types.int64(_ints, _floats, _floats, *[_ints] * 7, *[_changed] * 4), **KERNEL)
def _assign(
    pool_first: Ints,
    start: Floats,
    end: Floats,
    by_start: Ints,
    by_end: Ints,
    offset: Ints,
    pool: Ints,
    count: Ints,
    gpu_offset: Ints,
    word_first: Ints,
    size: Ints,
    lowest: Ints,
    free: Ints,
    gpu: Ints,
) -> int:
    # ``size`` free GPUs of every pool; words of bits ``free`` from ``word_first`` on, the first of a pool that
    # may have any is ``lowest``
    ended = 0
    for i in range(by_start.size):
        s = by_start[i]
        while ended < by_end.size and end[by_end[ended]] <= start[s] and start[by_end[ended]] < start[s]:
            done = by_end[ended]
            at = gpu_offset[done]
            for k in range(offset[done], offset[done + 1]):
                p = pool[k]
                for _ in range(count[k]):
                    g = gpu[at] - pool_first[p]
                    word = word_first[p] + g // BITS
                    free[word] |= 1 << (g % BITS)
                    lowest[p] = min(lowest[p], word)
                    at += 1
                size[p] += count[k]
            ended += 1
        at = gpu_offset[s]
        for k in range(offset[s], offset[s + 1]):
            p = pool[k]
            if size[p] < count[k]:
                return int(s)
            size[p] -= count[k]
            word = lowest[p]
            for _ in range(count[k]):
                while free[word] == 0:
                    word += 1
                bit = free[word] & -free[word]
                free[word] ^= bit
                gpu[at] = pool_first[p] + (word - word_first[p]) * BITS + math.frexp(float(bit))[1] - 1
                at += 1
            lowest[p] = word
    return -1


def assign_gpus(
    pool_first: Ints, start: Floats, end: Floats, offset: Ints, pool: Ints, count: Ints
) -> tuple[Ints, Ints, int]:
    """Number the GPUs of every segment.

    Parameters
    ----------
    pool_first
        Pool p owns the GPUs ``pool_first[p] .. pool_first[p + 1] - 1``, i64[P + 1].
    start
        Starts in seconds, f64[S].
    end
        Ends in seconds, f64[S], each after its start.
    offset
        Segment s has the entries ``offset[s] .. offset[s + 1] - 1``, i64[S + 1].
    pool
        Pool of every entry, i64.
    count
        GPUs of every entry, i64.

    Returns
    -------
    tuple[Ints, Ints, int]
        (gpu_offset i64[S + 1], gpu i64[K], s): s is the first segment that does not fit, or -1.

    Notes
    -----
    O(S log S + K), and a word of 62 GPUs at a time in large pools.
    """
    width = np.add.reduceat(np.append(count, 0), offset[:-1]) if start.size else np.zeros(0, dtype=np.int64)
    gpu_offset = np.zeros(start.size + 1, dtype=np.int64)
    np.cumsum(width, out=gpu_offset[1:])
    gpu = np.empty(gpu_offset[-1], dtype=np.int64)
    by_start = np.argsort(start, kind="stable")
    by_end = np.lexsort((start, end))
    times = (np.ascontiguousarray(each, dtype=np.float64) for each in (start, end))
    segments = (np.ascontiguousarray(each, dtype=np.int64) for each in (by_start, by_end, offset, pool, count))
    pool_first = np.ascontiguousarray(pool_first, dtype=np.int64)
    failed = _assign(pool_first, *times, *segments, gpu_offset, *_all_free(pool_first), gpu)
    return gpu_offset, gpu, failed


def named_anyway(instance: Instance, start: Floats, end: Floats, gangs: Ints) -> tuple[Ints, Ints, Ints]:
    """Name the GPUs of segments that may hold more GPUs than there are.

    A segment that fits gets free GPUs. One that does not gets the first GPUs, which others hold, too.

    Parameters
    ----------
    instance
        Instance whose cluster is numbered.
    start
        Starts in seconds, f64[S].
    end
        Ends in seconds, f64[S].
    gangs
        GPUs of every segment, i64[S].

    Returns
    -------
    tuple[Ints, Ints, Ints]
        Offsets of the segments, i64[S + 1]; node and index of every GPU, i64.
    """
    total, one = instance.cluster.gpus, np.arange(gangs.size + 1, dtype=np.int64)
    pool = np.array([0, total + int(gangs.sum())], dtype=np.int64)  # never too few
    offset, gpu, _ = assign_gpus(pool, start, end, one, np.zeros(gangs.size, dtype=np.int64), gangs)
    segment = np.repeat(one[:-1], gangs)
    over = np.bincount(segment[gpu >= total], minlength=gangs.size) > 0
    gpu = np.where(over[segment], (np.arange(gpu.size) - offset[:-1][segment]) % total, gpu)
    nodes = instance.cluster.node_gpus
    node = np.repeat(np.arange(nodes.size), nodes)
    return offset, node[gpu], gpu - node_first(instance)[node[gpu]]


def _all_free(pool_first: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    # (first word of every pool and how many there are, i64[P + 1]; free GPUs and lowest word, i64[P]; words)
    size = np.diff(pool_first)
    words = -(-size // BITS)
    first = np.concatenate([[0], np.cumsum(words)])
    free = np.full(first[-1], (1 << BITS) - 1, dtype=np.int64)
    some = size > 0
    free[first[1:][some] - 1] = (1 << (size - (words - 1) * BITS)[some]) - 1  # the last word of a pool
    return first, size, first[:-1].copy(), free


def node_first(instance: Instance) -> Ints:
    """Return the number of the first GPU of every node, and the number of all GPUs, i64[N + 1].

    Parameters
    ----------
    instance
        Instance whose cluster is numbered.
    """
    return np.concatenate([[0], np.cumsum(instance.cluster.node_gpus)]).astype(np.int64)
