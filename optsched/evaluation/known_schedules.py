"""Small workloads with the schedules that are right under each policy, ``instances/known-schedules.json``.

Another project can read the file without optsched. `optsched.evaluation.suites` makes a suite of the workloads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from optsched.io.index import instances_folder
from optsched.problem.instance import Instance, Job

FILE = "known-schedules.json"
NAME = "known-schedules"


@dataclass(frozen=True)
class KnownSchedule:
    """A workload with its schedule under each of several policies.

    Attributes
    ----------
    instance
        The workload, on one node.
    starts
        Policy -> job id -> start in seconds.
    why
        Derivation in words.
    """

    instance: Instance
    starts: dict[str, dict[str, float]]
    why: str


@cache
def known_schedules() -> dict[str, KnownSchedule]:
    """Return the workloads by name."""
    known = {}
    for entry in json.loads(instances_folder().joinpath(FILE).read_text(encoding="utf-8"))["schedules"]:
        jobs = [
            Job(str(number), arrival=arrival, duration=duration, walltime=limit, gpus=gpus)
            for number, (arrival, duration, limit, gpus) in enumerate(entry["jobs"], 1)
        ]
        instance = Instance(jobs, f"1x{entry['gpus']}", name=entry["name"], objective="total_flow_time")
        starts = {
            policy: {job.id: float(start) for job, start in zip(jobs, times, strict=True)}
            for policy, times in entry["starts"].items()
        }
        known[entry["name"]] = KnownSchedule(instance, starts, entry["why"])
    return known
