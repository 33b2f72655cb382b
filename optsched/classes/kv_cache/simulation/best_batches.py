"""Batches of requests with the least sum of lengths over the square of their number, by dynamic programming."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints

MOST = 10**8  # states of a dynamic program: requests times the size of a batch times cells
NONE = 2**40  # above every sum of lengths


def batch_ranks(arrival: Floats, prompt: Ints, length: Ints, cells: int) -> Ints:
    """Return the place of every request in the concatenation of the best batches, i64[n].

    Requests that arrive together are batched among themselves, later ones behind them. Within a batch the shortest is first.

    Parameters
    ----------
    arrival
        Arrivals, f64[n].
    prompt
        Prompt tokens, i64[n].
    length
        Output tokens, i64[n].
    cells
        M, the cells of the cache.

    Raises
    ------
    InputError
        A dynamic program would have more than `MOST` states.
    """
    place, done = np.empty(prompt.size, dtype=np.int64), 0
    for time in np.unique(arrival):
        left = np.flatnonzero(arrival == time)
        left = left[np.argsort(length[left], kind="stable")]
        while left.size:
            batch = best_batch(prompt[left] + length[left], length[left], cells)
            place[left[batch]] = done + np.arange(batch.size)
            done, left = done + batch.size, np.delete(left, batch)
    return place


def best_batch(peak: Ints, length: Ints, cells: int) -> Ints:
    """Return the set X of requests with a sum of peaks of at most M and the least sum of lengths over |X|^2.

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
        Positions of the requests in rising order, i64[|X|]; of equally good sets one with the fewest requests.

    Raises
    ------
    InputError
        The dynamic program would have more than `MOST` states.

    Notes
    -----
    ``least[k, m]`` is the least sum of lengths of k requests with a sum of peaks of at most m. O(n K M) if at most K
    requests fit together.
    """
    most = int(np.searchsorted(np.cumsum(np.sort(peak)), cells, side="right"))
    states = peak.size * (most + 1) * (cells + 1)
    if states > MOST:
        legal = f"false, or requests and cells with at most {MOST:,} states of the dynamic program, not {states:,}"
        raise InputError("the best batches take too long", field="exact", value=True, legal=legal)
    least = np.full((most + 1, cells + 1), NONE)
    least[0] = 0
    taken = np.zeros((peak.size, most + 1, cells + 1), dtype=bool)
    for i, (own, tokens) in enumerate(zip(peak.tolist(), length.tolist(), strict=True)):
        with_it = least[:-1, : cells + 1 - own] + tokens
        taken[i, 1:, own:] = with_it < least[1:, own:]
        least[1:, own:] = np.minimum(least[1:, own:], with_it)
    size = int(np.argmin(least[1:, cells] / np.arange(1, most + 1) ** 2)) + 1
    batch, held = list[int](), cells
    for i in range(peak.size - 1, -1, -1):
        if taken[i, size - len(batch), held]:
            batch.append(i)
            held -= int(peak[i])
    return np.array(batch[::-1])
