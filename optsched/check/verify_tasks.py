"""Jobs with tasks, for verifiers without optsched: what they take of GPUs and network interfaces, and theorems for that.

Beside verify_on_clusters.py. A job repeats I times t = forward + backward seconds on each of its n GPUs and, where no node
that suits it holds the gang, an all-reduce of M bytes between at least m nodes, a + b M seconds alone. (k transfers at once
on an interface share 1 / min(b, b + eta) bytes a second at most; measured ratios say nothing of that.) It takes n I t of all
GPUs, ends a + b M or more after that, and half of I (t + a + b M) + a + b M after the mean moment of it; of interfaces it
takes m I b M from its first t + a seconds on. All rounded down to floats, as optsched does (optsched/bounds/task_times.py).
"""

from __future__ import annotations

import json
import math
from collections import namedtuple
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check.verify_certificate import GANGS, WIDEST, Case, Data, alone, busy, need, ratio, srpt, the, volume
else:  # copied
    from verify_certificate import GANGS, WIDEST, Case, Data, alone, busy, need, ratio, srpt, the, volume

PART = (
    "resource",
    "capacity",
    "grid_exponent",
    "tick",
    "held_up_bits",
    "multipliers",
)  # what files state of a resource
# Of a resource: units for seconds, from a release on; a job ends `tail` or more after it, `reach` / 2 after its mean moment.
Need = namedtuple("Need", "release width seconds tail reach")


def below(value: Fraction) -> Fraction:
    """The largest float64 that is not above."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf))


def written(value: Fraction) -> str:
    """As p/q."""
    return f"{value.numerator}/{value.denominator}"


def link_of(given: Data) -> Data:
    """What transfers on one interface cost each other, as optsched writes it."""
    b, eta = the(float, given, "seconds_per_byte", 2), the(float, given, "penalty", 2, 0.0, -WIDEST)
    need(b > 0 and b + eta > 0, "this is no contention", 2)
    found = {"penalty": eta, "latency": the(float, given, "latency", 2, 0.0)}
    found = {"seconds_per_byte": b, **{name: x for name, x in found.items() if x}}
    if not given.get("kinds"):
        return found
    return {**found, "kinds": given["kinds"], "ratios": [[float(x) for x in row] for row in given["ratios"]]}


class TaskNeeds:
    """`length`: the path of every job; `of`: what jobs take of every resource; `capacity`: its units; `text` for the digest.

    `profile`: that of every job; `suits`: the node groups that it may use.
    """

    def __init__(self, case: Case, given: Data, profile: list[str], suits: list[list[int]], link: Data) -> None:
        names = sorted(set(profile))
        tasks = {name: {x: the(float, given[name], x, 2) for x in ("forward", "backward")} for name in names}
        for name in names:
            if given[name].get("message") is not None:
                tasks[name]["message"] = the(float, given[name], "message", 2)
        self.text = json.dumps([[name, each] for name, each in tasks.items()])
        self.length, self.of = list[Fraction](), {"gpus": list[Need](), "links": list[Need]()}
        some, crossed = set[int](), set[int]()
        for j, name in enumerate(profile):
            nodes = fewest_nodes(case.gpus[j], [case.nodes[g] for g in suits[j]])
            some |= set(suits[j])
            crossed |= set(suits[j]) if nodes > 1 else set()
            self.add(case.release[j], case.gpus[j], Fraction(case.column["iterations"][j]), nodes, tasks[name], link)
        self.capacity = {"gpus": sum(case.nodes[g]["gpus"] * case.nodes[g]["count"] for g in some)}
        self.capacity["links"] = max(1, sum(case.nodes[g]["count"] for g in crossed))

    def add(self, release: Fraction, gang: int, count: Fraction, nodes: int, tasks: Data, link: Data) -> None:
        """What one job takes that repeats its tasks so many times, on so many nodes at least."""
        b, eta, a = (Fraction(link.get(x, 0.0)) for x in ("seconds_per_byte", "penalty", "latency"))
        size = Fraction(tasks.get("message", 0.0)) if nodes > 1 else Fraction(0)
        compute, sent = Fraction(tasks["forward"]) + Fraction(tasks["backward"]), a + b * size if size else Fraction(0)
        path = count * (compute + sent)
        self.length.append(below(path))
        own = gang if compute else 0, below(count * compute), below(sent), below(path + sent)
        self.of["gpus"].append(Need(release, *own))
        held = Fraction(0) if "kinds" in link else below(count * (b + min(eta, Fraction(0))) * size)
        own = nodes if held else 0, held, Fraction(0), below(path - compute - a)
        self.of["links"].append(Need(below(release + compute + a), *own))


def fewest_nodes(gang: int, groups: list[Data]) -> int:
    """How many nodes of these groups hold a gang at least."""
    nodes, left = 0, gang
    for group in sorted(groups, key=lambda group: -int(group["gpus"])):
        used = min(group["count"], max(0, -(-left // group["gpus"])))
        nodes, left = nodes + used, left - used * group["gpus"]
    need(left <= 0, f"a gang of {gang} GPUs fits nowhere", 2)
    return nodes


# --- theorems: `case.needs` are the needs, `case.tail` those of the machine that was asked for last ----------------------


def with_tails(case: Any, data: Data) -> tuple[Fraction, Data]:
    """SRPT, where jobs end some time after their work on the machine."""
    work = case.machine(data)[1]
    if case.late:
        case.moment = [-below(tail - c) for tail, c in zip(case.tail, case.moment, strict=True)]
    value, stated = srpt(case, data)
    levels = [Fraction(0), *(Fraction(level) for level in stated["levels"])]
    for low, high in pairwise(levels) if not case.late else ():
        ends = (tail for w, tail, amount in zip(case.weight, case.tail, work, strict=True) if w >= high and amount)
        value += (high - low) * sum(ends)
    return value, stated


def side_by_side(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Mean busy times on one resource or both; the weight of a job is split among them."""
    parts, value, stated, found, spent = (
        the(list, data, "resources"),
        case.least,
        dict[str, Any](),
        list[Data](),
        list[Any](),
    )
    need(1 <= len(parts) <= 2 and len({str(part["resource"]) for part in parts}) == len(parts), "one or two resources")
    for part in parts:
        more, stated = busy(case, {**part, "multiplier_exponent": data.get("multiplier_exponent")})
        value += more - case.least
        found.append({name: stated[name] for name in PART})
        spent.append(part["multipliers"])
    unit = Fraction(2) ** -data["multiplier_exponent"]
    legal = all(sum(u) * unit <= w for *u, w in zip(*spent, case.weight, strict=True))
    need(legal, "the multipliers of a job are together more than its weight")
    return value, {name: x for name, x in stated.items() if name not in PART} | {"resources": found}


