"""States of the cache seen backwards in time, and the steps between them.

**Idea.** Read a schedule backwards. A request appears in its last round with its peak p = s + o cells, holds one cell less
in every earlier round, and vanishes when it would hold s. So what can follow a state depends on the cells (and prompts) of
the running requests alone, and not on which requests they are. With equal prompts a state is a partition of at most M cells
into parts of at least s + 1. M = 50 and s = 1 have 204,226 of them, M = 40 and s = 3 some thousands. Usage falls backwards
until the next request appears, so the limit M is checked only then.

**Complexity** O(states x kinds), compiled. Derived here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Ints

ROOMS = 1 << 10, 1 << 13, 1 << 16, 1 << 19  # numbers of states for which there is room, in turn
LARGEST = 80_000_000  # parts and steps of all states
HASH = (1 << 62) - 1


class Kinds(NamedTuple):
    """Requests that differ in their arrival only, by peak, output and weight.

    ``peak``, ``output``, ``weight`` i64[K] are as of requests, ``number`` i64[K] counts them. Requests have seats: kind k
    has seats ``first[k]`` to ``first[k] + number[k] - 1``, in order of arrival. ``least`` i64[n] is the first round in which
    the request of a seat can end, ``type`` i64[n] its type.
    """

    peak: Ints
    output: Ints
    weight: Ints
    number: Ints
    first: Ints
    least: Ints
    type: Ints

    @property
    def ordered(self) -> bool:
        """True if the order of kinds is also that of output and weight."""
        return all(bool((np.diff(column) >= 0).all()) for column in (self.output, self.weight))


class Types(NamedTuple):
    """Requests that are alike, by kind, then by arrival.

    ``least`` i64[Q] is the first round in which a request can end, ``weight`` i64[Q] is as of requests, ``number`` i64[Q]
    counts them, ``of`` i64[n] is the type of every request, ``kind`` i64[Q] the kind of every type.
    """

    least: Ints
    weight: Ints
    number: Ints
    of: Ints
    kind: Ints

    @classmethod
    def of_requests(cls, arrival: Ints, prompt: Ints, output: Ints, weight: Ints) -> tuple[Types, Kinds]:
        """Return the types and the kinds of requests.

        Parameters
        ----------
        arrival
            Boundaries at which requests arrive, i64[n].
        prompt
            Prompt tokens, i64[n].
        output
            Output tokens, i64[n].
        weight
            Weights, i64[n].
        """
        rows = np.stack([prompt + output, output, weight, arrival + output], axis=1)
        unique, of, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        least, weights = np.ascontiguousarray(unique[:, 3]), np.ascontiguousarray(unique[:, 2])
        alike, kind = np.unique(unique[:, :3], axis=0, return_inverse=True)
        kind, seat = kind.reshape(-1).astype(np.int64), np.repeat(np.arange(count.size), count)
        number = np.bincount(kind, count).astype(np.int64)
        first = np.cumsum(number) - number
        peaks, lengths, values = (np.ascontiguousarray(column) for column in alike.T)
        kinds = Kinds(peaks, lengths, values, number, first, least[seat], seat)
        return cls(least, weights, count.astype(np.int64), of.reshape(-1).astype(np.int64), kind), kinds


class CellStates(NamedTuple):
    """States by usage; the first is empty.

    ``added`` i32[S, K] is the state after a request of a kind appears, -1 if it does not fit; ``before`` i32[S] is the state
    in the round before.
    """

    added: Any
    before: Any


def cell_states(cells: int, kinds: Kinds) -> CellStates | None:
    """Return the states that requests can make; None if they are too many.

    Parameters
    ----------
    cells
        M, the cells of the cache.
    kinds
        Kinds of requests.
    """
    prompts, prompt = np.unique(kinds.peak - kinds.output, return_inverse=True)
    longest = min(int(kinds.number.sum()), cells // (int(prompts.min()) + 1))
    for room in ROOMS:
        if room * (longest + kinds.peak.size) > LARGEST:
            return None
        parts, sizes, usage = np.zeros((room, longest), np.int32), np.zeros(room, np.int64), np.zeros(room, np.int64)
        added, before = np.full((room, kinds.peak.size), -1, np.int32), np.zeros(room, np.int32)
        table, of = np.full(room << 2, -1, np.int32), prompt.reshape(-1).astype(np.int64)
        count = int(_collect(cells, kinds.peak, of, prompts, parts, sizes, usage, added, before, table))
        if count >= 0:
            order = np.argsort(usage[:count], kind="stable")
            rank = np.full(count + 1, -1, np.int32)  # the last one is that of position -1
            rank[order] = np.arange(count)
            return CellStates(rank[added[order]], rank[before[order]])
    return None


@njit
def _collect(cells, peak, kind, prompts, parts, sizes, usage, added, before, table):  # type: ignore[no-untyped-def]
    """Collect all states, and return their number; -1: too many. A part is its cells times the prompts, and its prompt."""
    kinds, longest = prompts.size, parts.shape[1]
    part = np.zeros(longest, np.int32)
    count, at = _found(part, 0, 0, parts, sizes, usage, 0, table)
    at = 0
    while at < count:
        size, used = sizes[at], usage[at]
        for q in range(peak.size):
            if used + peak[q] > cells:
                break
            if size == longest:
                continue
            code, x = peak[q] * kinds + kind[q], 0
            while x < size and parts[at, x] >= code:
                part[x] = parts[at, x]
                x += 1
            part[x] = code
            for y in range(x, size):
                part[y + 1] = parts[at, y]
            count, index = _found(part, size + 1, used + peak[q], parts, sizes, usage, count, table)
            if index < 0:
                return -1
            added[at, q] = index
        left, used = 0, 0
        for x in range(size):
            code = parts[at, x] - kinds
            if code // kinds > prompts[code % kinds]:
                part[left] = code
                left, used = left + 1, used + code // kinds
        count, index = _found(part, left, used, parts, sizes, usage, count, table)
        if index < 0:
            return -1
        before[at] = index
        at += 1
    return count


@njit
def _found(part, size, used, parts, sizes, usage, count, table):  # type: ignore[no-untyped-def]
    """Return (number of states, position of the state with these parts), adding it if it is new; position -1: no room."""
    mixed = size
    for x in range(size):
        mixed = ((mixed ^ int(part[x])) * 1000003) & HASH
        mixed ^= mixed >> 31
    at = mixed & (table.size - 1)
    while table[at] >= 0:
        index = table[at]
        same = sizes[index] == size
        x = 0
        while same and x < size:
            same = parts[index, x] == part[x]
            x += 1
        if same:
            return count, index
        at = (at + 1) & (table.size - 1)
    if count == sizes.size:
        return count, -1
    for x in range(size):
        parts[count, x] = part[x]
    sizes[count], usage[count], table[at] = size, used, count
    return count + 1, count
