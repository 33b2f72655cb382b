"""Check a lower bound without optsched where speeds depend on GPUs, jobs are copied, share GPUs or have tasks.

    python verify_on_clusters.py CERTIFICATE INSTANCE

Copy the files verify_*.py (Python 3.11 or newer, the standard library alone). verify_certificate.py tells the theorems and
the exit codes; this one reads more of an instance, and knows more machines of U units for which those theorems hold.

**Seconds** that a job takes at least: its duration; iterations at the best rate of a table by GPU type (together on a node,
or spread over several) or of a graph of stages (verify_stage_graphs.py), on the types that suit it and its memory.
**Classes**: gang, gang-nonpreemptive; forking: copies on all GPUs of its types at once, whose work adds up; gpu-sharing: two
jobs on a GPU, each slowed down by the other; task-sharing: iterations of tasks that take turns (verify_tasks.py).
**Machines**: typed: a unit of work that takes a gang of n GPUs a seconds costs n a times their price, the least that suits;
U: what all GPUs cost a second. shared: of n only a part, its charge, such that c_a / xi_ab + c_b / xi_ba <= 1 for any two
classes of jobs that fit on a GPU together. task, link: compute on all GPUs, or bytes on all network interfaces.
**makespan**: a moment plus the work that is left then, at prices of GPUs and of jobs' own time, over all that these pay.
**Not known here**: elastic jobs and scaling profiles, prices over time, total_utility; `optsched verify` judges these.
"""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check import verify_certificate, verify_tasks
    from optsched.check.verify_certificate import EXPONENT, GANGS, MOST_STEPS, Case, Data, need, ratio, read, the
    from optsched.check.verify_stage_graphs import graph_of, least_iteration
    from optsched.check.verify_tasks import TASKS, below, served_by, written
else:  # copied
    import verify_certificate
    import verify_tasks
    from verify_certificate import EXPONENT, GANGS, MOST_STEPS, Case, Data, need, ratio, read, the
    from verify_stage_graphs import graph_of, least_iteration
    from verify_tasks import TASKS, below, served_by, written

UNIT, ROOM = 1 << 30, 1 + Fraction(1, 1 << 29)  # of charges; memory that counts as enough: a little more than there is
MOST_KINDS, MOST_CLASSES, LARGEST_PRICE = 1000, 100, (1 << 64) - 1
ROW = {"gpu", "gpus", "together", "spread", "measured"}
Menu = list[tuple[str, Fraction, Fraction]]  # GPU type, seconds a unit of work, GPUs paid for


def whole(values: Any, most: int) -> bool:
    """Are these integers from 0 to ``most``?"""
    return all(type(x) is int and 0 <= x <= most for x in values)


