"""Dialect orlib-wt: three lines of numbers an instance, counted from 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces import TraceRead

Reader = Callable[..., TraceRead]
TEXT = " 26 24 79\n1 10 9\n158 162 17\n 5  6\n\n1 0\n-3 11\n"


def test_the_second_instance_with_its_optimum(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "wt_optima.txt").write_text("913\n1225.5\n")
    instance = read("orlib-wt", TEXT, cluster=None, name="wt.txt", fragment="2").instance()
    assert instance.ids == ("1", "2")
    assert instance.duration.tolist() == [5.0, 6.0]
    assert instance.weight.tolist() == [1.0, 0.0]
    assert instance.due.tolist() == [-3.0, 11.0]
    assert instance.arrival.tolist() == [0.0, 0.0]
    assert instance.cluster.spec == "1x1"
    assert instance.objective == "total_weighted_tardiness"
    assert instance.optimum is not None
    assert instance.optimum["value"] == 1225.5
    assert instance.optimum["class"] == "gang-nonpreemptive"
    assert instance.name == "wt#2"


def test_without_a_file_of_optima_there_is_none(read: Reader) -> None:
    first = read("orlib-wt", TEXT, cluster=None, fragment="1")
    assert first.optimum is None
    assert first.table["duration"].to_list() == [26.0, 24.0, 79.0]


@pytest.mark.parametrize("fragment", ["0", "3", "x", "-1", "1.0", "²", ""])
def test_numbers_of_instances_run_from_one(read: Reader, fragment: str) -> None:
    with pytest.raises(InputError, match=r"no such instance.*from 1 to 2"):
        read("orlib-wt", TEXT, cluster=None, fragment=fragment)


def test_files_that_are_not_three_lines_an_instance(read: Reader) -> None:
    with pytest.raises(InputError, match="which instance"):
        read("orlib-wt", TEXT, cluster=None)
    with pytest.raises(InputError, match="4: not three lines an instance"):
        read("orlib-wt", "1 2\n3 4\n5 6\n7 8\n", cluster=None, fragment="1")
    with pytest.raises(InputError, match=r"row 2, w = 1: wrong number of values.*2 numbers"):
        read("orlib-wt", "1 2\n3\n5 6\n", cluster=None, fragment="1")


def test_bad_numbers_are_reported_by_position(read: Reader) -> None:
    with pytest.raises(RowErrors) as caught:
        read("orlib-wt", "1 0 3\n1 1 -1\nx 2 3\n", cluster=None, fragment="1")
    assert [(p.row, p.field) for p in caught.value.problems] == [(1, "d"), (2, "p"), (3, "w")]


def test_a_file_of_optima_must_match(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "log_optima.txt").write_text("913\n")
    with pytest.raises(InputError, match=r"log_optima\.txt, 1: wrong number of optima.*2 numbers"):
        read("orlib-wt", TEXT, cluster=None, fragment="1")
    (tmp_path / "log_optima.txt").write_text("913 none\n")
    with pytest.raises(InputError, match=r"log_optima\.txt, row 2"):
        read("orlib-wt", TEXT, cluster=None, fragment="2")
