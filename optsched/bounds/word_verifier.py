"""The verifiers' side for very many jobs: the same numbers in machine words, exactly, or nothing.

A third way beside the compiled bounds and the verifiers in Python integers (`optsched.bounds.verifier`, which it replaces
where everything fits): numpy on whole columns, and two loops of one heap each, compiled. Nothing is shared with
`fast_machine`, `grid`, `exact_dot` and `wide_integers`. Every product that may need more than 63 bits is cut into parts
whose sums cannot overflow; where a column itself does not fit, `Overflow` is raised, and the caller takes Python integers.

* **Sums of floats**: a float64 is an integer of 53 bits times a power of two. Parts of 27 bits (products: of 18 bits) are
  added by exponent in float64, which is exact below 2**53: for 2**26 terms (products: in blocks of 2**17).
* **Sums of products of ticks**: three parts of 21 bits, in blocks of 2**20 terms.
* **The machine**: ticks below 2**61, with all work added to the latest release.

O(n log n): at most some ten times what sorting the releases costs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np

from optsched.bounds.busy_time_sum import EXACT, HELD_UP_BITS
from optsched.bounds.certificate import Certificate, Proof, ratio_text
from optsched.bounds.gang_verifier import stated_widths
from optsched.bounds.verifier import Machine, Twin, stated_exponent
from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

Parts = tuple[Ints, Ints, Ints]  # of 31 bits, highest first

FEW = 20_000  # jobs: up to so many Python integers are fast enough
TICKS = 1 << 61
SUM_BLOCK, PRODUCT_BLOCK, TICK_BLOCK = 1 << 26, 1 << 17, 1 << 20
_HALF, _THIRD, _PART, _LIMB = 27, 18, 21, 31  # bits
_LOW = (1 << _LIMB) - 1


class Overflow(ArithmeticError):
    """A number does not fit: Python integers have to do it."""


Prover = Callable[[Twin, Certificate], Proof]


def in_words_or_integers(words: Prover, integers: Prover, twin: Twin, certificate: Certificate) -> Proof:
    """What ``words`` proves of gangs, or ``integers`` where that overflows and of others: the same."""
    try:
        return words(twin, certificate)
    except Overflow:
        return integers(twin, certificate)


# --- exact sums ----------------------------------------------------------------------------------------------------------


def float_sum(values: Floats) -> Fraction:
    """``sum values``, exactly."""
    if values.size > SUM_BLOCK:
        raise Overflow
    whole, exponent, lowest = _split(values)
    parts = (whole >> _HALF, _HALF), (whole & ((1 << _HALF) - 1), 0)
    return sum((_by_exponent(exponent, part, lowest + bits) for part, bits in parts), Fraction(0))


def float_dot(a: Floats, b: Floats) -> Fraction:
    """``sum a_i b_i``, exactly."""
    if a.size and a.min() == a.max():
        return Fraction(float(a[0])) * float_sum(b)
    (one, e, lowest), (other, f, low) = _split(a), _split(b)
    exponent, value = e + f, Fraction(0)
    for block in (slice(k, k + PRODUCT_BLOCK) for k in range(0, a.size, PRODUCT_BLOCK)):
        for bits, part in _products(one[block], other[block], _THIRD):
            value += _by_exponent(exponent[block], part, lowest + low + bits)
    return value


def tick_dot(a: Ints, b: Ints) -> int:
    """``sum a_i b_i`` of integers in 0 .. 2**62, exactly."""
    value = 0
    for block in (slice(k, k + TICK_BLOCK) for k in range(0, a.size, TICK_BLOCK)):
        value += sum(int(part.sum()) << bits for bits, part in _products(a[block], b[block], _PART))
    return value


def _split(values: Floats) -> tuple[Ints, Ints, int]:
    # value = whole * 2**(exponent + lowest), exponent >= 0
    fraction, exponent = np.frexp(values)
    whole = np.ldexp(fraction, 53).astype(np.int64)
    lowest = int(exponent.min(initial=0))
    return whole, exponent.astype(np.int64) - lowest, lowest - 53


def _products(a: Ints, b: Ints, bits: int) -> Iterator[tuple[int, Ints]]:
    # (shift, product of parts); the highest parts keep the sign
    low = (1 << bits) - 1
    ones, others = ([x & low, x >> bits & low, x >> 2 * bits] for x in (a, b))
    full = [(j, right) for j, right in enumerate(others) if right.any()]
    for i, left in enumerate(ones):
        for j, right in full if left.any() else []:  # of small weights most parts are 0
            yield (i + j) * bits, left * right


def _by_exponent(exponent: Ints, part: Ints, lowest: int) -> Fraction:
    # bincount adds in float64: exact, since no sum reaches 2**53
    sums = np.bincount(exponent, weights=part)
    value = sum(int(sums[e]) << int(e) for e in np.flatnonzero(sums))
    return Fraction(value << lowest) if lowest >= 0 else Fraction(value, 1 << -lowest)


# --- times and the machine -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordTimes:
    """`verifier.Times` of completion and flow times as float64 columns: these are the exact numbers."""

    release: Floats
    duration: Floats
    weight: Floats
    flow: bool

    def data(self) -> dict[str, Any]:
        """The flow constant ``sum w_j r_j`` of a flow-time objective, as certificates state it."""
        return {"flow_constant": ratio_text(float_dot(self.weight, self.release))} if self.flow else {}

    def alone(self, weight: Floats) -> Fraction:
        """``sum weight_j`` times the cost of j in the schedule in which it never waits."""
        return float_dot(weight, self.duration) + (0 if self.flow else float_dot(weight, self.release))


def word_times(twin: Twin, objective: str) -> WordTimes:
    """The columns of an objective; `Overflow` for few jobs, other relaxations and objectives, and times before 0."""
    instance = twin.instance
    few = instance.n <= FEW or objective.endswith("tardiness")
    if few or not twin.words or float(instance.arrival.min()) < 0:
        raise Overflow
    weight = instance.weight if "weighted" in objective else np.ones(instance.n)
    return WordTimes(instance.arrival, seconds_alone(instance), weight, "flow" in objective)


@dataclass(frozen=True)
class WordMachine:
    """`verifier.Machine` with ``release`` and ``work`` as i64[n], and what it is without jobs."""

    plain: Machine
    release: Ints
    work: Ints


def word_machine_of(certificate: Certificate, instance: Instance, times: WordTimes) -> WordMachine:
    """`gang_verifier.GangTwin.machine` in words; `Overflow` where ticks do not fit."""
    sizes, counts = np.unique(instance.gpus, return_counts=True)
    gangs = dict(zip(sizes.tolist(), counts.tolist(), strict=True))
    threshold, capacity, effective = stated_widths(certificate, gangs, instance.cluster.gpus)
    width = np.array(list(effective.values()), dtype=np.int64)[np.searchsorted(sizes, instance.gpus)]
    exponent = stated_exponent(certificate)
    release, duration = floors(times.release, exponent), floors(times.duration, exponent)
    most = max(capacity, int(width.max()))
    if (int(release.max()) + int(duration.max())) * most >= TICKS:
        raise Overflow
    work = width * duration
    if int(release.max()) * capacity + ((int((work >> 30).sum()) + work.size) << 30) >= TICKS:
        raise Overflow
    return WordMachine(Machine(capacity, exponent, [], [], {"threshold": threshold}), release * capacity, work)


def floors(values: Floats, exponent: int) -> Ints:
    """``floor(values * 2**exponent)`` of values >= 0; `Overflow` beyond 2**61."""
    with np.errstate(over="ignore", under="ignore"):  # what is lost below the smallest float has the floor 0
        scaled = np.ldexp(values, exponent)
    if not float(scaled.max(initial=0.0)) < TICKS:
        raise Overflow
    return scaled.astype(np.int64)


# --- the theorems --------------------------------------------------------------------------------------------------------


def word_srpt(times: WordTimes, machine: WordMachine, levels: list[Fraction]) -> Fraction:
    """`optsched.bounds.srpt.proved`: start from r_j + p_j for all; what SRPT adds is counted level by level."""
    value, order = times.alone(times.weight), np.argsort(machine.release)
    for level, below in zip(levels, [Fraction(0), *levels], strict=False):
        chosen = (times.weight >= _exactly(level)) & (machine.work > 0)
        used = order if chosen.all() else order[chosen[order]]
        high, low = _srpt_sum(machine.release[used], machine.work[used])
        never = float_sum(times.release[chosen]) + float_sum(times.duration[chosen])
        value += (level - below) * (((int(high) << 32) + int(low)) * machine.plain.tick - never)
    return value


def _exactly(level: Fraction) -> float:
    try:
        nearest = float(level)
    except OverflowError:
        raise Overflow from None
    if Fraction(nearest) != level:
        raise Overflow
    return nearest


@njit(cache=True)
def _srpt_sum(release: Ints, work: Ints) -> tuple[np.int64, np.int64]:
    """The sum of completion ticks of SRPT as (high, low) with 32 bits in the low part; ``release`` ascending."""
    waiting = [np.int64(0)]
    waiting.pop()
    now = high = low = np.int64(0)
    for j in range(release.size + 1):
        last = j == release.size
        until = np.int64(-1) if last else release[j]
        while len(waiting) > 0:
            if not last and now + waiting[0] > until:
                left = waiting[0] - (until - now)
                heapq.heapreplace(waiting, left)
                break
            now += heapq.heappop(waiting)
            high += now >> 32
            low += now & 0xFFFFFFFF
        if not last:
            now = until
            heapq.heappush(waiting, work[j])
    return high, low


def word_latest_end(machine: WordMachine) -> Fraction:
    """The end of the busy periods of the machine, run forwards (`optsched.bounds.volume`)."""
    order = np.argsort(machine.release)
    before = np.cumsum(machine.work[order])
    # at the end of job i in order: all work so far, and the largest idle time before one of the jobs
    idle = machine.release[order] - (before - machine.work[order])
    return (int(before[-1]) + max(0, int(idle.max()))) * machine.plain.tick


def word_busy_times(times: WordTimes, machine: WordMachine, exponent: int) -> tuple[Fraction, int | None]:
    """`optsched.bounds.mean_busy_time.proved` with the multipliers floor(w_j 2**exponent) of jobs with work."""
    multiplier = np.where(machine.work > 0, floors(times.weight, exponent), 0)
    if int(multiplier.max()) >= 1 << 53:
        raise Overflow
    used = np.flatnonzero(multiplier > 0)
    doubled, bits = _busy_sum(machine.release[used], machine.work[used], multiplier[used])
    u = multiplier.astype(np.float64)
    units = float_dot(u, times.duration) - 2 * times.alone(u)
    units -= 2 * float_dot(u, times.release) if times.flow else 0
    scale = Fraction(2) ** exponent
    return times.alone(times.weight) + (doubled * machine.plain.tick + units) / (2 * scale), bits


def _busy_sum(release: Ints, work: Ints, multiplier: Ints) -> tuple[Fraction, int | None]:
    # (twice the least sum u_j M_j in ticks, bits kept)
    order = np.argsort(release, kind="stable")
    release, work, multiplier = release[order], work[order], multiplier[order]
    served = _densest_first(work, multiplier)
    rank = np.empty_like(served)
    rank[served] = np.arange(served.size)
    done, pieces, integral = _priority_run(release, work, rank, served)
    doubled = Fraction(tick_dot(multiplier, 2 * done - work))
    held_up = np.flatnonzero(pieces > 1)
    if not held_up.size:
        return doubled, None
    work, multiplier, done = work[held_up], multiplier[held_up], done[held_up]
    gap = _difference(_wide(work, 2 * done - work), integral[:, held_up])
    if held_up.size <= EXACT:
        rows = zip(multiplier.tolist(), _joined(gap).tolist(), work.tolist(), strict=True)
        return doubled - sum((Fraction(u * g, w) for u, g, w in rows), Fraction(0)), None
    whole, part = _divided_up(gap, work)
    rounded = (tick_dot(multiplier, whole) << HELD_UP_BITS - 1) + tick_dot(multiplier, part)
    return doubled - Fraction(2 * rounded, 1 << HELD_UP_BITS), HELD_UP_BITS


def _difference(more: Parts, less: Ints) -> Parts:
    """``more - less``, not negative, of numbers in parts of 31 bits; those of ``less`` lowest first, with carries left."""
    low = more[2] - (less[0] & _LOW)
    middle = more[1] - (less[1] & _LOW) - (less[0] >> _LIMB) + (low >> _LIMB)
    return more[0] - less[2] - (less[1] >> _LIMB) + (middle >> _LIMB), middle & _LOW, low & _LOW


def _joined(parts: Parts) -> Any:
    high, middle, low = (part.astype(object) for part in parts)
    return (high << 2 * _LIMB) + (middle << _LIMB) + low


def _divided_up(gap: Parts, work: Ints) -> tuple[Ints, Ints]:
    """``ceil(2**31 gap / work)`` as (whole, part): ``2**31 whole + part``.

    The quotient in floats is wrong by less than 2**11, since it is below 2**62; what is left is then less than 2**62 for
    works below 2**51, and right in words that wrap around. Larger works are divided as Python integers.
    """
    high, middle, low = gap
    rough = (high * 2.0 ** (2 * _LIMB) + middle * 2.0**_LIMB + low) / work
    whole = rough.astype(np.int64)
    wrapped = (high.view(np.uint64) << np.uint64(2 * _LIMB)) + (middle.view(np.uint64) << np.uint64(_LIMB))
    left = (wrapped + low.view(np.uint64) - whole.view(np.uint64) * work.view(np.uint64)).view(np.int64)
    more = left // work
    whole, left = whole + more, left - more * work
    part = np.zeros_like(work)
    for bits in (11, 10, 10):
        digit = (left << bits) // work
        part, left = (part << bits) + digit, (left << bits) - digit * work
    part += left > 0
    large = np.flatnonzero(work >= 1 << 51)
    if large.size:
        high, middle, low = gap
        exact = -((-_joined((high[large], middle[large], low[large])) << _LIMB) // work[large].astype(object))
        whole[large], part[large] = exact >> _LIMB, exact & _LOW
    return whole, part


def _densest_first(work: Ints, multiplier: Ints) -> Ints:
    """Jobs in order of release: by multiplier / work, falling, then as they stand; indices i64[n]."""
    if not work.size or int(multiplier.min()) == int(multiplier.max()):
        return np.argsort(work, kind="stable")
    ratio = work / multiplier
    order = np.argsort(ratio, kind="stable")
    # two roundings of numbers and one of their ratio: what differs by more is in order
    near = np.flatnonzero(ratio[order[1:]] <= ratio[order[:-1]] * (1 + 2.0**-48))
    first, second = order[near], order[near + 1]
    ahead, behind = _wide(work[first], multiplier[second]), _wide(work[second], multiplier[first])
    less, same = np.zeros(near.size, dtype=bool), np.ones(near.size, dtype=bool)
    for one, other in zip(ahead, behind, strict=True):
        less |= same & (one < other)
        same &= one == other
    if bool((less | (same & (first < second))).all()):
        return order
    wide, dear = work.tolist(), multiplier.tolist()  # floats that round together: sorted again, nearly in order

    def compare(a: int, b: int) -> int:
        return wide[a] * dear[b] - wide[b] * dear[a] or a - b

    return np.array(sorted(order.tolist(), key=cmp_to_key(compare)), dtype=np.int64)


def _wide(a: Ints, b: Ints) -> Parts:
    """``a * b`` of integers in 0 .. 2**62 in parts of 31 bits, the highest of which has more."""
    a1, a0, b1, b0 = a >> _LIMB, a & _LOW, b >> _LIMB, b & _LOW
    bottom = a0 * b0
    middle = a1 * b0 + (bottom >> _LIMB)
    cross = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _LIMB) + (cross >> _LIMB), cross & _LOW, bottom & _LOW


@njit(cache=True)
def _priority_run(release: Ints, work: Ints, rank: Ints, served: Ints) -> tuple[Ints, Ints, Ints]:
    """The machine that serves the released job of least rank: completions i64[n], numbers of pieces i64[n], integrals.

    ``release`` ascending, ``served`` the jobs in order of rank. A piece ends at a completion or where a better job comes.
    The integrals ``sum (end^2 - begin^2)`` over the pieces of a job have three parts of 31 bits, i64[3, n], lowest first.
    """
    n = release.size
    left, done = work.copy(), np.empty(n, dtype=np.int64)
    pieces, integral = np.zeros(n, dtype=np.int64), np.zeros((3, n), dtype=np.int64)
    waiting = [np.int64(0)]
    waiting.pop()
    now, upcoming = np.int64(0), 0
    while upcoming < n or len(waiting) > 0:
        if len(waiting) == 0:
            now = max(now, release[upcoming])
        while upcoming < n and release[upcoming] <= now:
            heapq.heappush(waiting, rank[upcoming])
            upcoming += 1
        j = served[waiting[0]]
        begin = now
        while True:
            if upcoming == n or now + left[j] <= release[upcoming]:
                now += left[j]
                left[j] = 0
                heapq.heappop(waiting)
                done[j] = now
                break
            left[j] -= release[upcoming] - now
            now = release[upcoming]
            better = False
            while upcoming < n and release[upcoming] <= now:
                better = better or rank[upcoming] < rank[j]
                heapq.heappush(waiting, rank[upcoming])
                upcoming += 1
            if better:
                break
        length, twice = now - begin, now + begin
        bottom = (length & _LOW) * (twice & _LOW)
        middle = (length >> _LIMB) * (twice & _LOW) + (bottom >> _LIMB)
        cross = (length & _LOW) * (twice >> _LIMB) + (middle & _LOW)
        pieces[j] += 1
        integral[0, j] += bottom & _LOW
        integral[1, j] += cross & _LOW
        integral[2, j] += (length >> _LIMB) * (twice >> _LIMB) + (middle >> _LIMB) + (cross >> _LIMB)
    return done, pieces, integral
