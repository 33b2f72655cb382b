"""The frozen schedules and bounds: what is run, the digest of a schedule, and what is said of it in words.

`digests.json` is made by ``python -m frozen.freeze``, and is made again only by a commit that says why a schedule changed.
It says of each instance what it is, and of each run the policy, the makespan, the total flow time, and a digest for every
placement. A digest is of the segments (start, job, end, work, GPUs) in order of time, bit for bit, and of the task log. Of
a bound the file has the kind and the value. A combination that is refused has `REFUSED`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from invariance.examples import examples

import optsched
from optsched import Instance
from optsched.classes import class_names
from optsched.errors import InputError, OptschedError
from optsched.io.index import shipped
from optsched.io.traces.generate import RECIPES, generate
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.problem.objectives import OBJECTIVES
from optsched.speeds.duration import seconds_alone

SIZE = 8  # hexadecimal digits of a digest: among some 30,000 runs a change escapes with probability 1e-5
REFUSED = "-" * SIZE
FIGURES = ("makespan", "total_flow_time")
SEEDS = 2
# sizes of recipes that keep every run below a second or so; the others are asked for as they come
SMALL = {
    "ada-srsf": {"jobs": 24},
    "all-four": {"jobs": 24},
    "ddl-cluster": {"jobs": 60},
    "gavel-continuous": {"jobs": 40},
    "gavel-static": {"jobs": 24},
    "hadar-60": {"jobs": 40},
    "philly-like": {"jobs": 80},
    "poisson": {"jobs": 80},
    "recurring": {"jobs": 60},
    "sharing-cluster": {"jobs": 40},
    "sharing-gavel": {"jobs": 40},
}
# parameters that change what a policy does, each beside its defaults
VARIANTS = (
    "a-srpt:overtake=2,beta=0.5",
    "a-srpt:tau=0.5",
    "fifo:skip=true",
    "gavel:policy=finish_time_fairness_perf,round=4",
    "gavel:policy=max_min_fairness_perf",
    "makespan-rounds:round=4,restart=1",
    "hadar:round=4",
    "hadar-e:copies=1,round=16,overhead=0",
    "srtf:restart=3",
    "srtf-gpu:restart=1",
    "tiresias:threshold=24,starvation=1,restart=1,round=4",
    "wspt:gpus=true",
    "sjf-bsbf:consolidated=false,joint=false,by=pair,outlook=0",
    "sjf-ffs:width=true",
    "leader-first:width=1,caution=0.5",
    "srsf:k=2,service_includes_comm=true",
    "k-way:by_size=true",
    "goodput:round=45",
    "spjf:predictor=global-mean",
)
LONG = 600.0  # seconds
HEAVY = frozenset({"all-four", "cluster-week", "ddl-cluster", "contention-cluster", "sharing-cluster"})


def names() -> list[str]:
    """Of every frozen instance: shipped ones, recipes by seed, and the small ones of the tests, by seed."""
    made = [f"{recipe}#{seed}" for recipe in RECIPES.names() for seed in range(SEEDS)]
    return [each.name for each in shipped()] + made + [f"{kind}@{seed}" for kind in examples() for seed in range(SEEDS)]


@cache
def frozen_instance(name: str) -> Instance:
    if "#" in name:
        recipe, seed = name.split("#")
        return generate(recipe, int(seed), **SMALL.get(recipe, {}))
    if "@" in name:
        kind, seed = name.split("@")
        return examples(int(seed))[kind]
    return optsched.load(name)


def policies(name: str) -> list[str]:
    """Every registered policy by its defaults, and with other parameters; no rounds of seconds for jobs of hours."""
    long = float(np.median(seconds_alone(frozen_instance(name)))) > LONG
    return [*POLICIES.names(), *(variant for variant in VARIANTS if not (long and "round=" in variant))]


def placements() -> list[str]:
    """The policy's own, and every registered one, in the order in which their digests stand in a line."""
    return ["", *(f"+{name}" for name in PLACEMENTS.names())]


def description(name: str) -> str:
    """What a frozen instance is: where it comes from, its seed, its jobs and its cluster."""
    instance = frozen_instance(name)
    if "#" in name:
        recipe, seed = name.split("#")
        values = "".join(f", {key}={value}" for key, value in SMALL.get(recipe, {}).items())
        source = f"recipe {recipe}, seed {seed}{values}"
    elif "@" in name:
        kind, seed = name.split("@")
        source = f"example {kind} of tests/invariance/examples.py, seed {seed}"
    else:
        source = "shipped in instances/"
    return f"{source}: {instance.n} jobs on {instance.cluster.spec}"


def digest_of_run(instance: Instance, specification: str) -> str:
    try:
        return digest_of(simulate(instance, specification).schedule)
    except OptschedError:
        return REFUSED


def digest_of(schedule: Any) -> str:
    rows: list[Any] = sorted((s.start, s.job, s.end, s.work, s.gpus) for s in schedule.segments())
    log = getattr(schedule, "tasks", None)
    if log is not None:
        order = np.lexsort((log.end, log.worker, log.job, log.start))
        rows += [column[order].tolist() for column in (log.job, log.worker, log.start, log.end)]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:SIZE]


def digests_of_runs(name: str, policy: str) -> str:
    """One word a placement, without those refused at the end; ``""`` where none of them runs."""
    instance = frozen_instance(name)
    digests = [digest_of_run(instance, policy + placement) for placement in placements()]
    while digests and digests[-1] == REFUSED:
        digests.pop()
    return " ".join(digests)


def figures_of_run(name: str, policy: str) -> str:
    """The figures of a run with the placement of the policy; ``""`` where that is refused, or jobs do not finish."""
    try:
        run = simulate(frozen_instance(name), policy)
    except OptschedError:
        return ""
    return "" if run.unfinished else ", ".join(f"{goal} {run.value(goal):.9g}" for goal in FIGURES)


def line(figures: str, digests: str) -> str:
    """A run in the file: figures, a colon, digests."""
    return f"{figures}: {digests}" if figures else digests


def parts(text: str) -> tuple[str, str]:
    """(figures, digests) of a `line`."""
    figures, _, digests = text.rpartition(": ")
    return figures, digests


def bounds_of(name: str, known: Mapping[str, str] = MappingProxyType({})) -> Iterator[tuple[str, str]]:
    """(objective and class, kind and value) of every best bound of an instance; of known ones what is known."""
    instance = frozen_instance(name)
    for objective in OBJECTIVES.names():
        for schedule_class in class_names():
            if f"{objective} {schedule_class}" in known:
                yield f"{objective} {schedule_class}", known[f"{objective} {schedule_class}"]
                continue
            try:
                low = optsched.bound(instance, objective, schedule_class)
            except InputError:
                continue
            yield f"{objective} {schedule_class}", f"{low.kind} {float(low.value)!r}"
