"""The best batch of waiting requests, by dynamic programming over the number of requests and the sum of their peaks."""

from __future__ import annotations

import numpy as np

from optsched.compiled import KERNEL, njit
from optsched.problem.arrays import Ints

MOST = 10**8  # states of a dynamic program: requests times the size of a batch times cells
NONE = 2**62


@njit(**KERNEL)
def largest_batch(peak: Ints, cells: int) -> int:
    """Return the largest number of requests whose peaks fit the cache together.

    Parameters
    ----------
    peak
        Peaks in cells, i64[n].
    cells
        Cells of the cache.
    """
    held, count = 0, 0
    for own in np.sort(peak):
        held += own
        if held > cells:
            break
        count += 1
    return count


@njit(patience=2, **KERNEL)
def best_batch(peak: Ints, length: Ints, cells: int) -> Ints:
    """Return the set X of requests with sum of peaks at most M and the least sum of lengths over |X|^2.

    Parameters
    ----------
    peak
        Peaks in cells, i64[n], each at most M.
    length
        Lengths in tokens, i64[n].
    cells
        M, the cells of the cache.

    Returns
    -------
    numpy.ndarray
        Positions of the requests, i64[|X|], the last one first; of equal sets the smallest.

    Notes
    -----
    ``least[k, m]`` is the least sum of lengths of k requests with a sum of peaks of at most m. O(n K M) for batches of at
    most K requests.
    """
    n, most = peak.size, largest_batch(peak, cells)
    least = np.full((most + 1, cells + 1), NONE)
    least[0] = 0
    taken = np.zeros((n, most + 1, cells + 1), dtype=np.bool_)
    for i in range(n):
        own = peak[i]
        for k in range(min(i + 1, most), 0, -1):
            with_it = np.minimum(least[k - 1, : cells + 1 - own], NONE - length[i]) + length[i]
            taken[i, k, own:] = with_it < least[k, own:]
            least[k, own:] = np.minimum(with_it, least[k, own:])
    size = 1
    for k in range(2, most + 1):
        if least[k, cells] * (size * size) < least[size, cells] * (k * k):
            size = k
    batch, held = np.empty(size, dtype=np.int64), cells
    for i in range(n - 1, -1, -1):
        if size > 0 and taken[i, size, held]:
            batch[batch.size - size] = i
            held -= peak[i]
            size -= 1
    return batch
