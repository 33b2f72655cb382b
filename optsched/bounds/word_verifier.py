"""The verifier for more than 20,000 jobs: exact in 64-bit integers, or not at all.

Five kinds of bounds on gangs, a second way beside the stand-alone verifier (`optsched.check.verify_certificate`),
which it replaces where everything fits and is held against by tests: numpy on whole columns (`word_arithmetic`), and two
compiled loops of one heap each. The machine counts ticks below 2**61, with all work added to the latest
release; where a column does not fit, `Overflow` is raised, and the caller takes Python integers.

O(n log n): up to nine times what numpy takes to sort the releases (`tests/benchmarks/test_srpt_bound.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, cmp_to_key
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof
from optsched.bounds.word_arithmetic import (
    LOW,
    WORD,
    Overflow,
    difference,
    divided_up,
    float_dot,
    float_sum,
    joined,
    tick_dot,
    wide_product,
)
from optsched.check.verify_case import DUAL, EXACT, EXPONENT, KEPT_BITS, Data, fill, need, the, written
from optsched.check.verify_certificate import multiplier_exponent, stated_levels
from optsched.compiled import KERNEL, njit
from optsched.compiled.heap import pop, push
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

FEW = 20_000  # jobs: up to so many Python integers are fast enough
TICKS = 1 << 61
KINDS = ("release-plus-duration", "critical-job", "srpt", "mean-busy-time", "volume")


def word_proof(kind: str, objective: str, data: Data, instance: Instance) -> Proof:
    """(value, data) that one of `KINDS` proves of an instance whose time counts from its first arrival.

    `Overflow` where words do not do it; `Refused` where the data are illegal.
    """
    if kind == "volume":
        machine = word_machine(data, instance, word_times(instance, "total_completion_time"))
        return word_latest_end(machine), machine.stated
    times = word_times(instance, objective)
    if kind == "release-plus-duration":
        return times.alone, times.stated
    if kind == "critical-job":
        job = data.get("job")
        need(job in instance.ids, "data.job must be the id of a job")
        return times.end_alone(instance.ids.index(job)), {"job": job}
    machine = word_machine(data, instance, times)
    stated = {**machine.stated, **times.stated}
    if kind == "srpt":
        levels = stated_levels(data)
        return word_srpt(times, machine, levels), {**stated, "levels": [written(level) for level in levels]}
    exponent = multiplier_exponent(data)
    value, bits = word_busy_times(times, machine, exponent)
    return value, {**stated, "multiplier_exponent": exponent, "held_up_bits": bits}


# --- times and the machine -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordTimes:
    """Completion and flow times as float64 columns: these are the exact numbers."""

    release: Floats
    duration: Floats
    weight: Floats
    flow: bool

    @property
    def stated(self) -> dict[str, Any]:
        """The flow constant ``sum w_j r_j`` of a flow-time objective, as certificates state it."""
        return {"flow_constant": written(self.weighted_release)} if self.flow else {}

    @cached_property
    def weighted_release(self) -> Fraction:
        """``sum w_j r_j``."""
        return float_dot(self.weight, self.release)

    @cached_property
    def weighted_duration(self) -> Fraction:
        """``sum w_j p_j``."""
        return float_dot(self.weight, self.duration)

    @cached_property
    def alone(self) -> Fraction:
        """The objective when nobody ever waits."""
        return self.weighted_duration + (0 if self.flow else self.weighted_release)

    def end_alone(self, j: int) -> Fraction:
        """When job j ends if it never waits; its flow time where flow times count."""
        return Fraction(float(self.duration[j])) + (0 if self.flow else Fraction(float(self.release[j])))


def word_times(instance: Instance, objective: str) -> WordTimes:
    """The columns of an objective; `Overflow` for other objectives, and times before 0."""
    if objective.endswith("tardiness") or float(instance.arrival.min(initial=0.0)) < 0:
        raise Overflow
    weight = instance.weight if "weighted" in objective else np.ones(instance.n)
    return WordTimes(instance.arrival, seconds_alone(instance), weight, "flow" in objective)


@dataclass(frozen=True)
class WordMachine:
    """``release`` and ``work`` in ticks, i64[n]; the seconds of a ``tick``; what certificates state."""

    release: Ints
    work: Ints
    tick: Fraction
    stated: dict[str, Any]


def word_machine(data: Data, instance: Instance, times: WordTimes) -> WordMachine:
    """The machine that a threshold and a grid exponent give; `Overflow` where ticks do not fit."""
    total = instance.cluster.gpus
    threshold = the(int, data, "threshold", DUAL, least=1, most=(total + 1) // 2)
    exponent = the(int, data, "grid_exponent", least=-EXPONENT, most=EXPONENT)
    gangs = instance.gpus
    middle = (gangs >= threshold) & (gangs <= total - threshold)
    capacity = fill(gangs[middle].tolist(), total) if middle.any() else 1
    width = np.where(gangs > total - threshold, capacity, np.where(middle, gangs, 0))
    release, duration = floors(times.release, exponent), floors(times.duration, exponent)
    most = max(capacity, int(width.max()))
    if (int(release.max()) + int(duration.max())) * most >= TICKS:
        raise Overflow
    work = width * duration
    if int(release.max()) * capacity + ((int((work >> 30).sum()) + work.size) << 30) >= TICKS:
        raise Overflow
    tick = 1 / (Fraction(2) ** exponent * capacity)
    grid = {"threshold": threshold, "capacity": capacity, "grid_exponent": exponent, "tick": written(tick)}
    return WordMachine(release * capacity, work, tick, grid)


def floors(values: Floats, exponent: int) -> Ints:
    """``floor(values * 2**exponent)`` of values >= 0; `Overflow` beyond 2**61."""
    with np.errstate(over="ignore", under="ignore"):  # what is lost below the smallest float has the floor 0
        scaled = np.ldexp(values, exponent)
    if not float(scaled.max(initial=0.0)) < TICKS:
        raise Overflow
    return scaled.astype(np.int64)


# --- the theorems --------------------------------------------------------------------------------------------------------


def word_srpt(times: WordTimes, machine: WordMachine, levels: list[Fraction]) -> Fraction:
    """Start from r_j + p_j for all; what SRPT adds is counted level by level."""
    value, order = times.alone, stable_order(machine.release)
    for level, below in zip(levels, [Fraction(0), *levels], strict=False):
        chosen = (times.weight >= _exactly(level)) & (machine.work > 0)
        used = order if chosen.all() else order[chosen[order]]
        never = float_sum(times.release[chosen]) + float_sum(times.duration[chosen])
        done = srpt_sum(machine.release[used], machine.work[used])
        value += (level - below) * (done * machine.tick - never)
    return value


def _exactly(level: Fraction) -> float:
    try:
        nearest = float(level)
    except OverflowError:
        raise Overflow from None
    if Fraction(nearest) != level:
        raise Overflow
    return nearest


def word_latest_end(machine: WordMachine) -> Fraction:
    """The end of the busy periods of the machine, run forwards (`optsched.bounds.one_machine.volume`)."""
    order = stable_order(machine.release)
    before = np.cumsum(machine.work[order])
    # at the end of job i in order: all work so far, and the largest idle time before one of the jobs
    idle = machine.release[order] - (before - machine.work[order])
    return (int(before[-1]) + max(0, int(idle.max()))) * machine.tick


def word_busy_times(times: WordTimes, machine: WordMachine, exponent: int) -> tuple[Fraction, int | None]:
    """(Value, bits kept) with the multipliers floor(w_j 2**exponent) of jobs with work."""
    multiplier = np.where(machine.work > 0, floors(times.weight, exponent), 0)
    if int(multiplier.max()) >= 1 << 53:
        raise Overflow
    used = np.flatnonzero(multiplier > 0)
    doubled, bits = _busy_sum(machine.release[used], machine.work[used], multiplier[used])
    scale, u = Fraction(2) ** exponent, multiplier.astype(np.float64)
    if np.array_equal(u, np.ldexp(times.weight, exponent)):
        units = scale * (times.weighted_duration + 2 * times.weighted_release)
    else:
        units = float_dot(u, times.duration) + 2 * float_dot(u, times.release)
    return times.alone + (doubled * machine.tick - units) / (2 * scale), bits


def _busy_sum(release: Ints, work: Ints, multiplier: Ints) -> tuple[Fraction, int | None]:
    # (twice the least sum u_j M_j in ticks, bits kept)
    order = stable_order(release)
    release, work, multiplier = release[order], work[order], multiplier[order]
    done, held_up, integral = priority_run(release, work, _densest_first(work, multiplier))
    doubled = Fraction(tick_dot(multiplier, 2 * done - work))
    if not held_up.size:
        return doubled, None
    work, multiplier, done = work[held_up], multiplier[held_up], done[held_up]
    gap = difference(wide_product(work, 2 * done - work), integral)
    if held_up.size <= EXACT:
        rows = zip(multiplier.tolist(), joined(gap).tolist(), work.tolist(), strict=True)
        return doubled - sum((Fraction(u * g, w) for u, g, w in rows), Fraction(0)), None
    whole, part = divided_up(gap, work)
    rounded = (tick_dot(multiplier, whole) << KEPT_BITS - 1) + tick_dot(multiplier, part)
    return doubled - Fraction(2 * rounded, 1 << KEPT_BITS), KEPT_BITS


def _densest_first(work: Ints, multiplier: Ints) -> Ints:
    """Jobs in order of release: by multiplier / work, falling, then by index; indices i64[n]."""
    if not work.size or int(multiplier.min()) == int(multiplier.max()):
        return stable_order(work)
    ratio = work / multiplier
    order = stable_order(ratio)
    # two roundings of numbers and one of their ratio: what differs by more is in order
    ratio = ratio[order]
    near = np.flatnonzero(ratio[1:] <= ratio[:-1] * (1 + 2.0**-48))
    first, second = order[near], order[near + 1]
    ahead, behind = wide_product(work[first], multiplier[second]), wide_product(work[second], multiplier[first])
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


# Runs of the fast machine for very many jobs: one heap while jobs come, one sort of all that wait when nobody comes.
#
# The verifiers' side (`optsched.bounds.word_verifier`): nothing is shared with `fast_machine`. Ticks below 2**61.
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
