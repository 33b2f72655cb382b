"""Compiled steps of `optsched.policies.unified_gangs`: the GPU types of the jobs, and two plans of their places.

Every function runs on arrays of the caller and takes the decisions of its readable form in
`optsched.policies.unified_places`, with the same floating-point operations in the same order.
"""

from __future__ import annotations

import math
from typing import Any

from optsched.compiled import KERNEL, NESTED, njit
from optsched.policies.ties import TIE, leading_of
from optsched.policies.unified_gang_deals import DENSITY, PLAN, RANK, SCRATCH, sort_stably
from optsched.policies.unified_places import KEEP
from optsched.problem.arrays import Bools, Floats, Ints

TOGETHER, SPREAD, IDEAL = 0, 1, 2  # rates of a job by type: on one node, over several, in an idle cluster
HELD, DRAFT = 0, 3  # rows of places: held now, and of one that is looked for; between them the two plans
ANY = -1  # GPUs of several types
FIRST = 2.0**40  # more than any number of GPUs: jobs that may stay are placed first


@njit(**KERNEL)
def choose_types(
    gangs: Any, rates: Floats, parts: Ints, kind: Ints, stock: Ints, order: Ints, key: Floats, value: Floats
) -> int:
    """Order the jobs by falling value of a GPU, those dealt GPUs first, and give these the best type with enough left.

    Parameters
    ----------
    gangs
        Active jobs, GANG[m].
    rates
        Rates by row, f64[R, 3, T].
    parts
        Nodes, and GPUs there, that are held, i64[2, G].
    kind
        Type of every node, i64[N].
    stock
        GPUs left of every type, changed in place, i64[T].
    order
        Rows `RANK` (given) and `DENSITY` (set), i64[4, >= m].
    key
        Scratch, f64[>= m].
    value
        Set to the value of the jobs that find a type on every type, in their order; -inf where they cannot run;
        f64[m, T].

    Returns
    -------
    int
        Number of jobs that find a type.
    """
    m, types, dealt, placed = gangs.size, stock.size, 0, 0
    for wanted in (1, 0):
        first = dealt
        for k in range(m):
            i = order[RANK, k]
            if gangs[i].dealt == wanted:
                key[i] = -leading_of(gangs[i].worth / gangs[i].gpus)
                order[DENSITY, dealt] = i
                dealt += 1
        sort_stably(key, order[DENSITY], first, dealt, order[SCRATCH])
    for k in range(m):
        gang = gangs[order[DENSITY, k]]
        gang.type, gang.here = -1, -1
        if gang.parts > 0:
            gang.here = kind[parts[0, gang.at]]
            for p in range(gang.at + 1, gang.at + gang.parts):
                if kind[parts[0, p]] != gang.here:
                    gang.here = -1
                    break
        if not gang.dealt:
            continue
        most, fastest = 0.0, 0.0
        for t in range(types):
            rate = rates[gang.row, IDEAL, t]
            if t == gang.here:
                rate *= KEEP * (gang.kept * gang.kept)
            rate = leading_of(rate)
            value[placed, t] = rate
            fastest = max(fastest, rate)
            if stock[t] >= gang.gpus and rate > most:
                gang.type, most = t, rate
        if gang.type >= 0:
            stock[gang.type] -= gang.gpus
            for t in range(types):
                rate = value[placed, t]
                value[placed, t] = gang.worth / fastest * rate if rate > 0.0 else -math.inf
            placed += 1
    return placed


@njit(**KERNEL)
def may_improve(gangs: Any, order: Ints, value: Floats, stock: Ints, best: Floats) -> bool:
    """Return False if no move and no exchange of two jobs' types can increase the total value. O(m T + T^2).

    Parameters
    ----------
    gangs
        Active jobs, GANG[m].
    order
        Row `DENSITY`: jobs by falling value of a GPU, i64[4, >= m].
    value
        Values of the jobs that found a type, in their order, f64[m, T].
    stock
        GPUs left of every type, i64[T].
    best
        Scratch, f64[T, T].
    """
    types, row, total = stock.size, 0, 0.0
    for s in range(types):
        for t in range(types):
            best[s, t] = -math.inf
    most = 0.0
    for k in range(gangs.size):
        gang = gangs[order[DENSITY, k]]
        if gang.type < 0:
            continue
        s = gang.type
        total += value[row, s]
        for t in range(types):
            gain = value[row, t] - value[row, s]
            best[s, t] = max(best[s, t], gain)
            if stock[t] >= gang.gpus:
                most = max(most, gain)
        row += 1
    for s in range(types):
        for t in range(s):
            most = max(most, best[s, t] + best[t, s])
    return most > TIE * total * (1.0 - 1e-6)  # less than the limit that exchanges must exceed, however it is rounded


