"""The verifier's side of prices over time: every job's minimum is held against all moments when it may end, in fractions.

Nothing is shared with `priced_time_search` and `menus` (`priced_time` and the latter tell the theorem) but the numbers
of the physics.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.menu_verifier import LARGEST_PRICE, MenuTwin
from optsched.bounds.shared_verifier import SharedTwin
from optsched.bounds.verifier import power_of_two, stated_exponent
from optsched.problem.instance import Instance

Option = tuple[int, Fraction, Fraction]  # type, units of work a second, GPUs paid for
Menu = tuple[Option, ...]
MOST_CELLS = 4096
MOST_WORK = 3_000_000  # cells times options of all jobs: a minute or two; what the search makes has a sixth
LARGEST = 1 << 2048  # of a moment, and of a minimum


@dataclass(frozen=True)
class PricedCells:
    """``moments`` C + 1, rising; ``prices[k]``: cost of a second of a GPU of every type, up to ``moments[k + 1]``."""

    moments: list[Fraction]
    prices: list[list[Fraction]]

    def paid_at_most(self, capacity: list[int]) -> Fraction:
        """What all GPUs together are worth."""
        return sum(
            (
                (end - begin) * sum((p * count for p, count in zip(row, capacity, strict=True)), Fraction(0))
                for (begin, end), row in zip(pairwise(self.moments), self.prices, strict=True)
            ),
            Fraction(0),
        )


@dataclass(frozen=True)
class LeastCost:
    """A job with work to do from ``release`` on says that cost and payment are together ``least`` at least."""

    release: Fraction
    work: Fraction
    weight: Fraction
    counted: Fraction
    least: Fraction

    def cost(self, end: Fraction) -> Fraction:
        """The job's part of the objective."""
        return self.weight * max(Fraction(0), end - self.counted)


def stated_cells(certificate: Certificate, types: tuple[str, ...], first: Fraction) -> PricedCells:
    """``data["moments"]`` and ``data["prices"]``; `CertificateError` unless moments rise, from ``first`` or before."""
    moments = _integers(certificate, "moments")
    unit = 1 / power_of_two(stated_exponent(certificate, "moment_exponent"))
    if not 1 < len(moments) <= MOST_CELLS + 1 or any(b <= a for a, b in pairwise(moments)) or moments[0] * unit > first:
        raise CertificateError("value", f"data.moments must rise from the first arrival on, 2 to {MOST_CELLS + 1}")
    named = certificate.data.get("prices")
    if not isinstance(named, dict) or sorted(named) != sorted(types):
        raise CertificateError("dual-feasibility", f"data.prices must name the GPU types {', '.join(types)}")
    for gpu, row in named.items():
        if (
            not isinstance(row, list)
            or len(row) != len(moments) - 1
            or any(type(price) is not int or not 0 <= price < LARGEST_PRICE for price in row)
        ):
            raise CertificateError(
                "dual-feasibility", f"data.prices[{gpu!r}] must be {len(moments) - 1} integers >= 0, below 2**64"
            )
    scale = 1 / power_of_two(stated_exponent(certificate, "price_exponent"))
    prices = [[scale * named[gpu][k] for gpu in types] for k in range(len(moments) - 1)]
    return PricedCells([unit * moment for moment in moments], prices)


def stated_minima(certificate: Certificate, count: int) -> list[Fraction]:
    """``data["minima"]``, what every job says."""
    minima = _integers(certificate, "minima")
    if len(minima) != count:
        raise CertificateError("value", f"data.minima must be a list of {count} integers")
    unit = 1 / power_of_two(stated_exponent(certificate, "minimum_exponent"))
    return [unit * least for least in minima]


def _integers(certificate: Certificate, name: str) -> list[int]:
    values = certificate.data.get(name)
    if not isinstance(values, list) or any(type(v) is not int or abs(v) >= LARGEST for v in values):
        raise CertificateError("value", f"data.{name} must be a list of integers")
    return values


def menus_of(certificate: Certificate, instance: Instance) -> tuple[MenuTwin, list[Menu]]:
    """(what is proved of the instance, the menu of every job by rates) for the certificate's class."""
    if certificate.schedule_class == "gpu-sharing":
        twin = SharedTwin(certificate, instance)
        return twin, [_beside(twin, j) for j in range(instance.n)]
    known: dict[int, Menu] = {}
    exact = MenuTwin(certificate, instance)
    for menu in exact.menu:
        if id(menu) not in known:
            types = sorted({t for t, _, _ in menu})
            options = {t: [(1 / seconds, gpus) for type_, seconds, gpus in menu if type_ == t] for t in types}
            known[id(menu)] = tuple((t, *option) for t in types for option in _useful(options[t]))
    return exact, [known[id(menu)] for menu in exact.menu]


