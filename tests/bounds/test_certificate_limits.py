"""Certificates that nobody could check in time: refused before the work is done, in one line."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest
from invariance.examples import examples

from bounds.cases import instance_of
from bounds.tampering import Document, one_priced_row
from optsched.bounds import BOUNDS
from optsched.bounds.certificate import Certificate
from optsched.check.referee import check_file
from optsched.classes import classes_of
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job


@pytest.fixture
def instance() -> Instance:
    return instance_of([(float(k), 1, 1000.0 + k, 1.0, 5000.0) for k in range(4)], 4)


def judged(document: Document, instance: Instance, folder: Path) -> tuple[list[str], float, float]:
    """(rules, CPU seconds, megabytes that the process grew) of checking the file."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(document))
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = [violation.rule for violation in check_file(path, instance).violations]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return found, time.process_time() - begin, grown / 1000


@pytest.mark.parametrize("schedule_class", ["gang", "gang-nonpreemptive"])
@pytest.mark.parametrize("unit", ["1/10000", "1/1000000000000", "1/" + "9" * 1000])
@pytest.mark.parametrize("largest", [1, 2**61 - 1, 2**500])
def test_a_tiny_unit_costs_nothing(
    schedule_class: str, unit: str, largest: int, instance: Instance, tmp_path: Path
) -> None:
    """510 bytes that took 54 s and 6.1 GB: free cells after the last price were written out one by one."""
    document = one_priced_row(instance, schedule_class, unit=unit, rows=[{"width": "gpus", "price": [largest, 0, 1]}])
    document["value"] = f"-{10**170}/1"
    rules, seconds, megabytes = judged(document, instance, tmp_path)
    assert rules == []
    assert seconds < 10  # a minute, where it is not refused; what a process imports first is in it
    assert megabytes < 100


def test_what_runs_in_free_cells_is_charged_as_before(instance: Instance, tmp_path: Path) -> None:
    """Jobs longer than all prices: m_j = r_j + p_j and what the cheapest cells leave to pay, worked out by hand."""
    short = instance_of([(0.0, 1, 3.0, 1.0, 0.0)], 1)
    # 2 cells at 5 and 1: C = 3 pays both (3 + 6), C = 4 pays one (4 + 1), C = 5 none (5)
    document = one_priced_row(short, rows=[{"width": "gpus", "price": [5, 1]}], jobs=["5"], value="0/1")
    assert judged({**document, "value": "-1/1"}, short, tmp_path)[0] == []
    assert judged({**document, "data": {**document["data"], "jobs": ["51/10"]}}, short, tmp_path)[0] == [
        "dual-feasibility"
    ]


def test_classes_of_shared_jobs_are_few(tmp_path: Path) -> None:
    jobs = [Job(f"j{k}", duration=5.0 + k) for k in range(400)]
    instance = Instance(jobs, Cluster((NodeGroup(gpus=2, gpu_memory=8.0),)), interference=1.5)
    certificate = BOUNDS.get("shared-srpt").build(instance, "total_flow_time", "gpu-sharing")
    document = certificate.to_json()
    assert judged(document, instance, tmp_path)[0] == []
    document["data"]["classes"] = list(range(400))
    document["data"]["charges"] = {name: row * 400 for name, row in document["data"]["charges"].items()}
    assert judged(document, instance, tmp_path)[0] == ["dual-feasibility"]


def test_instances_without_jobs_have_bounds(tmp_path: Path) -> None:
    tasks = Instance([], "2x1", tasks={"t": IterationTasks(1.0, 1.0)})
    plain, shared = Instance([], "1x2"), Instance([], "1x2", interference=2.0)
    for name in BOUNDS.names():
        bound = BOUNDS.get(name)
        for instance in (plain, shared, tasks):
            for schedule_class in set(bound.classes) & set(classes_of(instance)):
                for objective in bound.objectives:
                    certificate = bound.build(instance, objective, schedule_class)
                    if certificate is not None:
                        assert certificate.value == 0
                        certificate.verify(instance)


@pytest.mark.parametrize(("example", "kind"), [("sharing", "shared-srpt"), ("tasks", "task-srpt")])
def test_certificates_from_before_there_were_two_classes_that_share_are_read(example: str, kind: str) -> None:
    instance = examples()[example]
    certificate = BOUNDS.get(kind).build(instance.relative, "total_flow_time", classes_of(instance)[0])
    document = certificate.on_clock(instance).to_json() | {"class": "sharing"}
    read = Certificate.of_document(document, "old.json")
    assert read.schedule_class == classes_of(instance)[0]
    read.verify(instance)
