"""``most-free``: the node with most free GPUs first."""

from __future__ import annotations

from hypothesis import given, strategies as st

from optsched.policies.placements.most_free import most_free
from policies.placements.states import Nodes, ask, nodes


def test_by_hand() -> None:
    where = Nodes((4, 4, 4, 8), (2, 4, 4, 3), (True,) * 4)
    assert ask(most_free(), 3, where) == [(1, 3)]  # ties: the first
    assert ask(most_free(), 9, where) == [(1, 4), (2, 4), (3, 1)]
    assert ask(most_free(), 13, where) == [(1, 4), (2, 4), (3, 3), (0, 2)]
    assert ask(most_free(), 14, where) is None
    assert ask(most_free(), 5, Nodes((4, 4, 4), (4, 4, 4), (True, False, True))) == [(0, 4), (2, 1)]


@given(where=nodes(), gang=st.integers(1, 40))
def test_gpu_by_gpu_it_is_the_largest_rest_that_was_not_begun_or_the_one_begun(where: Nodes, gang: int) -> None:
    free = [count if ok else 0 for count, ok in zip(where.free, where.eligible, strict=True)]
    if sum(free) < gang:
        assert ask(most_free(), gang, where) is None
        return
    order = sorted(range(len(free)), key=lambda v: (-free[v], v))
    given = [v for v in order for _ in range(free[v])][:gang]
    expected = [(v, given.count(v)) for v in dict.fromkeys(given)]
    assert ask(most_free(), gang, where) == expected
