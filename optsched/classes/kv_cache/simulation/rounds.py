"""The compiled loop of requests, round by round, and its state.

At a boundary, in this order: arrivals join the queue; if the running requests do not fit the next round, some are thrown
out; waiting requests are considered in order of (rank, index), and those that fit start. Then the round runs: every running
request makes a token, and those with all their tokens end. A request that does not fit is considered again at the first
boundary at which it can fit if nothing is released before its time; so a round costs O(running requests), and a request that
is considered O(its believed tokens). Serving in batches adds O(n) a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.classes.kv_cache.problem.requests import CELL, NEW, REQUEST, ROUND, TICK, Requests
from optsched.classes.kv_cache.simulation.request_policy import ALL, NEWEST, RANDOM, SHORTEST, ServingRules
from optsched.compiled import INLINED, KERNEL, njit
from optsched.problem.arrays import Floats, Ints

# counters
NOW, AT, NEXT, KNOWN, HEAD, TAIL, RUNNING, LOGGED, EVENTS, STALLED, DRAW, WAKE, USED, CHOSEN, THROWN = range(15)
# settings
CELLS, LEVEL, LOOKS, SKIP, EVICTS, CHANCE, BATCHES, AFFINE = range(8)
FINISHED, LOG_FULL, PAUSED, ASKED, STUCK = range(5)
MODULUS, FACTOR = 2147483647, 48271  # of the random numbers: Park and Miller
FAR = 2**62
TRIES = 10_000  # of throwing requests out at random between two ends or arrivals
SLOPES = 2.0 ** np.arange(-16, 5)  # of peaks, in the orders that batches are chosen from


class RoundState(NamedTuple):
    """Arrays of a run; requests that are thrown out join the queue again.

    ``now`` is the boundary in ticks (rounds, or 1e-7 s), ``at`` the number of rounds before it. ``reserved`` has the cells
    that running requests will hold, by round modulo its length.
    """

    counters: Ints
    settings: Ints
    arrival: Ints  # ticks
    nth: Ints  # requests in order of arrival
    prompt: Ints
    output: Ints
    believed: Ints
    rank: Floats
    queue: Ints  # i64[2 n]
    retry: Ints  # round before which a waiting request cannot fit
    running: Ints  # in order of start
    begun: Ints  # round
    since: Ints  # ticks
    first: Ints  # ticks at which the first token of the last start is made
    reserved: Ints
    chosen: Ints  # 1: in the batch that is served
    waits: Ints
    orders: Ints  # i64[K, n]: by length plus a slope times peak
    job: Ints
    start: Ints
    end: Ints
    tokens: Ints


def new_state(requests: Requests, rules: ServingRules, believed: Ints, rank: Floats) -> RoundState:
    """Return the state before the first event.

    Parameters
    ----------
    requests
        Requests of the run, with times from the first arrival on.
    rules
        Rules of the policy.
    believed
        Believed output tokens, i64[n]; the state keeps this array.
    rank
        Ranks, f64[n]; the state keeps this array.
    """
    n, m = requests.n, requests.cells
    arrival = np.ceil(requests.arrival * TICK) if requests.affine else requests.arrival
    counters = np.zeros(15, dtype=np.int64)
    counters[KNOWN], counters[DRAW] = n, 1 + rules.seed % (MODULUS - 1)
    level, chance = int(m * rules.level), int(rules.chance * MODULUS)
    choices = level, rules.looks_ahead, rules.skip, rules.evicts, chance, rules.batches, requests.affine
    longest = int(max(requests.output.max(), m - requests.prompt.min()) + 2)
    orders = np.zeros((0, n), dtype=np.int64)
    if rules.batches:
        orders = np.array([np.argsort(believed + x * (believed + requests.prompt), kind="stable") for x in SLOPES])
    zeros = [np.zeros(n, dtype=np.int64) for _ in range(7)]
    return RoundState(
        counters,
        np.array([m, *choices], dtype=np.int64),
        arrival.astype(np.int64),
        np.lexsort((np.arange(n), rank, arrival)),
        requests.prompt.copy(),
        requests.output.copy(),
        believed,
        rank,
        np.zeros(2 * n, dtype=np.int64),
        *zeros[:5],
        np.zeros(1 << longest.bit_length(), dtype=np.int64),
        *zeros[5:7],
        orders,
        *(np.zeros(2 * n + 16, dtype=np.int64) for _ in range(4)),
    )


def grown(state: RoundState) -> RoundState:
    """Return the same state with a log that is twice as long.

    Parameters
    ----------
    state
        State of a run.
    """
    logs = ("job", "start", "end", "tokens")
    return state._replace(**{name: np.concatenate([getattr(state, name)] * 2) for name in logs})


@njit(**INLINED)
def _log(s: Any, i: int, tokens: int) -> None:
    row = s.counters[LOGGED]
    s.job[row], s.start[row], s.end[row], s.tokens[row] = i, s.since[i], s.counters[NOW], tokens
    s.counters[LOGGED] += 1
    s.counters[EVENTS] += 1


@njit(**INLINED)
def _before(s: Any, i: int, j: int) -> bool:
    return bool(s.rank[i] < s.rank[j] or (s.rank[i] == s.rank[j] and i < j))


@njit(**KERNEL)
def _join(s: Any, i: int) -> None:
    """Insert a request into the queue, ``queue[HEAD : TAIL]`` in order of (rank, index)."""
    c, queue = s.counters, s.queue
    if c[TAIL] == queue.size:
        for k in range(c[HEAD], c[TAIL]):
            queue[k - c[HEAD]] = queue[k]
        c[TAIL] -= c[HEAD]
        c[HEAD] = 0
    low, high = c[HEAD], c[TAIL]
    while low < high:
        middle = (low + high) >> 1
        if _before(s, queue[middle], i):
            low = middle + 1
        else:
            high = middle
    if c[HEAD] > 0 and low - c[HEAD] < c[TAIL] - low:
        c[HEAD] -= 1
        low -= 1
        for k in range(c[HEAD], low):
            queue[k] = queue[k + 1]
    else:
        for k in range(c[TAIL], low, -1):
            queue[k] = queue[k - 1]
        c[TAIL] += 1
    queue[low] = i
    c[WAKE] = min(c[WAKE], 0)
    s.retry[i], s.waits[i] = 0, 1


@njit(**INLINED)
def _release(s: Any, i: int) -> None:
    # give back the cells of the rounds that were reserved and will not run
    done = s.counters[AT] - s.begun[i]
    last = s.believed[i]
    if done >= last and done < s.output[i]:
        last = done + 1
    if last > done:
        s.counters[WAKE] = -1  # whoever waits may fit earlier
    for q in range(done + 1, last + 1):
        s.reserved[(s.begun[i] + q) & (s.reserved.size - 1)] -= s.prompt[i] + q


@njit(**KERNEL)
def _throw_out(s: Any, k: int) -> None:
    """Stop the k-th running request, which loses its tokens and waits again."""
    i = s.running[k]
    if s.settings[LOOKS] != 0:
        _release(s, i)
    done = s.counters[AT] - s.begun[i]
    s.counters[USED] -= s.prompt[i] + done + 1
    for at in range(k, s.counters[RUNNING] - 1):
        s.running[at] = s.running[at + 1]
    s.counters[RUNNING] -= 1
    s.counters[THROWN] += 1
    _log(s, i, 0)
    if s.settings[EVICTS] == SHORTEST:
        s.believed[i] = max(s.believed[i], done)
        s.rank[i] = s.believed[i]
    _join(s, i)


@njit(**KERNEL)
def _make_room(s: Any) -> bool:
    """Throw requests out until the others fit the next round; False if that goes on for ever."""
    c = s.counters
    c[STALLED] += 1
    rule = s.settings[EVICTS]
    if rule == ALL:
        while c[RUNNING] > 0:
            _throw_out(s, c[RUNNING] - 1)
        return bool(c[STALLED] < 2 or c[NEXT] < s.nth.size)
    while c[USED] > s.settings[CELLS]:
        if rule == NEWEST:
            _throw_out(s, c[RUNNING] - 1)
        elif rule == RANDOM:
            for k in range(c[RUNNING] - 1, -1, -1):
                c[DRAW] = c[DRAW] * FACTOR % MODULUS
                if c[DRAW] < s.settings[CHANCE]:
                    _throw_out(s, k)
        else:
            least = 0
            for k in range(1, c[RUNNING]):
                i, j = s.running[k], s.running[least]
                own, other = c[AT] - s.begun[i], c[AT] - s.begun[j]
                length, best = max(s.believed[i], own), max(s.believed[j], other)
                if length < best or (length == best and own < other):
                    least = k
            _throw_out(s, least)
    return bool(rule != RANDOM or c[STALLED] <= TRIES or c[NEXT] < s.nth.size)


@njit(**KERNEL)
def _rounds_until_fit(s: Any, i: int) -> int:
    """Return the rounds after which a request fits if nothing else changes: 0, it fits now.

    Cells in use grow until a running request ends, so only ends need to be looked at.
    """
    c, mask, last = s.counters, s.reserved.size - 1, s.believed[i]
    room = s.settings[CELLS] - s.prompt[i]
    wait = max(min(s.reserved[(c[AT] + last) & mask] + last - room, last), 0)
    for k in range(c[RUNNING]):
        j = s.running[k]
        q = max(s.begun[j] + s.believed[j] - c[AT], 1)
        if q < last:
            wait = max(wait, min(s.reserved[(c[AT] + q) & mask] + q - room, q))
    return wait


@njit(**KERNEL)
def _start(s: Any, i: int) -> None:
    c = s.counters
    s.begun[i], s.since[i], s.first[i], s.waits[i] = c[AT], c[NOW], -1, 0
    s.running[c[RUNNING]] = i
    c[RUNNING] += 1
    c[USED] += s.prompt[i] + 1
    c[EVENTS] += 1
    if s.chosen[i] != 0:
        s.chosen[i] = 0
        c[CHOSEN] -= 1
    if s.settings[LOOKS] != 0:
        for q in range(1, s.believed[i] + 1):
            s.reserved[(c[AT] + q) & (s.reserved.size - 1)] += s.prompt[i] + q


@njit(**KERNEL)
def _next_batch(s: Any) -> None:
    """Choose the waiting requests that are served next, and put them first, the shortest first."""
    c, cells = s.counters, s.settings[CELLS]
    best, order, count = np.inf, 0, 0
    for row in range(s.orders.shape[0]):
        held, length, k = 0, 0.0, 0
        for i in s.orders[row]:
            if s.waits[i] == 0:
                continue
            held += s.prompt[i] + s.believed[i]
            if held > cells:
                break
            length += s.believed[i]
            k += 1
            if length / (k * k) < best:
                best, order, count = length / (k * k), row, k
    for i in s.orders[order]:
        if count == 0:
            break
        if s.waits[i] != 0:
            s.chosen[i] = 1
            c[CHOSEN] += 1
            count -= 1
    # the queue: first the batch, in order of (length, index), then the others in the order that they had
    place = c[TAIL]
    for k in range(c[TAIL] - 1, c[HEAD] - 1, -1):
        i = s.queue[k]
        s.rank[i] = np.inf
        if s.chosen[i] == 0:
            place -= 1
            s.queue[place] = i
    at = c[HEAD]
    for i in s.orders[order]:
        if at == place:
            break
        if s.waits[i] != 0 and s.chosen[i] != 0:
            s.rank[i] = s.believed[i]
            k = at
            while k > c[HEAD] and _before(s, i, s.queue[k - 1]):
                s.queue[k] = s.queue[k - 1]
                k -= 1
            s.queue[k] = i
            at += 1


@njit(**KERNEL)
def _admit(s: Any) -> None:
    """Start waiting requests that fit, in their order."""
    c, looks, batches = s.counters, s.settings[LOOKS] != 0, s.settings[BATCHES] != 0
    if looks and c[WAKE] > c[AT]:
        return
    released, wake, k = c[WAKE] < 0, FAR, c[HEAD]
    while k < c[TAIL]:
        if batches and c[CHOSEN] == 0:
            _next_batch(s)
        i = s.queue[k]
        if looks:
            if released or s.retry[i] <= c[AT]:
                s.retry[i] = c[AT] + _rounds_until_fit(s, i)
            fits = s.retry[i] <= c[AT]
        else:
            fits = c[RUNNING] == 0 or c[USED] + s.prompt[i] + 1 <= s.settings[LEVEL]
        if fits:
            _start(s, i)
            for q in range(k, c[HEAD], -1):  # those that were passed over
                s.queue[q] = s.queue[q - 1]
            c[HEAD] += 1
            k = c[HEAD] if batches and c[CHOSEN] == 0 else k + 1
        else:
            wake = min(wake, s.retry[i])
            if s.settings[SKIP] == 0:
                break
            k += 1
    c[WAKE] = wake


@njit(**KERNEL)
def _run_round(s: Any) -> None:
    c = s.counters
    length, mask = np.int64(1), s.reserved.size - 1
    if s.settings[AFFINE] != 0:
        length = ROUND + REQUEST * c[RUNNING] + CELL * c[USED]
        for k in range(c[RUNNING] - 1, -1, -1):
            if s.begun[s.running[k]] < c[AT]:
                break
            length += NEW * s.prompt[s.running[k]]
    c[NOW] += length
    c[AT] += 1
    s.reserved[c[AT] & mask] = 0
    kept = 0
    for k in range(c[RUNNING]):
        i = s.running[k]
        done = c[AT] - s.begun[i]
        if s.first[i] < 0:
            s.first[i] = c[NOW]
        if done < s.output[i]:
            s.running[kept] = i
            kept += 1
            c[USED] += 1
            if done >= s.believed[i] and s.settings[LOOKS] != 0:
                s.reserved[(c[AT] + 1) & mask] += s.prompt[i] + done + 1
        else:
            if s.settings[LOOKS] != 0:
                _release(s, i)
            c[USED] -= s.prompt[i] + done
            c[STALLED] = 0
            _log(s, i, done)
    c[RUNNING] = kept


@njit(patience=4, **KERNEL)
def run_rounds(s: Any, budget: int) -> int:
    """Run until everything has ended, the log is full, a prediction is needed, or about ``budget`` tokens are made.

    Parameters
    ----------
    s
        State of the run.
    budget
        Number of tokens.

    Returns
    -------
    int
        `FINISHED`, `LOG_FULL`, `ASKED`, `PAUSED`, or `STUCK`: requests are thrown out for ever.
    """
    c, n = s.counters, s.arrival.size
    while budget > 0:
        if c[LOGGED] + c[RUNNING] + n >= s.job.size:
            return LOG_FULL
        if c[RUNNING] == 0 and c[HEAD] == c[TAIL]:
            if c[NEXT] == n:
                return FINISHED
            c[NOW] = max(c[NOW], s.arrival[s.nth[c[NEXT]]])
        while c[NEXT] < n and s.arrival[s.nth[c[NEXT]]] <= c[NOW]:
            if c[NEXT] == c[KNOWN]:
                return ASKED
            _join(s, s.nth[c[NEXT]])
            c[NEXT] += 1
            c[EVENTS] += 1
            c[STALLED] = 0
        if c[USED] > s.settings[CELLS] and not _make_room(s):
            return STUCK
        _admit(s)
        budget -= c[RUNNING] + 1
        _run_round(s)
    return PAUSED
