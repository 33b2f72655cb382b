"""The verifiers' side: the fast machine run again in plain Python integers, apart from the compiled bounds.

Nothing is shared with `fast_machine`, `grid`, `relaxation` (their docstrings tell the theorems) or `exact_dot`.
Python integers do not overflow, so ticks are counted from 0 and no limbs are needed. O(n log n), some seconds
for 100,000 jobs.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from optsched.bounds.certificate import Certificate, data_integer, ratio_text
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

MAX_EXPONENT = 2200  # no float64 has more bits below or above one, and no certificate may ask for huge numbers


@dataclass(frozen=True)
class Times:
    """Exact data of an instance: times as integers over the power of two ``per_second``, weights over ``per_weight``.

    ``counted[j]`` is None for a job that costs nothing (tardiness without a due date).
    """

    release: list[int]
    duration: list[int]
    counted: list[int | None]
    per_second: int
    weight: list[int]
    per_weight: int
    flow: bool

    def data(self) -> dict[str, Any]:
        """The flow constant ``sum w_j r_j`` of a flow-time objective, as certificates state it."""
        if not self.flow:
            return {}
        constant = sum(w * r for w, r in zip(self.weight, self.release, strict=True))
        return {"flow_constant": ratio_text(Fraction(constant, self.per_weight * self.per_second))}

    def alone(self, j: int) -> int:
        """The cost of job j in the schedule in which it never waits, without its weight, in units of time."""
        moment = self.counted[j]
        return 0 if moment is None else max(0, self.release[j] + self.duration[j] - moment)

    def cost_alone(self) -> Fraction:
        """The objective when nobody ever waits."""
        units = sum(w * self.alone(j) for j, w in enumerate(self.weight))
        return Fraction(units, self.per_weight * self.per_second)

    def with_weight(self, level: Fraction) -> list[int]:
        """Jobs that cost something and whose weight is at least ``level``."""
        least = level * self.per_weight
        least_units = -(-least.numerator // least.denominator)
        return [
            j
            for j, (w, moment) in enumerate(zip(self.weight, self.counted, strict=True))
            if w >= least_units and moment is not None
        ]


def times_of(instance: Instance, objective: str, seconds: Sequence[float] | None = None) -> Times:
    """The data of a sum objective, read from its name; see `optsched.bounds.sum_costs` for what they mean.

    ``seconds``: the least time that every job takes; None: its gang's, alone.
    """
    release, duration = instance.arrival.tolist(), list(seconds or seconds_alone(instance).tolist())
    due: list[float | None] = [None if x == float("inf") else x for x in instance.due.tolist()]
    weight = instance.weight.tolist() if "weighted" in objective else [1.0] * instance.n
    count_from: list[float | None] = [0.0] * instance.n
    if "flow" in objective:
        count_from = list(release)
    elif "tardiness" in objective:
        count_from = due
    times, per_second = over_common(release + duration + [x or 0.0 for x in count_from])
    weights, per_weight = over_common(weight)
    n = instance.n
    counted = [None if x is None else t for x, t in zip(count_from, times[2 * n :], strict=True)]
    return Times(times[:n], times[n : 2 * n], counted, per_second, weights, per_weight, "flow" in objective)


def over_common(values: Sequence[float]) -> tuple[list[int], int]:
    """Float values as integers over one common denominator, a power of two."""
    ratios = [x.as_integer_ratio() for x in values]
    common = max((q for _, q in ratios), default=1)
    return [p * (common // q) for p, q in ratios], common


def floor_to_grid(value: int, per_second: int, exponent: int) -> int:
    """``floor(value / per_second * 2**exponent)``."""
    return (value << exponent) // per_second if exponent >= 0 else value // (per_second << -exponent)


@dataclass(frozen=True)
class Machine:
    """Jobs of the fast machine in ticks of ``tick`` seconds; jobs with no work there stand aside.

    ``stated``: what a certificate says of it beside capacity and grid. A job completes ``tail`` or more after the end of its
    work (None: 0), and ``reach / 2`` or more after the mean moment (None: what it takes alone), in seconds.
    """

    capacity: int
    exponent: int
    release: list[int]
    work: list[int]
    stated: dict[str, Any]
    tail: list[Fraction] | None = None
    reach: list[Fraction] | None = None

    @property
    def scale(self) -> Fraction:
        """Steps of the grid a second."""
        return power_of_two(self.exponent)

    @property
    def tick(self) -> Fraction:
        """Seconds of one tick."""
        return 1 / (self.scale * self.capacity)

    def data(self) -> dict[str, Any]:
        """What a certificate says of the machine."""
        grid = {"capacity": self.capacity, "grid_exponent": self.exponent, "tick": ratio_text(self.tick)}
        return {**self.stated, **grid}


class Twin(ABC):
    """The verifier's side of a relaxation for one certificate and its instance (`optsched.bounds.relaxation`).

    ``seconds``: what every job takes alone (None: `optsched.speeds.duration.seconds_alone`). ``words``: are there proofs in
    machine words (`optsched.bounds.word_verifier`)? ``several``: data of machines stand in a list ``resources``. ``old``:
    certificates of before need not state multipliers.
    """

    words = several = old = False
    seconds: Sequence[float] | None = None

    def __init__(self, certificate: Certificate, instance: Instance) -> None:
        self.certificate, self.instance = certificate, instance

    def times(self) -> Times:
        """Exact data of the objective, which is a sum, or of completion times."""
        return times_of(self.instance, self.certificate.objective, self.seconds)

    @abstractmethod
    def machine(self, certificate: Certificate, times: Times) -> Machine:
        """The machine that the certificate's data name, or `CertificateError`."""


