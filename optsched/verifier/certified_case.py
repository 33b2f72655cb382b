"""`Case`: what a certificate is about, read from an instance exactly. The rules of a class of schedules are a subclass.

Floats are integers over powers of two: times of jobs are integers of ``1 / Case.unit`` seconds, weights of
``1 / Case.shares``. Seconds that a job takes at least are its duration, or its iterations at the best rate of a table by
GPU type, of a graph of stages or of a scaling profile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, ClassVar

from .document_fields import LARGEST_PRICE, Data, read_exponent, read_field, whole, written
from .exact_numbers import floors, integers
from .graph_seconds import least_iteration, read_graph
from .job_speeds import ModeRows, PricesByType, Speed, SpeedSource, distinct, useful
from .priced_cells import Minima, PricedCells, RoundMinima
from .refusal import DUAL, INSTANCE, KIND, UNJUDGED, need, shown
from .scaling_seconds import ScalingProfile
from .sharing_charges import Partners
from .stated_instance import MOST_GPUS, digest_of, epoch_of, read_jobs, read_link, read_nodes, stated_parts
from .tick_machine import Machine, machine_on_grid

MOST_STEPS = 10**7  # of prices, or jobs times groups of nodes
PARTS = ("format", "name", "objective", "cluster", "jobs", "recipe", "optimum")
PARTS += ("throughputs", "profiles", "scalings", "tasks", "interference", "contention")
ROW = {"gpu", "gpus", "together", "spread", "measured"}  # of a table of rates

Proof = tuple[Fraction, Data]  # the value that is proved, and the data that the certificate must state
Theorem = Callable[[Any, Data], Proof]  # of a case and the data of a certificate


class Case:
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
        self.document, self.claimed, self.epoch = document, claimed, epoch
        self.source, self.vouched = source, source is not None
        self.fair: list[float] | None = None
        self._read_instance()
        self._read_types()
        lengths = self._lengths()
        self._check_digest()
        dates, n = self.jobs.numbers["due"], self.n
        dated = [] if all(x != x for x in dates) else [0.0 if x != x else x for x in dates]
        times, self.unit = integers([*self.jobs.numbers["arrival"], *lengths, *dated, epoch])
        zero = times[-1]
        self.release, self.length = [x - zero for x in times[:n]] if zero else times[:n], times[n : 2 * n]
        self.due: list[int | None] = [None] * n
        if dated:
            self.due = [None if x != x else t - zero for x, t in zip(dates, times[2 * n : 3 * n], strict=True)]

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
        self.weight, self.shares = integers(self.jobs.numbers["weight"]) if weigh else ([1] * n, 1)
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

    def few(self, count: int, most: int, noun: str) -> None:
        """Refuse a count above a limit, unless the instance is vouched for.

        Parameters
        ----------
        count
            Count.
        most
            Largest legal count.
        noun
            What is counted.
        """
        need(self.vouched or count <= most, f"{count} {noun}, more than {most}: use optsched verify", UNJUDGED)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read_instance(self) -> None:
        # nodes, jobs and their digest
        if self.source is None:
            groups, rows = stated_parts(self.document, PARTS, self.few)
            self.nodes = read_nodes(groups)
        else:
            self.nodes = read_nodes(self.document["cluster"]["nodes"])
        self.total = sum(node["gpus"] * node["count"] for node in self.nodes)
        self.few(self.total, MOST_GPUS, "GPUs")
        if self.source is None:
            self.jobs = read_jobs(rows, self.total, float(self.epoch))
        else:
            self.jobs = self.source.stated_jobs()
        self.ids, self.gpus, self.n = self.jobs.ids, self.jobs.gpus, len(self.jobs.ids)
        durations, profiles = self.jobs.numbers["duration"], self.jobs.labels["profile"]
        self.by_profile: list[Any] = [
            name if seconds != seconds else None for seconds, name in zip(durations, profiles, strict=True)
        ]
        self._read_scalings(self.document.get("scalings") or {})
        self.digest = digest_of(self.nodes, self.jobs)
        if self.epoch != 0:
            due = [x for x in self.jobs.numbers["due"] if x == x]
            legal = self.epoch == epoch_of(self.jobs.numbers["arrival"], due)
            need(legal, "its times count from another moment", INSTANCE)
        need(len(set(self.ids)) == self.n, "jobs of the same name", UNJUDGED)
        self.few(len(self.nodes) * self.n, MOST_STEPS, "jobs times groups of nodes")

    def _read_scalings(self, given: Data) -> None:
        # the memory of jobs at scaling profiles that state none
        spent = [0]
        self.scalings = {name: ScalingProfile(profile, spent, self.few) for name, profile in given.items()}
        self.scaled = [None] * self.n if not given else [self.scalings.get(name) for name in self.by_profile]
        memory, known = self.jobs.numbers["gpu_memory"], dict[Any, float]()
        batches, allowed = self.jobs.labels["batch_size"], self.jobs.labels["gpu_types"]
        for j, scaling in enumerate(self.scaled):
            if scaling is None:
                continue
            batch = read_field(int, {"batch_size": batches[j]}, "batch_size", UNJUDGED, None, 1)
            if memory[j] == memory[j] or not scaling.knows_memory:
                continue
            types = None if allowed[j] is None else frozenset(name.casefold() for name in allowed[j])
            key = self.by_profile[j], batch, self.gpus[j], types
            if key not in known:
                rooms = [
                    (
                        float(node.get("gpu_memory") or math.inf),
                        node["count"] * node["gpus"],
                        types is None or node["gpu"].casefold() in types,
                    )
                    for node in self.nodes
                ]
                known[key] = scaling.usual_memory(batch, self.gpus[j], rooms)
            memory[j] = known[key]

    def _read_types(self) -> None:
        # GPUs by type, the groups of nodes that suit every job, and its amount of work
        self.count, self.largest, self.types = dict[str, int](), dict[str, int](), dict[str, str]()
        for node in self.nodes:  # a type is called what its first group calls it
            name = self.types.setdefault(node["gpu"].casefold(), node["gpu"])
            self.count[name] = self.count.get(name, 0) + node["gpus"] * node["count"]
            self.largest[name] = max(self.largest.get(name, 0), node["gpus"])
        self.memory = [0.0 if x != x else x for x in self.jobs.numbers["gpu_memory"]]
        allowed = [None if names is None else tuple(names) for names in self.jobs.labels["gpu_types"]]
        keys, known = list(zip(allowed, self.memory, strict=True)), dict[Any, list[int]]()
        for names, memory in dict.fromkeys(keys):
            known[names, memory] = self._groups_for(names, memory)
        self.suits = [known[key] for key in keys]
        self.used = sorted({name for name in self.by_profile if name is not None})
        counts = zip(self.by_profile, self.jobs.numbers["duration"], self.jobs.numbers["iterations"], strict=True)
        self.amount = [seconds if name is None else count for name, seconds, count in counts]
        need(all(x == x for x in self.amount), "a job has neither a duration nor iterations of a profile", UNJUDGED)

    def _groups_for(self, names: tuple[str, ...] | None, memory: float) -> list[int]:
        # the node groups whose type and memory suit a job
        may = None if names is None else {name.casefold() for name in names}
        return [
            g
            for g, node in enumerate(self.nodes)
            if (may is None or node["gpu"].casefold() in may) and memory <= node.get("gpu_memory", math.inf)
        ]

    def _lengths(self) -> list[float]:
        # the seconds that every job takes at least; the digest learns what decides them
        tasks, contention = (self.document.get(name) or {} for name in ("tasks", "contention"))
        link = read_link(contention or {"seconds_per_byte": 1.0})
        legal = not tasks or set(self.by_profile) <= set(tasks)
        need(legal, "some jobs have tasks, others have none: use optsched verify", UNJUDGED)
        need(self.takes_turns == bool(tasks), "there is no such class of these jobs", KIND)
        return self.read_lengths(link, bool(contention))

    def read_lengths(self, link: Data, stated: bool) -> list[float]:
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

    def learn(self, part: Any) -> None:
        """Add a part of the instance to the digest.

        Parameters
        ----------
        part
            JSON value.
        """
        self.digest.update(json.dumps(part).encode())

    def _check_digest(self) -> None:
        need(self.digest is None or self.claimed == self.digest.hexdigest(), "it is of another instance", INSTANCE)

    # --- speeds ------------------------------------------------------------------------------------------------------

    def _read_table(self, given: Data) -> None:
        # iterations/s by job type, GPU type and gang: together, and spread over nodes
        self.table: dict[Any, tuple[float, float]] = {}
        for name in given.keys() & set(self.jobs.labels["profile"]) if given else ():
            for row in given[name]:
                key = name, row["gpu"].casefold(), read_field(int, row, "gpus", UNJUDGED)
                near = read_field(float, row, "together", UNJUDGED)
                need(key not in self.table and row.keys() <= ROW, "the table of rates is invalid", UNJUDGED)
                self.table[key] = near, read_field(float, row, "spread", UNJUDGED, near)
        if {name for name, _, _ in self.table} & set(self.used):
            self.learn(sorted([*key, *rates] for key, rates in self.table.items()))

    def _read_graphs(self, given: Data) -> None:
        # the least seconds of an iteration by profile, of those that are graphs of stages
        graphs = {name: read_graph(given[name], self.few) for name in self.used if name in given}
        gangs = {name: sum(stage["replicas"] for stage in graph["stages"]) for name, graph in graphs.items()}
        legal = not graphs or all(
            gangs.get(name, gang) == gang for name, gang in zip(self.by_profile, self.gpus, strict=True)
        )
        need(legal, "a gang is not one GPU a replica", UNJUDGED)
        self.graphs = {name: least_iteration(graph, self.nodes) for name, graph in graphs.items()}
        if graphs:
            self.learn([[name, graph] for name, graph in graphs.items()])

    def _read_modes(self) -> None:
        # the speed of every job and its modes; jobs that are alike share a row
        given = frozenset() if self.source is None else frozenset(self.source.given)
        batches = self.jobs.labels["batch_size"]
        columns = self.by_profile, self.gpus, self.memory, batches, map(id, self.suits)
        keys: list[Any] = list(zip(*columns, strict=True))
        for j in given:
            keys[j] = j
        place = {key: row for row, key in enumerate(dict.fromkeys(keys))}
        self.row = [place[key] for key in keys]
        first = dict(zip(reversed(self.row), reversed(range(self.n)), strict=True))
        self.speeds, self.row_modes, same = list[Speed](), list[ModeRows](), dict[ModeRows, ModeRows]()
        for row in range(len(place)):
            j = first[row]
            if self.source is not None and j in given:
                speed = self.source.speed(j, elastic=self.any_width)
            else:
                speed = self._speed_of(j)
            need(speed.pace, f"job {shown(self.ids[j])} has no speed that is known here", UNJUDGED)
            modes = self.modes_of(speed, self.gpus[j])
            self.speeds.append(speed)
            self.row_modes.append(same.setdefault(modes, modes))
        self.modes = [self.row_modes[row] for row in self.row]
        least = [speed.least for speed in self.speeds]
        self.gang_seconds = [amount * least[row] for amount, row in zip(self.amount, self.row, strict=True)]

    def _speed_of(self, j: int) -> Speed:
        # what the profile of a job says, or that it has a duration
        name, gang, pace = self.by_profile[j], self.gpus[j], dict[str, float]()
        several, flat = sum(node["count"] for node in self.nodes) > 1, max(self.largest.values()) == 1
        scaling, batch = self.scaled[j], self.jobs.labels["batch_size"][j]
        sizes = sorted((node["gpus"], node["count"]) for node in (self.nodes[g] for g in self.suits[j]))[::-1]
        times = []  # of a gang at a scaling profile: on one node, if one holds it, and over several, if there are
        if scaling is not None:
            reach = [False] * (sizes[0][0] >= gang) + [True] * (gang > 1 and sum(count for _, count in sizes) > 1)
            times = scaling.least(batch, gang, self.memory[j], reach)
        for g in self.suits[j]:
            kind, rates = self.types[self.nodes[g]["gpu"].casefold()], (1.0, 1.0)
            if name in self.graphs:
                rates = (1.0 / self.graphs[name],) * 2
            elif scaling is not None:
                rates = 1.0 / min((times if flat else times[:1]) or times), 1.0 / min(times[-1:])
            elif name is not None:
                rates = self.table.get((name, kind.casefold(), gang), (0.0, 0.0))
            if min(rates) > 0:  # in nodes of one GPU nobody knows which GPUs are neighbours
                near, far = flat or gang <= self.largest[kind], gang > 1 and several and not flat
                pace[kind] = 1.0 / max(rates[0] * near, rates[1] * far)
        least = min(times) if times else self.graphs.get(name, min(pace.values(), default=0.0))
        if scaling is None:
            return Speed(pace, least)
        if not self.any_width:
            return Speed(pace, least, [])
        nodes = tuple(gpus for gpus, count in sizes for _ in range(count))
        return Speed(pace, least, list(scaling.rates(batch, gang, self.memory[j], nodes).items()))

    @cached_property
    def _exact_work(self) -> tuple[list[int], int]:
        return integers(self.amount)

    @property
    def work(self) -> list[int]:
        """Work of every job, in parts of ``1 / work_unit`` seconds or iterations."""
        return self._exact_work[0]

    @property
    def work_unit(self) -> int:
        """Parts of a unit of work."""
        return self._exact_work[1]

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

    def class_lengths(self) -> list[float]:
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
