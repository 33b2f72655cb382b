"""``first-fit`` against its description."""

from __future__ import annotations

from hypothesis import given, strategies as st

from optsched.policies.placements.first_fit import first_fit
from policies.placements.states import Nodes, ask, nodes


@given(nodes(), st.integers(1, 40))
def test_it_takes_the_first_free_gpus_in_order_of_node(where: Nodes, gang: int) -> None:
    gpus = [node for node, free in enumerate(where.free) if where.eligible[node] for _ in range(free)][:gang]
    expected = [(node, gpus.count(node)) for node in sorted(set(gpus))] if len(gpus) == gang else None
    assert ask(first_fit(), gang, where) == expected


def test_nodes_are_decided_at_the_start() -> None:
    assert not first_fit().pooled
