"""Prices of GPUs by type, and over time, for verifiers without optsched: what every job costs and pays at least.

Beside verify_on_clusters.py, which reads the speeds of jobs. A *mode*: (GPU type, seconds a unit of work, GPUs paid for).
**Theorem** makespan: after a moment jobs pay for the work that is left, GPUs and own time, no more than all of them cost for
what is left of the time (optsched/bounds/priced_machine.py).

**Over time**: time is cut into cells; a second of a GPU of type t costs omega_kt in cell k, nothing after the
last. A job that does its work by options (rate, GPUs of a type that it pays for), and ends at C, costs w max(C - c, 0), or
what its utility w N / (C - r) is less than nothing, and pays for the cheapest work that [r, C] has for it: in a moment it
does more and more work a second along the lower hull of cost over rate or, where copies add up, takes option after option.
**Theorem** priced-time: the sum of what jobs cost and pay at least, less what all GPUs are worth
(optsched/bounds/priced_time.py); of utility, which is bounded from above, its negative. The data state these minima.
Jobs with tasks compute and send in turns (verify_tasks.py): they pay for both as on average, less what they may save by it.
**Theorem** priced-deadlines: a ratio R, if work until all r_j + R d_j costs more than all GPUs are worth
(optsched/bounds/priced_deadlines.py).
**Theorem** priced-gangs: job j also pays own_prices[j] = [k, [p, ...]] for a second in which it runs in cell k, k + 1, ...,
beside its GPUs, and nothing in other cells, of which none before k may be of its time: the sum of what jobs cost and pay at
least, less, in every second, what all GPUs are worth and the most own prices of gangs that have no more GPUs together than
there are (optsched/bounds/priced_gangs.py).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import DUAL, EXPONENT, Data, by_cell, most_together, need, ratio, the, written
    from optsched.check.verify_fair_share import share_of
    from optsched.check.verify_sharing import Needs, whole
else:  # copied
    from verify_case import DUAL, EXPONENT, Data, by_cell, most_together, need, ratio, the, written
    from verify_fair_share import share_of
    from verify_sharing import Needs, whole

MOST_CELLS = 4096
MOST_WORK = 3_000_000  # cells times options of all jobs: a minute or two; what the search makes has a sixth
LARGEST, LARGEST_PRICE = 1 << 2048, (1 << 64) - 1  # of a moment or a minimum; of a price
Rates = tuple[tuple[str, Fraction, Fraction], ...]  # GPU type, units of work a second, GPUs paid for
Steps = list[tuple[Fraction, Fraction]]  # price of a unit of work, units a second
ModeRows = tuple[tuple[str, Fraction, Fraction], ...]  # of a job: GPU type, seconds a unit of work, GPUs paid for


class Speed(NamedTuple):
    """Of jobs that are alike: seconds of a unit of work by GPU type, and at the least; rates on r GPUs of elastic ones."""

    pace: dict[str, float]
    least: float
    rates: list[tuple[int, float]] | None = None


class PricesByType(NamedTuple):
    """Prices of GPU types; what all GPUs cost a second; what jobs may do at them; what files state."""

    of: dict[str, int]
    capacity: int
    modes: list[ModeRows]
    stated: Data

    def cost(self, modes: ModeRows, own: int = 0) -> Fraction:
        """The least that a unit of work costs, with a price of the job's own time."""
        return min((a * (own + n * self.of[t]) for t, a, n in modes), default=Fraction(0))


def by_id(rows: list[ModeRows]) -> list[ModeRows]:
    """One of each."""
    return list({id(row): row for row in rows}.values())


class SpeedSource(Protocol):
    """Gives what this program does not know of some jobs: optsched's `Instance` is behind it."""

    def speed(self, job: int, *, elastic: bool) -> Speed | None:
        """None: it is known here."""

    def needs(self, job: int) -> Needs:
        """(bytes, how many times as long an iteration takes at least) of its sub-batches."""


