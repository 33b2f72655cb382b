"""Moves keep candidates legal, and random numbers are those of the seed."""

from __future__ import annotations

import random

import pytest

from optsched.adversary.methods.search import MOVES, coarsen, crossed, moved
from optsched.adversary.space import SPACES, Candidate, SearchSpace
from optsched.adversary.spaces.whole_jobs import WholeJobs

KINDS = SPACES.names()


@pytest.fixture(params=KINDS)
def space(request: pytest.FixtureRequest) -> SearchSpace:
    return SPACES.get(request.param)()


def test_neighbours_and_children_are_legal(space: SearchSpace) -> None:
    rng = random.Random(1)
    here = space.drawn(rng)
    for _ in range(300):
        before = here
        here = moved(before, space, rng)
        assert here != before
        assert space.legal(here)
        assert space.legal(crossed(before, here, space, rng))


def test_every_move_leaves_as_many_columns(space: SearchSpace) -> None:
    rng = random.Random(2)
    for move in MOVES:
        for _ in range(20):
            there = move(space.drawn(rng), space, rng)
            assert {len(row) for row in there.jobs} == {len(space.quantities)}
            assert len(there.shared) == len(space.shared)


def test_the_same_seed_walks_the_same_way(space: SearchSpace) -> None:
    def walk() -> list[object]:
        rng = random.Random(3)
        here = space.drawn(rng)
        return [here := moved(here, space, rng) for _ in range(50)]

    assert walk() == walk()


def test_every_candidate_makes_an_instance(space: SearchSpace) -> None:
    rng = random.Random(4)
    for _ in range(10):
        candidate = space.drawn(rng)
        assert space.instance(candidate).n == len(candidate.jobs)


def test_coarsening_makes_what_is_nearly_regular_regular() -> None:
    """Numbers near multiples of 4.4: the family on which LPT is worst on three machines."""
    near = Candidate(tuple((length, 1, 0, 1) for length in (13, 13, 21, 13, 22, 17, 18)))
    rng = random.Random(1)
    found = [coarsen(near, WholeJobs(gpus=3), rng) for _ in range(40)]
    assert [3, 3, 5, 3, 5, 4, 4] in [[job[0] for job in each.jobs] for each in found]
