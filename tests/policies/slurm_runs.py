"""Workloads that ran on real Slurm (seconds from a run's t0), as instances: a partition is a GPU type of its own."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

GPUS = 8  # of a node
TOLERANCE = 12  # seconds: Slurm starts a job up to 3 s after an end; times in the log are cut to the second
NODES = {"f2": 4}  # of a partition; the others have one
SHARED = {"y12": "e12"}  # partitions on the node of another one


@dataclass(frozen=True)
class Log:
    """A run: its file, the second of the clock's minute at t0, its first backfill cycle, and whether it was EASY."""

    name: str
    second: float
    cycle: int
    easy: bool = False


LOGS = (
    Log("s-22.05", 58.7, 20),
    Log("s-24.11", 20.6, 20),
    Log("s-26.05-easy", 45.7, 19, easy=True),
    Log("s2-26.05-easy", 58.5, 21, easy=True),
    Log("s2-24.11", 39.7, 19),  # a waiting het job stops the main loop of this version
)


@dataclass(frozen=True)
class Seen:
    """What the log says of a job: its start from t0 in seconds, and the loop that started it."""

    start: float
    loop: str


def left_out(row: dict[str, str]) -> str:
    """Why a row is not replayed; empty if it is."""
    asked, partition = row["asked"], row["partition"]
    for reason, words in {
        "held": "-H",
        "limit rewritten": "--time-min",
        "het job": " : ",
        "no whole nodes": "--gpus",
    }.items():
        if words in asked:
            return reason
    if row["state"] == "FAILED" or (row["start"] == "" and row["job"] in ("e9nodes", "e9cpus")):
        return "never fits"
    if not asked:
        return "het job"
    if partition == "e8" and row["priority"] != "1":
        return "priority changed by hand"
    if partition in ("f9lo", "f9hi", "f12", "g3lo", "g3hi", "g6"):
        return "preemption, or a job that ignores its end"
    return "" if row["start"] else "never ran"


def replayed(folder: Path, log: Log) -> tuple[Instance, dict[str, Seen], dict[str, str], str]:
    """The instance, what was seen of each of its jobs, the rows left out with the reason, and the policy."""
    jobs, seen, out = [], dict[str, Seen](), dict[str, str]()
    with (folder / f"{log.name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        number, _, element = row["jobid"].partition("_")
        name = f"{row['job']}_{element}" if element else row["job"]
        reason = left_out(row)
        if reason:
            out[name] = reason
            continue
        nodes = re.search(r"-N(\d+)", row["asked"])
        gpus = re.search(r"gpu:(\d+)", row["asked"])
        gang = (int(gpus[1]) if gpus else 1) * (int(nodes[1]) if nodes else 1)  # a job of one CPU counts as one GPU
        start, end = float(row["start"]), float(row["end"])
        seen[name] = Seen(start, row["loop"])
        partition = SHARED.get(row["partition"], row["partition"])
        job = Job(
            name,
            arrival=float(row["eligible"]) + 1000,
            gpus=gang,
            duration=end - start,
            walltime=float(row["limit_s"]),
            gpu_types=(partition,),
        )
        jobs.append((float(row["eligible"]), int(number), int(element or 0), job))
    ordered = [job for *_, job in sorted(jobs, key=lambda entry: entry[:3])]
    partitions = dict.fromkeys(job.gpu_types[0] for job in ordered if job.gpu_types)
    cluster = Cluster(tuple(NodeGroup(count=NODES.get(name, 1), gpus=GPUS, gpu=name) for name in partitions))
    instance = Instance(ordered, cluster, log.name)
    first = instance.epoch - 1000
    depth = "1" if log.easy else "all"
    policy = f"slurm:depth={depth},first={log.cycle - first:g},second={(log.second + first) % 60:g}"
    return instance, seen, out, policy


def explained(run: Run, seen: dict[str, Seen]) -> dict[str, bool]:
    """Whether each job starts within the tolerance of what was seen, by the same loop."""
    starts = dict(zip(run.instance.ids, run.jobs["start"].to_list(), strict=True))
    loops = dict(zip(run.instance.ids, run.notes["backfilled"].tolist(), strict=True))
    return {
        name: abs(starts[name] - 1000 - was.start) <= TOLERANCE and ("main", "backfill")[int(loops[name])] == was.loop
        for name, was in seen.items()
    }


def judged(folder: Path, log: Log, settings: str = "") -> tuple[Run, dict[str, bool], dict[str, Seen], dict[str, str]]:
    """A replay of a log and what it explains."""
    instance, seen, out, policy = replayed(folder, log)
    run = simulate(instance, policy + settings)
    return run, explained(run, seen), seen, out
