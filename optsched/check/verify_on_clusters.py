"""Check a lower bound without optsched where speeds depend on GPUs, jobs are copied, share GPUs or have tasks.

    python verify_on_clusters.py CERTIFICATE INSTANCE

Copy the files verify_*.py (Python 3.11 or newer, no packages). verify_certificate.py has the theorems and the exit codes,
verify_fair_share.py those of max_fair_slowdown; here are more machines of U units for which those theorems hold.

**Seconds** that a job takes at least: its duration; iterations at the best rate of a table by GPU type (together on a node,
or spread over several), of a graph of stages or of a scaling profile (verify_seconds.py).
**Classes**: gang, gang-nonpreemptive; forking: copies on all GPUs of its types at once, whose work adds up; gpu-sharing: two
jobs on a GPU, each slowed down by the other (verify_sharing.py); task-sharing: iterations of tasks that take turns
(verify_tasks.py); elastic: any number of GPUs, any batch. **Machines**: typed, elastic: a unit of work that takes n GPUs a
seconds costs n a times their price, the least that suits; U: what all GPUs cost a second. shared: of n only a part, its
charge, such that c_a / xi_ab + c_b / xi_ba <= 1 for any two classes of jobs that fit on a GPU together. task, link: compute
on all GPUs, or bytes on all network interfaces. **makespan**: a moment plus the work that is left then, at prices of GPUs
and of jobs' own time, over all that these pay. **priced-time**, **priced-deadlines**: prices of GPUs over time;
**priced-gangs**: and of running jobs, of which not all fit together (verify_time_prices.py).
**Not known here**: measured steps of scalings, and models of speeds that somebody added to optsched. `optsched verify` runs
this program, too, and gives it the speeds of such jobs (`SpeedSource`).
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check import verify_case as reading, verify_certificate as plain, verify_tasks
    from optsched.check.verify_case import DUAL, EXPONENT, UNJUDGED, Case, Data, Machine, below, floors, need, the
    from optsched.check.verify_certificate import GANGS, Theorem, alone, busy, first_come, srpt, volume
    from optsched.check.verify_fair_share import fair_alone, fair_share
    from optsched.check.verify_seconds import ScalingProfile, graph_of, least_iteration, with_memory
    from optsched.check.verify_sharing import Charges, Needs, Partners, whole
    from optsched.check.verify_time_prices import (
        LARGEST_PRICE,
        ModeRows,
        PricesByType,
        Rates,
        Speed,
        SpeedSource,
        by_id,
        makespan,
        priced_deadlines,
        priced_gangs,
        priced_time,
        useful,
    )
else:  # copied
    import verify_case as reading
    import verify_certificate as plain
    import verify_tasks
    from verify_case import DUAL, EXPONENT, UNJUDGED, Case, Data, Machine, below, floors, need, the
    from verify_certificate import GANGS, Theorem, alone, busy, first_come, srpt, volume
    from verify_fair_share import fair_alone, fair_share
    from verify_seconds import ScalingProfile, graph_of, least_iteration, with_memory
    from verify_sharing import Charges, Needs, Partners, whole
    from verify_time_prices import *  # noqa: F403

MOST_GPUS = 4096  # of elastic jobs
ROW = {"gpu", "gpus", "together", "spread", "measured"}


class OnCluster(Case):
    """A case with speeds by GPU type or placement, partners on GPUs, copies or tasks.

    `suits`, `runs`: the node groups that suit a job, and on which it has a speed; `modes`: what a unit of its work may cost;
    `work`: what it has to do; `gang_seconds`: how long its gang takes at best, in floats; `fair`: on an equal share.
    """

    fair: list[Fraction] | None = None
    parts = Case.parts | {"throughputs", "profiles", "scalings", "tasks", "interference", "contention"}

    def __init__(
        self, document: Data, claimed: str, schedule_class: str, epoch: Fraction, source: SpeedSource | None = None
    ) -> None:
        self.source, self.vouched = source, source is not None
        super().__init__(document, claimed, schedule_class, epoch)

    def read_instance(self, document: Data, epoch: Fraction) -> None:
        """With the memory that jobs at scaling profiles need."""
        self.epoch, spent, jobs = epoch, [0], document["jobs"]
        given: Data = document.get("scalings") or {}
        self.scalings = {name: ScalingProfile(each, spent, self.few) for name, each in given.items()}
        if self.scalings:
            nodes, jobs = document["cluster"]["nodes"], list[Data]()
            for job in document["jobs"]:
                scaling = self.scalings.get(job.get("profile")) if job.get("duration") is None else None
                need(scaling is None or the(int, job, "batch_size", UNJUDGED, None, 1), "no batch", UNJUDGED)
                jobs.append(job if scaling is None else with_memory({"gpus": 1, **job}, scaling, nodes))
        super().read_instance({**document, "jobs": jobs}, epoch)
        due = [x for x in self.column["due"] if x == x]
        need(
            epoch in (0, reading.epoch_of(self.column["arrival"], due)),
            "its times count from another moment",
            reading.INSTANCE,
        )
        need(len(set(self.ids)) == len(self.ids), "jobs of the same name", UNJUDGED)
        self.few(len(self.nodes) * len(jobs), reading.MOST_STEPS, "jobs times groups of nodes")

    def seconds(self) -> list[float]:
        """The least of the class; the digest learns of tables, graphs, tasks, interference and contention."""
        self.count, self.largest, self.types = dict[str, int](), dict[str, int](), dict[str, str]()
        for node in self.nodes:  # a type is called what its first group calls it
            name = self.types.setdefault(node["gpu"].casefold(), node["gpu"])
            self.count[name] = self.count.get(name, 0) + node["gpus"] * node["count"]
            self.largest[name] = max(self.largest.get(name, 0), node["gpus"])
        self.memory = [0.0 if x != x else x for x in self.column["gpu_memory"]]
        suits: dict[Any, list[int]] = {}
        self.suits = [
            self.groups_for(job.get("gpu_types"), x, suits) for job, x in zip(self.jobs, self.memory, strict=True)
        ]
        self.by_profile: list[Any] = [None if job.get("duration") is not None else job["profile"] for job in self.jobs]
        self.used = sorted({name for name in self.by_profile if name is not None})
        counts = zip(self.by_profile, self.column["duration"], self.column["iterations"], strict=True)
        self.amount = [seconds if name is None else count for name, seconds, count in counts]
        self.work = list(map(Fraction, self.amount))
        tasks, contention = (self.document.get(name) or {} for name in ("tasks", "contention"))
        link = verify_tasks.link_of(contention or {"seconds_per_byte": 1.0})
        need(
            not tasks or set(self.by_profile) <= set(tasks),
            "some jobs have tasks, others have none: use optsched verify",
            UNJUDGED,
        )
        need(
            (self.schedule_class == "task-sharing") == bool(tasks), "there is no such class of these jobs", reading.KIND
        )
        if tasks:
            self.needs = verify_tasks.TaskNeeds(self, tasks, link)
            if self.jobs:
                self.digest.update(self.needs.text.encode())
                self.learn(link if contention else None)
            self.gang_seconds, self.count = self.needs.gang_seconds, self.needs.capacity
            return self.needs.length
        self.read_speeds(link if contention else None)
        if self.source is not None and any(self.source.speed(j, elastic=False) for j in range(len(self.jobs))):
            self.digest = None  # what the source says decides it, too
        need(
            self.digest is None or self.claimed == self.digest.hexdigest(),
            "it is of another instance",
            reading.INSTANCE,
        )
        return self.read_modes()

    def read_speeds(self, link: Data | None) -> None:
        """Tables, graphs and scaling profiles, and who slows down whom."""
        self.read_table(self.document.get("throughputs") or {})
        self.read_graphs(self.document.get("profiles") or {})
        self.scaled = [None if name is None else self.scalings.get(name) for name in self.by_profile]
        if any(self.scaled):
            self.learn([[name, self.scalings[name].document] for name in self.used if name in self.scalings])
            self.learn([job.get("batch_size") for job in self.jobs])
        partners = self.document.get("interference")
        need(partners or self.schedule_class != "gpu-sharing", "no two jobs of this instance share a GPU", reading.KIND)
        if partners:
            self.partners = Partners(self.jobs, partners, self.few)
            self.learn(self.partners.stated)
        if (self.graphs or any(self.scaled)) and link is not None:
            self.digest.update(b"contention")
            self.learn(link)

    def read_modes(self) -> list[float]:
        """How fast jobs are, what a unit of their work may cost, and how long it takes at least in their class."""
        found, known, same = list[tuple[Speed, ModeRows]](), dict[Any, tuple[Speed, ModeRows]](), dict[Any, ModeRows]()
        for j, job in enumerate(self.jobs):
            alike = self.by_profile[j], self.gpus[j], self.memory[j], job.get("batch_size"), tuple(self.suits[j])
            speed = self.source and self.source.speed(j, elastic=self.schedule_class == "elastic")
            if speed:
                found.append((speed, self.modes_of(speed, self.gpus[j])))
            else:
                if alike not in known:
                    speed = self.speed_of(j)
                    known[alike] = speed, self.modes_of(speed, self.gpus[j])
                found.append(known[alike])
            need(found[-1][0].pace, f"job {reading.shown(self.ids[j])} has no speed that is known here", UNJUDGED)
        self.modes = [same.setdefault(modes, modes) for _, modes in found]  # jobs that are alike have the same
        elastic = any(speed.rates is not None for speed, _ in found)
        need(elastic or self.schedule_class != "elastic", "there are no elastic jobs", reading.KIND)
        if elastic and self.schedule_class == "elastic":
            self.few(self.total, MOST_GPUS, "GPUs of elastic jobs")
        names = [self.types[node["gpu"].casefold()] for node in self.nodes]
        self.runs = [
            [g for g in groups if names[g] in speed.pace] for groups, (speed, _) in zip(self.suits, found, strict=True)
        ]
        self.elastic = [speed.rates is not None for speed, _ in found]
        self.gang_seconds = [amount * speed.least for amount, (speed, _) in zip(self.amount, found, strict=True)]
        lengths, fastest = list[float](), dict[int, Fraction]()
        for j, modes in enumerate(self.modes):
            if self.schedule_class != "forking" and not (self.schedule_class == "elastic" and self.elastic[j]):
                lengths.append(self.gang_seconds[j])
                continue
            if id(modes) not in fastest:
                fastest[id(modes)] = self.fastest(modes)
            lengths.append(below(self.work[j] / fastest[id(modes)]))
        return lengths

    def fastest(self, modes: ModeRows) -> Fraction:
        """The most units of work a second."""
        speeds = [1 / seconds for _, seconds, _ in modes]
        return sum(speeds, Fraction(0)) if self.schedule_class == "forking" else max(speeds)

    def learn(self, part: Any) -> None:
        """Put a part of the instance into the digest."""
        self.digest.update(json.dumps(part).encode())

    def groups_for(self, types: list[str] | None, memory: float, known: dict[Any, list[int]]) -> list[int]:
        """The node groups whose type and memory suit a job."""
        key = None if types is None else tuple(types), memory
        if key not in known:
            may = None if types is None else {name.casefold() for name in types}
            groups = (
                (g, node["gpu"].casefold(), node.get("gpu_memory", math.inf)) for g, node in enumerate(self.nodes)
            )
            known[key] = [g for g, name, room in groups if (may is None or name in may) and memory <= room]
        return known[key]

    # --- speeds ------------------------------------------------------------------------------------------------------

    def read_table(self, given: Data) -> None:
        """Iterations/s by job type, GPU type and gang: together, and spread over nodes."""
        self.table: dict[Any, tuple[float, float]] = {}
        for name in given.keys() & {job.get("profile") for job in self.jobs}:
            for row in given[name]:
                key = name, row["gpu"].casefold(), the(int, row, "gpus", UNJUDGED)
                near = the(float, row, "together", UNJUDGED)
                need(key not in self.table and row.keys() <= ROW, "the table of rates is invalid", UNJUDGED)
                self.table[key] = near, the(float, row, "spread", UNJUDGED, near)
        if {name for name, _, _ in self.table} & set(self.used):
            self.learn(sorted([*key, *rates] for key, rates in self.table.items()))

    def read_graphs(self, given: Data) -> None:
        """The least seconds of an iteration by profile, of those that are graphs of stages."""
        graphs = {name: graph_of(given[name], self.few) for name in self.used if name in given}
        gangs = {name: sum(stage["replicas"] for stage in graph["stages"]) for name, graph in graphs.items()}
        legal = all(gangs.get(name, gang) == gang for name, gang in zip(self.by_profile, self.gpus, strict=True))
        need(legal, "a gang is not one GPU a replica", UNJUDGED)
        self.graphs = {name: least_iteration(graph, self.nodes) for name, graph in graphs.items()}
        if graphs:
            self.learn([[name, graph] for name, graph in graphs.items()])

    def speed_of(self, j: int) -> Speed:
        """What its profile says of a job, or that it has a duration."""
        name, gang, pace = self.by_profile[j], self.gpus[j], dict[str, float]()
        several, flat = sum(node["count"] for node in self.nodes) > 1, max(self.largest.values()) == 1
        scaling, batch = self.scaled[j], self.jobs[j].get("batch_size")
        sizes = sorted((node["gpus"], node["count"]) for node in (self.nodes[g] for g in self.suits[j]))[::-1]
        times = []  # of a gang at a scaling profile: on one node, if one holds it, and over several, if there are
        if scaling is not None:
            m, steps, _ = scaling.options(batch, gang, self.memory[j])[0]
            reach = [False] * (sizes[0][0] >= gang) + [True] * (gang > 1 and sum(count for _, count in sizes) > 1)
            times = [scaling.seconds(m, steps, gang, spans) for spans in reach]
        for g in self.suits[j]:
            kind, rates = self.types[self.nodes[g]["gpu"].casefold()], (1.0, 1.0)
            if name in self.graphs:
                rates = (1.0 / self.graphs[name],) * 2
            elif scaling is not None:
                rates = 1.0 / min((times if flat else times[:1]) or times), 1.0 / min(times[-1:])
            elif name is not None:
                rates = self.table.get((name, kind.casefold(), gang), (0.0, 0.0))
            if min(rates) > 0:  # in nodes of one GPU nobody knows who sits beside whom
                near, far = flat or gang <= self.largest[kind], gang > 1 and several and not flat
                pace[kind] = 1.0 / max(rates[0] * near, rates[1] * far)
        least = min(times) if times else self.graphs.get(name, min(pace.values(), default=0.0))
        if scaling is None:
            return Speed(pace, least)
        if self.schedule_class != "elastic":
            return Speed(pace, least, [])
        nodes = tuple(gpus for gpus, count in sizes for _ in range(count))
        return Speed(pace, least, list(scaling.rates(batch, gang, self.memory[j], nodes).items()))

    def modes_of(self, speed: Speed, gang: int) -> ModeRows:
        """What jobs of a speed may do on every type that suits them."""
        exact = [(kind, Fraction(seconds)) for kind, seconds in speed.pace.items()]
        if self.schedule_class == "forking":  # a copy takes a part of all GPUs of its type, and copies add up
            return tuple((t, a * gang / self.count[t], Fraction(self.count[t])) for t, a in exact)
        if self.schedule_class == "elastic" and speed.rates is not None:
            rates = [(Fraction(r), 1 / Fraction(rate)) for r, rate in speed.rates if rate > 0]
            return tuple((t, a, r) for t in speed.pace for r, a in rates)
        return tuple((t, a, Fraction(gang)) for t, a in exact)

    def works(self) -> list[float]:
        """Seconds or iterations."""
        return self.amount

    # --- machines ----------------------------------------------------------------------------------------------------

    def machine(self, data: Data) -> Machine:
        """By prices of GPU types, by a resource that tasks take, or by a threshold."""
        if self.schedule_class == "task-sharing":
            return self.needs.machine(data)
        if not self.kind.startswith(("typed-", "shared-", "elastic-")):
            return super().machine(data)
        exponent = the(int, data, "grid_exponent", least=-EXPONENT, most=EXPONENT)
        release, scale = floors(self.release, self.unit, exponent), Fraction(2) ** exponent
        if self.schedule_class == "elastic" and "threshold" in data:
            work = [math.floor(Fraction(seconds) * scale) for seconds in self.gpu_seconds()]
            return reading.machine(release, work, self.total, exponent, {"threshold": 1})
        prices = self.prices(data)
        need(prices.capacity > 0, "data.prices are all 0", DUAL)
        unit = {id(modes): prices.cost(modes) * scale for modes in by_id(prices.modes)}
        work = [math.floor(w * unit[id(modes)]) for w, modes in zip(self.work, prices.modes, strict=True)]
        return reading.machine(release, work, prices.capacity, exponent, prices.stated)

    def gpu_seconds(self) -> list[float]:
        """Elastic jobs had no prices once: the fewest GPU-seconds of their work, rounded down to floats."""
        columns = zip(self.elastic, self.work, self.modes, self.gang_seconds, self.gpus, strict=True)
        return [
            below(w * min(a * n for _, a, n in modes) if elastic else Fraction(seconds) * gang)
            for elastic, w, modes, seconds, gang in columns
        ]

    def prices(self, data: Data) -> PricesByType:
        """The prices of the data and, of shared GPUs, its charges."""
        price, modes, stated = the(dict, data, "prices", DUAL), self.modes, {"prices": data["prices"]}
        legal = price.keys() == self.count.keys() and whole(price.values(), LARGEST_PRICE)
        need(legal, "data.prices must be integers >= 0, below 2^64, one for every GPU type", DUAL)
        if self.kind.startswith("shared-"):
            charges, known = self.charges(data), dict[Any, ModeRows]()
            stated |= charges.stated
            rows = [
                tuple((t, a, n * part[t]) for t, a, n in m) for m, part in zip(self.modes, charges.part, strict=True)
            ]
            modes = [known.setdefault(row, row) for row in rows]
        return PricesByType(price, sum(price[name] * count for name, count in self.count.items()), modes, stated)

    def charges(self, data: Data) -> Charges:
        """What gangs pay of GPUs that they may share: of a GPU that two jobs share no more than it costs."""
        columns, needs = zip(self.scaled, self.jobs, self.gpus, self.memory, strict=True), list[Needs]()
        for j, (scaling, job, gang, memory) in enumerate(columns):
            if self.source is not None and self.source.speed(j, elastic=False):
                needs.append(self.source.needs(j))
            else:
                plainly = {(Fraction(memory), Fraction(1))}
                needs.append(plainly if scaling is None else scaling.stretches(job["batch_size"], gang, memory))
        groups = [(self.types[node["gpu"].casefold()], node.get("gpu_memory", math.inf)) for node in self.nodes]
        return self.partners.charges(data, needs, self.runs, groups)

    def rates(self, data: Data) -> tuple[list[Any], Data]:
        """(the modes of every job by units of work a second, what files state) for prices over time; of tasks, rounds."""
        if self.schedule_class == "task-sharing":
            return self.needs.rounds, {}
        if self.schedule_class != "gpu-sharing":
            known = {id(modes): useful(tuple((t, 1 / a, n) for t, a, n in modes)) for modes in by_id(self.modes)}
            return [known[id(modes)] for modes in self.modes], {}
        charges, found = self.charges(data), list[Rates]()
        for modes, part, beside in zip(self.modes, charges.part, charges.beside, strict=True):
            # in full for its full speed, or its charge beside a partner
            slow = [(t, beside[t] / a, n * part[t] * beside[t]) for t, a, n in modes if beside[t] > 0]
            found.append((*slow, *((t, 1 / a, n) for t, a, n in modes if beside[t] < 1)))
        return found, charges.stated


# --- theorems -------------------------------------------------------------------------------------------------------------


Served = dict[str, dict[str, Theorem]]  # theorems by objective and kind
SUMS = [name for name in GANGS if name.startswith("total") and name != "total_utility"]
LATE, GAIN, FAIR = "total_weighted_tardiness", "total_utility", "max_fair_slowdown"


def served(every: Data, flow: Data, late: Data, end: Data, wait: Data, fair: Data, gain: Data) -> Served:
    """Theorems of all sums, of completion and flow times, tardiness, makespan, largest flow, fair slowdown and utility."""
    found = {name: {**every, **(late if name == LATE else flow)} for name in SUMS}
    return {**found, "makespan": end, "max_flow_time": wait, FAIR: fair, GAIN: gain}


def alone_as(name: str) -> Served:
    """That nobody waits, of every objective."""
    return served({name: alone}, {}, {}, {name: alone}, {name: alone}, {name: fair_alone}, {name: alone})


def on_machine(name: str, sides: Data) -> Served:
    """The theorems for one machine."""
    flow, late, wait = {f"{name}-srpt": srpt}, {f"{name}-due-dates": srpt}, {f"{name}-first-come": first_come}
    return served(sides, flow, late, {}, wait, {f"{name}-fair-share": fair_share}, {})


def priced(name: str) -> Served:
    """Those for machines by prices, and for prices over time."""
    some = on_machine(name, {f"{name}-busy-time": busy, "priced-time": priced_time})
    over_time = {GAIN: {"priced-time": priced_time}, FAIR: {"priced-deadlines": priced_deadlines}}
    return either(some, {"makespan": {f"{name}-makespan": makespan}, **over_time})


def either(*some: Served) -> Served:
    """The theorems of all."""
    return {
        objective: {k: v for each in some for k, v in each.get(objective, {}).items()} for objective in (*GANGS, FAIR)
    }


FAIRLY: Served = {FAIR: {"fair-share": fair_share, "fair-alone": fair_alone}}
ENDS = {"critical-job": alone}
RIGID = served(
    {"release-plus-duration": alone}, {}, {}, ENDS, ENDS, {"fair-alone": fair_alone}, {"utility-alone": alone}
)
SIDES = dict.fromkeys(("task-busy-time", "link-busy-time", "split-task-busy-time"), verify_tasks.side_by_side)
PACKED: Served = {name: {"priced-gangs": priced_gangs} for name in SUMS}
KINDS: dict[str, Served] = dict.fromkeys(("gang", "gang-nonpreemptive"), either(GANGS, FAIRLY, priced("typed"), PACKED))
KINDS["forking"] = either(alone_as("forking-alone"), priced("typed"))
KINDS["gpu-sharing"] = either(RIGID, priced("shared"))
KINDS["elastic"] = either(alone_as("elastic-alone"), priced("elastic"), {"makespan": {"elastic-volume": volume}})
KINDS["task-sharing"] = either(
    alone_as("task-path"),
    on_machine("task", SIDES),
    on_machine("link", {}),
    {"makespan": {"task-volume": verify_tasks.volume_from}},
    {name: {"priced-time": priced_time} for name in (*SUMS, GAIN)},
)
THEOREMS: dict[str, Theorem] = {  # by the names that optsched.bounds has for them
    "alone": alone,
    "volume": volume,
    "first-come": first_come,
    "fair-share": fair_share,
    "makespan": makespan,
    "srpt": srpt,
    "due-dates": srpt,
    "mean-busy-time": busy,
    "busy-time": busy,
}


def verify(certificate: Data, instance: Data) -> str:
    """What is proved, in one line; `Refused` where it does not follow."""
    try:
        return plain.verify(certificate, instance, OnCluster, KINDS)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise reading.Refused(
            f"a part of the files is not what it must be ({ascii(str(error))[:80]})", UNJUDGED
        ) from None


if __name__ == "__main__":
    reading.main("verify_on_clusters.py", verify)
