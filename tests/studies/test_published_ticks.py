"""The simulator with ticks: the event simulator again where time is exact, the published accounting by hand, refusals."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.studies.published_ticks import ACCOUNTINGS, ticked

pytestmark = pytest.mark.xdist_group("ada-srsf")  # one process compiles the simulator with ticks
MS = 1e-3
STEP = 0.125  # seconds: a whole number of milliseconds, and exact in binary


def jobs_with(*rows: tuple[float, int, int, float, float, float | None]) -> tuple[list[Job], dict[str, IterationTasks]]:
    """(arrival, gpus, iterations, forward, backward, message) a job; every job has tasks of its own."""
    jobs = [Job(f"{j}", arrival=r[0], gpus=r[1], iterations=r[2], profile=f"p{j}") for j, r in enumerate(rows)]
    return jobs, {f"p{j}": IterationTasks(*row[3:]) for j, row in enumerate(rows)}


def instance_of(cluster: Cluster | str, contention: Contention, *rows: Any, memory: Sequence[float] = ()) -> Instance:
    jobs, tasks = jobs_with(*rows)
    jobs = (
        [dataclasses.replace(job, gpu_memory=held) for job, held in zip(jobs, memory, strict=True)] if memory else jobs
    )
    return Instance(jobs, cluster, objective="total_flow_time", tasks=tasks, contention=contention)


def exact_instance(seed: int) -> Instance:
    """All times are whole steps, and stay so with eta = 2b: two transfers at once move at a quarter of their speed."""
    rng = np.random.default_rng(seed)
    rows = [
        (
            STEP * int(rng.integers(0, 200)),
            int(rng.choice([1, 1, 2, 2, 3, 4])),
            int(rng.integers(1, 4)),
            STEP * int(rng.integers(1, 40)),
            STEP * int(rng.integers(1, 40)),
            float(64 * rng.integers(1, 20)),
        )
        for _ in range(8)
    ]
    cluster = Cluster((NodeGroup(gpus=2, count=3, gpu_memory=3.0),))
    return instance_of(cluster, Contention(STEP, 2 * STEP), *rows, memory=[1.0] * 8)


@pytest.mark.parametrize("placement", ["lwf:kappa=1", "lwf:kappa=2", "list", "first-fit"])
@pytest.mark.parametrize("rule", ["srsf:k=1", "ada-srsf"])
def test_the_event_simulator_gives_the_same_where_time_is_exact(placement: str, rule: str) -> None:
    contended = 0
    for seed in range(6):
        instance = exact_instance(seed)
        run: Any = simulate(instance, f"{rule}+{placement}")
        found = ticked(instance, rule, placement, load_comm_cost=STEP)
        assert found.completion.tolist() == run.schedule.completion.tolist()
        # theirs counts from time 0, not from the first arrival
        counted = run.metrics["makespan"] - instance.arrival.min()
        assert found.utilization * run.metrics["makespan"] / counted == pytest.approx(run.metrics["utilization"])
        assert found.contended == run.contended
        assert found.spanning.sum() == run.spanning
        contended += run.contended
    assert (contended > 0) == (rule == "ada-srsf")


def on_two_nodes(*rows: Any, b: float = 1e-9, eta: float = 0.0) -> Instance:
    return instance_of("2x1", Contention(b, eta), *rows)


def test_every_job_that_waits_and_asks_makes_the_transfer_faster() -> None:
    # Computing takes 2 ms a job, one after the other; 100 MB take 100 ms alone. Transfer 0 starts at 2 ms; job 1 asks from 4
    # ms on, job 2 from 6 ms on. So the ticks from 2, 4 and 6 ms on move 1, 2 and 3 MB: 2 + 4 + 3 * 32 >= 100 at 38 ms.
    instance = on_two_nodes(*[(0.0, 2, 1, MS, MS, 100e6)] * 3)
    found = {kind: np.rint(ticked(instance, "ada-srsf", accounting=kind).completion / MS) for kind in ACCOUNTINGS}
    assert found["faithful"].tolist() == [102, 202, 302]
    # then job 2 alone asks of transfer 1: 2 MB a tick from 38 ms on, and nobody of transfer 2
    assert found["published_simulator"].tolist() == [38, 88, 188]


def test_only_ada_srsf_asks() -> None:
    instance = generate("ada-srsf", 3, jobs=60, cluster="6x4")
    for rule in ("srsf:k=1", "srsf:k=2", "srsf:k=3"):
        one, other = (ticked(instance, rule, accounting=kind) for kind in ACCOUNTINGS)
        assert one.completion.tolist() == other.completion.tolist()
    one, other = (ticked(instance, "ada-srsf", accounting=kind) for kind in ACCOUNTINGS)
    assert other.completion.mean() < one.completion.mean()


def test_the_published_simulator_asks_of_the_first_node_only() -> None:
    # On nodes 0 and 1 a transfer of 500 MB, on 2 and 3 one of 50 MB. One of 40 MB over all four passes the first test only.
    rows = ((0.0, 2, 1, MS, MS, 500e6), (0.0, 2, 1, MS, MS, 50e6), (0.0, 4, 1, 2 * MS, MS, 40e6))
    cluster = Cluster((NodeGroup(gpus=1, count=4, gpu_memory=3.0),))
    instance = instance_of(cluster, Contention(1e-9), *rows, memory=[2.0, 2.0, 1.0])
    faithful, published = (ticked(instance, "ada-srsf", "first-fit", kind) for kind in ACCOUNTINGS)
    assert np.rint(faithful.completion / MS).tolist() == [542, 52, 132]  # it waits for the small one, then both share
    assert (faithful.contended, published.contended) == (1, 1)
    # it starts at 5 ms beside both, at half the speed; what it asks about has moved a tick further
    assert np.rint(published.completion / MS).tolist() == [541, 92, 85]


def test_random_placement_is_seeded_and_spreads() -> None:
    instance = generate("ada-srsf", 1, jobs=40, cluster="4x4", scale=2)
    one, again, other = (ticked(instance, "srsf:k=1", "random", seed=seed) for seed in (1, 1, 2))
    assert one.completion.tolist() == again.completion.tolist() != other.completion.tolist()
    assert one.spanning.sum() > ticked(instance, "srsf:k=1").spanning.sum()


def test_what_is_refused() -> None:
    good = generate("ada-srsf", 1, jobs=4, scale=1)
    for rule, placement, accounting, field in (
        ("srsf", "list", "faithful", "rule"),
        ("srsf:k=0", "list", "faithful", "rule"),
        ("ada-srsf", "lwf:kappa=0", "faithful", "placement"),
        ("ada-srsf", "lwf", "faithful", "placement"),
        ("ada-srsf", "list", "published", "accounting"),
    ):
        with pytest.raises(InputError, match=f"^{field} = "):
            ticked(good, rule, placement, accounting)
    for instance, field in (
        (generate("ada-srsf", 1, jobs=4, latency=0.001), "latency"),
        (on_two_nodes((0.0, 2, 1, MS, MS, 1e6), eta=-1e-10), "penalty"),
        (on_two_nodes((0.0005, 2, 1, MS, MS, 1e6)), "arrival"),
        (on_two_nodes((0.0, 2, 1, MS, 0.0, 1e6)), "backward"),
        (generate("poisson", 1, jobs=4), "instance"),
    ):
        with pytest.raises(InputError, match=field):
            ticked(instance, "ada-srsf")


def test_nothing_but_the_study_can_reach_the_published_accounting() -> None:
    imported = re.compile(r"^\s*(from|import)\b.*\bpublished_ticks\b|import_module.*published_ticks", re.MULTILINE)
    every = Path(optsched.__file__).parent.rglob("*.py")
    users = {path.name for path in every if imported.search(path.read_text(encoding="utf-8"))}
    assert users == {"ada_srsf.py", "ada_srsf_measures.py"}
    with pytest.raises(InputError):
        simulate(generate("ada-srsf", 1, jobs=4), "published_simulator ada-srsf+lwf:kappa=1")
