"""``consolidated`` against its description."""

from __future__ import annotations

from examples import examples
from hypothesis import example, given, settings, strategies as st
from simulation.reference import consolidated as described

from optsched.policies.placements.consolidated import consolidated
from policies.placements.states import Nodes, ask, nodes


@settings(max_examples=examples(200))
@given(nodes(), st.integers(1, 40))
@example(Nodes((4, 8, 8), (4, 8, 8), (True,) * 3), 16)
def test_it_is_the_description(where: Nodes, gang: int) -> None:
    answer = ask(consolidated(), gang, where)
    expected = described(gang, list(where.free), list(where.size), list(where.eligible))
    assert (None if answer is None else dict(answer)) == expected
