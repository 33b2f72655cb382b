"""Iteration times of scaling profiles: the formula by hand, measurements, and folders of them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from policies.tiresias_ticks import Steps

from optsched.errors import InputError, RowErrors
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.iteration_times import iteration_seconds, measured_table, placement_id, seconds_on
from optsched.speeds.scaling_files import APPLICATIONS, built_in_scalings, read_scalings

PARTS = Scaling(0.5, 0.25, 1.0, 0.125, 2.0, 0.5)


def network_seconds(gang: int, spans: bool) -> float:
    """N of `PARTS`: without overlap what an iteration takes beyond the computing of 2 samples."""
    return iteration_seconds(PARTS, 2, 1, gang, spans) - 1.0


def test_growth_counts_replicas_beyond_two() -> None:
    assert [network_seconds(r, False) for r in (1, 2, 3, 4)] == [0.0, 1.0, 1.125, 1.25]
    assert [network_seconds(r, True) for r in (1, 2, 3, 4)] == [0.0, 2.0, 2.5, 3.0]


def test_gamma_1_is_the_sum_and_gamma_10_nearly_the_larger() -> None:
    for size, spans in ((1, False), (4, True), (16, True)):
        computing, network = 0.5 + 0.25 * size, network_seconds(4, spans)
        assert iteration_seconds(PARTS, size, 1, 4, spans) == pytest.approx(computing + network)
        assert iteration_seconds(PARTS, size, 3, 4, spans) == pytest.approx(3 * computing + network)
        ten = iteration_seconds(dataclasses.replace(PARTS, overlap=10.0), size, 1, 4, spans)
        assert max(computing, network) <= ten <= max(computing, network) * 2**0.1


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_for_whole_gammas_it_is_the_root_of_an_exact_sum(
    m: int, steps: int, gang: int, spans: bool, gamma: int
) -> None:
    computing = Fraction(1, 2) + Fraction(m, 4)
    network = Fraction(network_seconds(gang, spans))
    last = iteration_seconds(dataclasses.replace(PARTS, overlap=float(gamma)), m, steps, gang, spans) - (
        steps - 1
    ) * float(computing)
    assert last**gamma == pytest.approx(float(computing**gamma + network**gamma), rel=1e-9)


def test_without_a_constant_and_a_network_sub_steps_cost_nothing() -> None:
    free = Scaling(0.0, 0.25)
    whole = free.sub_batches(48, 2)
    assert [each.size for each in whole] == [24, 12, 6, 3, 1]
    assert {iteration_seconds(free, each.size, each.steps, 2, True) for each in whole} == {6.0}
    dear = [iteration_seconds(PARTS, each.size, each.steps, 2, True) for each in whole]
    assert dear == sorted(dear)


def test_what_comes_with_the_package() -> None:
    scalings = built_in_scalings()
    assert sorted(scalings) == sorted(APPLICATIONS) == ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]
    assert [batch for batch, _ in scalings["imagenet"].iterations] == [200 * 2**k for k in range(7)]
    for name, each in APPLICATIONS.items():
        rows = dict(scalings[name].iterations)
        assert list(rows) == [each.initial * 2**k for k in range(len(rows))]
        assert list(rows)[-1] == each.largest
        samples = {batch * count for batch, count in rows.items()}
        assert samples == {each.epochs * each.iterations * each.initial}
    # BERT on one T4: 0.1719 + 0.05861 x 12, and over two nodes of four with 1.386 + 6 x 0.00943
    assert iteration_seconds(scalings["bert"], 12, 1, 1, False) == pytest.approx(0.87522)
    both = (0.87522**1.9 + 1.44258**1.9) ** (1 / 1.9)
    assert iteration_seconds(scalings["bert"], 12, 1, 8, True) == pytest.approx(both, rel=1e-9)


# -- measured: rotations, lines, simplices --------------------------------------------------------------------------------


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


# -- files ----------------------------------------------------------------------------------------------------------------


PLACED = (
    "placement,local_bsz,step_time,sync_time\n1,4,0.5,0.01\n1,8,0.9,0.01\n2,4,0.6,0.1\n11,4,0.9,0.4\n11,8,1.3,0.4\n"
)
SCALED = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,8,4,1.1,0.5\n4,8,8,1.5,0.5\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def files(placed: str = PLACED, scaled: str | None = SCALED, iterations: str | None = None) -> Path:
        (tmp_path / "traces__net__placements.csv").write_text(placed)
        if scaled is not None:
            (tmp_path / "traces__net__scalability.csv").write_text(scaled)
        if iterations is not None:
            (tmp_path / "iterations.csv").write_text(iterations)
        return tmp_path

    return files


def test_what_is_read(write: Callable[..., Path]) -> None:
    folder = write(iterations="application,batch_size,iterations\nnet,16,50\nnet,8,90\nother,1,1\n")
    scalings = read_scalings(folder)
    assert list(scalings) == ["net"]
    net = scalings["net"]
    assert net.iterations == ((8, 90.0), (16, 50.0))
    assert net.most_local == 8
    assert net.measured is not None
    assert net.measured.placements[3] == (11, 4.0, 0.9, 0.4)
    assert net.measured.scalability == ((4, 8, 4.0, 1.1, 0.5), (4, 8, 8.0, 1.5, 0.5))
    assert net.compute + 8 * net.per_sample == pytest.approx(0.89, rel=0.05)  # the formula beside them is a fit


def test_bad_rows_are_reported_together(write: Callable[..., Path]) -> None:
    bad = PLACED + "x,4,1,0\n12,0,1,0\n12,4,-1,0\n12,4,nan,0\n12,4,0.5,0.5\n11,8,2,0\n1.5,4,1,0\n12,4,1\n"
    with pytest.raises(RowErrors, match="8 of 13 rows invalid") as caught:
        read_scalings(write(bad))
    assert [(p.row, p.field) for p in caught.value.problems] == [
        (7, "placement"),
        (8, "local_bsz"),
        (9, "step_time"),
        (10, "step_time"),
        (11, "sync_time"),
        (12, "placement"),
        (13, "placement"),
        (14, "sync_time"),
    ]
    assert caught.value.problems[5].legal == "one row each, see row 6"
    with pytest.raises(RowErrors, match="iterations"):
        read_scalings(write(iterations="application,batch_size,iterations\nnet,16,0\n"))


def test_what_is_missing_is_named(write: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no measurements in it"):
        read_scalings(tmp_path)
    with pytest.raises(InputError, match=r"nowhere.*no such folder"):
        read_scalings(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"scalability\.csv.*cannot be read"):
        read_scalings(write(scaled=None))
    with pytest.raises(InputError, match=r"placements\.csv.*missing columns .expected: placement, local_bsz"):
        read_scalings(write("placement,local\n1,2\n"))
    with pytest.raises(InputError, match=r"placements\.csv.*no rows"):
        read_scalings(write(""))
