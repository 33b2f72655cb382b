"""List schedules of requests, and a local search over their orders.

A list schedule starts the requests of an order one by one, each at the earliest boundary at which it fits for good. The
search moves one request to another place, or swaps two, and accepts what is at most a little worse than the best order
(record-to-record travel); the limit falls to nothing. List schedules need not have the optimum.

**Complexity** O(n x output) an order, compiled. **Reference** Dueck, J. Computational Physics 104 (1993), 86-92.
"""

from __future__ import annotations

import numpy as np

from optsched.classes.kv_cache.problem.requests import Requests
from optsched.compiled import njit, slice_of, worked
from optsched.deadline import NEVER, Deadline
from optsched.problem.arrays import Ints

SLICE, BEYOND = 200_000, 1 << 60  # requests that a call places, about
WORSE = 0.006  # times the best value: what is accepted at first
MODULUS, FACTOR = 2147483647, 48271  # of the random numbers: Park and Miller


def list_ends(requests: Requests, weight: Ints, order: Ints, steps: int = 0, deadline: Deadline = NEVER) -> Ints:
    """Return completions of the best list schedule that a search from an order on finds, i64[n].

    Parameters
    ----------
    requests
        Requests.
    weight
        Weights, i64[n].
    order
        Order to begin with, i64[n]; the search changes it.
    steps
        Number of orders that are tried.
    deadline
        Time at which to stop.
    """
    arrival = np.asarray(requests.arrival, dtype=np.int64)
    size = int(arrival.max() + requests.output.sum()) + int(requests.output.max()) + 2
    given = arrival, requests.prompt, requests.output, weight, requests.cells
    best, profile, start = order.copy(), np.zeros(size, np.int64), np.zeros(order.size, np.int64)
    least, draw, step = int(_cost(order, given, profile, start, BEYOND)), 1, 0
    while step < steps and not deadline.passed:
        count = min(slice_of(_search, SLICE) // order.size + 1, steps - step)
        left = np.array([steps - step, steps - step - count, steps])
        least, draw = _search(order, best, given, profile, start, left, least, draw)
        worked(_search, count * order.size)
        step += count
    _cost(best, given, profile, start, BEYOND)
    return start + requests.output


@njit
def _cost(order, given, profile, start, most):  # type: ignore[no-untyped-def]
    """Return the cost sum w C of an order, and set its starts; above ``most`` the rest is not looked at."""
    arrival, prompt, output, weight, cells = given
    profile[:] = 0
    total = 0
    for i in order:
        k, j, s = arrival[i], output[i], prompt[i]
        while j >= 1:
            over = profile[k + j] + s + j - cells
            if over > 0:  # it fits round k + j only as a later start holds less there
                k += min(over, j)
                j = output[i]
            else:
                j -= 1
        for j in range(1, output[i] + 1):
            profile[k + j] += s + j
        start[i] = k
        total += weight[i] * (k + output[i])
        if total > most:
            break
    return total


@njit
def _search(order, best, given, profile, start, left, least, draw):  # type: ignore[no-untyped-def]
    """Try orders while left[0] to left[1] of left[2] are left; put the best into ``best``, return (its cost, draw)."""
    n = order.size
    for step in range(left[0], left[1], -1):
        draw = draw * FACTOR % MODULUS
        a = draw % n
        draw = draw * FACTOR % MODULUS
        b, swapped = draw // 2 % n, draw % 2 == 0
        moved = order[a]
        if swapped:
            order[a], order[b] = order[b], moved
        else:
            _shift(order, a, b)
        most = least + int(WORSE * least * step / left[2])
        cost = _cost(order, given, profile, start, most)
        if cost < least:
            least = cost
            best[:] = order
        if cost > most:
            if swapped:
                order[b], order[a] = order[a], moved
            else:
                _shift(order, b, a)
    return least, draw


@njit
def _shift(order, a, b):  # type: ignore[no-untyped-def]
    """Move the request at place a to place b."""
    moved, step = order[a], 1 if a < b else -1
    for k in range(a, b, step):
        order[k] = order[k + step]
    order[b] = moved
