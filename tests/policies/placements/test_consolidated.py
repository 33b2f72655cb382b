"""``consolidated`` against its description."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st
from simulation.reference import consolidated as described

from optsched.policies.placements.consolidated import consolidated
from policies.placements.states import Nodes, ask, nodes

ALL = (True,) * 4


@given(nodes(), st.integers(1, 40))
@example(Nodes((4, 8, 8), (4, 8, 8), (True,) * 3), 16)
def test_it_is_the_description(where: Nodes, gang: int) -> None:
    answer = ask(consolidated(), gang, where)
    expected = described(gang, list(where.free), list(where.size), list(where.eligible))
    assert (None if answer is None else dict(answer)) == expected


@pytest.mark.parametrize(
    ("gang", "free", "expected"),
    [
        (3, (2, 3, 4, 4), [(1, 3)]),  # one node, the first that holds it
        (4, (2, 3, 4, 4), [(2, 4)]),
        (4, (3, 3, 3, 3), None),  # never split, although 12 are free
        (8, (2, 4, 3, 4), [(1, 4), (3, 4)]),  # wider than a node: whole nodes
        (6, (2, 3, 4, 3), [(2, 4), (0, 2)]),  # the rest on the first node with room
        (7, (2, 2, 4, 2), None),  # the rest of 3 fits nowhere
        (6, (3, 3, 3, 3), None),  # no idle whole node
        (16, (4, 4, 4, 4), [(0, 4), (1, 4), (2, 4), (3, 4)]),
    ],
)
def test_by_hand(gang: int, free: tuple[int, ...], expected: list[tuple[int, int]] | None) -> None:
    assert ask(consolidated(), gang, Nodes((4, 4, 4, 4), free, ALL)) == expected
