"""Dialect orlib-wt: numbers of p, w and d, lines without a meaning, instances counted from 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import TraceRead
from traces.orlib_excerpt import WT40

Reader = Callable[..., TraceRead]
TEXT = " 26 24\n1 10 158 162\n 5  6\n\n1 0\n-3 11\n"  # two instances of two jobs


def test_the_second_instance_with_its_optimum(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "wt2_optima.txt").write_text("913\n1225.5\n")
    instance = read("orlib-wt", TEXT, cluster=None, name="wt2.txt", fragment="2").instance()
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
    assert instance.name == "wt2#2"


def test_without_a_file_of_optima_there_is_none(read: Reader) -> None:
    first = read("orlib-wt", TEXT, cluster=None, fragment="1,n=2")
    assert first.optimum is None
    assert first.table["duration"].to_list() == [26.0, 24.0]


@pytest.mark.parametrize(("name", "fragment"), [("wt40.txt", "1"), ("log.txt", "1,n=40"), ("wt5.txt", "1,n=40")])
def test_the_published_file_of_which_every_row_goes_over_two_lines(read: Reader, name: str, fragment: str) -> None:
    """Read by lines, this was an instance of 20 jobs with weights up to 95."""
    first = read("orlib-wt", WT40, cluster=None, name=name, fragment=fragment).instance()
    assert first.n == 40
    assert first.duration.tolist()[18:22] == [90.0, 55.0, 35.0, 52.0]
    assert first.weight.max() == 10.0
    assert first.due.tolist()[-1] == 1814.0


@pytest.mark.parametrize("fragment", ["1", "1,n=", "1,n=x", "1,n=0", "1,m=4"])
def test_how_many_jobs_is_never_guessed(read: Reader, fragment: str) -> None:
    with pytest.raises(InputError, match=r"jobs an instance unknown.*#k,n=40"):
        read("orlib-wt", WT40, cluster=None, fragment=fragment)


@pytest.mark.parametrize("fragment", ["0", "3", "x", "-1", "1.0", "²", ""])
def test_numbers_of_instances_run_from_one(read: Reader, fragment: str) -> None:
    with pytest.raises(InputError, match=r"no such instance.*from 1 to 2"):
        read("orlib-wt", TEXT, cluster=None, fragment=f"{fragment},n=2")


def test_files_that_are_not_three_lines_an_instance(read: Reader) -> None:
    with pytest.raises(InputError, match="which instance"):
        read("orlib-wt", TEXT, cluster=None)
    for text in ("1 2\n3 4\n5 6\n7 8\n", "1 2\n3\n5 6\n"):
        with pytest.raises(InputError, match=r"wrong number of values.*3 n = 6"):
            read("orlib-wt", text, cluster=None, fragment="1,n=2")


def test_bad_numbers_are_reported_by_position(read: Reader) -> None:
    with pytest.raises(RowErrors) as caught:
        read("orlib-wt", "1 0 3\n1 1 -1\nx 2 3\n", cluster=None, fragment="1,n=3")
    assert [(p.row, p.field) for p in caught.value.problems] == [(1, "d"), (2, "p"), (3, "w")]


def test_a_file_of_optima_must_match(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "log_optima.txt").write_text("913\n")
    with pytest.raises(InputError, match=r"log_optima\.txt, 1: wrong number of optima.*2 numbers"):
        read("orlib-wt", TEXT, cluster=None, fragment="1,n=2")
    (tmp_path / "log_optima.txt").write_text("913 none\n")
    with pytest.raises(InputError, match=r"log_optima\.txt, row 2"):
        read("orlib-wt", TEXT, cluster=None, fragment="2,n=2")