def stated_exponent(certificate: Certificate, name: str = "grid_exponent") -> int:
    """``data[name]``, the exponent of a grid."""
    return data_integer(certificate, name, -MAX_EXPONENT, MAX_EXPONENT)


def power_of_two(exponent: int) -> Fraction:
    """``2**exponent``."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def srpt(jobs: Iterable[tuple[int, int]]) -> list[int]:
    """Completion ticks of SRPT for jobs (release, work), in increasing order."""
    waiting: list[int] = []
    done: list[int] = []
    now = 0
    for release, work in sorted(jobs):
        now = _serve(waiting, done, now, release)
        heapq.heappush(waiting, work)
    _serve(waiting, done, now, None)
    return done


def _serve(waiting: list[int], done: list[int], now: int, until: int | None) -> int:
    while waiting:
        if until is not None and now + waiting[0] > until:
            heapq.heapreplace(waiting, waiting[0] - (until - now))
            return until
        now += heapq.heappop(waiting)
        done.append(now)
    return now if until is None else until


def busy_pieces(jobs: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """For jobs (release, work > 0, multiplier > 0): (completion, sum of (b^2 - a^2) over the pieces [a, b) served).

    The machine serves the released job with the largest multiplier / work, then the first released, then the first
    in order. The second number is twice the work times the mean busy time.
    """

    def compare(a: int, b: int) -> int:
        return jobs[a][1] * jobs[b][2] - jobs[b][1] * jobs[a][2] or jobs[a][0] - jobs[b][0]

    rank = [0] * len(jobs)
    for position, job in enumerate(sorted(range(len(jobs)), key=cmp_to_key(compare))):
        rank[job] = position
    left = [work for _, work, _ in jobs]
    done, moment = [0] * len(jobs), [0] * len(jobs)
    arrivals = sorted(range(len(jobs)), key=lambda j: jobs[j][0])
    waiting: list[tuple[int, int]] = []
    now, upcoming = 0, 0
    while upcoming < len(jobs) or waiting:
        if not waiting:
            now = max(now, jobs[arrivals[upcoming]][0])
        while upcoming < len(jobs) and jobs[arrivals[upcoming]][0] <= now:
            heapq.heappush(waiting, (rank[arrivals[upcoming]], arrivals[upcoming]))
            upcoming += 1
        job = waiting[0][1]
        end = now + left[job]
        if upcoming < len(jobs):
            end = min(end, jobs[arrivals[upcoming]][0])
        moment[job] += (end - now) * (end + now)
        left[job] -= end - now
        now = end
        if left[job] == 0:
            heapq.heappop(waiting)
            done[job] = now
    return list(zip(done, moment, strict=True))
