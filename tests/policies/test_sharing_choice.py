"""Sorting and selecting in the compiled choice of sharing rules, beside Python's own, on clusters of many nodes."""

from __future__ import annotations

import numpy as np
import pytest

from optsched import Instance, Job
from optsched.policies.placements import PLACEMENTS
from optsched.policies.sharing_choice import _order_nodes, _select
from optsched.simulation.policy import Order
from optsched.simulation.records import CANDIDATE
from optsched.simulation.state import FREE, Sharing, new_state
from optsched.speeds.gpu_sharing import sharing_rates


@pytest.mark.parametrize("nodes", [1, 2, 9, 60, 1500])
def test_nodes_are_in_order_whatever_the_order_was(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    instance = Instance([Job("a", duration=1)], f"{nodes}x8", interference=1.0)
    state, site = new_state(
        instance, Order(np.zeros(1)), PLACEMENTS.get("count")(), sharing=Sharing(sharing_rates(instance))
    )
    assert site.company is not None
    beside = site.company.neighbours
    beside.nodes["order"] = rng.permutation(nodes)
    for n, consolidated in ((1, False), (3, True), (9, True), (5, False), (1, True)):  # each starts from the last one
        idle, jobs = rng.integers(0, 9, nodes), rng.integers(0, 4, nodes)
        state.pools[FREE], beside.nodes["jobs"] = idle, jobs

        def key(node: int) -> tuple[int, ...]:
            over = int(idle[node]) - n  # noqa: B023 (used in this round of the loop only)
            fit = (over < 0, abs(over)) if consolidated else ()  # noqa: B023
            return (*fit, int(jobs[node]), node)  # noqa: B023

        _order_nodes(state, beside, n, consolidated)
        assert beside.nodes["order"].tolist() == sorted(range(nodes), key=key)


@pytest.mark.parametrize("seed", range(6))
def test_the_nth_smallest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 50, 500):
        values = rng.random(size + 5) if seed % 2 else rng.integers(0, 4, size + 5).astype(float)  # many are equal
        for n in {0, size // 2, size - 1}:
            scratch = np.zeros(values.size, dtype=CANDIDATE)
            scratch["value"] = values
            assert _select(scratch, 3, 3 + size - 1, 3 + n) == np.sort(values[3 : 3 + size])[n]
            beyond = [0, 1, 2, -2, -1]
            assert scratch["value"][beyond].tolist() == values[beyond].tolist()