def makespan(case: Any, data: Data) -> tuple[Fraction, Data]:
    """A moment plus the work that is left then, whatever was done before, GPUs and jobs' own time at prices."""
    moment, own, prices = ratio(data.get("moment"), "data.moment"), the(dict, data, "own_prices"), case.prices(data)
    need(own.keys() <= set(case.ids), "data.own_prices must name jobs of the instance")
    legal = whole(own.values(), LARGEST_PRICE) and all(own.values()) and not (own and case.schedule_class == "forking")
    need(legal, "data.own_prices must be integers > 0, below 2^64, of jobs that are not copied", DUAL)
    total = prices.capacity + sum(own.values())
    need(total > 0, "data.prices and data.own_prices are all 0", DUAL)
    worth, some = Fraction(0), not case.ids
    known = {id(modes): (case.fastest(modes), prices.cost(modes)) for modes in by_id(prices.modes)}
    for j, (release, left, modes) in enumerate(zip(case.release, case.work, prices.modes, strict=True)):
        fastest, unit = known[id(modes)]
        if moment * case.unit > release:
            left -= (moment - Fraction(release, case.unit)) * fastest
        if left > 0:
            worth += left * (prices.cost(modes, own[case.ids[j]]) if case.ids[j] in own else unit)
            some = True
    need(some, "all work may be done by data.moment: it bounds nothing", DUAL)
    stated = {"moment": written(moment), "own_prices": own, **prices.stated}
    return moment + worth / total if case.ids else Fraction(0), stated


# --- prices over time ---------------------------------------------------------------------------------------------------


class PricedCells(NamedTuple):
    """``moments`` C + 1, rising; ``prices[k]``: cost of a second of a GPU of every type, up to ``moments[k + 1]``."""

    moments: list[Fraction]
    prices: list[dict[str, Fraction]]

    def worth(self, count: dict[str, int]) -> Fraction:
        """What all GPUs together are worth."""
        spans = zip(pairwise(self.moments), self.prices, strict=True)
        return sum(((b - a) * sum(row[t] * n for t, n in count.items()) for (a, b), row in spans), Fraction(0))


class LeastCost(NamedTuple):
    """A job that has ``work`` to do from ``release`` on, costs ``weight`` a second after ``kink``, and says ``least``.

    ``gain``: what it gets done, w N: its utility is that over the seconds of its stay.
    """

    release: Fraction
    work: Fraction
    weight: Fraction
    kink: Fraction
    least: Fraction
    gain: Fraction = Fraction(0)

    def cost(self, end: Fraction) -> Fraction:
        """Its part of the objective."""
        cost = self.weight * max(Fraction(0), end - self.kink)
        return cost - self.gain / (end - self.release) if self.gain else cost


