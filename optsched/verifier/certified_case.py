"""`Case`: what a certificate is about, read from an instance exactly. The rules of a class of schedules are a subclass.

Floats are integers over powers of two: times of jobs are integers of ``1 / Case.unit`` seconds, weights of
``1 / Case.shares``. Seconds that a job takes at least are its duration, or its iterations at the best rate of a table by
GPU type, of a graph of stages or of a scaling profile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any, ClassVar

from .document_fields import LARGEST_PRICE, Data, read_exponent, read_field, whole, written
from .exact_numbers import common_integers, floors, integers
from .priced_cells import Minima, PricedCells, RoundMinima
from .refusal import DUAL, KIND, UNJUDGED, need, shown
from .sharing_charges import Partners
from .stated_case import MOST_STEPS, StatedCase, numbered
from .stated_instance import read_link
from .stated_speeds import ModeRows, PricesByType, Speed, SpeedSource, distinct, useful
from .tick_machine import Machine, machine_on_grid

Proof = tuple[Fraction, Data]  # the value that is proved, and the data that the certificate must state
Theorem = Callable[[Any, Data], Proof]  # of a case and the data of a certificate


class Case(StatedCase):
    """An instance and a class of its schedules; lists are by job, and times count from the epoch on.

    ``release``, ``length`` and ``due`` (None: none) are r_j, p_j and d_j. ``moment`` is c_j of the objective, and ``alone``
    the cost of a unit of weight if the job never waits. These are in parts of ``1 / unit`` seconds. ``weight`` is in parts
    of ``1 / shares``. ``least`` is the objective if nobody waits, ``stated`` what certificates of a flow time state.
    ``amount`` is the work in seconds or iterations, ``modes`` the ways to do it. ``gang_seconds`` is what the gang takes at
    best, ``fair`` the flow time on an equal share. ``vouched`` is True if a `SpeedSource` vouches for an instance of any
    size.

    Parameters
    ----------
    document
        JSON object of the instance. The source, if any, gives the jobs.
    claimed
        Digest of the instance in the certificate.
    epoch
        Moment from which times count, in seconds.
    source
        Program that vouches for the instance.

    Raises
    ------
    Refused
        If the instance is another one, is not legal, or has no such schedules.
    """

    schedule_class: ClassVar[str]
    preemptive: ClassVar[bool] = True
    copies: ClassVar[bool] = False  # a job may run in several ways at once, whose work adds up
    any_width: ClassVar[bool] = False  # the width of an elastic job may change
    takes_turns: ClassVar[bool] = False  # jobs have tasks, which take turns on GPUs
    most_steps = MOST_STEPS

    def __init__(self, document: Data, claimed: str, epoch: Fraction, source: SpeedSource | None = None) -> None:
        super().__init__(document, claimed, epoch, source)
        self.fair: list[float] | None = None
        lengths = self._lengths()
        self._check_digest()
        dates = self.jobs.numbers["due"] or ()
        columns = self.jobs.stated("arrival"), lengths, [0.0 if x != x else x for x in dates], [float(epoch)]
        (self.release, self.length, dues, (zero,)), self.unit = common_integers(*columns)
        if zero:
            self.release = [x - zero for x in self.release]
        self.due: list[int | None] = [None] * self.n
        if dates:
            self.due = [None if x != x else t - zero for x, t in zip(dates, dues, strict=True)]

    def ask(self, kind: str, objective: str) -> None:
        """Set the kind of certificate and its objective.

        Parameters
        ----------
        kind
            Kind of the certificate.
        objective
            Name of the objective.
        """
        self.kind, self.objective, n = kind, objective, self.n
        self.late, self.flow = objective == "total_weighted_tardiness", "flow" in objective
        weigh = "weighted" in objective or objective == "total_utility"
        self.weight, self.shares = integers(self.jobs.stated("weight")) if weigh else ([1] * n, 1)
        if self.late:
            self.weight = [0 if d is None else w for w, d in zip(self.weight, self.due, strict=True)]
        dates = [d or 0 for d in self.due] if self.late else [0] * n
        self.moment = self.release if self.flow else dates
        if self.flow:
            self.alone = self.length
        else:
            self.alone = [max(r + p - c, 0) for r, p, c in zip(self.release, self.length, dates, strict=True)]
        self.least = Fraction(sum(map(mul, self.weight, self.alone)), self.shares * self.unit)
        self.stated: Data = {}
        if self.flow and "total" in objective:
            constant = Fraction(sum(map(mul, self.weight, self.release)), self.shares * self.unit)
            self.stated = {"flow_constant": written(constant)}

    def _lengths(self) -> Sequence[float]:
        # the seconds that every job takes at least; the digest learns what decides them
        tasks, contention = (self.document.get(name) or {} for name in ("tasks", "contention"))
        link = read_link(contention or {"seconds_per_byte": 1.0})
        legal = not tasks or set(self.by_profile) <= set(tasks)
        need(legal, "some jobs have tasks, others have none: use optsched verify", UNJUDGED)
        need(self.takes_turns == bool(tasks), "there is no such class of these jobs", KIND)
        return self.read_lengths(link, bool(contention))

    def read_lengths(self, link: Data, stated: bool) -> Sequence[float]:
        """Return the seconds that every job takes at least, and add what decides them to the digest.

        Parameters
        ----------
        link
            Contention on a network interface.
        stated
            True if the instance states it.
        """
        self._read_table(self.document.get("throughputs") or {})
        self._read_graphs(self.document.get("profiles") or {})
        if any(self.scaled):
            self.learn([[name, self.scalings[name].document] for name in self.used if name in self.scalings])
            self.learn(self.jobs.labels["batch_size"])
        self.read_partners(self.document.get("interference") or {})
        if (self.graphs or any(self.scaled)) and stated:
            self.digest.update(b"contention")
            self.learn(link)
        if self.source is not None and self.source.given:
            self.digest = None  # what the source gives decides it, too
        self._check_digest()
        self._read_modes()
        self.check_speeds()
        return self.class_lengths()

    def read_partners(self, given: Data) -> None:
        """Add the interference of the instance to the digest.

        Parameters
        ----------
        given
            JSON object of the interference; empty if the instance has none.
        """
        if given:
            self.partners = Partners(self.jobs.labels, given, self.few)
            self.learn(self.partners.stated)

    def _read_modes(self) -> None:
        # the speed of every job and its modes; jobs that are alike share a row
        given = frozenset() if self.source is None else frozenset(self.source.given)
        batches = self.jobs.labels["batch_size"]
        alone = [j if j in given else -1 for j in range(self.n)] if given else []
        columns = [self.by_profile, self.gpus, self.memory, batches, list(map(id, self.suits)), *[alone] * bool(given)]
        self.row, first = numbered(*columns)
        self.speeds, self.row_modes, same = list[Speed](), list[ModeRows](), dict[ModeRows, ModeRows]()
        for j in first:
            if self.source is not None and j in given:
                speed = self.source.speed(j, elastic=self.any_width)
            else:
                speed = self._speed_of(j, self.any_width)
            need(speed.pace, f"job {shown(self.ids[j])} has no speed that is known here", UNJUDGED)
            modes = self.modes_of(speed, self.gpus[j])
            self.speeds.append(speed)
            self.row_modes.append(same.setdefault(modes, modes))
        self.modes = [self.row_modes[row] for row in self.row]
        least = [speed.least for speed in self.speeds]
        self.gang_seconds = self.amount
        if set(least) - {1.0}:
            self.gang_seconds = [amount * least[row] for amount, row in zip(self.amount, self.row, strict=True)]

    # --- rules of the class ------------------------------------------------------------------------------------------

    def check_speeds(self) -> None:
        """Refuse an instance that has no schedules of the class."""

    def modes_of(self, speed: Speed, gang: int) -> ModeRows:
        """Return what jobs of a speed may do on every GPU type that suits them.

        Parameters
        ----------
        speed
            Speed of the jobs.
        gang
            GPUs of their gangs.
        """
        return tuple((t, Fraction(seconds), Fraction(gang)) for t, seconds in speed.pace.items())

    def class_lengths(self) -> Sequence[float]:
        """Return the seconds that every job takes at least, whatever its class allows."""
        return self.gang_seconds

    def fastest(self, modes: ModeRows) -> Fraction:
        """Return the most units of work a second.

        Parameters
        ----------
        modes
            What the job may do.
        """
        return max(1 / seconds for _, seconds, _ in modes)

    def machine(self, data: Data) -> Machine:
        """Return the machine that the data of a certificate state.

        Parameters
        ----------
        data
            Data of the certificate.
        """
        return self.priced_machine(data)

    def priced_machine(self, data: Data) -> Machine:
        """Return the machine of prices of GPU types: a job's work is the least price of it, U what all GPUs cost a second.

        Parameters
        ----------
        data
            Data of the certificate: ``prices``, ``grid_exponent``.
        """
        exponent, scale = read_exponent(data, "grid_exponent"), self.work_unit
        release = floors(self.release, self.unit, exponent)
        prices = self.prices(data)
        need(prices.capacity > 0, "data.prices are all 0", DUAL)
        costs = {id(modes): prices.cost(modes) * Fraction(2) ** exponent for modes in distinct(prices.modes)}
        unit = {key: (cost.numerator, cost.denominator * scale) for key, cost in costs.items()}
        rows = [unit[id(modes)] for modes in prices.modes]
        work = [w * up // down for w, (up, down) in zip(self.work, rows, strict=True)]
        return machine_on_grid(release, work, prices.capacity, exponent, prices.stated)

    def prices(self, data: Data) -> PricesByType:
        """Return the prices of GPU types that the data of a certificate state.

        Parameters
        ----------
        data
            Data of the certificate: ``prices``.
        """
        price: dict[str, int] = read_field(dict, data, "prices", DUAL)
        legal = price.keys() == self.count.keys() and whole(price.values(), LARGEST_PRICE)
        need(legal, "data.prices must be integers >= 0, below 2^64, one for every GPU type", DUAL)
        capacity = sum(price[name] * count for name, count in self.count.items())
        return PricesByType(price, capacity, self.modes, {"prices": data["prices"]})

    def rates(self, data: Data) -> tuple[list[Any], Data]:
        """Return the options of every job for prices over time, and what certificates state of them.

        Parameters
        ----------
        data
            Data of the certificate.
        """
        known = {
            id(modes): useful(tuple((t, 1 / seconds, n) for t, seconds, n in modes)) for modes in distinct(self.modes)
        }
        return [known[id(modes)] for modes in self.modes], {}

    def minima(self, cells: PricedCells) -> Minima | RoundMinima:
        """Return what cells of time cost jobs of the class.

        Parameters
        ----------
        cells
            Cells and their prices.
        """
        return Minima(cells, adds=self.copies)
