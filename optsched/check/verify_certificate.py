"""Check a lower bound without optsched: a certificate file against its instance file, by the standard library alone.

    python verify_certificate.py CERTIFICATE INSTANCE

Copy this file and verify_case.py (Python 3.11 or newer). They share no code with what finds the bounds, and compute them
anew, exactly.
Exit code 0: the bound holds; 1: it does not; 2: it cannot be judged here.

**Problem**: jobs with releases r_j, durations p_j, weights w_j, due dates d_j, each on g_j of G GPUs at once, preemptive or
not (classes gang, gang-nonpreemptive); C_max; max (C_j - r_j); sum w_j max(C_j - c_j, 0), c_j = 0, r_j or d_j; and from
above sum w_j p_j / (C_j - r_j).
**Theorems** (proofs: optsched/bounds): release-plus-duration, critical-job, utility-alone: C_j >= r_j + p_j. On one machine
of capacity U a job is an amount u_j p_j of work: u_j = 0 for gangs below a threshold e, U for those above G - e, else g_j;
U: the most GPUs that these fill; times are rounded down. volume: what comes at t or later is done after t. first-come: no
order has a smaller largest flow time. (srpt-)due-dates, srpt: SRPT has the earliest k-th completion for every k; weights are
cut into levels. (mean-, split-)busy-time: C_j >= M_j + p_j / 2, and preemptive WSPT has the least sum of u_j M_j over mean
busy times M_j for any 0 <= u_j <= w_j. lp-dual: prices on cells of time, of rows or of each
job (own); what jobs cost and pay, less what GPUs earn.
**Limits** for files that nobody vouches for: 16 MiB, 100,000 jobs, 10^7 steps of prices, numbers of some 1000 bits. **Not
known here**: speeds by type or placement, shared GPUs, tasks: copy verify_on_clusters.py and what it needs, too.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cmp_to_key, partial
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import (
        DUAL,
        EXACT,
        EXPONENT,
        GAIN_BITS,
        KEPT_BITS,
        KIND,
        MOST_LEVELS,
        MOST_ROWS,
        UNJUDGED,
        WIDEST,
        Case,
        Data,
        Machine,
        below,
        by_cell,
        floors,
        integers,
        main,
        most_together,
        need,
        ratio,
        shown,
        the,
        written,
    )
else:  # copied: the same names
    from verify_case import *  # noqa: F403

# --- one machine ----------------------------------------------------------------------------------------------------------


def srpt_ends(jobs: Iterable[tuple[int, int]]) -> list[int]:
    """When jobs (release, work) end, in order, where the one with the least work left is always served."""
    waiting, ends, now = list[int](), list[int](), 0
    for release, work in sorted(jobs):
        while waiting and now + waiting[0] <= release:
            now += heapq.heappop(waiting)
            ends.append(now)
        if waiting:
            heapq.heapreplace(waiting, waiting[0] - (release - now))
        now = release
        heapq.heappush(waiting, work)
    for work in sorted(waiting):
        now += work
        ends.append(now)
    return ends


def served(jobs: list[tuple[int, int]], rank: list[int]) -> list[tuple[int, int]]:
    """Of jobs (release, work > 0): (end, sum of b^2 - a^2 over pieces [a, b)), where the least rank is always served."""
    order, waiting, now = sorted(range(len(jobs)), key=lambda j: -jobs[j][0]), list[tuple[int, int]](), 0
    left, ends, squares = [work for _, work in jobs], [0] * len(jobs), [0] * len(jobs)
    while order or waiting:
        if not waiting:
            now = max(now, jobs[order[-1]][0])
        while order and jobs[order[-1]][0] <= now:
            heapq.heappush(waiting, (rank[order[-1]], order.pop()))
        j = waiting[0][1]
        end = now + left[j]
        if order:
            end = min(end, jobs[order[-1]][0])
        squares[j] += (end - now) * (end + now)
        left[j], now = left[j] - (end - now), end
        if not left[j]:
            heapq.heappop(waiting)
            ends[j] = now
    return list(zip(ends, squares, strict=True))


def dues(case: Case, on: Machine) -> list[int]:
    """The moment c_j of every job on the machine, less its tail, rounded up to the grid."""
    step = int(on.second / on.capacity) if on.second >= on.capacity else on.second / on.capacity
    if on.tail is None:
        return [-(-c * step // case.unit) * on.capacity for c in case.moment]
    late = (-below(tail - Fraction(c, case.unit)) for c, tail in zip(case.moment, on.tail, strict=True))
    return [math.ceil(Fraction(x) * step) * on.capacity for x in late]


# --- theorems: (value, what files state) of a case and the data of a certificate ------------------------------------------


def alone(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Nobody ever waits; of a maximum the one job that is named; of utility, the terms rounded up."""
    if case.objective == "total_utility":
        works, unit = integers(case.works())
        need(all(p > 0 for p in case.length), "a job takes no time: its utility has no bound")
        columns = zip(case.weight, works, case.length, strict=True)
        units = sum(-(-(w * work * case.unit << GAIN_BITS) // (case.shares * unit * p)) for w, work, p in columns)
        return Fraction(units, 1 << GAIN_BITS), {}
    if "total" in case.objective:
        return case.least, case.stated
    named = [end for name, end in zip(case.ids, case.alone, strict=True) if name == data.get("job")]
    need(named or (not case.ids and data.get("job") is None), "data.job must be the id of a job")
    return Fraction(max(named, default=0), case.unit), {"job": data.get("job")}


def volume(case: Case, data: Data) -> tuple[Fraction, Data]:
    """The end of the last busy period."""
    on, end = case.machine(data), 0
    for release, work in sorted(zip(on.release, on.work, strict=True)):
        end = max(end, release) + work
    return end / on.second, on.stated


def first_come(case: Case, data: Data) -> tuple[Fraction, Data]:
    """How long after r_j the work of j ends, and its tail, where the least of r_j less tail is served first."""
    on = case.machine(data)
    due, used = dues(case, on), [j for j, work in enumerate(on.work) if work]
    ends = served([(on.release[j], on.work[j]) for j in used], [due[j] for j in used])
    return max([0, *(end - due[j] for j, (end, _) in zip(used, ends, strict=True))]) / on.second, on.stated


def srpt(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Completions of SRPT, against due dates in order, level by level of weight; tails follow."""
    on, value, levels = case.machine(data), case.least, stated_levels(data)
    due = dues(case, on) if case.late else []
    for lower, level in pairwise([Fraction(0), *levels]):
        least = math.ceil(level * case.shares)
        chosen = [j for j, w in enumerate(case.weight) if w >= least and on.work[j] > 0]
        ends = srpt_ends((on.release[j], on.work[j]) for j in chosen)
        if case.late:
            ends = [max(end - d, 0) for end, d in zip(ends, sorted(due[j] for j in chosen), strict=True)]
        waited = sum(ends) / on.second
        if on.tail is not None and not case.late:
            waited += sum(on.tail[j] for j in chosen)
        never = sum(case.alone[j] + (case.moment[j] if case.flow else 0) for j in chosen)
        value += (level - lower) * (waited - Fraction(never, case.unit))
    return value, {**case.stated, **on.stated, "levels": [written(level) for level in levels]}


def stated_levels(data: Data) -> list[Fraction]:
    """Levels of weight, which rise from above 0."""
    levels = [ratio(text, "data.levels") for text in the(list, data, "levels")[: MOST_LEVELS + 1]]
    need(len(levels) <= MOST_LEVELS, f"data.levels: more than {MOST_LEVELS}")
    need(all(a < b for a, b in pairwise([Fraction(0), *levels])), "data.levels must ascend from above 0", DUAL)
    return levels


def busy(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Least mean busy times, for the multipliers that are stated or for the weights."""
    on, more, stated, exponent = case.machine(data), Fraction(0), {**case.stated}, multiplier_exponent(data)
    weights = case.kind.endswith("mean-busy-time") or (case.schedule_class == "elastic" and "multipliers" not in data)
    u = weights_on_grid(case, on, exponent) if weights else stated_multipliers(data, on)
    spent_at_most(case, [u], exponent)
    more, part = busy_times(case, on, u, exponent)
    if weights:
        del part["multipliers"]
    return case.least + more, {**stated, "multiplier_exponent": exponent, **part}


def multiplier_exponent(data: Data) -> int:
    """Multipliers are integers over two to the power of this."""
    return int(the(int, data, "multiplier_exponent", least=-EXPONENT, most=EXPONENT))


def weights_on_grid(case: Case, on: Machine, exponent: int) -> list[int]:
    """Weights of jobs with work as multipliers, rounded down."""
    rounded = floors(case.weight, case.shares, exponent)
    return [w if work > 0 else 0 for w, work in zip(rounded, on.work, strict=True)]


def stated_multipliers(data: Data, on: Machine) -> list[int]:
    """One integer >= 0 for every job, 0 without work."""
    u: list[int] = the(list, data, "multipliers")
    legal = len(u) == len(on.work) and all(type(x) is int for x in u)
    need(legal, "data.multipliers must be integers, one for every job")
    legal = all((x > 0 and work > 0) or x == 0 for x, work in zip(u, on.work, strict=True))
    need(legal, "data.multipliers: one is negative, or of a job without work on the machine", DUAL)
    return u


def spent_at_most(case: Case, multipliers: list[list[int]], exponent: int) -> None:
    """No job has more multipliers than its weight."""
    up, down = case.shares << max(-exponent, 0), max(exponent, 0)
    for j, (w, *u) in enumerate(zip(case.weight, *multipliers, strict=True)):
        need(sum(u) * up <= w << down, f"data.multipliers[{j}] are together more than the weight of the job", DUAL)


def busy_times(case: Case, on: Machine, u: list[int], exponent: int) -> tuple[Fraction, Data]:
    """(What multipliers add to the cost of nobody waiting, what files state.)

    Twice the work of a job times its mean busy time is the sum of b^2 - a^2 over its pieces [a, b): work (2 end - work)
    where nothing interrupts it, and less by a gap where something does.
    """
    used = [j for j, x in enumerate(u) if x]

    def denser(i: int, j: int) -> int:
        return on.work[i] * u[j] - on.work[j] * u[i] or on.release[i] - on.release[j]

    order = sorted(used, key=cmp_to_key(denser))
    rank = {j: place for place, j in enumerate(order)}
    pieces = served([(on.release[j], on.work[j]) for j in used], [rank[j] for j in used])
    doubled, gaps = Fraction(0), list[tuple[int, int, int]]()
    whole = 0
    for j, (end, squares) in zip(used, pieces, strict=True):
        whole += u[j] * (2 * end - on.work[j])
        gap = on.work[j] * (2 * end - on.work[j]) - squares
        if gap:
            gaps.append((u[j], gap, on.work[j]))
    kept = KEPT_BITS if len(gaps) > EXACT else None
    if kept is None:
        doubled = whole - sum((Fraction(x * gap, work) for x, gap, work in gaps), Fraction(0))
    else:
        doubled = whole - Fraction(2 * sum(x * -((-gap << kept) // (2 * work)) for x, gap, work in gaps), 1 << kept)
    value = doubled / on.second
    # half of what j takes from the mean moment on, less c_j and what it costs alone; in halves of a unit of time
    halves = sum(u[j] * ((0 if on.reach else case.length[j]) - 2 * case.moment[j] - 2 * case.alone[j]) for j in used)
    value += Fraction(halves, case.unit) + (sum(u[j] * on.reach[j] for j in used) if on.reach else 0)
    return value / 2 / Fraction(2) ** exponent, {**on.stated, "held_up_bits": kept, "multipliers": u}


# --- prices on time -------------------------------------------------------------------------------------------------------


def prices(case: Case, data: Data) -> tuple[Fraction, Data]:
    """The values stated of jobs, none more than the least that the job costs and pays, less what the GPUs earn."""
    origin, unit = (ratio(data.get(name), f"data.{name}", 1300) for name in ("origin", "unit"))
    rows, claims = list[Any](), [ratio(text, "data.jobs") for text in the(list, data, "jobs", DUAL)]
    legal = unit > 0 and all(origin * case.unit <= r for r in case.release) and len(claims) == len(case.ids)
    need(legal, "these are no cells of time from the first arrival on, or no value for every job", DUAL)
    need(len(the(list, data, "rows", DUAL)) <= MOST_ROWS, f"more than {MOST_ROWS} rows of prices", DUAL)
    for row in data["rows"]:
        need(type(row) is dict, "a row of prices is no object", DUAL)
        price, width = (
            the(list, row, "price", DUAL),
            case.gpus if row.get("width") == "gpus" else the(list, row, "width", DUAL),
        )
        legal = len(width) == len(case.ids) and all(type(x) is int and 0 <= x < WIDEST for x in (*width, *price))
        need(legal, "widths and prices must be integers >= 0, and widths one for every job", DUAL)
        rows.append((width, price, width != case.gpus))
    size, of_jobs = the(int, data, "denominator", DUAL, least=1), stated_own(data, len(case.ids))
    cells = max([*(len(price) for _, price, _ in rows), *(k + len(price) for k, price in of_jobs)], default=0)
    steps = cells * (len(rows) + 2) + sum(own for *_, own in rows) * case.total
    longest = max((max([*width, *price], default=0).bit_length() for width, price, _ in rows), default=0)
    longest = max([longest, *(max(price, default=0).bit_length() for _, price in of_jobs)])
    steps += sum(len(price) for _, price in of_jobs) * case.total // (len(case.ids) + 1)
    steps *= 1 + longest // 64
    need(steps * (len(case.ids) + 1) <= case.most_steps, f"more than {case.most_steps} steps of prices", UNJUDGED)
    value = -Fraction(sum(most_together(paid, case.total) for paid in by_cell(of_jobs, case.gpus, cells)), size)
    for width, price, own in rows:
        capacity = most_together(list(zip(case.gpus, width, strict=True)), case.total) if own else case.total
        value -= Fraction(capacity * sum(price), size)
    for j, (claim, w, c) in enumerate(zip(claims, case.weight, case.moment, strict=True)):
        rate = [0] * cells
        for width, price, _ in rows:
            if width[j]:
                rate[: len(price)] = [paid + width[j] * x for paid, x in zip(rate, price, strict=False)]
        for first, price in of_jobs[j : j + 1]:
            rate[first : first + len(price)] = map(add, rate[first:], price)
        slope, begin = Fraction(w, case.shares), Fraction(case.release[j], case.unit) - origin
        kink = Fraction(c if case.late else 0, case.unit) - origin
        least = cheapest(
            rate, size, slope, (unit, begin, Fraction(case.length[j], case.unit), kink), case.schedule_class == "gang"
        )
        value += claim
        need(
            claim <= least - (slope * c / case.unit if case.flow else 0),
            f"data.jobs[{j}]: the job costs and pays less",
            DUAL,
        )
        need(value.denominator < WIDEST**8, "data.jobs have no common denominator of 4096 bits")
    if data.get("rounded") is True:  # integer times: schedules in one piece, moved to the left, are integers
        whole = all(x % case.unit == 0 for x in (*case.release, *case.length, *(d or 0 for d in case.due)))
        whole = whole and all(w % case.shares == 0 for w in case.weight)
        need(whole and case.schedule_class == "gang-nonpreemptive", "only integers, without preemption, are rounded up")
        value = Fraction(math.ceil(value))
    return value, data


def stated_own(data: Data, jobs: int) -> list[tuple[int, list[int]]]:
    """What jobs pay beside: [cell, prices from there on] of every job, or of none."""
    rows = the(list, data, "own", DUAL) if "own" in data else []
    legal = len(rows) in (0, jobs) and all(type(row) is list and len(row) == 2 and type(row[1]) is list for row in rows)
    legal = legal and all(type(x) is int and 0 <= x < WIDEST for first, price in rows for x in (first, *price))
    need(legal, "data.own: [cell, prices from there on] of every job, integers >= 0", DUAL)
    return [(first, price) for first, price in rows]


def cheapest(rate: list[int], size: int, slope: Fraction, times: tuple[Fraction, ...], pieces: bool) -> Fraction:
    """min over ends C of slope max(C - kink, 0) + the price, in 1 / size, of p // unit whole cells; times: unit, r, p, kink.

    Cells of ``unit`` seconds cost ``rate``; later ones nothing. In one piece the job takes the last cells before C, else the
    cheapest from the one of r on. Cost and price are linear between the candidates: the first end, the kink, the last cell
    and multiples of the unit.
    """
    fine = math.lcm(*(t.denominator for t in times))
    unit, r, p, kink = (int(t * fine) for t in times)
    rate, kink, r = rate[r // unit :], kink - r // unit * unit, r % unit  # cells count from that of r
    count = min(p // unit, len(rate))  # more than these are surely free cells
    shift = (p // unit - count) * unit if pieces else p - count * unit  # the window of cells ends so long before C
    first, charged, window = r + p - shift, [0], list[int]()
    for k, x in enumerate(rate + [0] * count):  # charged[k]: what the window that ends with cell k costs
        dropped = 0
        if pieces:
            heapq.heappush(window, -x)
            dropped = -heapq.heappop(window) if len(window) > count else 0
        elif k >= count:
            dropped = rate[k - count]
        charged.append(charged[-1] + x - dropped)
    last = len(charged) - 1
    # in 1 / (slope's denominator x fine x unit x size)
    a, b = slope.numerator * unit * size, slope.denominator * fine

    def cost(x: int) -> int:
        k, part = divmod(min(x, last * unit), unit)
        paid = (unit - part) * charged[k] + part * charged[min(k + 1, last)]
        return a * max(x + shift - kink, 0) + b * paid

    best = min(cost(max(x, first)) for x in (first, kink - shift, last * unit))
    begin = -(-first // unit)
    rising = min(max(begin, -(-(kink - shift) // unit)), last)  # before that the job costs nothing yet
    best = min([best, *(b * unit * paid for paid in charged[begin:rising])])
    offset = a * (shift - kink)
    best = min([best, *(a * unit * k + offset + b * unit * charged[k] for k in range(max(rising, begin), last))])
    return Fraction(best, slope.denominator * fine * unit * size)


# --- which theorem serves what --------------------------------------------------------------------------------------------

Theorem = Callable[[Any, Data], tuple[Fraction, Data]]
SUMS = {"release-plus-duration": alone, "split-busy-time": busy, "lp-dual": prices}
GANGS: dict[str, dict[str, Theorem]] = {
    f"total_{name}_time": {"srpt": srpt, "mean-busy-time": busy, **SUMS} for name in ("completion", "flow")
}
GANGS |= {name.replace("total", "total_weighted"): kinds for name, kinds in GANGS.items()}
GANGS["makespan"] = {"critical-job": alone, "volume": volume}
GANGS["max_flow_time"] = {"critical-job": alone, "first-come": first_come}
GANGS["total_weighted_tardiness"] = {"srpt-due-dates": srpt, **SUMS}
GANGS["total_utility"] = {"utility-alone": alone}
KINDS = {"gang": GANGS, "gang-nonpreemptive": GANGS}  # theorems by class, objective and kind


def proved(certificate: Data, case: Callable[[str, str, Fraction], Any], kinds: Data) -> None:
    """Prove what a certificate says, on the log's own clock; `Refused` where it does not follow.

    ``case``: what its digest, its class and its epoch are about, as `Case` reads it from the instance.
    """
    names = [the(str, certificate, name, UNJUDGED) for name in ("instance", "kind", "objective", "class")]
    (digest, kind, objective, schedule_class), data = names, the(dict, certificate, "data", UNJUDGED)
    known = any(kind in theorems for theorems in kinds.get(schedule_class, {}).values())
    need(known, f"kind {shown(kind)} for {shown(schedule_class)} is not known here: use optsched verify", UNJUDGED)
    need(kind in kinds[schedule_class].get(objective, ()), f"{kind} is no bound on {shown(objective)}", KIND)
    claimed, epoch = ratio(certificate.get("value"), "value"), Fraction(the(float, certificate, "epoch", UNJUDGED, 0.0))
    proof = case(digest, schedule_class, epoch)
    proof.ask(kind, objective)
    value, stated = kinds[schedule_class][objective][kind](proof, data)
    weight = Fraction(sum(proof.weight), proof.shares)
    value += epoch * (weight if "completion" in objective else objective == "makespan" and bool(proof.ids))
    legal = claimed == value or (claimed < value and kind == "lp-dual")
    need(legal, f"it claims {'more' if claimed > value else 'less'} than its data prove")
    for name in sorted({*stated, *data}):  # as JSON, since True, 1 and 1.0 are equal to Python
        said, shows = (json.dumps(part.get(name, "absent"), sort_keys=True, default=str) for part in (data, stated))
        need(said == shows, f"data.{shown(name)} is not what the proof gives")


def verify(certificate: Data, instance: Data, case: Callable[..., Case] = Case, kinds: Data = KINDS) -> str:
    """What is proved, in one line; `Refused` where it does not follow."""
    proved(certificate, partial(case, instance), kinds)
    sign = "<=" if certificate["objective"] == "total_utility" else ">="
    return "{objective} {0} {value} for the class {class}, by {kind}".format(sign, **certificate)


if __name__ == "__main__":
    main("verify_certificate.py", verify)
