"""What k transfers at once on one network interface cost, and whether one more should start now.

**Rate model** (units: seconds and bytes): k transfers of M bytes that start together on an interface take
T(k) = a + k b M + (k - 1) eta M. As a rate, with a = 0: each of k moves at a pace of k b + (k - 1) eta seconds a byte, and
the pace changes whenever k does. The fabric does not block; a transfer over several nodes runs at the pace of the largest
k among them. With eta >= 0, k transfers move k / pace <= 1/b bytes/s together, with equality iff k = 1 or eta = 0. A
latency a is waited out before the bytes move, and does not contend.

The closed forms here use +, -, * and / only: fed with `fractions.Fraction` (`LinkCost`) they are exact, which is how the
tests prove them. Two ints divide to a float; take Fractions for exactness.

When two should overlap: `optsched.speeds.two_transfers`.

Source: Q. Wang, S. Shi, C. Wang, X. Chu, "Communication Contention Aware Scheduling of Multiple Deep Learning Training
Jobs", arXiv 2002.10105; the constants of its public code HKBU-HPML/dl-scheduling.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_1G, ETHERNET_10G, Contention

__all__ = [
    "ETHERNET_1G",
    "ETHERNET_10G",
    "Contention",
    "LinearLink",
    "LinkCost",
    "Number",
    "aggregate_rate",
    "drain",
    "myopic_gain",
    "pace",
    "transfer_seconds",
]

Number = int | float | Fraction


class LinearLink(Protocol):
    """What the functions read: a `Contention`, or a `LinkCost` for exact numbers."""

    @property
    def seconds_per_byte(self) -> Number: ...
    @property
    def penalty(self) -> Number: ...
    @property
    def latency(self) -> Number: ...
    @property
    def measured(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class LinkCost:
    """b, eta and a of a link in numbers of any exactness: b > 0, eta > -b, a >= 0 (see
    `optsched.problem.contention.Contention`)."""

    seconds_per_byte: Number
    penalty: Number = 0
    latency: Number = 0

    def __post_init__(self) -> None:
        _require_rates(self.seconds_per_byte, self.penalty)
        if not is_finite(self.latency) or self.latency < 0:
            raise InputError("invalid", field="latency", value=self.latency, legal="a finite number of seconds >= 0")

    @property
    def measured(self) -> bool:
        """Never: these are the numbers of the linear model."""
        return False


# --- rates ------------------------------------------------------------------------------------------------------------


def pace(contention: LinearLink, k: int) -> Number:
    """Seconds a byte of each of ``k`` >= 1 transfers on an interface: k b + (k - 1) eta.

    Raises
    ------
    InputError
        ``k`` < 1, or ``contention`` is a table of measured ratios.
    """
    _require_linear(contention, "the pace of k transfers")
    _require_count(k)
    return _pace(k, contention.seconds_per_byte, contention.penalty)


def aggregate_rate(contention: LinearLink, k: int) -> Number:
    """Bytes/s that ``k`` >= 1 transfers on an interface move together: k / pace, at most 1/b if eta >= 0."""
    return k / pace(contention, k)


def transfer_seconds(contention: LinearLink, k: int, size: Number) -> Number:
    """T(k) = a + k b M + (k - 1) eta M: seconds that ``k`` transfers of ``size`` > 0 bytes take that start together."""
    return contention.latency + pace(contention, k) * require_size(size, "size")


def drain(sizes: Sequence[Number], b: Number, eta: Number = 0) -> list[Number]:
    """When each of the transfers of these remaining ``sizes`` (bytes > 0) ends, if all run on one link until they are done.

    With K left the smallest needs (its size - the size that ended last) * (K b + (K - 1) eta) more seconds. Seconds from
    now, in the order of ``sizes``; equal sizes end together. O(k log k). Needs b > 0 and eta > -b.
    """
    _require_rates(b, eta)
    for position, size in enumerate(sizes):
        require_size(size, f"sizes[{position}]")
    return _drain(sizes, b, eta)


def myopic_gain(running: Sequence[Number], new: Number, b: Number, eta: Number = 0) -> Number:
    """Seconds of summed completion times saved by starting ``new`` now rather than at the next completion.

    ``running``: bytes left of the k >= 1 transfers on the link; nothing else will come. Both sums are exact (`drain`). The
    k-way myopic rule starts iff the gain is > 0. For m = ``new`` <= x_1 and m <= x_2 - x_1 (the two smallest left) that is
    m / x_1 < (k b + (k - 1) eta) / (2 (b + eta)); for k = 1 and eta >= 0 it is AdaDUAL's test for every m. Only these two
    alternatives are compared: starting at a later completion may be better than both. O(k log k).

    Raises
    ------
    InputError
        No transfer runs (then start: there is nothing to wait for), a size <= 0, or no legal b, eta.
    """
    if len(running) == 0:
        raise InputError("no transfer runs: there is no next completion", field="running", legal="one or more sizes")
    now = sum(drain([*running, new], b, eta))
    first = min(running)
    wait = first * _pace(len(running), b, eta)
    left = [size - first for size in running]  # those that ended stay as 0: they end at once
    later = sum(_drain([*left, new], b, eta)) + wait * (len(running) + 1)
    return later - now


def _pace(k: int, b: Number, eta: Number) -> Number:
    return k * b + (k - 1) * eta


def _drain(sizes: Sequence[Number], b: Number, eta: Number) -> list[Number]:
    ends: list[Number] = [0] * len(sizes)
    clock: Number = 0
    done: Number = 0
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        clock += (sizes[index] - done) * _pace(len(sizes) - rank, b, eta)
        done = sizes[index]
        ends[index] = clock
    return ends


# --- what is legal ----------------------------------------------------------------------------------------------------


def is_finite(value: Any) -> bool:
    """Is it a real number, neither infinite nor NaN? (An int or Fraction may be too large for a float.)"""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Rational) or math.isfinite(value)


def require_size(value: Number, field: str) -> Number:
    """``value`` if it is a finite number of bytes > 0, else an `InputError`."""
    if not is_finite(value):
        raise InputError("invalid", field=field, value=value, legal="a finite number of bytes > 0")
    if value <= 0:
        raise InputError(f"a transfer of {value} bytes transfers nothing", field=field, value=value, legal="bytes > 0")
    return value


def _require_count(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise InputError("invalid", field="k", value=k, legal="a whole number of transfers >= 1")


def _require_rates(b: Number, eta: Number) -> None:
    if not is_finite(b) or b <= 0:
        raise InputError("invalid", field="seconds_per_byte", value=b, legal="a finite number > 0")
    if not is_finite(eta) or eta <= -b:
        legal = f"a finite number > {-b}, minus the seconds a byte"
        raise InputError("invalid", field="penalty", value=eta, legal=legal)


def _require_linear(contention: LinearLink, what: str) -> None:
    if contention.measured:
        raise InputError(
            f"{what} needs the linear model of contention, not measured ratios",
            field="contention.ratios",
            legal="seconds_per_byte and penalty",
        )
