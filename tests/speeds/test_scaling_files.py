"""Folders of measurements: what is read, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError, RowErrors
from optsched.speeds.scaling_files import read_scalings

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