class OnCluster(Case):
    """A case with speeds by GPU type or placement, partners on GPUs, copies or tasks. `suits`: the node groups of a job."""

    parts = Case.parts | {"throughputs", "profiles", "tasks", "interference", "contention"}

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
        class_ = self.schedule_class
        need((class_ == "task-sharing") == bool(tasks), f"there is no class {class_} of these jobs")
        if tasks:
            self.needs = verify_tasks.TaskNeeds(self, tasks, self.by_profile, self.suits, link)
            self.digest.update(self.needs.text.encode())
            self.learn(link if contention else None)
            return self.needs.length
        self.read_table(self.document.get("throughputs") or {})
        self.read_graphs(self.document.get("profiles") or {})
        self.read_partners(self.document.get("interference"))
        if self.graphs and contention:
            self.digest.update(b"contention")
            self.learn(link)
        self.name_of = [self.types[node["gpu"].casefold()] for node in self.nodes]
        self.runs: list[list[int]] = []
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
                need(key not in self.table and row.keys() <= ROW, "the table of rates is not legal", 2)
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
        for g in self.suits[j]:
            kind, rates = self.types[self.nodes[g]["gpu"].casefold()], (1.0, 1.0)
            if name in self.graphs:
                rates = (1.0 / self.graphs[name],) * 2
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
        least = work * self.graphs.get(name, min(pace.values()))
        return [(t, a, Fraction(gang)) for t, a in exact], Fraction(least)

    # --- machines ----------------------------------------------------------------------------------------------------

    def machine(self, data: Data) -> tuple[list[int], list[int], Fraction, Fraction, Data]:
        """By prices of GPU types, by a resource that tasks take, or by a threshold."""
        priced = self.kind.startswith(("typed-", "shared-"))
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
        self.price, stated = the(dict, data, "prices"), {"prices": data["prices"]}
        legal = self.price.keys() == self.count.keys() and whole(self.price.values(), LARGEST_PRICE)
        need(legal, "the prices must be integers >= 0, one for every GPU type")
        if self.kind.startswith("shared-"):
            stated |= self.charge(the(list, data, "classes"), the(dict, data, "charges"))
        return sum(self.price[name] * count for name, count in self.count.items()), stated

    def unit(self, j: int, own: int = 0) -> Fraction:
        """The least that a unit of work costs, with a price of the job's own time."""
        costs: list[Fraction] = [a * (own + n * self.price[t]) for t, a, n in self.options[j]]
        return min(costs)

    # --- shared GPUs -------------------------------------------------------------------------------------------------

    def read_partners(self, given: Data | None) -> None:
        """How many times as long an iteration takes beside another job on a GPU, by their kinds; inf: never there."""
        need(given or self.schedule_class != "gpu-sharing", "no two jobs of this instance share a GPU")
        if not given:
            return
        row = {name: k for k, name in enumerate(given.get("kinds", []))}
        usual, rows = the(float, given, "ratio", 2, 2.0, 1), given.get("ratios", [])
        labels = [
            (name, job.get("model")) for name, job in zip((j.get("profile") for j in self.jobs), self.jobs, strict=True)
        ]
        self.kinds = [next((name for name in both if name in row), None) for both in labels]
        known = list(dict.fromkeys(self.kinds))
        need(len(known) <= MOST_KINDS, "too many kinds of jobs", 2)

        def slower(one: Any, other: Any) -> float:
            found = usual if None in (one, other) else rows[row[one]][row[other]]
            return math.inf if found is None else the(float, {"ratio": found}, "ratio", 2, None, 1)

        both = [[(slower(a, b), slower(b, a)) for b in known] for a in known]
        table = [[math.inf if math.inf in pair else pair[0] for pair in pairs] for pairs in both]
        self.slower = {(a, b): table[i][k] for i, a in enumerate(known) for k, b in enumerate(known)}
        self.learn([usual, self.kinds, table])

    def charge(self, class_of: list[int], charges: Data) -> Data:
        """Let gangs pay the charges of their classes: no two jobs that fit on a GPU together pay more than all of it."""
        size = len(next(iter(charges.values()), ()))
        legal = charges.keys() == self.count.keys() and len(class_of) == len(self.jobs) and whole(class_of, size - 1)
        legal = legal and all(type(row) is list and len(row) == size and whole(row, UNIT) for row in charges.values())
        need(legal, "classes must be one for every job, and charges from 0 to 2^30, one for every class and GPU type")
        jobs: dict[int, list[int]] = {}
        for j, c in enumerate(class_of):
            jobs.setdefault(c, []).append(j)
        need(len(jobs) <= max(MOST_CLASSES, len(set(self.kinds))), "too many classes to try all pairs")
        need(all(len({self.kinds[j] for j in some}) == 1 for some in jobs.values()), "a class mixes kinds of jobs")
        groups = {c: set().union(*(self.runs[j] for j in some)) for c, some in jobs.items()}
        memory = {c: Fraction(min(self.memory[j] for j in some)) for c, some in jobs.items()}
        for a, b in combinations_with_replacement(sorted(jobs), 2):
            one, other = (self.kinds[jobs[c][0]] for c in (a, b))
            x, y, several = self.slower[one, other], self.slower[other, one], a != b or len(jobs[a]) > 1
            for g in groups[a] & groups[b] if several and x < math.inf else ():
                row, room = charges[self.name_of[g]], self.nodes[g].get("gpu_memory", math.inf)
                fits = (memory[a] + memory[b]) / ROOM <= room
                paid = row[a] / Fraction(x) + row[b] / Fraction(y)
                need(not fits or paid <= UNIT, f"the classes {a} and {b} pay more than all of a GPU that they share")
        for j, c in enumerate(class_of):
            self.options[j] = [(t, a, n * Fraction(charges[t][c], UNIT)) for t, a, n in self.options[j]]
        return {"classes": class_of, "charges": charges}


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
    value = moment + worth / total if case.ids else Fraction(0)
    return value, {"moment": written(moment), "own_prices": own, **stated}


alone, busy, srpt = verify_certificate.alone, verify_certificate.busy, verify_certificate.srpt


def priced(name: str) -> Data:
    """The theorems for machines by prices."""
    flow, late = {f"{name}-srpt": srpt}, {f"{name}-due-dates": srpt}
    return served_by({f"{name}-makespan": makespan}, flow, late, {f"{name}-busy-time": busy})


def either(one: Data, other: Data) -> Data:
    """The theorems of both."""
    return {name: {**one[name], **other[name]} for name in one}


RIGID = served_by({"critical-job": alone}, {}, {}, {"release-plus-duration": alone})
KINDS = dict.fromkeys(("gang", "gang-nonpreemptive"), either(GANGS, priced("typed")))
KINDS["forking"] = either(served_by(*[{"forking-alone": alone}] * 4), priced("typed"))
KINDS |= {"gpu-sharing": either(RIGID, priced("shared")), "task-sharing": TASKS}


def verify(certificate: Data, instance: Data) -> str:
    """What is proved, in one line; ends the program when it does not follow."""
    try:
        return verify_certificate.verify(certificate, instance, OnCluster, KINDS)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        need(False, f"a part of the files is not what it must be ({ascii(str(error))[:80]})", 2)
    raise AssertionError


if __name__ == "__main__":
    need(len(sys.argv) == 3, "usage: python verify_on_clusters.py CERTIFICATE INSTANCE (two JSON files)", 2)
    print("holds:", verify(read(sys.argv[1], "optsched-certificate/1"), read(sys.argv[2], "optsched-instance/1")))