def priced_time(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Every job's minimum is held against all moments at which it may end."""
    cells, rates, charged = priced_cells(case, data)
    minima, unit = stated_minima(data, len(rates)), Fraction(2) ** -exponent(data, "minimum_exponent")
    tasks = case.schedule_class == "task-sharing"
    proof: Any = RoundMinima(cells) if tasks else Minima(cells, adds=case.schedule_class == "forking")
    utility = case.objective == "total_utility"
    need(not utility or all(work > 0 for work in case.work), "a job takes no time: its utility has no bound")
    works = case.works() if utility else []
    for j, (w, c, work) in enumerate(zip(case.weight, case.moment, case.work, strict=True)):
        release, weight = Fraction(case.release[j], case.unit), Fraction(w, case.shares)
        given = (Fraction(0), weight * Fraction(works[j])) if utility else (weight, Fraction(0))
        job = LeastCost(release, work, given[0], Fraction(c, case.unit), unit * minima[j], given[1])
        need(proof.hold(job, rates[j]), f"data.minima[{j}]: the job costs and pays less than it says", DUAL)
    names = ("moments", "moment_exponent", "prices", "price_exponent", "minima", "minimum_exponent")
    value = unit * sum(minima) - cells.worth(case.count)
    return -value if utility else value, {**{name: data[name] for name in names}, **charged}


def priced_cells(case: Any, data: Data) -> tuple[PricedCells, list[Rates], Data]:
    """(the cells, the options of every job, what files state), of a size that can be tried."""
    rates, charged = case.rates(data)
    cells = stated_cells(data, case.count)
    first = min((Fraction(r, case.unit) for r in case.release), default=Fraction(0))
    need(cells.moments[0] <= first, "data.moments must begin at the first arrival, or before")
    need(
        len(cells.prices) * sum(map(len, rates)) <= MOST_WORK,
        f"more than {MOST_WORK} cells and options: too many to try",
    )
    return cells, rates, charged


def priced_deadlines(case: Any, data: Data) -> tuple[Fraction, Data]:
    """With a smaller value all jobs meet their deadlines: what they pay until then is held against what GPUs are worth."""
    cells, rates, charged = priced_cells(case, data)
    limit, proof = ratio(data.get("limit"), "data.limit"), Minima(cells, adds=case.schedule_class == "forking")
    columns, paid = zip(case.release, case.work, share_of(case), rates, strict=True), Fraction(0)
    for r, work, share, own in columns:
        release = Fraction(r, case.unit)
        paid += proof.paid(work, release, release + limit * share, own)
    need(paid > cells.worth(case.count), "data.limit: the jobs can pay for their work until then", DUAL)
    names = ("moments", "moment_exponent", "prices", "price_exponent")
    return limit, {"limit": written(limit), **{name: data[name] for name in names}, **charged}


def stated_minima(data: Data, count: int) -> list[int]:
    """What jobs say that they cost and pay at least."""
    minima: list[int] = the(list, data, "minima")
    legal = len(minima) == count and all(type(x) is int and abs(x) < LARGEST for x in minima)
    need(legal, "data.minima must be integers, one for every job")
    return minima


def exponent(data: Data, name: str) -> int:
    """Integers are over two to the power of this."""
    return int(the(int, data, name, least=-EXPONENT, most=EXPONENT))


def stated_cells(data: Data, count: dict[str, int], most: int = MOST_CELLS) -> PricedCells:
    """The cells that the data state: moments that rise, and prices >= 0 of every GPU type."""
    moments, named = the(list, data, "moments"), the(dict, data, "prices", DUAL)
    legal = all(type(x) is int and abs(x) < LARGEST for x in moments) and 1 < len(moments) <= most + 1
    need(
        legal and all(a < b for a, b in pairwise(moments)),
        f"data.moments must be integers that rise, 2 to {most + 1}",
    )
    legal = named.keys() == count.keys() and all(type(row) is list for row in named.values())
    legal = legal and all(len(row) == len(moments) - 1 and whole(row, LARGEST_PRICE) for row in named.values())
    need(legal, "data.prices must be integers >= 0, below 2^64, one for every cell and GPU type", DUAL)
    unit, price = (Fraction(2) ** -exponent(data, name) for name in ("moment_exponent", "price_exponent"))
    rows = [{t: price * row[k] for t, row in named.items()} for k in range(len(moments) - 1)]
    return PricedCells([unit * moment for moment in moments], rows)


class Minima:
    """What the cells cost jobs by their options; ``adds``: options are taken all at once."""

    def __init__(self, cells: PricedCells, adds: bool) -> None:
        self.cells, self.adds = cells, adds
        self.known: dict[Rates, dict[int, Steps]] = {}
        self.ordered: dict[Rates, list[tuple[Fraction, Fraction, int]]] = {}  # (price of a unit, units a second, cell)

    def hold(self, job: LeastCost, rates: Rates) -> bool:
        """Is what the job says true, wherever it ends?

        The job takes the cheapest work of the moments up to its end; a later end exchanges the dearest for cheaper. Between
        the ends at which a piece of work is used up the payment is linear, the cost linear or concave: both are looked at
        there alone.
        """
        done: list[list[Fraction]] = []  # [price of a unit, units], rising
        missing, paid, now = job.work, Fraction(0), job.release
        known = self.known.setdefault(rates, {})  # steps by cell
        for k in range(max(bisect_right(self.cells.moments, now) - 1, 0), len(self.cells.moments)):
            end = None if k + 1 == len(self.cells.moments) else self.cells.moments[k + 1]
            if k not in known:
                known[k] = self.steps(rates, k)
            steps = known[k]
            mine = [[price, Fraction(0)] for price, _ in steps]  # of this cell
            while end is None or now < end:
                dearest = None if missing > 0 else max([*done[-1:], *(each for each in mine if each[1])], default=None)
                if missing == 0 and dearest is None:
                    break
                cheaper = [i for i, (price, _) in enumerate(mine) if dearest is None or price < dearest[0]]
                speed = sum((steps[i][1] for i in cheaper), Fraction(0))
                if speed == 0:
                    break
                seconds = (missing if dearest is None else dearest[1]) / speed
                seconds = min(
                    [seconds, *(limit - now for limit in (end, job.kink) if limit is not None and now < limit)]
                )
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
                if missing == 0 and job.cost(now) + paid < job.least:
                    return False
            if end is None or job.cost(end) >= job.least:
                return True
            for piece in mine:
                if piece[1]:
                    insort(done, piece)
            now = max(now, end)
        raise AssertionError("the last cell has no end")

    def paid(self, missing: Fraction, release: Fraction, until: Fraction, rates: Rates) -> Fraction:
        """The least that work costs between two moments; of more work than fits there, of what fits."""
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
        """The cheapest way to more and more work a second in cell k, rising in price."""
        row = self.cells.prices[k] if k < len(self.cells.prices) else {}
        points = [(rate, row.get(t, Fraction(0)) * gpus) for t, rate, gpus in rates]
        return sorted((cost / rate, rate) for rate, cost in points) if self.adds else lower_hull(points)


class TaskRound(NamedTuple):
    """A job repeats: ``compute`` seconds on ``gpus`` GPUs, then ``sent`` seconds, whose first ``latency`` cost nothing.

    The others cost ``links`` seconds of an interface together.
    """

    compute: Fraction
    sent: Fraction
    latency: Fraction
    gpus: int
    links: Fraction

    def taken(self) -> list[Fraction]:
        """What a second of it takes of GPUs and interfaces, on average."""
        return [units / (self.compute + self.sent) for units in (self.gpus * self.compute, self.links)]

    def saved(self, gpus: Fraction, links: Fraction) -> Fraction:
        """The most that turns save where prices rise by so much: a part of a round is done before, the rest after.

        After the compute, or after the latency, GPUs are further ahead of the average, and interfaces behind it, than ever.
        """
        (on_gpus, on_links), c = self.taken(), self.sent
        ahead = [(c, self.compute), (c - self.latency, self.compute + self.latency)]
        return max(Fraction(0), *(on_gpus * x * gpus - on_links * y * links for x, y in ahead))


class RoundMinima:
    """What cells whose prices are of GPUs and of interfaces cost jobs that take both in rounds."""

    def __init__(self, cells: PricedCells) -> None:
        self.cells = cells
        self.known: dict[TaskRound, tuple[Minima, list[Fraction]]] = {}

    def hold(self, job: LeastCost, rounds: TaskRound) -> bool:
        """Is what the job says true, wherever it ends? Its work is a number of rounds."""
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
        """The cells at the job's own price of a second, and what it may save at the end of each."""
        prices = [(row["gpus"], row["links"]) for row in self.cells.prices]
        on_gpus, on_links = rounds.taken()
        own = [{"": on_gpus * gpus + on_links * links} for gpus, links in prices]
        rises = pairwise([*prices, (Fraction(0), Fraction(0))])
        saved = [rounds.saved(c - a, d - b) for (a, b), (c, d) in rises]
        return Minima(PricedCells(self.cells.moments, own), adds=False), saved


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> Steps:
    """(slope, width) of the pieces of the largest convex function below points (rate, cost) and (0, 0)."""
    hull = [(Fraction(0), Fraction(0))]
    for rate, cost in sorted(points, key=lambda point: (point[0], -point[1])):
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if c != rate and (cost - b) * (c - a) > (d - b) * (rate - a):  # the way over the last one is convex
                break
            hull.pop()
        hull.append((rate, cost))
    return [((d - c) / (b - a), b - a) for (a, c), (b, d) in pairwise(hull)]


def useful(options: Rates) -> Rates:
    """On GPUs that cost the same only those on the hull are ever the cheapest: those of every type."""
    found = list[tuple[str, Fraction, Fraction]]()
    for name in dict.fromkeys(t for t, _, _ in options):
        rate, gpus = Fraction(0), Fraction(0)
        for slope, more in lower_hull([(x, n) for t, x, n in options if t == name]):
            rate, gpus = rate + more, gpus + slope * more
            found.append((name, rate, gpus))
    return tuple(found)


# --- prices of running gangs --------------------------------------------------------------------------------------------

GANG_CELLS, MOST_PAIRS, MOST_FILLED = 1 << 15, 600_000, 200_000_000  # own prices; times GPUs: a minute or two


def priced_gangs(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Every job's minimum is held against all moments at which it may end; knapsacks are filled as well as can be."""
    rates, _ = case.rates(data)
    cells, minima = stated_cells(data, case.count, GANG_CELLS), stated_minima(data, len(rates))
    given, unit = the(list, data, "own_prices", DUAL), Fraction(2) ** -exponent(data, "price_exponent")
    need(len(given) == len(rates) and all(map(legal_row, given)), "data.own_prices: [cell, prices] of every job", DUAL)
    need(sum(len(row) for _, row in given) <= MOST_PAIRS, f"more than {MOST_PAIRS} own prices: too many to try")
    for j, (first, row) in enumerate(given):
        need(first + len(row) <= len(cells.prices), f"data.own_prices[{j}]: there are no such cells", DUAL)
        release = Fraction(case.release[j], case.unit)
        need(cells.moments[first] <= release, f"data.own_prices[{j}] begin after the job's arrival", DUAL)
        least = unit_of(data) * minima[j]
        job = LeastCost(
            release, case.work[j], Fraction(case.weight[j], case.shares), Fraction(case.moment[j], case.unit), least
        )
        mine = own_cells(cells, first, [unit * price for price in row], case.gpus[j])
        held = Minima(mine, adds=False).hold(job, rates[j])
        need(held, f"data.minima[{j}]: the job costs and pays less than it says", DUAL)
    paid = by_cell(given, case.gpus, len(cells.prices))
    need(sum(map(len, paid)) * case.total <= MOST_FILLED, "too many gangs and GPUs to try")
    worth = cells.worth(case.count) + unit * sum(
        ((b - a) * most_together(some, case.total) for (a, b), some in zip(pairwise(cells.moments), paid, strict=True)),
        Fraction(0),
    )
    names = ("moments", "moment_exponent", "prices", "price_exponent", "own_prices", "minima", "minimum_exponent")
    return unit_of(data) * sum(minima) - worth, {name: data[name] for name in names}


def unit_of(data: Data) -> Fraction:
    """Of the minima."""
    return Fraction(2) ** -exponent(data, "minimum_exponent")


def legal_row(row: Any) -> bool:
    """Is it a cell, and prices from there on?"""
    legal = type(row) is list and len(row) == 2 and type(row[0]) is int and row[0] >= 0 and type(row[1]) is list
    return legal and len(row[1]) > 0 and whole(row[1], LARGEST_PRICE)


def own_cells(cells: PricedCells, first: int, row: list[Fraction], gang: int) -> PricedCells:
    """The cells of a job, at its own prices of a GPU."""
    last = first + len(row)
    prices = [
        {t: price + own / gang for t, price in by_type.items()}
        for by_type, own in zip(cells.prices[first:last], row, strict=True)
    ]
    return PricedCells(cells.moments[first : last + 1], prices)
