"""Sorting and selecting in the compiled choice of sharing rules, beside Python's own, on clusters of many nodes."""

from __future__ import annotations

import numpy as np
import pytest
from examples import few

from optsched import Instance, Job
from optsched.policies.placements import PLACEMENTS
from optsched.policies.sharing_choice import select
from optsched.policies.sharing_gpus import WHOLE_CLUSTER, order_nodes, take_idle, take_open
from optsched.simulation.policy import Order
from optsched.simulation.records import CANDIDATE
from optsched.simulation.state import FREE, NUMBER, Neighbours, RunContext, Sharing, State, new_state
from optsched.speeds.gpu_sharing import sharing_rates


def with_room(nodes: int) -> tuple[State, RunContext, Neighbours]:
    """A cluster of nodes of eight GPUs before the only job starts."""
    instance = Instance([Job("a", gpus=5, duration=1)], f"{nodes}x8", interference=1.0)
    order, placement = Order(np.zeros(1)), PLACEMENTS.get("count")()
    state, site = new_state(instance, order, placement, sharing=Sharing(sharing_rates(instance)))
    assert site.colocation is not None
    return state, site, site.colocation.neighbours


@pytest.mark.parametrize("nodes", [1, 2, 9, 60, 1500])
def test_the_tightest_fit_comes_first_whatever_the_order_was(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    state, _, beside = with_room(nodes)
    beside.nodes["order"] = rng.permutation(nodes)
    for n in (1, 3, 9, 5, 1):  # each starts from the last one
        idle, jobs = rng.integers(0, 9, nodes), rng.integers(0, 4, nodes)
        state.pools[FREE], beside.nodes["jobs"] = idle, jobs

        def key(node: int) -> tuple[int, ...]:
            over = int(idle[node]) - n  # noqa: B023 (used in this round of the loop only)
            return int(over < 0), abs(over), int(jobs[node]), node  # noqa: B023

        order_nodes(state, beside, n)
        assert beside.nodes["order"].tolist() == sorted(range(nodes), key=key)


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
def test_the_nth_smallest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 50, 500):
        values = rng.random(size + 5) if seed % 2 else rng.integers(0, 4, size + 5).astype(float)  # many are equal
        for n in {0, size // 2, size - 1}:
            scratch = np.zeros(values.size, dtype=CANDIDATE)
            scratch["value"] = values
            assert select(scratch, 3, 3 + size - 1, 3 + n) == np.sort(values[3 : 3 + size])[n]
            beyond = [0, 1, 2, -2, -1]
            assert scratch["value"][beyond].tolist() == values[beyond].tolist()
