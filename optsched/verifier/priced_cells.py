"""Cells of time in which GPUs have prices, and what a job costs and pays there at least.

Time is cut into cells; a second of a GPU of type t costs omega_kt in cell k, and nothing after the last cell. A job does its
work by options (rate, GPUs of a type that it pays for) and ends at C. It costs w max(C - c, 0), or w N / (C - r) less than
nothing if its utility counts, and pays for the cheapest work that [r, C] has for it. In a moment it does more and more work
a second along the lower hull of cost over rate or, if copies add up, takes option after option. Jobs with tasks compute and
send in turns: they pay for both as on average, less what they may save by it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from .document_fields import LARGEST_PRICE, Data, read_exponent, read_field, whole
from .refusal import DUAL, need
from .stated_speeds import Rates, Steps, lower_hull

MOST_CELLS = 4096
LARGEST = 1 << 2048  # of a moment


class PricedCells(NamedTuple):
    """Cells of time: ``moments`` are C + 1 seconds that rise, ``prices[k]`` is the price of a second of a GPU by type."""

    moments: list[Fraction]
    prices: list[dict[str, Fraction]]

    def worth(self, count: dict[str, int]) -> Fraction:
        """Return the price of all GPUs over all cells.

        Parameters
        ----------
        count
            GPUs by type.
        """
        spans = zip(pairwise(self.moments), self.prices, strict=True)
        return sum(((b - a) * sum(row[t] * n for t, n in count.items()) for (a, b), row in spans), Fraction(0))


def stated_cells(data: Data, count: dict[str, int], most: int = MOST_CELLS) -> PricedCells:
    """Return the cells that the data of a certificate state.

    Parameters
    ----------
    data
        Data of the certificate: ``moments``, ``moment_exponent``, ``prices``, ``price_exponent``.
    count
        GPUs by type.
    most
        Largest legal number of cells.
    """
    moments, by_type = read_field(list, data, "moments"), read_field(dict, data, "prices", DUAL)
    legal = all(type(x) is int and abs(x) < LARGEST for x in moments) and 1 < len(moments) <= most + 1
    legal = legal and all(a < b for a, b in pairwise(moments))
    need(legal, f"data.moments must be integers that rise, 2 to {most + 1}")
    legal = by_type.keys() == count.keys() and all(type(row) is list for row in by_type.values())
    legal = legal and all(len(row) == len(moments) - 1 and whole(row, LARGEST_PRICE) for row in by_type.values())
    need(legal, "data.prices must be integers >= 0, below 2^64, one for every cell and GPU type", DUAL)
    unit, price = (Fraction(2) ** -read_exponent(data, name) for name in ("moment_exponent", "price_exponent"))
    rows = [{t: price * row[k] for t, row in by_type.items()} for k in range(len(moments) - 1)]
    return PricedCells([unit * moment for moment in moments], rows)


class LeastCost(NamedTuple):
    """A job that claims to cost and pay ``least`` at least.

    It has ``work`` to do from ``release`` on and costs ``weight`` a second after ``kink``. ``gain`` is w N: its utility is
    that over the seconds of its stay.
    """

    release: Fraction
    work: Fraction
    weight: Fraction
    kink: Fraction
    least: Fraction
    gain: Fraction = Fraction(0)

    def cost(self, end: Fraction) -> Fraction:
        """Return its part of the objective.

        Parameters
        ----------
        end
            Completion in seconds.
        """
        cost = self.weight * max(Fraction(0), end - self.kink)
        return cost - self.gain / (end - self.release) if self.gain else cost


class Minima:
    """The least costs of jobs in cells, by their options.

    Parameters
    ----------
    cells
        Cells and their prices.
    adds
        True if a job may take all its options at once.
    """

    def __init__(self, cells: PricedCells, adds: bool) -> None:
        self.cells, self.adds = cells, adds
        self.known: dict[Rates, dict[int, Steps]] = {}
        self.ordered: dict[Rates, list[tuple[Fraction, Fraction, int]]] = {}  # (price of a unit, units a second, cell)

    def hold(self, job: LeastCost, rates: Rates) -> bool:
        """Return True if a job costs and pays what it claims, whenever it ends.

        The job takes the cheapest work of the moments up to its end; a later end exchanges the dearest for cheaper work.
        Between the ends at which a piece of work is used up the payment is linear, the cost linear or concave, so that the
        least sum is at one of these ends.

        Parameters
        ----------
        job
            The job and its claim.
        rates
            Options of the job.
        """
        done: list[list[Fraction]] = []  # [price of a unit, units], rising
        missing, paid, now = job.work, Fraction(0), job.release
        known = self.known.setdefault(rates, {})  # steps by cell
        for k in range(max(bisect_right(self.cells.moments, now) - 1, 0), len(self.cells.moments)):
            end = None if k + 1 == len(self.cells.moments) else self.cells.moments[k + 1]
            if k not in known:
                known[k] = self.steps(rates, k)
            steps = known[k]
            taken = [[price, Fraction(0)] for price, _ in steps]  # of this cell
            while end is None or now < end:
                pieces = (piece for piece in taken if piece[1])
                dearest = None if missing > 0 else max([*done[-1:], *pieces], default=None)
                if missing == 0 and dearest is None:
                    break
                cheaper = [i for i, (price, _) in enumerate(taken) if dearest is None or price < dearest[0]]
                speed = sum((steps[i][1] for i in cheaper), Fraction(0))
                if speed == 0:
                    break
                seconds = (missing if dearest is None else dearest[1]) / speed
                limits = (limit - now for limit in (end, job.kink) if limit is not None and now < limit)
                seconds = min([seconds, *limits])
                if dearest is None:
                    missing -= speed * seconds
                else:
                    paid -= dearest[0] * speed * seconds
                    dearest[1] -= speed * seconds
                for i in cheaper:
                    units = steps[i][1] * seconds
                    paid += taken[i][0] * units
                    taken[i][1] += units
                if done and done[-1][1] == 0:
                    done.pop()
                now += seconds
                if missing == 0 and job.cost(now) + paid < job.least:
                    return False
            if end is None or job.cost(end) >= job.least:
                return True
            for piece in taken:
                if piece[1]:
                    insort(done, piece)
            now = max(now, end)
        raise AssertionError("the last cell has no end")

    def paid(self, missing: Fraction, release: Fraction, until: Fraction, rates: Rates) -> Fraction:
        """Return the least price of work between two moments; of more work than fits there, of what fits.

        Parameters
        ----------
        missing
            Work to do.
        release
            First moment, in seconds.
        until
            Last moment, in seconds.
        rates
            Options of the job.
        """
        if rates not in self.ordered:
            every = range(len(self.cells.moments))
            self.ordered[rates] = sorted((*step, k) for k in every for step in self.steps(rates, k))
        ends, paid = [*self.cells.moments[1:], until], Fraction(0)
        for price, speed, k in self.ordered[rates]:
            seconds = min(ends[k], until) - max(self.cells.moments[k], release)
            if seconds > 0:
                units = min(missing, speed * seconds)
                paid, missing = paid + price * units, missing - units
                if not missing:
                    break
        return paid

    def steps(self, rates: Rates, k: int) -> Steps:
        """Return the cheapest way to more and more work a second in a cell, rising in price.

        Parameters
        ----------
        rates
            Options of the job.
        k
            Index of the cell.
        """
        row = self.cells.prices[k] if k < len(self.cells.prices) else {}
        points = [(rate, row.get(t, Fraction(0)) * gpus) for t, rate, gpus in rates]
        return sorted((cost / rate, rate) for rate, cost in points) if self.adds else lower_hull(points)


class TaskRound(NamedTuple):
    """An iteration of tasks: ``compute`` seconds on ``gpus`` GPUs, then ``sent`` seconds of transfer.

    Of the transfer the first ``latency`` seconds cost nothing; the others cost ``links`` seconds of an interface together.
    """

    compute: Fraction
    sent: Fraction
    latency: Fraction
    gpus: int
    links: Fraction

    def taken(self) -> list[Fraction]:
        """Return what a second of it takes of GPUs and interfaces on average."""
        return [units / (self.compute + self.sent) for units in (self.gpus * self.compute, self.links)]

    def saved(self, gpus: Fraction, links: Fraction) -> Fraction:
        """Return the most that turns save where prices rise: a part of an iteration is done before, the rest after.

        After the compute, or after the latency, GPUs are the furthest ahead of the average, and interfaces behind it.

        Parameters
        ----------
        gpus
            Rise of the price of a GPU.
        links
            Rise of the price of an interface.
        """
        (on_gpus, on_links), c = self.taken(), self.sent
        ahead = [(c, self.compute), (c - self.latency, self.compute + self.latency)]
        return max(Fraction(0), *(on_gpus * x * gpus - on_links * y * links for x, y in ahead))


class RoundMinima:
    """The least costs of jobs that take GPUs and interfaces in iterations, in cells with prices of both.

    Parameters
    ----------
    cells
        Cells and their prices.
    """

    def __init__(self, cells: PricedCells) -> None:
        self.cells = cells
        self.known: dict[TaskRound, tuple[Minima, list[Fraction]]] = {}

    def hold(self, job: LeastCost, rounds: TaskRound) -> bool:
        """Return True if a job costs and pays what it claims, whenever it ends.

        Parameters
        ----------
        job
            The job and its claim; its work is a number of iterations.
        rounds
            An iteration.
        """
        seconds = job.work * (rounds.compute + rounds.sent)
        if not seconds:
            return job.cost(job.release) >= job.least
        if rounds not in self.known:
            self.known[rounds] = self.priced(rounds)
        minima, saved = self.known[rounds]
        after = bisect_right(self.cells.moments, job.release) - 1
        more = job._replace(work=seconds, least=job.least + sum(saved[after:]))
        return minima.hold(more, (("", Fraction(1), Fraction(1)),))

    def priced(self, rounds: TaskRound) -> tuple[Minima, list[Fraction]]:
        """Return the cells at a job's own price of a second, and what it may save at the end of each.

        Parameters
        ----------
        rounds
            An iteration.
        """
        prices = [(row["gpus"], row["links"]) for row in self.cells.prices]
        on_gpus, on_links = rounds.taken()
        own = [{"": on_gpus * gpus + on_links * links} for gpus, links in prices]
        rises = pairwise([*prices, (Fraction(0), Fraction(0))])
        saved = [rounds.saved(c - a, d - b) for (a, b), (c, d) in rises]
        return Minima(PricedCells(self.cells.moments, own), adds=False), saved
