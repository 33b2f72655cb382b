"""Check a lower bound without optsched where speeds depend on GPUs, jobs are copied, share GPUs or have tasks.

    python verify_on_clusters.py CERTIFICATE INSTANCE

Copy the files verify_*.py (Python 3.11 or newer, no packages). verify_certificate.py tells the theorems and the exit codes,
verify_fair_share.py those of max_fair_slowdown; here are more machines of U units for which those theorems hold.

**Seconds** that a job takes at least: its duration; iterations at the best rate of a table by GPU type (together on a node,
or spread over several), of a graph of stages (verify_stage_graphs.py) or of a scaling profile (verify_scalings.py).
**Classes**: gang, gang-nonpreemptive; forking: copies on all GPUs of its types at once, whose work adds up; gpu-sharing: two
jobs on a GPU, each slowed down by the other (verify_sharing.py); task-sharing: iterations of tasks that take turns
(verify_tasks.py); elastic: any number of GPUs, any batch. **Machines**: typed, elastic: a unit of work that takes n GPUs a
seconds costs n a times their price, the least that suits; U: what all GPUs cost a second. shared: of n only a part, its
charge, such that c_a / xi_ab + c_b / xi_ba <= 1 for any two classes of jobs that fit on a GPU together. task, link: compute
on all GPUs, or bytes on all network interfaces. **makespan**: a moment plus the work that is left then, at prices of GPUs
and of jobs' own time, over all that these pay.
**Not known here**: measured steps of scalings, prices over time, total_utility; `optsched verify` judges these.
"""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check import verify_certificate, verify_tasks
    from optsched.check.verify_certificate import EXPONENT, GANGS, MOST_STEPS, Case, Data, need, ratio, read, the
    from optsched.check.verify_fair_share import FAIR, LONE, TOGETHER, fair_share
    from optsched.check.verify_scalings import ScalingProfile, with_memory
    from optsched.check.verify_sharing import Partners, whole
    from optsched.check.verify_stage_graphs import graph_of, least_iteration
    from optsched.check.verify_tasks import TASKS, below, served_by, written
else:  # copied
    import verify_certificate
    import verify_tasks
    from verify_certificate import EXPONENT, GANGS, MOST_STEPS, Case, Data, need, ratio, read, the
    from verify_fair_share import FAIR, LONE, TOGETHER, fair_share
    from verify_scalings import ScalingProfile, with_memory
    from verify_sharing import Partners, whole
    from verify_stage_graphs import graph_of, least_iteration
    from verify_tasks import TASKS, below, served_by, written

LARGEST_PRICE, MOST_GPUS = (1 << 64) - 1, 4096  # the latter of elastic jobs
ROW = {"gpu", "gpus", "together", "spread", "measured"}
Menu = list[tuple[str, Fraction, Fraction]]  # GPU type, seconds a unit of work, GPUs paid for


def epoch_of(arrivals: list[float], due: list[float]) -> float:
    """The moment from which optsched counts: the first arrival, or one before it, where that costs no digit of a time."""
    first = min(arrivals, default=0.0)
    span = max([first, *arrivals, *due]) - min([first, *due])
    grid = 2.0 ** math.ceil(math.log2(span)) if span else 1.0
    for moment in (first, math.floor(first / grid) * grid):
        if all(Fraction(x - moment) == Fraction(x) - Fraction(moment) for x in (*arrivals, *due)):
            return moment
    return 0.0


