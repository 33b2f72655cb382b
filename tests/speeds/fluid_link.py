"""Transfers on one link, simulated from event to event by nothing but the pace: what closed forms are tested against."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optsched.speeds.link_contention import Number


def simulated(starts: Sequence[Number], sizes: Sequence[Number], b: Number, eta: Number) -> list[Number]:
    """When transfers end that start at these times: step from event to event, everyone at 1 / (k b + (k - 1) eta)."""
    left, ends, clock = list(sizes), [Fraction(-1)] * len(sizes), Fraction(0)
    while any(size > 0 for size in left):
        active = [i for i, size in enumerate(left) if size > 0 and starts[i] <= clock]
        each = len(active) * b + (len(active) - 1) * eta
        events = [start for start, size in zip(starts, left, strict=True) if size > 0 and start > clock]
        events += [clock + left[i] * each for i in active]
        step = min(events) - clock
        clock += step
        for i in active:
            left[i] -= step / each
            if left[i] == 0:
                ends[i] = clock
    return ends
