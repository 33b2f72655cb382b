"""Jobs with tasks: what they take of GPUs and network interfaces.

A job repeats I times t = forward + backward seconds on each of its n GPUs and, if no node that suits it holds the gang, an
all-reduce of M bytes between at least m nodes, a + b M seconds alone. (k transfers at once on an interface share 1 / min(b,
b + eta) bytes a second at most; measured ratios say nothing of that.) It takes n I t of all GPUs, ends a + b M or more after
that, and half of I (t + a + b M) + a + b M after the mean moment of it. Of interfaces it takes m I b M from its first t + a
seconds on. All numbers are rounded down to floats, as optsched does (optsched/bounds/task_times.py).
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

from .document_fields import Data, read_exponent, read_field
from .exact_numbers import floors, integers, quotient_below
from .priced_cells import TaskRound
from .refusal import UNJUDGED, need, shown
from .tick_machine import Machine, machine_on_grid


class Resource:
    """A resource and the units that jobs take of it, lists by job.

    A job has ``width`` units for ``seconds`` from ``release`` on. It ends ``tail`` seconds or more after that, and half of
    ``reach`` seconds or more after its mean moment. ``capacity`` is the number of units.
    """

    def __init__(self) -> None:
        self.capacity = 0
        self.width, self.release, self.seconds = list[int](), list[float](), list[float]()
        self.tail, self.reach = list[float](), list[float]()

    def add(self, width: int, release: float, seconds: float, tail: float, reach: float) -> None:
        """Add a job.

        Parameters
        ----------
        width
            Units.
        release
            First moment, in seconds.
        seconds
            Seconds for which it has them.
        tail
            Seconds from the end of that to its completion, at least.
        reach
            Twice the seconds from the mean moment to its completion, at least.
        """
        self.width.append(width)
        self.release.append(release)
        self.seconds.append(seconds)
        self.tail.append(tail)
        self.reach.append(reach)


class TaskNeeds:
    """The needs of jobs with tasks.

    ``length`` is the path of every job in seconds, ``gang_seconds`` the same in floats as the engine adds it up, ``of`` what
    jobs take of every resource, ``rounds`` what they take in an iteration, ``text`` what the digest has of the tasks.

    Parameters
    ----------
    case
        What the certificate is about.
    given
        JSON objects of the tasks by profile.
    link
        Contention on a network interface.
    """

    def __init__(self, case: Any, given: Data, link: Data) -> None:
        profiles: list[str] = case.by_profile
        tasks = {}
        for name in sorted(set(profiles)):
            tasks[name] = {x: read_field(float, given[name], x, UNJUDGED) for x in ("forward", "backward")}
            if given[name].get("message") is not None:
                tasks[name]["message"] = read_field(float, given[name], "message", UNJUDGED)
        self.text = json.dumps([[name, part] for name, part in tasks.items()])
        self.length, self.gang_seconds, self.rounds = list[float](), list[float](), list[TaskRound]()
        self.of = {"gpus": Resource(), "links": Resource()}
        rows = dict[Any, _TaskRow]()
        releases, unit = integers([*case.jobs.stated("arrival"), float(case.epoch)])
        columns = zip(profiles, case.gpus, case.suits, releases, case.jobs.stated("iterations"), strict=False)
        for name, gang, suits, release, count in columns:
            key = name, gang, id(suits)
            row = rows.get(key)
            if row is None:
                nodes = fewest_nodes(gang, [case.nodes[g] for g in suits])
                row = rows[key] = _TaskRow(tasks[name], link, gang, nodes, suits)
            self.rounds.append(row.round)
            self.gang_seconds.append(count * row.engine_seconds)
            self.length.append(row.add(self.of, release - releases[-1], unit, count))
        some = {g for row in rows.values() for g in row.suits}
        crossed = {g for row in rows.values() if row.nodes > 1 for g in row.suits}
        self.of["gpus"].capacity = sum(case.nodes[g]["gpus"] * case.nodes[g]["count"] for g in some)
        self.of["links"].capacity = max(1, sum(case.nodes[g]["count"] for g in crossed))

    @property
    def capacity(self) -> dict[str, int]:
        """Units of every resource."""
        return {name: resource.capacity for name, resource in self.of.items()}

    def machine(self, data: Data) -> Machine:
        """Return the machine of the resource that the data of a certificate name.

        Parameters
        ----------
        data
            Data of the certificate: ``resource``, ``grid_exponent``.
        """
        name, exponent = read_field(str, data, "resource"), read_exponent(data, "grid_exponent")
        need(name in self.of, f"data.resource: {shown(name)} is no resource")
        part = self.of[name]
        work = [
            width * steps for width, steps in zip(part.width, floors(*integers(part.seconds), exponent), strict=True)
        ]
        release = floors(*integers(part.release), exponent)
        return machine_on_grid(release, work, part.capacity, exponent, {"resource": name}, part.tail, part.reach)


class _TaskRow:
    # jobs of one profile and gang: seconds of an iteration in integers of 1 / unit

    def __init__(self, tasks: Data, link: Data, gang: int, nodes: int, suits: list[int]) -> None:
        b, eta, a = (Fraction(link.get(x, 0.0)) for x in ("seconds_per_byte", "penalty", "latency"))
        size = Fraction(tasks.get("message", 0.0)) if nodes > 1 else Fraction(0)
        compute = Fraction(tasks["forward"]) + Fraction(tasks["backward"])
        sent, latency = (a + b * size, a) if size else (Fraction(0), Fraction(0))
        moved = Fraction(0) if "kinds" in link else (b + min(eta, Fraction(0))) * size
        self.round = TaskRound(compute, sent, latency, gang, nodes * moved)
        transfer = link.get("latency", 0.0) + link["seconds_per_byte"] * float(size) if size else 0.0
        self.engine_seconds = tasks["forward"] + tasks["backward"] + transfer
        self.gang, self.nodes, self.suits = gang, nodes, suits
        parts = (compute, sent, moved, compute + a if size else Fraction(0), compute + a)
        self.unit = math.lcm(*(part.denominator for part in parts))
        # the last but one: from the release to the first byte
        self.compute, self.sent, self.moved, self.first, self.late = (int(part * self.unit) for part in parts)

    def add(self, resources: dict[str, Resource], release: int, parts: int, iterations: float) -> float:
        # what one job takes: release / parts seconds, and the iterations; returns its path, rounded down
        count, per = iterations.as_integer_ratio()
        unit, down = self.unit, self.unit * per
        busy, held = count * self.compute, quotient_below(count * self.moved, down)
        path, sent = count * (self.compute + self.sent), self.sent
        resources["gpus"].add(
            self.gang if self.compute else 0,
            quotient_below(release, parts),
            quotient_below(busy, down),
            quotient_below(sent, unit),
            quotient_below(path + sent * per, down),
        )
        resources["links"].add(
            self.nodes if held else 0,
            quotient_below(release * unit + self.first * parts, parts * unit),
            held,
            0.0,
            quotient_below(path - self.late * per, down),
        )
        return quotient_below(path, down)


def fewest_nodes(gang: int, groups: list[Data]) -> int:
    """Return the fewest nodes that hold a gang.

    Parameters
    ----------
    gang
        GPUs of the gang.
    groups
        Node groups that suit it.

    Raises
    ------
    Refused
        If they do not hold it.
    """
    nodes, left = 0, gang
    for group in sorted(groups, key=lambda group: -int(group["gpus"])):
        used = min(group["count"], max(0, -(-left // group["gpus"])))
        nodes, left = nodes + used, left - used * group["gpus"]
    need(left <= 0, f"a gang of {gang} GPUs fits nowhere", UNJUDGED)
    return nodes