class OnCluster(Case):
    """A case with speeds by GPU type or placement, partners on GPUs, copies or tasks. `suits`: the node groups of a job."""

    parts = Case.parts | {"throughputs", "profiles", "scalings", "tasks", "interference", "contention"}

    def __init__(self, document: Data, names: list[str], epoch: Fraction) -> None:
        given, spent, jobs, nodes = document.get("scalings") or {}, [0], list[Data](), document["cluster"]["nodes"]
        self.scalings = {name: ScalingProfile(each, spent) for name, each in given.items()}
        for job in document["jobs"] if self.scalings else ():
            scaling = self.scalings.get(job.get("profile")) if job.get("duration") is None else None
            need(scaling is None or the(int, job, "batch_size", 2, None, 1), "no batch")
            jobs.append(job if scaling is None else with_memory({"gpus": 1, **job}, scaling, nodes))
        super().__init__({**document, "jobs": jobs or document["jobs"]}, names, epoch)
        legal = epoch in (0, epoch_of(self.column["arrival"], [x for x in self.column["due"] if x == x]))
        need(legal, "its times count from another moment")

    def seconds(self) -> list[Fraction]:
        """The least of the class; the digest learns of tables, graphs, tasks, interference and contention."""
        self.count, self.largest, self.types = dict[str, int](), dict[str, int](), dict[str, str]()
        for node in self.nodes:  # a type is called what its first group calls it
            name = self.types.setdefault(node["gpu"].casefold(), node["gpu"])
            self.count[name] = self.count.get(name, 0) + node["gpus"] * node["count"]
            self.largest[name] = max(self.largest.get(name, 0), node["gpus"])
        legal = len(set(self.ids)) == len(self.ids) and len(self.nodes) * len(self.jobs) <= MOST_STEPS
        need(legal, "jobs of the same name, or too many jobs and groups of nodes", 2)
        self.memory = [0.0 if x != x else x for x in self.column["gpu_memory"]]
        self.suits = [self.groups_for(job.get("gpu_types"), x) for job, x in zip(self.jobs, self.memory, strict=True)]
        self.by_profile: list[Any] = [None if job.get("duration") is not None else job["profile"] for job in self.jobs]
        self.used = sorted({name for name in self.by_profile if name is not None})
        tasks, contention = (self.document.get(name) or {} for name in ("tasks", "contention"))
        link = verify_tasks.link_of(contention or {"seconds_per_byte": 1.0})
        need(not tasks or set(self.by_profile) <= set(tasks), "some jobs have tasks, others have none", 2)
        need((self.schedule_class == "task-sharing") == bool(tasks), "there is no such class of these jobs")
        if tasks:
            self.needs = verify_tasks.TaskNeeds(self, tasks, self.by_profile, self.suits, link)
            self.digest.update(self.needs.text.encode())
            self.learn(link if contention else None)
            return self.needs.length
        self.read_table(self.document.get("throughputs") or {})
        self.read_graphs(self.document.get("profiles") or {})
        self.scaled = [None if name is None else self.scalings.get(name) for name in self.by_profile]
        legal = self.schedule_class != "elastic" or (any(self.scaled) and self.total <= MOST_GPUS)
        need(legal, "no elastic jobs, or very many GPUs", 2)
        if any(self.scaled):
            self.learn([[name, self.scalings[name].document] for name in self.used if name in self.scalings])
            self.learn([job.get("batch_size") for job in self.jobs])
        partners = self.document.get("interference")
        need(partners or self.schedule_class != "gpu-sharing", "no two jobs of this instance share a GPU")
        if partners:
            self.partners = Partners(self.jobs, partners)
            self.learn(self.partners.stated)
        if (self.graphs or any(self.scaled)) and contention:
            self.digest.update(b"contention")
            self.learn(link)
        need(self.claimed == self.digest.hexdigest(), "the certificate is of another instance")  # before the work
        self.name_of, self.runs = [self.types[node["gpu"].casefold()] for node in self.nodes], list[list[int]]()
        found = [self.options_of(j) for j in range(len(self.jobs))]
        self.options = [menu for menu, _ in found]
        columns = zip(self.by_profile, self.column["duration"], self.column["iterations"], strict=True)
        self.works = [Fraction(seconds if name is None else count) for name, seconds, count in columns]
        return [least for _, least in found]

    def learn(self, part: Any) -> None:
        """Put a part of the instance into the digest."""
        self.digest.update(json.dumps(part).encode())

    def groups_for(self, types: list[str] | None, memory: float) -> list[int]:
        """The node groups whose type and memory suit a job."""
        may = None if types is None else {name.casefold() for name in types}
        groups = ((g, node["gpu"].casefold(), node.get("gpu_memory", math.inf)) for g, node in enumerate(self.nodes))
        return [g for g, name, room in groups if (may is None or name in may) and memory <= room]

    # --- speeds ------------------------------------------------------------------------------------------------------

    def read_table(self, given: Data) -> None:
        """Iterations/s by job type, GPU type and gang: together, and spread over nodes."""
        self.table: dict[Any, tuple[float, float]] = {}
        for name in given.keys() & {job.get("profile") for job in self.jobs}:
            for row in given[name]:
                key, near = (name, row["gpu"].casefold(), the(int, row, "gpus", 2)), the(float, row, "together", 2)
                need(key not in self.table and row.keys() <= ROW, "the table of rates is invalid", 2)
                self.table[key] = near, the(float, row, "spread", 2, near)
        if {name for name, _, _ in self.table} & set(self.used):
            self.learn(sorted([*key, *rates] for key, rates in self.table.items()))

    def read_graphs(self, given: Data) -> None:
        """The least seconds of an iteration by profile, of those that are graphs of stages."""
        graphs = {name: graph_of(given[name]) for name in self.used if name in given}
        gangs = {name: sum(stage["replicas"] for stage in graph["stages"]) for name, graph in graphs.items()}
        legal = all(gangs.get(name, gang) == gang for name, gang in zip(self.by_profile, self.gpus, strict=True))
        need(legal, "a gang is not one GPU a replica", 2)
        self.graphs = {name: least_iteration(graph, self.nodes) for name, graph in graphs.items()}
        if graphs:
            self.learn([[name, graph] for name, graph in graphs.items()])

    def options_of(self, j: int) -> tuple[Menu, Fraction]:
        """(what the job may do on every type that suits it, the seconds that it takes at least)."""
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
        self.runs.append([g for g in self.suits[j] if self.name_of[g] in pace])
        need(pace, f"job {ascii(self.ids[j])[:80]} has no speed that is known here: use optsched verify", 2)
        work = self.column["duration" if name is None else "iterations"][j]
        exact = [(kind, Fraction(seconds)) for kind, seconds in pace.items()]
        if self.schedule_class == "forking":  # a copy takes a part of all GPUs of its type, and copies add up
            menu = [(t, a * gang / self.count[t], Fraction(self.count[t])) for t, a in exact]
            return menu, below(Fraction(work) / sum(1 / a for _, a, _ in menu))
        if self.schedule_class == "elastic" and scaling is not None:
            nodes = tuple(gpus for gpus, count in sizes for _ in range(count))
            rates_of = [(r, Fraction(x)) for r, x in scaling.rates(batch, gang, self.memory[j], nodes).items() if x > 0]
            menu = [(t, 1 / rate, Fraction(r)) for t in pace for r, rate in rates_of]
            return menu, below(Fraction(work) / max(rate for _, rate in rates_of))
        least = work * (min(times) if times else self.graphs.get(name, min(pace.values())))
        return [(t, a, Fraction(gang)) for t, a in exact], Fraction(least)

    # --- machines ----------------------------------------------------------------------------------------------------

    def machine(self, data: Data) -> tuple[list[int], list[int], Fraction, Fraction, Data]:
        """By prices of GPU types, by a resource that tasks take, or by a threshold."""
        priced = self.kind.startswith(("typed-", "shared-", "elastic-"))
        if not priced and self.schedule_class != "task-sharing":
            return super().machine(data)
        scale = Fraction(2) ** the(int, data, "grid_exponent", least=-EXPONENT, most=EXPONENT)
        if priced:
            capacity, stated = self.prices(data)
            release, work = self.release, [math.floor(w * self.unit(j) * scale) for j, w in enumerate(self.works)]
        else:
            name = the(str, data, "resource")
            need(name in self.needs.of, "there is no such resource")
            needs, capacity, stated = self.needs.of[name], self.needs.capacity[name], {"resource": name}
            release, work = [x.release for x in needs], [x.width * math.floor(x.seconds * scale) for x in needs]
            self.length, self.tail = [x.reach for x in needs], [x.tail for x in needs]
        second = scale * capacity
        stated |= {"grid_exponent": data["grid_exponent"], "capacity": capacity, "tick": written(1 / second)}
        return [capacity * math.floor(r * scale) for r in release], work, Fraction(capacity), second, stated

    def prices(self, data: Data) -> tuple[int, Data]:
        """(what all GPUs cost a second, what files state) at the prices of the data and, of shared GPUs, its charges."""
        need("threshold" not in data, "elastic jobs without prices, as files were once: use optsched verify", 2)
        self.price, stated = the(dict, data, "prices"), {"prices": data["prices"]}
        legal = self.price.keys() == self.count.keys() and whole(self.price.values(), LARGEST_PRICE)
        need(legal, "the prices must be integers >= 0, one for every GPU type")
        if self.kind.startswith("shared-"):
            stated |= self.charge(data)
        return sum(self.price[name] * count for name, count in self.count.items()), stated

    def charge(self, data: Data) -> Data:
        """Let gangs pay charges: of a GPU that two jobs share no more than it costs."""
        columns = zip(self.scaled, self.jobs, self.gpus, self.memory, strict=True)
        needs = [
            {(Fraction(x), Fraction(1))} if each is None else each.stretches(job["batch_size"], gang, x)
            for each, job, gang, x in columns
        ]
        rooms = [node.get("gpu_memory", math.inf) for node in self.nodes]
        parts, stated = self.partners.charges(data, needs, self.runs, list(zip(self.name_of, rooms, strict=True)))
        need(stated["charges"].keys() == self.count.keys(), "there must be charges for every GPU type")
        self.options = [[(t, a, n * part[t]) for t, a, n in m] for m, part in zip(self.options, parts, strict=True)]
        return stated

    def unit(self, j: int, own: int = 0) -> Fraction:
        """The least that a unit of work costs, with a price of the job's own time."""
        costs: list[Fraction] = [a * (own + n * self.price[t]) for t, a, n in self.options[j]]
        return min(costs)


