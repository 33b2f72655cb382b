"""The best schedule of requests within a limit, by partial schedules read backwards in time.

**Partial schedules** (t, state of the cache, requests that are left): layer t has those for which the rounds above t are
decided. The next step lets requests end in round t, or goes to the round before. Starts are free: no list order is assumed.
Only requests of the same kind end in order of arrival (`PriceAscent`), so numbers by kind tell which requests are left.
**Bound**: the priced cost so far, and the least cost from the node on, at the prices of the ascent and at those of the
stretch of rounds (`PriceAscent.rest`, `Stretches`). What is above the limit at one of the two is left out.
**Dominance**: let A and B be in the same layer and state, A with no more cost sum w C so far. B is left out if different
requests of B's stand for all requests that A has left, each with no less peak, output, earliest end and weight. *Proof.*
Take the best completion of B. End every request of A where the one that stands for it ends: in every round it holds no more
cells, and it costs no more. Leave out the other requests. That completes A, fits, and costs no more than B's. [] With equal
prompts and weights, requests are given to those that stand for them in order of output, the longest first, each to the one
with the least earliest end that is large enough; else only equal requests are compared.
**Result**: if nothing was left out for lack of room, the best schedule is optimal, or none costs at most the limit. Else no
schedule costs less than the least bound of those left out.

An optimal schedule need not complete requests in order of output: M = 6, s = 1, o = (2, 2, 3, 3) has the optimum 15, and 16
in that order. So the search assumes no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optsched.classes.kv_cache.solvers.cell_prices import FAR, PriceAscent, Sample
from optsched.classes.kv_cache.solvers.cell_states import Kinds
from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Ints

WORD, HASH = 62, (1 << 62) - 1  # bits of a word of requests left; of a hash
COMPARED = 24  # partial schedules of the same state with which one is compared
BEYOND = 1 << 60
SAMPLED = 60  # partial schedules of a sample


@dataclass(frozen=True)
class FoundEnds:
    """Result of a search.

    ``end`` i64[n] has the completions of the best schedule within the limit, or is None. ``least`` is what no other
    schedule costs less than, in units of 1 / scale, or BEYOND if none was left out. ``finished``: the time was enough.
    """

    end: Ints | None
    least: int
    finished: bool
    partial: int  # partial schedules that were kept, in all layers
    samples: tuple[Sample, ...] = ()


class Layer(NamedTuple):
    """Partial schedules as columns: state, cost at two sets of prices, cost, node of the trail, words of requests left."""

    state: Any
    priced: Ints
    cost: Ints
    trail: Any
    left: Ints

    @classmethod
    def empty(cls, room: int, words: int) -> Layer:
        """Return columns with room.

        Parameters
        ----------
        room
            Number of partial schedules.
        words
            Number of words of requests left.
        """
        state, trail = np.zeros(room, np.int32), np.zeros(room, np.int32)
        return cls(
            state, np.zeros((room, 2), np.int64), np.zeros(room, np.int64), trail, np.zeros((room, words), np.int64)
        )


class Trail:
    """Ends of requests of all partial schedules, as a tree: parent, type and round of every end."""

    def __init__(self, room: int) -> None:
        self.parent, self.kind, self.round = (np.zeros(room, np.int32) for _ in range(3))
        self.count = 1  # position 0 is the root

    def ensure(self, room: int, layer: Layer, count: int) -> None:
        """Make room: forget the ends that no partial schedule has, then grow.

        Parameters
        ----------
        room
            Number of ends.
        layer
            Partial schedules.
        count
            Their number.
        """
        if self.count + room <= self.parent.size:
            return
        self.count = int(_forget(self.parent, self.kind, self.round, self.count, layer.trail, count))
        if self.count + room > self.parent.size // 2:
            more = np.zeros(2 * self.parent.size + room, np.int32)
            self.parent, self.kind, self.round = (
                np.concatenate([x, more]) for x in (self.parent, self.kind, self.round)
            )


def search(ascent: PriceAscent, limit: int, width: int, deadline: Deadline, moments: tuple[int, ...] = ()) -> FoundEnds:
    """Return the best schedule within a limit.

    Parameters
    ----------
    ascent
        Prices; ``rest`` is evaluated for the limit.
    limit
        Largest priced cost, in units of 1 / scale.
    width
        Largest number of partial schedules of a layer.
    deadline
        Time at which to stop.
    moments
        Rounds of which samples of partial schedules are returned.
    """
    types, kinds, top = ascent.types, ascent.kinds, ascent.rest.shape[0] - 1
    bits = np.array([int(count).bit_length() for count in kinds.number.tolist()])
    word, shift, at, used = np.zeros(bits.size, np.int64), np.zeros(bits.size, np.int64), 0, 0
    for q, size in enumerate(bits.tolist()):
        if used + size > WORD:
            at, used = at + 1, 0
        word[q], shift[q], used = at, used, used + size
    packing = word, shift, (1 << bits) - 1
    given = *ascent.states, kinds.first, kinds.least, kinds.weight, kinds.ordered, packing
    room = 4 * width + 64
    now, then = Layer.empty(room, at + 1), Layer.empty(room, at + 1)
    np.add.at(now.left[0], word, kinds.number << shift)
    prices, pair = ascent.prices(top), ascent.rests(top)
    now.priced[0] = prices @ types.number
    samples, before = list[Sample](), np.cumsum(types.number) - types.number - kinds.first[types.kind]
    table, heads, links = (
        np.full(1 << (2 * room).bit_length(), -1, np.int32),
        np.full_like(ascent.states.before, -1),
        np.zeros(room, np.int32),
    )
    trail, count, least, kept = Trail(1 << 16), 1, BEYOND, 0
    for t in range(top, 0, -1):
        trail.ensure(room, now, count)
        tree = trail.parent, trail.kind, trail.round
        if (ascent.prices(t) != prices).any():
            prices, left = ascent.prices(t), (now.left[:count, word] >> shift) & packing[2]
            seats, first = np.append(0, np.cumsum(prices[1, kinds.type])), kinds.first
            now.priced[:count, 1] = now.cost[:count] * ascent.scale + (seats[first + left] - seats[first]).sum(axis=1)
        if deadline.passed:
            bounds = _bounds(now, count, pair)
            return FoundEnds(None, min(least, int(bounds.min(initial=BEYOND))), False, kept)
        pair = ascent.rests(t)
        total, dropped, trail.count = _end_in_round(
            now, count, t, pair, prices[:, kinds.type], given, ascent.scale, limit, tree, trail.count
        )
        least = min(least, int(dropped))
        places = table[: 1 << (2 * int(total)).bit_length()]
        pair = ascent.rests(t - 1, t)
        count = int(_round_before(now, total, then, t, given, pair, limit, places))
        count = int(_undominated(then, count, given, heads, links))
        now, then = then, now
        if t in moments and count:
            rows = np.linspace(0, count - 1, min(count, SAMPLED)).astype(np.int64)
            numbers = (now.left[rows][:, word] >> shift) & packing[2]
            left = np.clip(numbers[:, types.kind] - before, 0, types.number)
            samples.append(Sample(t - 1, now.state[rows].copy(), now.cost[rows].copy(), left))
        if count > width:
            bounds = _bounds(now, count, pair)
            chosen = np.argpartition(bounds, width)
            least = min(least, int(bounds[chosen[width]]))
            chosen = np.sort(chosen[:width])
            for column in now:
                column[:width] = column[chosen]
            count = width
        kept += count
    done = np.flatnonzero(~now.left[:count].any(axis=1) & (now.state[:count] == 0))
    end = _ends(trail, int(now.trail[done[np.argmin(now.cost[done])]]), types.of, kinds) if done.size else None
    return FoundEnds(end, least, True, kept, tuple(samples))


def _bounds(layer: Layer, count: int, rests: Ints) -> Ints:
    """Return the bounds of partial schedules, i64[count]."""
    return np.asarray((layer.priced[:count] + rests[:, layer.state[:count]].T).max(axis=1))


def _ends(trail: Trail, at: int, of: Ints, kinds: Kinds) -> Ints:
    end, seat = np.zeros(of.size, np.int64), np.argsort(of, kind="stable")
    next_seat = kinds.first.tolist()
    while at:  # the earliest end of a kind comes first
        kind = int(trail.kind[at])
        end[seat[next_seat[kind]]] = trail.round[at]
        next_seat[kind] += 1
        at = int(trail.parent[at])
    return end


# --- compiled -------------------------------------------------------------------------------------------------------------


@njit
def _end_in_round(now, count, t, rest, price, given, scale, limit, tree, ends):  # type: ignore[no-untyped-def]
    """Add the partial schedules in which more requests end in round t.

    Returns (their number, least bound of those left out, number of ends).
    """
    added, _, first, least, weight, _, (word, shift, mask) = given
    parent, kind, round_ = tree
    state, priced, cost, trail, left = now
    dropped, at, total = BEYOND, 0, count
    while at < total:
        # requests that end in the same round appear in order of kind, the last first
        latest = word.size - 1 if at < count else kind[trail[at]]
        for q in range(latest, -1, -1):
            y = added[state[at], q]
            if y < 0 or rest[0, y] >= FAR:
                continue
            number = (left[at, word[q]] >> shift[q]) & mask[q]
            seat = first[q] + number - 1
            if number == 0 or t < least[seat]:
                continue
            paid = priced[at, 0] + weight[q] * t * scale - price[0, seat]
            also = priced[at, 1] + weight[q] * t * scale - price[1, seat]
            bound = max(paid + rest[0, y], also + rest[1, y])
            if bound > limit:
                continue
            if total == state.size:
                dropped = min(dropped, bound)
                continue
            state[total], cost[total] = y, cost[at] + weight[q] * t
            priced[total, 0], priced[total, 1] = paid, also
            for w in range(left.shape[1]):
                left[total, w] = left[at, w]
            left[total, word[q]] -= 1 << shift[q]
            parent[ends], kind[ends], round_[ends], trail[total] = trail[at], q, t, ends
            ends, total = ends + 1, total + 1
        at += 1
    return total, dropped, ends


@njit
def _round_before(now, count, then, t, given, rest, limit, table):  # type: ignore[no-untyped-def]
    """Put the partial schedules one round before t into ``then``, the cheapest of equal ones; return their number."""
    _, before, first, least, _, _, (word, shift, mask) = given
    late = least.max() >= t
    state, priced, cost, trail, left = now
    new_state, new_priced, new_cost, new_trail, new_left = then
    total, table[:] = 0, -1
    for i in range(count):
        x = before[state[i]]
        if rest[0, x] >= FAR or max(priced[i, 0] + rest[0, x], priced[i, 1] + rest[1, x]) > limit:
            continue
        ends = True  # every request that is left can end before t
        if late:
            for q in range(word.size):
                number = (left[i, word[q]] >> shift[q]) & mask[q]
                ends = ends and (number == 0 or least[first[q] + number - 1] < t)
        if not ends:
            continue
        mixed = int(x)
        for w in range(left.shape[1]):
            mixed = ((mixed ^ int(left[i, w])) * 1000003) & HASH
            mixed ^= mixed >> 31
        at = mixed & (table.size - 1)
        index = -1
        while table[at] >= 0:
            index = table[at]
            same = new_state[index] == x
            for w in range(left.shape[1]):
                same = same and new_left[index, w] == left[i, w]
            if same:
                break
            index = -1
            at = (at + 1) & (table.size - 1)
        if index < 0:
            index, table[at] = total, total
            total += 1
        elif cost[i] >= new_cost[index]:
            continue
        new_state[index], new_cost[index], new_trail[index] = x, cost[i], trail[i]
        new_priced[index, 0], new_priced[index, 1] = priced[i, 0], priced[i, 1]
        for w in range(left.shape[1]):
            new_left[index, w] = left[i, w]
    return total


@njit
def _undominated(layer, count, given, heads, links):  # type: ignore[no-untyped-def]
    """Leave out partial schedules that others of the same state dominate, and return the number of those left."""
    _, _, first, least, _, ordered, (word, shift, mask) = given
    state, priced, cost, trail, left = layer
    if not ordered or count < 2:
        return count
    kept, free = np.ones(count, dtype=np.bool_), np.zeros(least.size, np.int64)
    for i in np.argsort(cost[:count], kind="mergesort"):
        j, tries = heads[state[i]], 0
        while j >= 0 and tries < COMPARED and kept[i]:
            more, less = 0, True
            for q in range(word.size - 1, -1, -1):
                more += (left[j, word[q]] >> shift[q]) & mask[q]
                more -= (left[i, word[q]] >> shift[q]) & mask[q]
                if more > 0:
                    less = False
                    break
            kept[i] = not (less and _stand_for(left, i, j, first, least, word, shift, mask, free))
            j, tries = links[j], tries + 1
        if kept[i]:
            links[i], heads[state[i]] = heads[state[i]], i
    total = 0
    for i in range(count):
        heads[state[i]] = -1
        if kept[i]:
            state[total], cost[total], trail[total] = state[i], cost[i], trail[i]
            priced[total, 0], priced[total, 1] = priced[i, 0], priced[i, 1]
            for w in range(left.shape[1]):
                left[total, w] = left[i, w]
            total += 1
    return total


@njit
def _stand_for(left, i, j, first, least, word, shift, mask, free):  # type: ignore[no-untyped-def]
    """Return whether different requests of partial schedule i stand for all of j, with no less output and earliest end."""
    count = 0  # of those that are free, in order of earliest end
    for q in range(word.size - 1, -1, -1):
        these, those = (left[i, word[q]] >> shift[q]) & mask[q], (left[j, word[q]] >> shift[q]) & mask[q]
        both = min(these, those)
        for seat in range(first[q] + both, first[q] + these):
            at = count
            while at > 0 and free[at - 1] > least[seat]:
                free[at] = free[at - 1]
                at -= 1
            free[at] = least[seat]
            count += 1
        for seat in range(first[q] + both, first[q] + those):
            at = 0
            while at < count and free[at] < least[seat]:
                at += 1
            if at == count:
                return False
            count -= 1
            for y in range(at, count):
                free[y] = free[y + 1]
    return True


@njit
def _forget(parent, kind, round_, ends, trail, count):  # type: ignore[no-untyped-def]
    """Keep only ends that partial schedules have, and return their number."""
    used = np.zeros(ends, np.int32)
    used[0] = 1
    for i in range(count):
        at = trail[i]
        while used[at] == 0:
            used[at] = 1
            at = parent[at]
    total = 0
    for at in range(ends):  # parents come before their children
        if used[at]:
            used[at] = total
            parent[total], kind[total], round_[total] = used[parent[at]], kind[at], round_[at]
            total += 1
    for i in range(count):
        trail[i] = used[trail[i]]
    return total
