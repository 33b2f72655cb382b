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
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from optsched.check import verify_case as reading, verify_certificate as plain
    from optsched.check.verify_case import UNJUDGED, Data, Machine, below, need, ratio, the, written
    from optsched.check.verify_time_prices import TaskRound
else:  # copied
    import verify_case as reading
    import verify_certificate as plain
    from verify_case import UNJUDGED, Data, Machine, below, need, ratio, the, written
    from verify_time_prices import TaskRound


class Need(NamedTuple):
    """What a job takes of a resource: ``width`` units for ``seconds``, from ``release`` on.

    It ends ``tail`` or more after the end of that, and ``reach`` / 2 or more after the mean moment.
    """

    release: Fraction
    width: int
    seconds: Fraction
    tail: Fraction
    reach: Fraction


def link_of(given: Data) -> Data:
    """What transfers on one interface cost each other, as optsched writes it."""
    b, eta = (
        the(float, given, "seconds_per_byte", UNJUDGED),
        the(float, given, "penalty", UNJUDGED, 0.0, -reading.WIDEST),
    )
    need(b > 0 and b + eta > 0, "this is no contention", UNJUDGED)
    found = {"penalty": eta, "latency": the(float, given, "latency", UNJUDGED, 0.0)}
    found = {"seconds_per_byte": b, **{name: x for name, x in found.items() if x}}
    if not given.get("kinds"):
        return found
    return {**found, "kinds": given["kinds"], "ratios": [[float(x) for x in row] for row in given["ratios"]]}


class TaskNeeds:
    """`length`: the path of every job; `gang_seconds`: the same in floats, as the engine adds it up; `of`: what jobs take of
    every resource; `capacity`: its units; `rounds`: what they take in an iteration; `text`: for the digest.
    """

    def __init__(self, case: Any, given: Data, link: Data) -> None:
        profiles: list[str] = case.by_profile
        names = sorted(set(profiles))
        tasks = {name: {x: the(float, given[name], x, UNJUDGED) for x in ("forward", "backward")} for name in names}
        for name in names:
            if given[name].get("message") is not None:
                tasks[name]["message"] = the(float, given[name], "message", UNJUDGED)
        self.text = json.dumps([[name, each] for name, each in tasks.items()])
        self.length, self.gang_seconds, self.rounds = list[float](), list[float](), list[TaskRound]()
        self.of: dict[str, list[Need]] = {"gpus": [], "links": []}
        some, crossed = set[int](), set[int]()
        releases, counts = (case.column[name] for name in ("arrival", "iterations"))
        for j, name in enumerate(profiles):
            nodes = fewest_nodes(case.gpus[j], [case.nodes[g] for g in case.suits[j]])
            some |= set(case.suits[j])
            crossed |= set(case.suits[j]) if nodes > 1 else set()
            self.add(Fraction(releases[j]) - case.epoch, case.gpus[j], counts[j], nodes, tasks[name], link)
        self.capacity = {"gpus": sum(case.nodes[g]["gpus"] * case.nodes[g]["count"] for g in some)}
        self.capacity["links"] = max(1, sum(case.nodes[g]["count"] for g in crossed))

    def add(self, release: Fraction, gang: int, iterations: float, nodes: int, tasks: Data, link: Data) -> None:
        """What one job takes that repeats its tasks so many times, on so many nodes at least."""
        b, eta, a = (Fraction(link.get(x, 0.0)) for x in ("seconds_per_byte", "penalty", "latency"))
        count, size = Fraction(iterations), Fraction(tasks.get("message", 0.0)) if nodes > 1 else Fraction(0)
        compute, sent = Fraction(tasks["forward"]) + Fraction(tasks["backward"]), a + b * size if size else Fraction(0)
        path = count * (compute + sent)
        self.length.append(below(path))
        transfer = link.get("latency", 0.0) + link["seconds_per_byte"] * float(size) if size else 0.0
        self.gang_seconds.append(iterations * (tasks["forward"] + tasks["backward"] + transfer))
        moved = Fraction(0) if "kinds" in link else (b + min(eta, Fraction(0))) * size
        self.rounds.append(TaskRound(compute, sent, a if size else Fraction(0), gang, nodes * moved))
        held = Fraction(below(count * moved))
        rows: dict[str, tuple[Any, ...]] = {
            "gpus": (release, gang if compute else 0, count * compute, sent, path + sent),
            "links": (release + compute + a if size else release, nodes if held else 0, held, 0, path - compute - a),
        }
        for name, (begin, width, seconds, tail, reach) in rows.items():
            down = [Fraction(below(Fraction(x))) for x in (begin, seconds, tail, reach)]
            self.of[name].append(Need(down[0], width, *down[1:]))

    def machine(self, data: Data) -> Machine:
        """That of the resource which the data name."""
        name, exponent = (
            the(str, data, "resource"),
            the(int, data, "grid_exponent", least=-reading.EXPONENT, most=reading.EXPONENT),
        )
        need(name in self.of, f"data.resource: {reading.shown(name)} is no resource")
        needs, scale = self.of[name], Fraction(2) ** exponent
        work = [x.width * math.floor(x.seconds * scale) for x in needs]
        tails, reaches = [x.tail for x in needs], [x.reach for x in needs]
        releases = [math.floor(x.release * scale) for x in needs]
        return reading.machine(releases, work, self.capacity[name], exponent, {"resource": name}, tails, reaches)


def fewest_nodes(gang: int, groups: list[Data]) -> int:
    """How many nodes of these groups hold a gang at least."""
    nodes, left = 0, gang
    for group in sorted(groups, key=lambda group: -int(group["gpus"])):
        used = min(group["count"], max(0, -(-left // group["gpus"])))
        nodes, left = nodes + used, left - used * group["gpus"]
    need(left <= 0, f"a gang of {gang} GPUs fits nowhere", UNJUDGED)
    return nodes


# --- theorems -------------------------------------------------------------------------------------------------------------


def side_by_side(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Mean busy times on one resource or both; the weight of a job is split among them."""
    parts, exponent = the(list, data, "resources"), plain.multiplier_exponent(data)
    need(
        1 <= len(parts) <= 2 and all(type(part) is dict for part in parts), "data.resources must be one or two objects"
    )
    once = len({str(part.get("resource")) for part in parts}) == len(parts)
    need(once, "data.resources names a resource twice: it serves a job once only", reading.DUAL)
    value, found, spent = case.least, list[Data](), list[list[int]]()
    for part in parts:
        on = case.machine(part)
        spent.append(plain.stated_multipliers(part, on))
        more, stated = plain.busy_times(case, on, spent[-1], exponent)
        value += more
        found.append(stated)
    plain.spent_at_most(case, spent, exponent)
    return value, {**case.stated, "multiplier_exponent": exponent, "resources": found}


def volume_from(case: Any, data: Data) -> tuple[Fraction, Data]:
    """The work of the jobs with no earlier release and no shorter tail than is stated, between the least of both."""
    name, release, tail = the(str, data, "resource"), *(ratio(data.get(x), f"data.{x}") for x in ("release", "tail"))
    every = case.needs.of.get(name, ())
    needs = [x for x in every if x.width and x.seconds and x.release >= release and x.tail >= tail]
    need(needs, "no job is left")
    first, last = min(x.release for x in needs), min(x.tail for x in needs)
    value = first + sum(x.width * x.seconds for x in needs) / Fraction(case.needs.capacity[name]) + last
    return value, {"resource": name, "release": written(first), "tail": written(last)}