# --- theorems ----------------------------------------------------------------------------------------------------------


def makespan(case: OnCluster, data: Data) -> tuple[Fraction, Data]:
    """A moment plus the work that is left then, whatever was done before, GPUs and jobs' own time at prices."""
    moment, own = ratio(data.get("moment"), "moment"), the(dict, data, "own_prices")
    (total, stated), forking = case.prices(data), case.schedule_class == "forking"
    legal = own.keys() <= set(case.ids) and whole(own.values(), LARGEST_PRICE) and all(own.values())
    need(legal and not (own and forking), "own prices must be integers > 0 of jobs that are not copied")
    total += sum(own.values())
    need(total > 0, "all prices are 0")
    worth, some = Fraction(0), not case.ids
    for j, (release, work) in enumerate(zip(case.release, case.works, strict=True)):
        speeds = [1 / a for _, a, _ in case.options[j]]
        left = work - max(moment - release, Fraction(0)) * (sum(speeds) if forking else max(speeds))
        worth += max(left, Fraction(0)) * case.unit(j, own.get(case.ids[j], 0))
        some = some or left > 0
    need(some, "all work may be done by that moment")
    return moment + worth / total if case.ids else Fraction(0), {"moment": written(moment), "own_prices": own, **stated}


alone, busy, srpt = verify_certificate.alone, verify_certificate.busy, verify_certificate.srpt


