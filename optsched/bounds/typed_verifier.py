"""The verifiers' side for clusters with GPU types: prices, costs and the machine again, job by job in fractions.

Nothing is shared with `typed_machine` (its docstring tells the theorem) but the speeds themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.bounds.certificate import Certificate, CertificateError, data_integer, ratio_text, rounded_down
from optsched.bounds.verifier import MAX_EXPONENT, Machine, Times, times_of
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds

LARGEST_PRICE = 1 << 64


@dataclass(frozen=True)
class ExactSpeeds:
    """``pace[j]``: type to seconds a unit of j's work takes there; ``capacity`` GPUs of every type; gangs and works."""

    types: tuple[str, ...]
    capacity: list[int]
    pace: list[dict[int, Fraction]]
    gang: list[int]
    work: list[Fraction]

    def fewest_seconds(self, j: int, forking: bool) -> Fraction:
        """The seconds that all of j's work takes at least: its gang on the best type, or copies on all GPUs at once."""
        if not forking:
            return self.work[j] * min(self.pace[j].values())
        all_at_once = sum(self.capacity[t] / seconds for t, seconds in self.pace[j].items())
        return self.work[j] * self.gang[j] / all_at_once


def speeds_of(instance: Instance) -> ExactSpeeds:
    """The speeds of an instance: a float64 rate becomes the float64 seconds of a unit, and these are taken as exact."""
    known = type_speeds(instance)
    pace = []
    for rates in zip(*(table.tolist() for table in known.reachable), strict=True):
        best = [max(pair) for pair in zip(*rates, strict=True)]
        pace.append({t: Fraction(1.0 / rate) for t, rate in enumerate(best) if rate > 0})
    work = [Fraction(amount) for amount in instance.work.tolist()]
    return ExactSpeeds(known.types, known.capacity.tolist(), pace, instance.gpus.tolist(), work)


def typed_times(certificate: Certificate, instance: Instance, speeds: ExactSpeeds) -> Times:
    """The data of a sum objective for the class of schedules that the certificate names."""
    if certificate.schedule_class != "forking":
        return times_of(instance, certificate.objective)
    seconds = [rounded_down(speeds.fewest_seconds(j, forking=True)) for j in range(instance.n)]
    return times_of(instance, certificate.objective, seconds)


def stated_prices(certificate: Certificate, speeds: ExactSpeeds) -> list[int]:
    """``data["prices"]``, one integer >= 0 a type: else they are no feasible dual solution."""
    named = certificate.data.get("prices")
    if not isinstance(named, dict) or sorted(named) != sorted(speeds.types):
        raise CertificateError("dual-feasibility", f"data.prices must name the GPU types {', '.join(speeds.types)}")
    prices = [named[gpu] for gpu in speeds.types]
    if any(type(price) is not int or not 0 <= price < LARGEST_PRICE for price in prices):
        raise CertificateError("dual-feasibility", "data.prices must be integers >= 0, below 2**64")
    return prices


def typed_machine_of(certificate: Certificate, speeds: ExactSpeeds, times: Times) -> tuple[Machine, dict[str, Any]]:
    """(the machine that the prices and the grid of a certificate give, its data as certificates state them)."""
    prices = stated_prices(certificate, speeds)
    exponent = data_integer(certificate, "grid_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    capacity = sum(price * count for price, count in zip(prices, speeds.capacity, strict=True))
    if capacity == 0:
        raise CertificateError("dual-feasibility", "data.prices are all 0")
    scale = Fraction(2) ** exponent
    release = [math.floor(Fraction(r, times.per_second) * scale) * capacity for r in times.release]
    work = [
        math.floor(amount * gang * min(prices[t] * seconds for t, seconds in pace.items()) * scale)
        for amount, gang, pace in zip(speeds.work, speeds.gang, speeds.pace, strict=True)
    ]
    machine = Machine(0, capacity, exponent, release, work)
    named = certificate.data["prices"]
    data = {"prices": named, "capacity": capacity, "grid_exponent": exponent, "tick": ratio_text(machine.tick)}
    return machine, data