def _beside(twin: SharedTwin, j: int) -> Menu:
    # in full for its full speed, or its charge beside a partner
    gang, menu = twin.speeds.gang[j], list[Option]()
    for t, pace in twin.speeds.pace[j].items():
        part = twin.beside[j][t]
        menu += [(t, part / pace, gang * twin.charge[j][t] * part)] if part > 0 else []
        menu += [(t, 1 / pace, Fraction(gang))] if part < 1 else []
    return tuple(menu)


def _useful(options: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    # of (rate, GPUs) on GPUs that cost the same, only those on the hull are ever the cheapest
    rate, gpus, found = Fraction(0), Fraction(0), []
    for slope, more in _lower_hull(options):
        rate, gpus = rate + more, gpus + slope * more
        found.append((rate, gpus))
    return found


def require_little_work(cells: PricedCells, menus: list[Menu]) -> None:
    """`CertificateError` where proving the minima of a file would take very long."""
    if len(cells.prices) * sum(map(len, menus)) > MOST_WORK:
        raise CertificateError("value", f"more than {MOST_WORK} cells and options: too many to try")


class Proof:
    """What the cells cost jobs of every menu; ``adds``: options are taken all at once."""

    def __init__(self, cells: PricedCells, adds: bool) -> None:
        self._cells, self._adds = cells, adds
        self._known: dict[Menu, dict[int, list[tuple[Fraction, Fraction]]]] = {}

    def holds(self, minimum: LeastCost, menu: Menu) -> bool:
        """Is what the job says true, wherever it ends?

        The job takes the cheapest work of the moments up to its end; a later end exchanges the dearest for cheaper. Cost
        and payment are linear between the ends at which a piece of work is used up, so they are looked at there alone.
        """
        done: list[list[Fraction]] = []  # [price of a unit, units], rising
        missing, paid, now = minimum.work, Fraction(0), minimum.release
        first, known = max(bisect_right(self._cells.moments, now) - 1, 0), self._known.setdefault(menu, {})
        for k in range(first, len(self._cells.moments)):
            end = None if k + 1 == len(self._cells.moments) else self._cells.moments[k + 1]
            if k not in known:
                known[k] = self._steps(menu, k)
            steps = known[k]
            mine = [[unit, Fraction(0)] for unit, _ in steps]  # of this cell
            while end is None or now < end:
                dearest = None if missing > 0 else max([*done[-1:], *(each for each in mine if each[1])], default=None)
                if missing == 0 and dearest is None:
                    break
                price = None if dearest is None else dearest[0]
                cheaper = [i for i, (unit, _) in enumerate(mine) if price is None or unit < price]
                speed = sum((steps[i][1] for i in cheaper), Fraction(0))
                if speed == 0:
                    break
                seconds = (missing if dearest is None else dearest[1]) / speed
                for limit in (end, minimum.counted):
                    if limit is not None and now < limit:
                        seconds = min(seconds, limit - now)
                if dearest is None:
                    missing -= speed * seconds
                else:
                    paid -= dearest[0] * speed * seconds
                    dearest[1] -= speed * seconds
                for i in cheaper:
                    units = steps[i][1] * seconds
                    paid += mine[i][0] * units
                    mine[i][1] += units
                if done and done[-1][1] == 0:
                    done.pop()
                now += seconds
                if missing == 0 and minimum.cost(now) + paid < minimum.least:
                    return False
            if end is None or minimum.cost(end) >= minimum.least:
                return True
            for piece in mine:
                if piece[1]:
                    insort(done, piece)
            now = max(now, end)
        raise AssertionError("the last cell has no end")

    def _steps(self, menu: Menu, k: int) -> list[tuple[Fraction, Fraction]]:
        """(price of a unit, units a second) in cell k, rising: the cheapest way to more and more work a second."""
        free = [Fraction(0)] * (max((t for t, _, _ in menu), default=0) + 1)
        price = self._cells.prices[k] if k < len(self._cells.prices) else free
        points = [(rate, price[t] * gpus) for t, rate, gpus in menu]
        return sorted((c / r, r) for r, c in points) if self._adds else _lower_hull(points)


def _lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    # (slope, width) of the pieces of the largest convex function below points (rate, cost) and (0, 0)
    hull = [(Fraction(0), Fraction(0))]
    for rate, cost in sorted(points, key=lambda point: (point[0], -point[1])):
        while len(hull) > 1 and (
            hull[-1][0] == rate
            or (cost - hull[-2][1]) * (hull[-1][0] - hull[-2][0]) <= (hull[-1][1] - hull[-2][1]) * (rate - hull[-2][0])
        ):
            hull.pop()
        hull.append((rate, cost))
    return [((d - c) / (b - a), b - a) for (a, c), (b, d) in pairwise(hull)]