def priced(name: str) -> Data:
    """The theorems for machines by prices."""
    flow, late = {f"{name}-srpt": srpt}, {f"{name}-due-dates": srpt}
    end, wait = {f"{name}-makespan": makespan}, {f"{name}-first-come": verify_certificate.volume}
    return served_by(end, wait, flow, late, {f"{name}-busy-time": busy}, {f"{name}-fair-share": fair_share})


def either(one: Data, other: Data) -> Data:
    """The theorems of both."""
    return {name: {**one[name], **other[name]} for name in one}


RIGID = served_by({"critical-job": alone}, {"critical-job": alone}, {}, {}, {"release-plus-duration": alone}, LONE)
KINDS = dict.fromkeys(("gang", "gang-nonpreemptive"), either({**GANGS, FAIR: TOGETHER}, priced("typed")))
KINDS["forking"] = either(served_by(*[{"forking-alone": alone}] * 5), priced("typed"))
KINDS |= {"gpu-sharing": either(RIGID, priced("shared")), "task-sharing": TASKS}
KINDS["elastic"] = either(served_by(*[{"elastic-alone": alone}] * 5), priced("elastic"))
KINDS["elastic"]["makespan"]["elastic-volume"] = verify_certificate.volume


def verify(certificate: Data, instance: Data) -> str:
    """What is proved, in one line; ends the program when it does not follow."""
    try:
        return verify_certificate.verify(certificate, instance, OnCluster, KINDS)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        need(False, f"a part of the files is not what it must be ({ascii(str(error))[:80]})", 2)
    raise AssertionError


if __name__ == "__main__":
    need(len(sys.argv) == 3, "usage: python verify_on_clusters.py CERTIFICATE INSTANCE (two JSON files)", 2)
    print("holds:", verify(read(sys.argv[1], "optsched-certificate/1"), read(sys.argv[2], "optsched-instance/1")))
