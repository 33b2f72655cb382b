"""Modes of placement against plain enumeration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.models.mapped_modes import Mode, consolidated, modes_of_classes, splits
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup

sizes_and_gang = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.integers(1, sum(sizes)))
)


def all_counts(sizes: list[int], gpus: int) -> list[tuple[int, ...]]:
    """Every vector of counts that sums up to the gang."""
    return [counts for counts in product(*(range(size + 1) for size in sizes)) if sum(counts) == gpus]


def as_mode(counts: tuple[int, ...]) -> Mode:
    """Nodes are named 10, 20, ..."""
    return tuple((10 * (v + 1), u) for v, u in enumerate(counts) if u)


@given(sizes_and_gang)
def test_splits(case: tuple[list[int], int]) -> None:
    sizes, gpus = case
    nodes = [10 * (v + 1) for v in range(len(sizes))]
    found = list(splits(gpus, nodes, sizes))
    assert sorted(found) == sorted(as_mode(counts) for counts in all_counts(sizes, gpus))


@given(sizes_and_gang)
def test_consolidated(case: tuple[list[int], int]) -> None:
    sizes, gpus = case
    nodes = [10 * (v + 1) for v in range(len(sizes))]

    def allowed(counts: tuple[int, ...]) -> bool:
        if gpus <= max(sizes):
            return sum(u > 0 for u in counts) == 1
        # at most one node is used in part
        return sum(0 < u < size for u, size in zip(counts, sizes, strict=True)) <= 1

    found = list(consolidated(gpus, nodes, sizes))
    assert sorted(found) == sorted(as_mode(counts) for counts in all_counts(sizes, gpus) if allowed(counts))
    assert len(set(found)) == len(found)


def test_only_nodes_that_suit_the_job() -> None:
    cluster = Cluster((NodeGroup(2, gpu="V100"), NodeGroup(2, gpu="P100"), NodeGroup(2, gpu="P100", gpu_memory=1.0)))
    jobs = [
        Job("a", gpus=2, duration=1, gpu_types=("p100",)),
        Job("b", gpus=2, duration=1, gpu_types=("P100",), gpu_memory=2.0),
    ]
    instance = Instance(jobs, cluster)
    modes = modes_of_classes(instance, "any")
    assert sorted(modes[instance.job_class[0]]) == [((1, 1), (2, 1)), ((1, 2),), ((2, 2),)]
    assert modes[instance.job_class[1]] == [((1, 2),)]


def test_refusals() -> None:
    wide = Instance([Job("a", gpus=8, duration=1)], "8x8")
    with pytest.raises(InputError, match="more than 500 any placements"):
        modes_of_classes(wide, "any")
    assert len(modes_of_classes(wide, "consolidated")[0]) == 8
    with pytest.raises(InputError, match="consolidated"):
        modes_of_classes(wide, "scattered")
    # 7 GPUs on nodes of 4, 2 and 2: whole nodes and a remainder on one, whichever that is
    odd = Instance([Job("a", gpus=7, duration=1)], "1x4+2x2")
    assert sorted(modes_of_classes(odd, "consolidated")[0]) == [
        ((0, 3), (1, 2), (2, 2)),
        ((0, 4), (1, 1), (2, 2)),
        ((0, 4), (1, 2), (2, 1)),
    ]
