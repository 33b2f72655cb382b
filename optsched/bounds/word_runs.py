"""Runs of the fast machine for very many jobs: one heap while jobs come, one sort of all that wait when nobody comes.

The verifiers' side (`optsched.bounds.word_verifier`): nothing is shared with `fast_machine`. Ticks below 2**61.
"""

from __future__ import annotations

import numpy as np

from optsched.bounds.word_arithmetic import LOW, WORD, wide_product
from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, pop, push
from optsched.problem.arrays import Bools, Floats, Ints


def stable_order(values: Ints | Floats) -> Ints:
    """``argsort(values, kind="stable")`` of values >= 0, in a quarter of its time.

    One sort of integers: the leading bits of the values as floats, then positions. Where those bits are the same and the
    values are in the wrong order, which is rare, they are sorted again.
    """
    n = values.size
    bits = n.bit_length()
    key = values.astype(np.float64).view(np.int64) >> bits << bits
    key |= np.arange(n)
    key.sort()
    order = key & ((1 << bits) - 1)
    found = values[order]
    wrong = np.flatnonzero(found[1:] < found[:-1])
    if wrong.size:
        leading = key >> bits
        begin, end = (np.unique(np.searchsorted(leading, leading[wrong], side)) for side in ("left", "right"))
        size = end - begin
        again = np.arange(size.sum()) + np.repeat(begin - (np.cumsum(size) - size), size)
        chosen = order[again]
        order[again] = chosen[np.lexsort((chosen, values[chosen], leading[again]))]
    return order


def srpt_sum(release: Ints, work: Ints) -> int:
    """The sum of the completion ticks of SRPT; ``release`` ascending."""
    queue = np.empty_like(work)
    high, low, now, waiting = _srpt(release, work, queue)
    done = now + np.cumsum(np.sort(queue[:waiting]))  # nobody comes any more: shortest first
    return ((int(high) + int((done >> 32).sum())) << 32) + int(low) + int((done & 0xFFFFFFFF).sum())


@njit(**KERNEL)
def _srpt(release: Ints, work: Ints, queue: Ints) -> tuple[np.int64, np.int64, np.int64, int]:
    # until the last release: (sum of completions, high and low with 32 bits, that moment, how many wait in ``queue``)
    now = high = low = np.int64(0)
    waiting = 0
    for j in range(release.size):
        until = release[j]
        while waiting > 0:
            if now + queue[0] > until:
                queue[0] -= until - now  # the least becomes less: still a heap
                break
            now += pop(queue, 0, waiting)
            waiting -= 1
            high += now >> 32
            low += now & 0xFFFFFFFF
        now = until
        waiting = push(queue, 0, waiting, work[j])
    return high, low, now, waiting


def priority_run(release: Ints, work: Ints, served: Ints) -> tuple[Ints, Ints, Ints]:
    """The machine that serves the released job first in ``served``: completions, jobs served in pieces, their integrals.

    ``release`` ascending; i64[n] each. A piece ends at a completion or where a better job comes. The jobs of several pieces
    are indices; their integrals ``sum (end^2 - begin^2)`` over the pieces have three words of 31 bits, i64[3, k], lowest
    first, with carries left.
    """
    n = release.size
    key = np.empty_like(served)  # place in the order, then job
    key[served] = np.arange(n) << WORD
    key |= np.arange(n)
    state, integral, queue = work.copy(), np.zeros((n, 3), dtype=np.int64), np.empty_like(work)
    several = np.zeros(n, dtype=np.bool_)
    now, waiting = _priority_run(release, key, state, several, integral, queue)
    last = np.sort(queue[:waiting]) & LOW  # nobody comes any more: in order
    left, cut = state[last], several[last]
    end = now + np.cumsum(left)
    state[last] = -end
    begun = last[cut]
    words = wide_product(left[cut], 2 * end[cut] - left[cut])
    integral[begun] += np.stack(words[::-1], axis=1)
    held_up = np.flatnonzero(several)
    return -state, held_up, integral[held_up].T


@njit(**KERNEL)
def _priority_run(
    release: Ints, key: Ints, state: Ints, several: Bools, integral: Ints, queue: Ints
) -> tuple[np.int64, int]:
    # Until the last release, but no piece is cut there: (that moment, how many keys wait in ``queue``). The state of a job
    # is the work left, or -completion: one place, since memory is what this waits for.
    n = release.size
    now, upcoming, waiting = np.int64(0), 0, 0
    while True:
        if waiting == 0 and upcoming < n:
            now = max(now, release[upcoming])
        while upcoming < n and release[upcoming] <= now:
            waiting = push(queue, 0, waiting, key[upcoming])
            upcoming += 1
        if upcoming == n:
            break
        best, begin, better = queue[0], now, False
        j = best & LOW
        left = state[j]
        while not better and upcoming < n and now + left > release[upcoming]:
            left -= release[upcoming] - now
            now = release[upcoming]
            while upcoming < n and release[upcoming] == now:
                better = better or key[upcoming] < best
                waiting = push(queue, 0, waiting, key[upcoming])
                upcoming += 1
        if better:
            state[j] = left
            several[j] = True
        elif upcoming == n:  # nobody comes any more: the piece goes on
            now = begin
            break
        else:
            now += left
            pop(queue, 0, waiting)
            waiting -= 1
            state[j] = -now
        if several[j]:
            length, twice = now - begin, now + begin
            bottom = (length & LOW) * (twice & LOW)
            middle = (length >> WORD) * (twice & LOW) + (bottom >> WORD)
            cross = (length & LOW) * (twice >> WORD) + (middle & LOW)
            integral[j, 0] += bottom & LOW
            integral[j, 1] += cross & LOW
            integral[j, 2] += (length >> WORD) * (twice >> WORD) + (middle >> WORD) + (cross >> WORD)
    return now, waiting
