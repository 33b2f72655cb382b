"""One instance with all speed models, GPU types, memory, sharing and contention: policies beside bounds of their class."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.simulation.run import Run
from optsched.speeds.duration import communicating
from optsched.speeds.type_speeds import type_speeds

pytestmark = [pytest.mark.release, pytest.mark.xdist_group("all-four")]  # one process runs the policies
README = Path(__file__).parents[2] / "README.md"
POLICIES = [
    "fifo",
    "fifo:skip=true",
    "srtf",
    "tiresias",
    "a-srpt",
    "makespan-rounds",
    "hadar-e",
    "sjf-ffs",
    "sjf-bsbf",
    "goodput",
]
OBJECTIVE = "total_flow_time"


@cache
def instance() -> osd.Instance:
    return load("all-four")


@cache
def run(policy: str) -> Run:
    return simulate(instance(), own_policy() if policy == "packed" else policy)


@cache
def lower_bound(kind: str) -> float:
    """The best bound for a class of schedules, verified."""
    proof = bound(instance(), OBJECTIVE, kind)
    proof.verify(instance())
    return float(proof.value)


def _mean_rate(found: Run) -> float:
    """Work a GPU-second of jobs at the speeds of a table, beside what one V100 does, mean over their segments."""
    rows = [row for row in found.schedule.segments() if row.job in instance().jobs_at("throughputs")]
    rate = type_speeds(instance()).together
    return float(np.mean([row.work / (row.end - row.start) / rate[row.job, 0] for row in rows]))


def own_policy(*replaced: str) -> Any:
    """The policy that the README shows, a part of its text perhaps ``replaced`` by another."""
    (block,) = (text for text in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "class Packed" in text)
    names: dict[str, Any] = {}
    text = block.partition("\nfor row in ")[0]
    exec(text.replace(*replaced) if replaced else text, names)
    return names["Packed"]()


def test_all_speed_models_are_there() -> None:
    made = instance()
    assert (made.n, made.cluster.gpus, len(made.cluster.gpu_types)) == (160, 64, 3)
    kinds = ("profiles", "throughputs", "scalings", "duration")
    assert [made.jobs_at(kind).size for kind in kinds] == [40] * 4
    assert made.interference is not None
    assert made.contention is not None
    assert communicating(made).sum() > 30
    assert set(made.gpu_memory.tolist()) >= {4e9, 6e9, 10e9}


STUDIED = ("fifo", "tiresias", "a-srpt", "sjf-ffs")  # of the same classes as the others


@pytest.mark.parametrize(
    "policy", [pytest.param(each, marks=pytest.mark.study if each in STUDIED else ()) for each in (*POLICIES, "packed")]
)
def test_the_referee_accepts_every_run_and_a_bound_of_its_class_holds(policy: str) -> None:
    found = run(policy)
    kind = found.schedule_class
    assert found.unfinished == []
    said = check_schedule(instance(), found, schedule_class=kind, preemptive=found.preemptive)
    assert said == []
    assert found.value(OBJECTIVE) >= lower_bound(kind) > 0


def test_policies_of_all_kinds_were_there() -> None:
    kinds = {run(policy).schedule_class for policy in [*POLICIES, "packed"] if policy not in STUDIED}
    assert kinds == {"gang", "gang-nonpreemptive", "forking", "gpu-sharing", "elastic"}


def test_fifteen_lines_preempt_share_and_choose_types() -> None:
    found, made = run("packed"), instance()
    assert found.preemptions > 100
    assert found.metrics["shared_jobs"] > 0.5
    slowest = simulate(made, own_policy("(-speed", "(speed"))  # takes the slowest types first
    assert _mean_rate(found) > 1.1 * _mean_rate(slowest)
    assert found.value(OBJECTIVE) < min(run(policy).value(OBJECTIVE) for policy in ("fifo:skip=true", "srtf"))
