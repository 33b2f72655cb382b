"""SJF-BSBF by hand: which partners, who waits for one node or for those yet to come; its sorting beside Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from examples import few

from optsched.classes.gpu_sharing.policies.sharing_gpus import WHOLE_CLUSTER, take_idle, take_open
from optsched.classes.gpu_sharing.policies.sharing_outlook import to_come
from optsched.classes.gpu_sharing.policies.sharing_partners import drop_first, make_heap
from optsched.classes.gpu_sharing.policies.sharing_waits import push_below
from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.simulation.colocation import Neighbours
from optsched.simulation.policy import Order
from optsched.simulation.records import CANDIDATE, FREE, NUMBER
from optsched.simulation.state import Residents, RunContext, State, new_state
from optsched.speeds.partner_rates import sharing_rates


def starts(instance: Instance, spec: str) -> dict[str, float]:
    return {instance.ids[s.job]: s.start for s in simulate(instance, spec).schedule.segments()}


def test_partners_that_lose_least_for_a_gpu_come_first() -> None:
    """A of 1 s on two GPUs, xi = 1.4, loses 0.4 s and costs every partner 0.4: beside the wide job alone it costs one."""
    jobs = [Job("one", duration=4), Job("other", duration=4.2), Job("wide", gpus=2, duration=11)]
    instance = Instance([*jobs, Job("a", arrival=1, gpus=2, duration=1)], "1x4", interference=Interference(1.4))
    value = {by: simulate(instance, f"sjf-bsbf:by={by}").value("total_completion_time") for by in ("cost", "pair")}
    assert value["cost"] == pytest.approx(4 + 4.2 + 11.4 + 2.4)
    assert value["pair"] == pytest.approx(4.4 + 4.6 + 11 + 2.4)


@pytest.mark.parametrize(("across", "start"), [(0.1, 2.0), (0.19, 2.0), (0.21, 4.0), (1.0, 4.0)])
def test_who_is_slow_over_two_nodes_waits_for_one(across: float, start: float) -> None:
    """From 2 s on a GPU of each node is idle: 10 + 100 across seconds; from 4 s on a node: 10 s."""
    scaling = Scaling(0.1, 0.0, 0.0, 0.0, across / 10, 0.0)
    jobs = [Job("x", duration=1), Job("y", duration=30), Job("w", duration=4)]
    jobs.append(Job("a", arrival=2, gpus=2, iterations=100, profile="net", batch_size=2))
    instance = Instance(jobs, "2x2", scalings={"net": scaling}, interference=Interference(1e6))
    first = {"x": 0, "y": 0, "w": 0}
    assert starts(instance, "sjf-bsbf") == {**first, "a": start}
    assert starts(instance, "sjf-bsbf:joint=false")["a"] == 2


def test_no_gpu_is_closed_for_long_while_jobs_come() -> None:
    """A closes the GPU for 50 s; four came in 10 s, so that one in five of 20 more would wait for 25 s: 100 s.

    Together 50 + 100 s, in turn 90 + 130 s and a little: a gain of 70 s.
    """
    jobs = [Job("long", duration=100), *(Job(f"short-{t}", arrival=t, duration=0.125) for t in (2, 4, 6, 8))]
    instance = Instance([*jobs, Job("a", arrival=10, duration=40)], "1x1", interference=Interference(1.25))
    assert starts(instance, "sjf-bsbf:outlook=0")["a"] == 10
    assert starts(instance, "sjf-bsbf:outlook=0.65")["a"] == 10
    assert starts(instance, "sjf-bsbf:outlook=0.75")["a"] == pytest.approx(100.125)


@pytest.mark.parametrize(("came", "start"), [(10, 4.0), (12, 6.0)])
def test_a_wide_job_holds_back_while_many_come(came: int, start: float) -> None:
    """On 6 of 8 GPUs for 4 s: as many as came in 4 s would lose 1 s each there, 12 * 6 / 8 / 2 > 4; at 6 s they are few."""
    jobs = [Job("first", duration=100), *(Job(f"short-{k}", arrival=1, duration=1) for k in range(came))]
    jobs += [Job("wide", arrival=4, gpus=6, duration=4), Job("last", arrival=6, duration=1)]
    instance = Instance(jobs, "1x8", interference=Interference(2))
    assert starts(instance, "sjf-bsbf")["wide"] == start
    assert starts(instance, "sjf-bsbf:outlook=0")["wide"] == 4


@pytest.mark.parametrize(("seconds", "expected"), [(10, 9), (100, 99), (1000, 99 * 1000 / 100.5)])
def test_no_more_than_the_last_hundred_arrivals_are_looked_at(seconds: float, expected: float) -> None:
    """One came every second until 149 s, the last is asked about at 149.5 s; the hundred before it came in 100.5 s."""
    instance = Instance([Job(f"j{k}", arrival=k, duration=1) for k in range(150)], "1x1", interference=1.0)
    order, placement = Order(np.zeros(150)), PLACEMENTS.get("count")()
    state, _ = new_state(instance, order, placement, Residents(sharing_rates(instance), (), listed=True))
    state.engine["next"], state.engine["now"] = 150, 149.5
    assert to_come(state, 149, seconds) == pytest.approx(expected)


def test_what_preemption_can_do_and_no_sharing_can() -> None:
    """A job of 10 s, and one of 1 s two seconds later, xi = 3: 12 s with preemption, 14 s at best without.

    Without it, the short one runs beside the other all its time (3 + 12 s; the pair theorem: no later start is better), or
    after it (10 + 9 s), or before it (1 + 13 s).
    """
    jobs = [Job("long", duration=10), Job("short", arrival=2, duration=1)]
    instance = Instance(jobs, "1x1", interference=Interference(3))
    found = sharing_optimum(instance)
    assert found.complete
    assert found.value - 2 == pytest.approx(14)
    assert simulate(instance, "srtf").value("total_flow_time") == 12
    assert simulate(instance, "tiresias:threshold=1").value("total_flow_time") == 12


# -- sorting and selecting in the compiled choice, on clusters of many nodes ----------------------------------------------


def with_room(nodes: int) -> tuple[State, RunContext, Neighbours]:
    """A cluster of nodes of eight GPUs before the only job starts."""
    instance = Instance([Job("a", gpus=5, duration=1)], f"{nodes}x8", interference=1.0)
    order, placement = Order(np.zeros(1)), PLACEMENTS.get("count")()
    state, site = new_state(instance, order, placement, Residents(sharing_rates(instance), (), listed=True))
    assert site.colocation is not None
    return state, site, site.colocation.neighbours


@pytest.mark.parametrize("nodes", [1, 2, 9, 60])
def test_gpus_are_taken_where_fewest_jobs_run(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    state, site, beside = with_room(nodes)
    for share in (0.05, 0.3, 0.9):
        idle = rng.random(8 * nodes) < share
        beside.gpus["jobs"] = np.where(idle, 0, 2)
        beside.nodes["jobs"] = rng.integers(0, 9, nodes)
        state.pools[FREE] = idle.reshape(nodes, 8).sum(axis=1)
        state.engine["free"] = idle.sum()
        every = sorted(np.flatnonzero(idle).tolist(), key=lambda g: (int(beside.nodes["jobs"][g // 8]), g))
        for only, chosen in ((WHOLE_CLUSTER, every), (nodes // 2, [g for g in every if g // 8 == nodes // 2])):
            found = take_idle(state, site, beside, 0, 0.0, only)
            assert state.out[NUMBER, :found].tolist() == chosen[:5]
            beside.gpus["jobs"] = np.where(idle, 1, 0)  # the same ones, now with one job
            beside.gpus["one"] = 0
            for begun in (0, 2):
                found = take_open(state, site, beside, 0, begun, 0.0, only)
                assert state.out[NUMBER, begun:found].tolist() == chosen[: 5 - begun]
            beside.gpus["jobs"] = np.where(idle, 0, 2)


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_the_n_smallest_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 50, 500):
        values = rng.random(size) if seed % 2 else rng.integers(0, 4, size).astype(float)  # many are equal
        for n in {1, (size + 1) // 2, size}:
            heap, count = np.zeros(n), 0
            for value in values.tolist():
                if count < n or value < heap[0]:
                    count = push_below(heap, n, count, value)
            assert sorted(heap.tolist()) == np.sort(values)[:n].tolist()
            assert heap[0] == heap.max()


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_candidates_leave_a_heap_in_order(seed: int) -> None:
    rng, base = np.random.default_rng(seed), 3
    for size in (1, 2, 7, 50):
        candidates = np.zeros(base + size, dtype=CANDIDATE)
        candidates["value"][base:] = rng.integers(0, 4, size) - 1.5
        candidates["job"] = rng.permutation(base + size)
        candidates["other"], candidates["open"] = candidates["job"] + 0.5, candidates["job"] + 1
        rows = sorted(candidates[base:].tolist(), key=lambda row: (row[1], row[0]))
        make_heap(candidates, base, size)
        left = []
        for count in range(size, 0, -1):
            left.append(candidates[base].item())
            assert drop_first(candidates, base, count) == count - 1
        assert left == rows
