"""Measured iteration times: rotations, lines, simplices, and the formula where nothing was measured."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from policies.pollux_steps import Steps

from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.scaling import iteration_seconds, measured_table, placement_id, seconds_on
from optsched.speeds.scaling_files import read_scalings


def test_a_placement_is_read_in_its_smallest_rotation() -> None:
    for counts in itertools.product((1, 2, 4), repeat=3):
        names = {placement_id(counts[k:] + counts[:k]) for k in range(3)}
        assert names == {min(int("".join(map(str, counts[k:] + counts[:k]))) for k in range(3))}
    assert placement_id([4, 2, 3]) == 234
    assert placement_id([4, 3, 2]) == 243  # another circle
    assert placement_id([10]) is None
    assert placement_id([1] * 18) == int("1" * 18)
    assert placement_id([1] * 19) is None


def plane(nodes: float, replicas: float, local: float) -> float:
    return 0.5 + 0.25 * nodes + 0.125 * replicas + 0.0625 * local


def test_between_measured_points_the_simplices_of_a_plane_give_the_plane() -> None:
    rows = tuple((n, r, float(m), plane(n, r, m), 0.25) for n in (1, 8, 16) for r in (n, 4 * n) for m in (4, 8, 32))
    scaling = Scaling(0.1, 0.01, across=7.0, measured=MeasuredSteps((), rows))
    for counts, local in (([4, 4, 4, 4, 4, 4], 9), ([1] * 16, 32), ([2] * 8, 4)):
        expected = plane(len(counts), sum(counts), local)
        assert seconds_on(scaling, local, 1, counts) == pytest.approx(expected, rel=1e-12)
        assert seconds_on(scaling, local, 3, counts) == pytest.approx(3 * expected - 2 * 0.25, rel=1e-12)
    # 20 nodes count as 16
    assert seconds_on(scaling, 8, 1, [2] * 20) == pytest.approx(plane(16, 40, 8), rel=1e-12)
    # a local batch, or a gang, that nothing surrounds
    for counts, local in (([4, 4], 33), ([4] * 20, 8), ([8, 8], 8)):
        gang = sum(counts)
        assert seconds_on(scaling, local, 2, counts) == iteration_seconds(scaling, local, 2, gang, True)


def test_means_of_placements_stand_for_those_that_were_not_measured() -> None:
    # 114 and 123 at the same (3 nodes, 6 replicas): their mean is what 222 gets
    rows = [
        (name, m, 1.0 + extra, 0.0) for name, extra in ((114, 0.0), (123, 1.0), (11, 0.5), (1, 0.0)) for m in (4, 8)
    ]
    table = measured_table(MeasuredSteps(tuple(rows), ((4, 16, 6.0, 9.0, 1.0),)))
    assert table.of_placement(placement_id([2, 2, 2]), 4) is None
    assert table.between(3, 6, 4) == pytest.approx((1.5, 0.0))
    assert table.of_placement(placement_id([2, 3, 1]), 8) == (2.0, 0.0)
    assert table.of_placement(placement_id([3, 2, 1]), 8) is None


def test_too_few_points_or_points_in_a_plane_are_no_simplices() -> None:
    for rows in (((1, 1, 4.0, 1.0, 0.0),) * 2, tuple((1, r, m, 1.0, 0.0) for r in (1, 2, 3) for m in (4.0, 8.0))):
        assert measured_table(MeasuredSteps((), rows)).between(1, 2, 5) is None


def test_a_communication_longer_than_its_step_does_not_gain_time() -> None:
    table = Scaling(1, 0, measured=MeasuredSteps(((1, 1, 1.0, 1.5),)))
    assert seconds_on(table, 1, 4, [1]) == 1.0


def _read_twice(folder: Path, names: list[str]) -> tuple[int, int]:
    # (compared, not equal): where simplices overlap scipy may take another one
    scalings = read_scalings(folder)
    rng = np.random.default_rng(0)
    compared = others = 0
    for name in names:
        scaling, other = scalings[name], Steps(folder, name)
        assert scaling.measured is not None
        assert scaling.most_local is not None
        least = int(min(row[1] for row in scaling.measured.placements))
        for _ in range(60):
            counts = rng.integers(1, 5, rng.integers(1, 17)).tolist()
            local, steps = int(rng.integers(least, scaling.most_local + 1)), int(rng.integers(1, 4))
            step, sync = other.of(tuple(counts), local)
            if np.isfinite(step):
                expected = step + (steps - 1) * (step - sync)
                found = seconds_on(scaling, local, steps, counts)
                assert found == pytest.approx(expected, rel=0.15)
                compared += 1
                others += found != pytest.approx(expected, rel=1e-9)
    return compared, others


def test_the_artifacts_measurements_read_twice(data_dir: Path) -> None:
    compared, others = _read_twice(data_dir / "pollux", ["yolov3"])
    assert compared > 40
    assert others <= 3
    scalings = read_scalings(data_dir / "pollux")
    assert sorted(scalings) == ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]
    assert scalings["yolov3"].most_local == 8
    assert dict(scalings["cifar10"].iterations)[2048] == 3178
    measured = scalings["ncf"].measured
    assert measured is not None
    assert (len(measured.placements), len(measured.scalability)) == (1661, 458)


@pytest.mark.study
def test_all_of_them(data_dir: Path) -> None:
    compared, others = _read_twice(data_dir / "pollux", ["bert", "cifar10", "deepspeech2", "imagenet", "ncf"])
    assert compared > 220
    assert others <= 0.05 * compared