@njit(**NESTED)
def _rate_on(rates: Floats, speed: int, kind: Ints, parts: Ints, at: int, count: int) -> float:
    # Rate on some nodes: that of the slowest type.
    form = TOGETHER if count == 1 else SPREAD
    slowest = math.inf
    for p in range(at, at + count):
        slowest = min(slowest, rates[speed, form, kind[parts[0, p]]])
    return slowest


@njit(**NESTED)
def _find(gpus: int, only: int, may: Bools, kind: Ints, free: Ints, draft: Ints) -> int:
    # Write the fewest nodes with enough free GPUs of a type, or of any, as `fewest_nodes` does; return their number.
    nodes, total, found = free.size, 0, 0
    while True:
        fit, widest = -1, -1
        for h in range(nodes):
            room = free[h]
            if room == 0 or not may[h] or (only != ANY and kind[h] != only):
                continue
            taken = False
            for p in range(found):
                taken = taken or draft[0, p] == h
            if taken:
                continue
            if found == 0:
                total += room
            if room >= gpus and (fit < 0 or room < free[fit]):
                fit = h
            if widest < 0 or room > free[widest]:
                widest = h
        if found == 0 and total < gpus:
            return 0
        h = fit if fit >= 0 else widest
        size = gpus if fit >= 0 else free[h]
        p = found
        while p > 0 and draft[0, p - 1] > h:
            draft[0, p], draft[1, p] = draft[0, p - 1], draft[1, p - 1]
            p -= 1
        draft[0, p], draft[1, p] = h, size
        found += 1
        gpus -= size
        if gpus == 0:
            return found


@njit(**NESTED)
def _put(
    gang: Any, only: int, last: int, rates: Floats, may: Bools, kind: Ints, places: Ints, row: int, end: int, free: Ints
) -> tuple[int, float]:
    # Give a job free GPUs on the best type from ``only`` to ``last``, or those that it holds: parts from ``end`` on.
    count, best = 0, 0.0
    if gang.parts > 0:
        stays = True
        for p in range(gang.at, gang.at + gang.parts):
            stays = stays and free[places[HELD, 0, p]] >= places[HELD, 1, p]
        if stays:
            rate = _rate_on(rates, gang.row, kind, places[HELD], gang.at, gang.parts)
            count, best = gang.parts, gang.unit * rate * gang.kept * KEEP
            for p in range(count):
                places[row, 0, end + p], places[row, 1, end + p] = (
                    places[HELD, 0, gang.at + p],
                    places[HELD, 1, gang.at + p],
                )
            fastest = 0.0
            for t in range(rates.shape[2]):
                fastest = max(fastest, rates[gang.row, TOGETHER, t], rates[gang.row, SPREAD, t])
            if not gang.unit * fastest * (1.0 / gang.kept) > best * (1.0 + TIE):
                last = only - 1
    types = rates.shape[2]
    for t in range(only, last + 1):
        found = _find(gang.gpus, ANY if t == types else t, may, kind, free, places[DRAFT])
        if found == 0:
            continue
        value = gang.unit * _rate_on(rates, gang.row, kind, places[DRAFT], 0, found) * (1.0 / gang.kept)
        if value > best * (1.0 + TIE):
            count, best = found, value
            for p in range(count):
                places[row, 0, end + p], places[row, 1, end + p] = places[DRAFT, 0, p], places[DRAFT, 1, p]
    for p in range(end, end + count):
        free[places[row, 0, p]] -= places[row, 1, p]
    return count, best