def volume_from(case: Any, data: Data) -> tuple[Fraction, Data]:
    """The work of the jobs with no earlier release and no shorter tail than is stated, between the least of both."""
    name, release, tail = the(str, data, "resource"), *(ratio(data.get(x), x) for x in ("release", "tail"))
    needs = [
        x for x in case.needs.of.get(name, ()) if x.width and x.seconds and x.release >= release and x.tail >= tail
    ]
    need(needs, "no job is left")
    first, last = min(x.release for x in needs), min(x.tail for x in needs)
    value = first + sum(x.width * x.seconds for x in needs) / Fraction(case.needs.capacity[name]) + last
    return value, {"resource": name, "release": written(first), "tail": written(last)}


def first_come(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Flow times where the least release less tail is served first."""
    case.machine(data)
    case.moment = [-below(tail - r) for tail, r in zip(case.tail, case.release, strict=True)]
    return volume(case, data)


def served_by(end: Data, wait: Data, flow: Data, late: Data, every: Data, fair: Data | None = None) -> Data:
    """Theorems by objective: the makespan, the largest flow time, completion and flow times, tardiness, all these sums."""
    sums = [name for name in GANGS if name.startswith("total")]
    by_sum = {name: {**(late if name == "total_weighted_tardiness" else flow), **every} for name in sums}
    return {"makespan": end, "max_flow_time": wait, "max_fair_slowdown": fair or {}, **by_sum}


SIDES = dict.fromkeys(("task-busy-time", "link-busy-time", "split-task-busy-time"), side_by_side)
TASKS = served_by(
    {"task-path": alone, "task-volume": volume_from},
    {"task-path": alone, "task-first-come": first_come, "link-first-come": first_come},
    {"task-srpt": with_tails, "link-srpt": with_tails},
    {"task-due-dates": with_tails, "link-due-dates": with_tails},
    {"task-path": alone, **SIDES},
)
