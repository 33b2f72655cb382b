"""What every registered placement keeps; a new one is picked up by itself."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given, strategies as st

from optsched.policies.placements import PLACEMENTS
from optsched.registry import parameters_of
from policies.placements.states import Nodes, ask, nodes

pytestmark = pytest.mark.parametrize("name", PLACEMENTS.names())


@given(where=nodes(), gang=st.integers(1, 40))
def test_an_answer_is_a_whole_gang_on_free_eligible_gpus_and_nothing_else_is_touched(
    name: str, where: Nodes, gang: int
) -> None:
    answer = ask(PLACEMENTS.get(name)(), gang, where)
    if gang > where.offered:
        assert answer is None
    if answer is not None:
        assert len({node for node, _ in answer}) == len(answer)
        assert sum(gpus for _, gpus in answer) == gang
        assert all(where.eligible[node] and 1 <= gpus <= where.free[node] for node, gpus in answer)


@given(where=nodes(), gang=st.integers(1, 40), more=st.lists(st.integers(0, 8), min_size=7, max_size=7))
def test_what_fits_fits_when_more_gpus_are_free(name: str, where: Nodes, gang: int, more: list[int]) -> None:
    placement = PLACEMENTS.get(name)()
    if ask(placement, gang, where) is not None:
        freer = tuple(min(free + extra, size) for free, extra, size in zip(where.free, more, where.size, strict=False))
        assert ask(placement, gang, Nodes(where.size, freer, where.eligible)) is not None


@given(where=nodes(), gang=st.integers(1, 40))
def test_any_gang_that_the_cluster_offers_fits_when_it_is_idle(name: str, where: Nodes, gang: int) -> None:
    # So no job of a legal instance can be left over by a queue order that skips.
    idle = Nodes(where.size, where.size, where.eligible)
    assert (ask(PLACEMENTS.get(name)(), gang, idle) is not None) == (gang <= idle.offered)


@given(where=nodes(), gang=st.integers(1, 40))
def test_the_same_question_has_the_same_answer(name: str, where: Nodes, gang: int) -> None:
    assert ask(PLACEMENTS.get(name)(), gang, where) == ask(PLACEMENTS.get(name)(), gang, where)


def test_it_is_made_without_arguments_and_says_what_it_does(name: str) -> None:
    maker = PLACEMENTS.get(name)
    placement = maker()
    assert placement.name == name
    assert "Complexity" in (inspect.getdoc(maker) or "")
    assert f"``{name}``" in (inspect.getmodule(maker).__doc__ or "")  # type: ignore[union-attr]
    assert set(parameters_of(maker)) == set(inspect.signature(maker).parameters)