@njit(**NESTED)
def _plan(
    gangs: Any,
    rates: Floats,
    eligible: Bools,
    kind: Ints,
    stay: bool,
    free: Ints,
    order: Ints,
    key: Floats,
    places: Ints,
    plan: Ints,
    row: int,
) -> float:
    # Total value of a plan: the jobs that have a type, the widest first; then the others, by falling value of a GPU. Set
    # are, by job, its first part and the number of its parts in ``row`` of ``places`` (no parts: it waits), and the jobs
    # in the order in which they were placed. With ``stay``, jobs that may stay on their type come first.
    m, total, end, placed, room, types = gangs.size, 0.0, 0, 0, 0, rates.shape[2]
    for h in range(free.size):
        room += free[h]
    chosen = 0
    for k in range(m):
        i = order[DENSITY, k]
        plan[1, i] = 0
        gang = gangs[i]
        if gang.type >= 0:
            key[i] = -gang.gpus - (FIRST if stay and gang.here == gang.type else 0.0)
            order[PLAN, chosen] = i
            chosen += 1
    sort_stably(key, order[PLAN], 0, chosen, order[SCRATCH])
    for k in range(chosen + m):
        if room == 0:
            break
        i = order[PLAN, k] if k < chosen else order[DENSITY, k - chosen]
        gang = gangs[i]
        if plan[1, i] > 0 or gang.gpus > room:
            continue
        only, last = (gang.type, gang.type) if k < chosen else (0, types if types > 1 else 0)
        count, value = _put(gang, only, last, rates, eligible[gang.row], kind, places, row, end, free)
        if count > 0:
            plan[0, i], plan[1, i], plan[2, placed] = end, count, i
            total += value
            end += count
            placed += 1
            room -= gang.gpus
    return total


@njit(**NESTED)
def _changes(gangs: Any, places: Ints, plan: Ints, row: int, order: Ints) -> tuple[int, int]:
    # Numbers of the jobs that a plan stops and starts, which are written to rows `PLAN` and `SCRATCH`; the plan is held now.
    stops, starts, end, placed = 0, 0, 0, 0
    for k in range(gangs.size):
        i = order[DENSITY, k]
        gang, same = gangs[i], plan[1, i] == gangs[i].parts
        for p in range(gang.parts if same else 0):
            a, b = gang.at + p, plan[0, i] + p
            same = same and places[HELD, 0, a] == places[row, 0, b] and places[HELD, 1, a] == places[row, 1, b]
        if gang.parts > 0 and not same:
            order[PLAN, stops] = i
            stops += 1
        gang.type = 0 if same else 1  # of no use any more
        if plan[1, i] > 0:
            end += plan[1, i]
            placed += 1
    for k in range(placed):
        i = plan[2, k]
        if gangs[i].type == 1:
            order[SCRATCH, starts] = i
            starts += 1
    for i in range(gangs.size):
        gangs[i].at, gangs[i].parts = plan[0, i], plan[1, i]
    for p in range(end):
        places[HELD, 0, p], places[HELD, 1, p] = places[row, 0, p], places[row, 1, p]
    return stops, starts


@njit(**KERNEL)
def place_jobs(
    gangs: Any,
    rates: Floats,
    eligible: Bools,
    kind: Ints,
    size: Ints,
    free: Ints,
    order: Ints,
    key: Floats,
    places: Ints,
    plans: Ints,
) -> tuple[int, int, int]:
    """Make two plans, one of which places the jobs that may stay first, and take the one of the larger value.

    O(m log m + s N) for s jobs that look for a place.

    Parameters
    ----------
    gangs
        Active jobs, GANG[m].
    rates
        Rates by row, f64[R, 3, T].
    eligible
        Nodes that jobs may use by row, bool[R, N].
    kind
        Type of every node, i64[N].
    size
        GPUs of every node, i64[N].
    free
        Scratch, i64[N].
    order
        Row `DENSITY` given. Row `PLAN` is set to the jobs that stop, `SCRATCH` to those that start, i64[4, >= m].
    key
        Scratch, f64[>= m].
    places
        Nodes, and GPUs there, by row; row `HELD` is changed to the plan that is taken, i64[4, 2, G].
    plans
        Scratch, i64[2, 3, >= m].

    Returns
    -------
    tuple
        Numbers of jobs that stop, start, and wait.
    """
    best, taken = 0.0, 0
    for p in range(2):
        for h in range(size.size):
            free[h] = size[h]
        total = leading_of(_plan(gangs, rates, eligible, kind, p == 0, free, order, key, places, plans[p], p + 1))
        if p == 0 or total > best:
            best, taken = total, p
    stops, starts = _changes(gangs, places, plans[taken], taken + 1, order)
    waiting = 0
    for i in range(gangs.size):
        waiting += 1 if gangs[i].parts == 0 else 0
    return stops, starts, waiting
