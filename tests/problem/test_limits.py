"""Small files of large cost: refused by one line, before the work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.bounds.certificate import Certificate
from optsched.bounds.modes import modes_of_elastic
from optsched.check.referee import check_file
from optsched.check.verify_case import Refused
from optsched.check.verify_on_clusters import verify
from optsched.errors import InputError
from optsched.plot.files import plot_file
from optsched.policies.simulate import simulate
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup
from optsched.problem.files import MOST_JSON
from optsched.problem.instance import Instance, Job
from optsched.problem.instance_file import document
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule
from optsched.speeds.goodput import Goodputs

ONE = Instance([Job("a", duration=1)], "1x1")
READERS: dict[str, Callable[[Path], Any]] = {
    "instance": Instance.load,
    "verify": lambda path: check_file(path, ONE),
    "certificate": Certificate.load,
    "schedule": lambda path: Schedule.load(path, ONE),
    "plot": lambda path: plot_file(path, path.with_suffix(".png")),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_long_document_is_refused_by_its_size(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.json"
    path.touch()
    os.truncate(path, 3 * 2**29)
    # a reader that reads before it looks would need more than this
    monkeypatch.setattr("optsched.problem.documents.json.loads", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(
        InputError, match=rf"long\.json, bytes = {3 * 2**29}: too long \(expected: at most {MOST_JSON}\)"
    ):
        READERS[reader](path)


def test_a_device_without_end_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optsched.problem.files.MOST_JSON", 10**6)
    with pytest.raises(InputError, match="bytes = 1000001: too long"):
        check_file("/dev/zero", ONE)


def test_a_cluster_of_many_nodes_is_refused(tmp_path: Path) -> None:
    path, jobs = tmp_path / "i.json", [{"duration": 1}]
    for nodes in ([{"count": MAX_GPUS + 1, "gpus": 1}], [{"count": MAX_GPUS, "gpus": 1}, {"gpus": 1}]):
        path.write_text(json.dumps({"format": "optsched-instance/1", "cluster": {"nodes": nodes}, "jobs": jobs}))
        with pytest.raises(InputError, match=f"gpus = {MAX_GPUS + 1}: .*at most {MAX_GPUS}"):
            Instance.load(path)


@pytest.mark.parametrize("policy", ["hadar", "hadar-commit", "gavel"])
def test_jobs_of_too_many_rounds_are_refused(policy: str) -> None:
    instance = Instance([Job("a", duration=5), Job("long", duration=1e13), Job("b", duration=1e13)], "1x1")
    what = rf"{policy}: round = 360\S*: too short for job 'long' of 1e\+13 s \(expected: .* at most 1e\+06 rounds"
    with pytest.raises(InputError, match=what):
        simulate(instance, policy)


# --- rates of elastic jobs: each profile is small work, all are not ------------------------------------------------------


def elastic(profiles: int) -> Instance:
    rows = tuple((990_000 + 100 * k, 1000.0) for k in range(20))
    scaling = Scaling(0.01, 0.001, memory=1.0, memory_per_sample=1.0, iterations=rows)
    jobs = [Job(f"j{k}", iterations=1, profile=f"m{k}", batch_size=990_000) for k in range(profiles)]
    nodes = NodeGroup(gpus=32, count=4, gpu_memory=2e6)
    return Instance(jobs, Cluster((nodes,)), scalings=dict.fromkeys((job.profile for job in jobs), scaling))


def test_rates_of_all_profiles_are_counted_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = elastic(8)
    Goodputs(instance).require_few()
    monkeypatch.setattr("optsched.speeds.goodput.MOST_STEPS", 100_000)
    monkeypatch.setattr("optsched.speeds.goodput.JobGoodput.limit", lambda *_: pytest.fail("work before the limit"))
    with pytest.raises(InputError, match="rates of elastic jobs take too much work"):
        modes_of_elastic(instance)


@pytest.mark.release
def test_the_verifier_compares_digests_first_and_counts_all_profiles() -> None:
    instance = elastic(60)
    names = {"kind": "elastic-alone", "objective": "makespan", "class": "elastic"}
    for digest, rule, what in (
        ("0" * 64, "instance", "another instance"),
        (instance.digest, "unjudged", "more than 100000"),
    ):
        with pytest.raises(Refused) as caught:
            verify({"instance": digest, **names, "value": "1/1", "data": {}}, document(instance))
        assert (caught.value.rule, what in str(caught.value)) == (rule, True)
