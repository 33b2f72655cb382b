"""The verifiers' side for menus and prices: what jobs may do, what it costs and the machine again, job by job in fractions.

Nothing is shared with `menus` and `priced_machine` (their docstrings tell the theorems) but the speeds themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.bounds.certificate import ELASTIC_CLASSES, Certificate, CertificateError, rounded_down
from optsched.bounds.verifier import Machine, Times, Twin, floor_to_grid, over_common, stated_exponent
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.speeds.goodput import Goodputs
from optsched.speeds.type_speeds import type_speeds

LARGEST_PRICE = 1 << 64
Menu = tuple[tuple[int, Fraction, Fraction], ...]  # type, seconds a unit of work, GPUs paid for


@dataclass(frozen=True)
class ExactSpeeds:
    """``pace[j]``: type to seconds a unit of j's work takes there; ``capacity`` GPUs of every type; gangs and works.

    Jobs that are alike have the same dictionary.
    """

    types: tuple[str, ...]
    capacity: list[int]
    pace: list[dict[int, Fraction]]
    gang: list[int]
    work: list[Fraction]


def speeds_of(instance: Instance) -> ExactSpeeds:
    """The speeds of an instance: a float64 rate becomes the float64 seconds of a unit, and these are taken as exact."""
    known, alike = type_speeds(instance), dict[tuple[Any, ...], dict[int, Fraction]]()
    pace = []
    for rates in zip(*(map(tuple, table.tolist()) for table in known.reachable), strict=True):
        if rates not in alike:
            best = [max(pair) for pair in zip(*rates, strict=True)]
            alike[rates] = {t: Fraction(1.0 / rate) for t, rate in enumerate(best) if rate > 0}
        pace.append(alike[rates])
    work = [Fraction(amount) for amount in instance.work.tolist()]
    return ExactSpeeds(known.types, known.capacity.tolist(), pace, instance.gpus.tolist(), work)


def proved_limits(instance: Instance) -> dict[int, list[tuple[int, Fraction]]]:
    """(r, v_j(r)) of every elastic job j, for all r on which it runs: placement by placement."""
    goodputs, sizes = Goodputs(instance), instance.cluster.node_gpus.tolist()
    goodputs.require_few()
    known: dict[tuple[int, int], list[tuple[int, Fraction]]] = {}
    found = {}
    for j in range(instance.n):
        goodput = goodputs.of(j)
        if goodput is None:
            continue
        key = id(goodput), int(instance.job_class[j])
        if key not in known:
            mine = [size for size, may in zip(sizes, instance.eligible(j).tolist(), strict=True) if may]
            places = tuple(sorted(mine, reverse=True))
            rates = [(r, Fraction(goodput.limit(r, places))) for r in range(1, sum(mine) + 1)]
            known[key] = [(r, rate) for r, rate in rates if rate > 0]
        found[j] = known[key]
    return found


class MenuTwin(Twin):
    """``menu[j]`` of every job, the same for jobs that are alike; ``seconds`` alone."""

    def __init__(self, certificate: Certificate, instance: Instance) -> None:
        super().__init__(certificate, instance)
        self.speeds = speeds_of(instance)
        self.forking = certificate.schedule_class == "forking"
        self.old = certificate.schedule_class in ELASTIC_CLASSES
        self.limits = proved_limits(instance) if self.old else {}
        self.stated: dict[str, Any] = {}  # proved on the way to the menus
        self.menu = self._menus()
        if self.forking or self.old:
            rigid = seconds_alone(instance).tolist() if self.old else None
            self.seconds = [
                rounded_down(self.fewest_seconds(j)) if rigid is None or j in self.limits else rigid[j]
                for j in range(instance.n)
            ]

    def _menus(self) -> list[Menu]:
        speeds, known = self.speeds, dict[Any, Menu]()
        menus = []
        for j, (gang, paces) in enumerate(zip(speeds.gang, speeds.pace, strict=True)):
            widths = self.limits.get(j)
            key = gang, id(paces), id(widths)
            if key not in known:
                if widths is not None:
                    known[key] = tuple((t, 1 / rate, Fraction(r)) for t in paces for r, rate in widths)
                elif self.forking:
                    counts = [Fraction(count) for count in speeds.capacity]
                    known[key] = tuple((t, a * gang / counts[t], counts[t]) for t, a in paces.items())
                else:
                    known[key] = tuple((t, a, Fraction(gang)) for t, a in paces.items())
            menus.append(known[key])
        return menus

    def fewest_seconds(self, j: int) -> Fraction:
        """The seconds that all of j's work takes at least: by its best option, or copies on all GPUs at once."""
        if not self.forking:
            return self.speeds.work[j] * min(seconds for _, seconds, _ in self.menu[j])
        return self.speeds.work[j] / sum(1 / seconds for _, seconds, _ in self.menu[j])

    def unit_cost(self, j: int, prices: list[int], own: int = 0) -> Fraction:
        """The least that a unit of work of j costs by one option."""
        return min(seconds * (own + gpus * prices[t]) for t, seconds, gpus in self.menu[j])

    def prices(self, certificate: Certificate) -> list[int]:
        """``data["prices"]``, one integer >= 0 a type: else they are no feasible dual solution."""
        named, types = certificate.data.get("prices"), self.speeds.types
        if not isinstance(named, dict) or sorted(named) != sorted(types):
            raise CertificateError("dual-feasibility", f"data.prices must name the GPU types {', '.join(types)}")
        prices = [named[gpu] for gpu in types]
        if any(type(price) is not int or not 0 <= price < LARGEST_PRICE for price in prices):
            raise CertificateError("dual-feasibility", "data.prices must be integers >= 0, below 2**64")
        return prices

    def total(self, prices: list[int]) -> int:
        """What all GPUs cost a second."""
        return sum(price * count for price, count in zip(prices, self.speeds.capacity, strict=True))

    def machine(self, certificate: Certificate, times: Times) -> Machine:
        """The machine that the prices and the grid of a certificate give."""
        if self.old and "threshold" in certificate.data:
            return self._machine_of_before(certificate, times)
        prices, exponent = self.prices(certificate), stated_exponent(certificate)
        capacity = self.total(prices)
        if capacity == 0:
            raise CertificateError("dual-feasibility", "data.prices are all 0")
        release = [floor_to_grid(r, times.per_second, exponent) * capacity for r in times.release]
        known, work = dict[int, Fraction](), []
        scale = Fraction(2) ** exponent
        for j, menu in enumerate(self.menu):
            if id(menu) not in known:
                known[id(menu)] = self.unit_cost(j, prices) * scale
            work.append(math.floor(self.speeds.work[j] * known[id(menu)]))
        return Machine(capacity, exponent, release, work, {"prices": certificate.data["prices"], **self.stated})

    def _machine_of_before(self, certificate: Certificate, times: Times) -> Machine:
        # Elastic jobs had no prices once: GPU-seconds, rounded down to floats, on one type of GPUs.
        exponent, capacity = stated_exponent(certificate), self.instance.cluster.gpus
        volume = [
            rounded_down(self.speeds.work[j] * min(seconds * gpus for _, seconds, gpus in menu))
            if j in self.limits
            else rounded_down(Fraction(times.duration[j], times.per_second) * self.speeds.gang[j])
            for j, menu in enumerate(self.menu)
        ]
        units, per_second = over_common(volume)
        release = [capacity * floor_to_grid(r, times.per_second, exponent) for r in times.release]
        return Machine(
            capacity, exponent, release, [floor_to_grid(d, per_second, exponent) for d in units], {"threshold": 1}
        )
