"""Which cells a grid has, and what is said of one that is wrong."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError
from optsched.sweeps import grid
from optsched.sweeps.grid import Cell, Grid

RIGID = {"recipe": "rigid", "jobs": 6}


def test_every_list_is_an_axis() -> None:
    grid = Grid.read(
        {
            "seeds": "3-5",
            "objectives": "makespan",
            "policies": "fifo",
            "policy": [
                {"name": ["srtf", "sjf"], "placement": ["count", "consolidated"]},
                {"name": "fifo", "skip": [True]},
            ],
            "instances": [{"recipe": "rigid", "jobs": [4, 6]}, {"source": ["rigid-06-1", "cluster-week"]}],
        }
    )
    policies = ["fifo", "srtf+count", "srtf+consolidated", "sjf+count", "sjf+consolidated", "fifo:skip=true"]
    assert [each.policy for each in grid.cells[:6]] == policies
    assert {each.seed for each in grid.cells} == {3, 4, 5, None}  # what is read has none
    assert len(grid.cells) == len(set(grid.cells)) == (2 * 3 + 2) * 6
    assert {each.objectives for each in grid.cells} == {("makespan",)}
    assert grid.cells[0].instance().n == 4
    assert grid.cells[-1].instance().name == "cluster-week"


def test_a_cell_that_is_named_twice_is_one() -> None:
    grid = Grid.read({"policies": ["fifo", "fifo"], "seeds": [1, 1], "instances": [RIGID, RIGID]})
    assert len(grid.cells) == 1
    assert Cell.of_key(grid.cells[0].key) == grid.cells[0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"policies": ["srtff"]}, "srtff"),
        ({"policies": []}, "policies"),
        ({"policy": [{"round": 3}]}, "policy"),
        ({"policy": [{"name": "hadar", "round": [-1]}]}, "round"),
        ({"objectives": ["makespann"]}, "makespann"),
        ({"seeds": "1-x"}, "seeds"),
        ({"seeds": [1.5]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"instances": []}, "instances"),
        ({"instances": [{"jobs": 3}]}, "instances, table 1"),
        ({"instances": [RIGID, {"recipe": "rigidd"}]}, "instances, table 2"),
        ({"instances": [{"recipe": "rigid", "jobbs": 3}]}, "jobbs"),
        ({"instances": [{"source": "rigid-06-1", "jobs": 3}]}, "jobs"),
        ({"instances": [{"source": "rigid-06-1", "cluster": {"nodes": 2}}]}, "cluster"),
        ({"instances": [{"recipe": "rigid", "jobs": datetime.date(2026, 1, 1)}]}, "jobs"),
        ({"instances": [3]}, "instances, table 1"),
        ({"policy": ["fifo"]}, "policy"),
        ({"objectives": [3]}, "3"),
        ({"seeds": "0-99999999999"}, "too many cells"),
        ({"polices": ["fifo"]}, "polices"),
    ],
)
def test_a_wrong_grid_is_one_line_before_anything_runs(
    changed: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MOST_CELLS", 100)  # quicker
    with pytest.raises(InputError, match=said) as caught:
        Grid.read({"policies": ["fifo"], "instances": [RIGID], **changed})
    assert "\n" not in str(caught.value)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    for text, said in (("policies = [", "not TOML"), ('policies = ["nobody"]', "nobody")):
        file.write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            Grid.read(file)
        assert str(file) in str(caught.value)
    with pytest.raises(InputError, match="none"):
        Grid.read(tmp_path / "none.toml")
