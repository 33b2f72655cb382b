"""The verifiers' side at the task level: what jobs need is read again, job by job and node by node, in fractions.

Nothing is shared with `task_times`, whose docstring tells the theorems, but its definitions. O(n N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from optsched.bounds.certificate import Certificate, CertificateError, rounded_down
from optsched.bounds.verifier import Machine, Times, Twin, stated_exponent
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job

RESOURCES = ("gpus", "links")


@dataclass(frozen=True)
class Need:
    """What one job takes of a resource: ``width`` units for ``seconds`` in all, from ``release`` on.

    It completes ``tail`` or more after the end of that, and ``reach / 2`` or more after the mean moment.
    """

    width: int
    seconds: Fraction
    release: Fraction
    tail: Fraction
    reach: Fraction

    @property
    def none(self) -> bool:
        """Does it take nothing?"""
        return self.width == 0 or self.seconds == 0

    @property
    def work(self) -> Fraction:
        """Units times seconds."""
        return self.width * self.seconds


@dataclass(frozen=True)
class Needs:
    """``path``: L_j of every job; ``capacity`` and ``jobs`` by resource."""

    path: list[Fraction]
    capacity: dict[str, int]
    jobs: dict[str, list[Need]]


class TaskTwin(Twin):
    """The needs of all jobs; ``seconds``: their paths."""

    several = True

    def __init__(self, certificate: Certificate, instance: Instance) -> None:
        super().__init__(certificate, instance)
        self.needs = needs_of(instance)
        self.seconds = [float(seconds) for seconds in self.needs.path]

    def machine(self, certificate: Certificate, times: Times) -> Machine:
        """The machine of the resource and on the grid that the certificate names."""
        resource, exponent = stated_resource(certificate), stated_exponent(certificate)
        capacity, jobs, scale = self.needs.capacity[resource], self.needs.jobs[resource], Fraction(2) ** exponent
        release = [capacity * math.floor(need.release * scale) for need in jobs]
        work = [0 if need.none else need.width * math.floor(need.seconds * scale) for need in jobs]
        tail, reach = [need.tail for need in jobs], [need.reach for need in jobs]
        return Machine(capacity, exponent, release, work, {"resource": resource}, tail, reach)


def needs_of(instance: Instance) -> Needs:
    """The needs of all jobs; every number is rounded down to a float64, then taken as exact."""
    cluster = instance.cluster
    path: list[Fraction] = []
    jobs: dict[str, list[Need]] = {name: [] for name in RESOURCES}
    some, crossed = set[int](), set[int]()
    for job in instance.jobs:
        suiting = [k for k, group in enumerate(cluster.nodes) if group.suits(job.gpu_types, job.gpu_memory)]
        room = sorted((cluster.nodes[k].gpus for k in suiting for _ in range(cluster.nodes[k].count)), reverse=True)
        nodes = _fewest_nodes(job.gpus, room)
        some.update(suiting)
        if nodes > 1:
            crossed.update(suiting)
        own_path, compute, bytes_moved = _needs(instance, job, nodes)
        path.append(own_path)
        jobs["gpus"].append(compute)
        jobs["links"].append(bytes_moved)
    gpus = sum(cluster.nodes[k].gpus * cluster.nodes[k].count for k in some)
    interfaces = max(1, sum(cluster.nodes[k].count for k in crossed))
    return Needs(path, {"gpus": gpus, "links": interfaces}, jobs)


def _fewest_nodes(gang: int, room: list[int]) -> int:
    held = 0
    for used, gpus in enumerate(room, start=1):
        held += gpus
        if held >= gang:
            return used
    raise CertificateError("instance", f"a gang of {gang} GPUs fits nowhere")


def _needs(instance: Instance, job: Job, nodes: int) -> tuple[Fraction, Need, Need]:
    tasks = instance.tasks[str(job.profile)]
    link = instance.contention or Contention(1.0)
    compute = Fraction(tasks.forward) + Fraction(tasks.backward)
    count, release = int(job.iterations or 0), Fraction(job.arrival)
    sent = Fraction(tasks.message or 0) if nodes > 1 else Fraction(0)
    latency = Fraction(link.latency) if sent else Fraction(0)
    transfer = latency + Fraction(link.seconds_per_byte) * sent
    path = count * (compute + transfer)
    down = [_down(x) for x in (path, count * compute, release, transfer, path + transfer)]
    gpus = Need(job.gpus, *down[1:])
    if link.measured or not sent:
        return down[0], gpus, Need(0, Fraction(0), release, Fraction(0), Fraction(0))
    held = Fraction(link.seconds_per_byte)
    if link.penalty < 0:
        held += Fraction(link.penalty)
    first = release + compute + latency
    links = Need(nodes, _down(count * held * sent), _down(first), Fraction(0), _down(path - (first - release)))
    return down[0], gpus, links


def _down(value: Fraction) -> Fraction:
    return Fraction(rounded_down(value))


def stated_resource(certificate: Certificate) -> str:
    """``data["resource"]``: the name of one."""
    name = certificate.data.get("resource")
    if name not in RESOURCES:
        raise CertificateError("value", f"data.resource must be one of {', '.join(RESOURCES)}, not {str(name)[:80]!r}")
    return str(name)
