"""The compiled loop of requests, round by round, and its state.

At a boundary, in this order: arrivals join the queue; if the running requests do not fit the next round, some are thrown
out; waiting requests are considered in order of (rank, index), and those that fit start. Then the round runs: every running
request makes a token, and those with all their tokens end. A round costs O(running requests), and so does a request that is
considered; one that does not fit is passed over up to the first boundary at which it can fit if nothing is released early.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.classes.kv_cache.problem.requests import CELL, NEW, REQUEST, ROUND, TICK, Requests
from optsched.classes.kv_cache.simulation.request_policy import ALL, RANDOM, SHORTEST, RequestPolicy
from optsched.compiled import INLINED, KERNEL, njit
from optsched.problem.arrays import Floats, Ints

NOW, AT, NEXT, KNOWN, HEAD, TAIL, RUNNING, LOGGED, EVENTS, STALLED, DRAW, WAKE, USED, CHOSEN, THROWN, LESS = range(16)
CELLS, LEVEL, LOOKS, SKIP, EVICTS, BETA, BATCHES, AFFINE = range(8)
FINISHED, LOG_FULL, PAUSED, ASKED = range(4)
MODULUS, FACTOR = 2147483647, 48271  # of the random numbers: Park and Miller
FAR, TRIES = 2**62, 10_000  # rounds; how often requests are thrown out at random between two ends or arrivals
SLOPES = 2.0 ** np.arange(-16, 5)  # of peaks, in the orders from which batches are chosen


class RoundState(NamedTuple):
    """Arrays of a run: those by request are i64[n] or f64[n], times are ticks (rounds, or 1e-7 s).

    ``reserved`` has the cells that running requests will hold, by round modulo its length. ``queue[HEAD : TAIL]`` are the
    waiting requests, ``running`` those that run in order of start, ``orders`` i64[K, n] those from which batches are chosen.
    A row of the log is an execution; its ``tokens`` are 0 if it was thrown out.
    """

    counters: Ints
    settings: Ints
    arrival: Ints
    nth: Ints  # requests in order of arrival
    prompt: Ints
    output: Ints
    believed: Ints
    rank: Floats
    queue: Ints
    retry: Ints  # round before which a waiting request cannot fit
    running: Ints
    begun: Ints  # round
    since: Ints
    first: Ints  # end of the first round of the last start
    chosen: Ints  # 1: in the batch that is served
    waits: Ints
    reserved: Ints
    orders: Ints
    job: Ints
    start: Ints
    end: Ints
    tokens: Ints


def new_state(requests: Requests, policy: RequestPolicy, believed: Ints, rank: Floats) -> RoundState:
    """Return the state before the first event.

    Parameters
    ----------
    requests
        Requests of the run, with times from the first arrival on.
    policy
        Policy, for its policy.
    believed
        Believed output tokens, i64[n]; the state keeps this array.
    rank
        Ranks, f64[n]; the state keeps this array.
    """
    n, m, counters = requests.n, requests.cells, np.zeros(16, dtype=np.int64)
    arrival = np.ceil(requests.arrival * TICK) if requests.affine else requests.arrival
    counters[KNOWN], counters[DRAW] = n, 1 + policy.seed % (MODULUS - 1)
    numbers = m, int(m * policy.level), policy.looks_ahead, policy.skip, policy.evicts, int(policy.beta * MODULUS)
    batches = policy.batches and not policy.exact
    slopes = SLOPES if batches else SLOPES[:0]
    orders = [np.argsort(believed + x * (believed + requests.prompt), kind="stable") for x in slopes]
    nth, size = np.lexsort((np.arange(n), rank, arrival)), int(requests.output.max()) + m + 2
    parts: list[Any] = [
        counters,
        np.array([*numbers, batches, requests.affine], dtype=np.int64),
        *(arrival.astype(np.int64), nth, requests.prompt.copy(), requests.output.copy(), believed, rank),
        *(np.zeros(size, dtype=np.int64) for size in (2 * n, *[n] * 7, 1 << size.bit_length())),
        np.array(orders, dtype=np.int64).reshape(-1, n),
        *(np.zeros(2 * n + 16, dtype=np.int64) for _ in range(4)),
    ]
    return RoundState(*parts)


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
    c, queue = s.counters, s.queue
    if c[TAIL] == queue.size:
        for k in range(c[HEAD], c[TAIL]):
            queue[k - c[HEAD]] = queue[k]
        c[TAIL], c[HEAD] = c[TAIL] - c[HEAD], 0
    first = s.settings[BATCHES] == 0 and c[HEAD] > 0 and c[HEAD] < c[TAIL] and _before(s, i, queue[c[HEAD]])
    if first:  # as most that are thrown out
        c[HEAD] -= 1
        queue[c[HEAD]] = i
    else:
        k = c[TAIL]
        while k > c[HEAD] and _before(s, i, queue[k - 1]):
            queue[k] = queue[k - 1]
            k -= 1
        queue[k] = i
        c[TAIL] += 1
    c[WAKE] = min(c[WAKE], 0)
    s.retry[i], s.waits[i] = 0, 1


@njit(**INLINED)
def _release(s: Any, i: int) -> None:
    # give back the cells of the rounds that were reserved and will not run
    done, last = s.counters[AT] - s.begun[i], s.believed[i]
    if last <= done < s.output[i]:
        last = done + 1
    if last > done:
        s.counters[WAKE] = -1  # whoever waits may fit earlier
    for q in range(done + 1, last + 1):
        s.reserved[(s.begun[i] + q) & (s.reserved.size - 1)] -= s.prompt[i] + q


@njit(**KERNEL)
def _throw_out(s: Any, k: int) -> None:
    c, i = s.counters, s.running[k]
    if s.settings[LOOKS] != 0:
        _release(s, i)
    done = c[AT] - s.begun[i]
    c[USED] -= s.prompt[i] + done + 1
    c[RUNNING] -= 1
    c[THROWN] += 1
    for at in range(k, c[RUNNING]):
        s.running[at] = s.running[at + 1]
    _log(s, i, 0)
    if s.settings[EVICTS] == SHORTEST:
        s.believed[i] = max(s.believed[i], done)
        s.rank[i] = s.believed[i]
    _join(s, i)


@njit(**KERNEL)
def _make_room(s: Any) -> None:
    """Throw requests out until the others fit the next round; if nobody ends between, admission fills fewer cells."""
    c, rule = s.counters, s.settings[EVICTS]
    c[STALLED] += 1
    while c[USED] > s.settings[CELLS] or (rule == ALL and c[RUNNING] > 0):
        last = c[RUNNING] - 1
        if rule == RANDOM:
            for k in range(last, -1, -1):
                c[DRAW] = c[DRAW] * FACTOR % MODULUS
                if c[DRAW] < s.settings[BETA]:
                    _throw_out(s, k)
            continue
        if rule == SHORTEST:
            length = FAR
            for k in range(c[RUNNING] - 1, -1, -1):  # of equal lengths the one that started last has least progress
                own = max(s.believed[s.running[k]], c[AT] - s.begun[s.running[k]])
                if own < length:
                    last, length = k, own
        _throw_out(s, last)
    most = 1 if rule == ALL else TRIES
    if rule in (ALL, RANDOM) and c[STALLED] > most and c[NEXT] == s.nth.size:
        c[LESS] += 1  # half as many, at last one request at a time, until one ends


@njit(**KERNEL)
def _rounds_until_fit(s: Any, i: int) -> int:
    # If nothing else changes; cells in use grow until a running request ends, so only ends need to be looked at.
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
    c[CHOSEN] -= s.chosen[i]
    s.chosen[i] = 0
    for q in range(1, s.believed[i] * s.settings[LOOKS] + 1):
        s.reserved[(c[AT] + q) & (s.reserved.size - 1)] += s.prompt[i] + q


@njit(**KERNEL)
def _next_batch(s: Any) -> None:
    """Choose the best prefix of waiting requests in some order as the next batch, and put it first in the queue."""
    c, best, order, count = s.counters, np.inf, 0, 0
    for row in range(s.orders.shape[0]):
        held, length, k = 0, 0.0, 0
        for i in s.orders[row]:
            if s.waits[i] != 0:
                held += s.prompt[i] + s.believed[i]
                if held > s.settings[CELLS]:
                    break
                length += s.believed[i]
                k += 1
                if length / (k * k) < best:
                    best, order, count = length / (k * k), row, k
    for i in s.orders[order]:
        if s.waits[i] != 0 and c[CHOSEN] < count:
            s.chosen[i], s.rank[i] = 1, s.believed[i]
            c[CHOSEN] += 1
    place = c[TAIL]  # the others keep their order behind the batch
    for k in range(c[TAIL] - 1, c[HEAD] - 1, -1):
        if s.chosen[s.queue[k]] == 0:
            place -= 1
            s.queue[place] = s.queue[k]
    tail, c[TAIL] = c[TAIL], c[HEAD]
    for i in s.orders[order]:
        if s.chosen[i] != 0:
            _join(s, i)
    c[TAIL] = tail


@njit(**KERNEL)
def _admit(s: Any) -> None:
    """Start waiting requests that fit, in their order."""
    c, looks, k, wake = s.counters, s.settings[LOOKS] != 0, s.counters[HEAD], FAR
    if looks and c[WAKE] > c[AT]:
        return
    released = c[WAKE] < 0
    while k < c[TAIL]:
        if s.settings[BATCHES] != 0 and c[CHOSEN] == 0:
            _next_batch(s)
            k = c[HEAD]
        i = s.queue[k]
        if looks and (released or s.retry[i] <= c[AT]):
            s.retry[i] = c[AT] + _rounds_until_fit(s, i)
        fits = s.retry[i] <= c[AT] if looks else c[RUNNING] == 0 or c[USED] + s.prompt[i] < s.settings[LEVEL] >> c[LESS]
        if fits:
            _start(s, i)
            for q in range(k, c[HEAD], -1):  # those that were passed over
                s.queue[q] = s.queue[q - 1]
            c[HEAD] += 1
        else:
            wake = min(wake, s.retry[i])
            if s.settings[SKIP] == 0:
                break
        k += 1
    c[WAKE] = wake


@njit(**KERNEL)
def _run_round(s: Any) -> None:
    c, length, mask = s.counters, np.int64(1), s.reserved.size - 1
    if s.settings[AFFINE] != 0:
        length = ROUND + REQUEST * c[RUNNING] + CELL * c[USED]
        for k in range(c[RUNNING]):
            if s.begun[s.running[k]] == c[AT]:
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
            c[STALLED], c[LESS] = 0, 0
            _log(s, i, done)
    c[RUNNING] = kept


@njit(patience=4, **KERNEL)
def run_rounds(s: Any, budget: int) -> int:
    """Run until all has ended, the log is full, a prediction is needed, or about ``budget`` tokens are made.

    Parameters
    ----------
    s
        State of the run.
    budget
        Number of tokens.

    Returns
    -------
    int
        `FINISHED`, `LOG_FULL`, `ASKED` or `PAUSED`.
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
        if c[USED] > s.settings[CELLS]:
            _make_room(s)
        _admit(s)
        budget -= c[RUNNING] + 1
        _run_round(s)
    return PAUSED
