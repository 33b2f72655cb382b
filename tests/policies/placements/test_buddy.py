"""``buddy``: aligned blocks against a list of all of them, on whole and on shared GPUs; what it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import optsched as osd
from optsched.policies.placements.buddy import buddy
from policies.placements.states import Nodes, ask, nodes


def blocks(count: int) -> list[range]:
    """All blocks, the smallest first; the last one has them all."""
    found = []
    for size in (1 << k for k in range(count.bit_length() + 1)):
        found += [range(begin, min(begin + size, count)) for begin in range(0, count, size)]
    return found


def test_by_hand() -> None:
    where = Nodes((4,) * 5, (2, 3, 4, 1, 4), (True,) * 5)
    assert ask(buddy(), 1, where) == [(3, 1)]  # the tightest node
    assert ask(buddy(), 3, where) == [(1, 3)]
    assert ask(buddy(), 5, where) == [(0, 2), (1, 3)]  # 2 and 3 have as many: the first
    assert ask(buddy(), 8, where) == [(0, 2), (1, 3), (2, 3)]  # not 2 and 4: they are in no block of two or four
    assert ask(buddy(), 11, where) == [(0, 2), (1, 3), (2, 4), (3, 1), (4, 1)]
    assert ask(buddy(), 15, where) is None


@given(where=nodes(), gang=st.integers(1, 40))
def test_the_smallest_block_and_of_these_the_tightest(where: Nodes, gang: int) -> None:
    free = [count if ok else 0 for count, ok in zip(where.free, where.eligible, strict=True)]
    enough = [block for block in blocks(len(free)) if sum(free[m] for m in block) >= gang]
    if not enough:
        assert ask(buddy(), gang, where) is None
        return
    chosen = min(enough, key=lambda block: (enough_from(block, len(free)), sum(free[m] for m in block), block.start))
    given = [m for m in chosen for _ in range(free[m])][:gang]
    assert ask(buddy(), gang, where) == [(m, given.count(m)) for m in dict.fromkeys(given)]


def enough_from(block: range, count: int) -> int:
    """The size at which it is looked at first: a block at the end may be cut off."""
    return next(
        1 << k for k in range(10) if block.start % (1 << k) == 0 and min(block.start + (1 << k), count) == block.stop
    )


def place(gang: int, open: list[bool], load: list[float], size: list[int]) -> list[int]:
    """The GPUs that the rule for shared ones takes, in order."""
    shared = buddy().shared
    assert shared is not None
    rule: Callable[..., Any] = shared.place
    first = np.cumsum([0, *size])
    out, node = np.full(gang, -1), np.repeat(np.arange(len(size)), size)
    numbers, random = np.array(shared.numbers), np.zeros(1, dtype=np.uint64)
    assert rule(gang, np.array(open), np.array(load), node, first, random, numbers, out) in (0, gang)
    return [int(g) for g in out if g >= 0]


@given(data=st.data())
def test_on_shared_gpus_the_least_loaded_of_the_smallest_blocks(data: st.DataObject) -> None:
    size = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    open = data.draw(st.lists(st.booleans() | st.just(True), min_size=sum(size), max_size=sum(size)))
    load = data.draw(st.lists(st.integers(0, 4).map(float), min_size=sum(size), max_size=sum(size)))
    gang = data.draw(st.integers(1, sum(size)))
    node = np.repeat(np.arange(len(size)), size)

    def mean(some: list[int]) -> float:
        every = [load[g] for g in range(len(load)) if node[g] in some]
        return sum(every) / len(every)

    enough = [b for b in blocks(len(size)) if sum(open[g] for g in range(len(open)) if node[g] in b) >= gang]
    if not enough:
        assert place(gang, open, load, size) == []
        return
    chosen = min(enough, key=lambda block: (enough_from(block, len(size)), mean(list(block)), block.start))
    order = sorted(chosen, key=lambda m: (mean([m]), m))
    if gang == 1:
        chosen, order = range(len(size)), [0]
    there = [g for g in range(len(open)) if open[g] and node[g] in chosen]
    key: Callable[[int], Any] = (
        (lambda g: (load[g], g)) if gang == 1 else (lambda g: (order.index(node[g]), load[g], g))
    )
    assert place(gang, open, load, size) == sorted(there, key=key)[:gang]


@given(data=st.data())
def test_two_gangs_have_all_nodes_of_the_smaller_one_in_common_or_none(data: st.DataObject) -> None:
    load = data.draw(st.lists(st.integers(0, 9).map(float), min_size=32, max_size=32))
    some = []
    for gang in data.draw(st.lists(st.sampled_from([4, 8, 16, 32]), min_size=2, max_size=5)):
        taken = place(gang, [True] * 32, load, [4] * 8)
        some.append({g // 4 for g in taken})
        load = [x + 2 * (g in taken) for g, x in enumerate(load)]
    for one in some:
        assert all(one <= other or other <= one or not one & other for other in some)


@pytest.mark.release
@pytest.mark.parametrize("rule", ["ada-srsf", "srsf:k=2", "leader-first"])
def test_transfers_wait_less_than_under_least_workload_first(rule: str) -> None:
    drawn = [osd.generate("ada-srsf", seed) for seed in (1001, 1002, 1003)]
    ours, theirs = ([osd.simulate(each, f"{rule}+{place}").value() for each in drawn] for place in ("buddy", "lwf"))
    assert sum(np.log(ours) - np.log(theirs)) < -0.1 * len(drawn)
