"""Dialects classic and orlib-wt: instances with optima."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import TraceRead
from optsched.problem.instance import Job
from traces.orlib_excerpt import WT40

# -- Dialect classic: problem, machines and optimum of small instances ----------------------------------------------------


Reader = Callable[..., TraceRead]


def entry(**changes: Any) -> dict[str, Any]:
    base = {"id": "B-3-0", "problem": "1|r_j|sumwC", "machines": 1, "optimum": 500, "proved_by": ["one", "two"]}
    jobs = {"p": [3, 5, 7], "r": [0, 2, 36], "w": [7, 1, 10], "size": [1, 1, 1]}
    return {key: value for key, value in {**base, **jobs, **changes}.items() if value is not None}


def document(*entries: dict[str, Any]) -> str:
    return json.dumps(list(entries), indent=1)


def test_a_weighted_single_machine_instance_keeps_its_optimum(read: Reader) -> None:
    found = read("classic", document(entry(), entry(id="other")), cluster=None, fragment="B-3-0")
    instance = found.instance()
    assert instance.cluster.spec == "1x1"
    assert instance.jobs == [Job("1", 0, 1, 3, weight=7), Job("2", 2, 1, 5, weight=1), Job("3", 36, 1, 7, weight=10)]
    assert instance.integral
    assert instance.objective == "total_weighted_completion_time"
    assert instance.optimum == {
        "objective": "total_weighted_completion_time",
        "class": "gang-nonpreemptive",
        "value": 500,
        "proved_by": ["one", "two"],
    }
    assert instance.name == "log#B-3-0"


def test_sizes_mean_one_node_and_no_sizes_mean_machines(read: Reader) -> None:
    gangs = entry(id="C", problem="P|r_j,size_j|sumC", machines=8, size=[1, 8, 4])
    machines = entry(id="D", problem="P|r_j|sumwC", machines=3)
    found = read("classic", document(gangs, machines), cluster=None, fragment="C")
    assert (found.instance().cluster.spec, found.objective) == ("1x8", "total_completion_time")
    assert found.instance().gpus.tolist() == [1, 8, 4]
    found = read("classic", document(gangs, machines), cluster=None, fragment="D")
    assert found.instance().cluster.spec == "3x1"


def test_absent_fields_take_their_defaults_and_due_dates_are_read(read: Reader) -> None:
    bare = entry(problem="1||sumwT", r=None, size=None, w=None, optimum=None, d=[-4, 9, 11])
    found = read("classic", document(bare), cluster=None, fragment="B-3-0")
    instance = found.instance()
    assert instance.jobs == [Job("1", duration=3, due=-4), Job("2", duration=5, due=9), Job("3", duration=7, due=11)]
    assert (instance.objective, instance.optimum) == ("total_weighted_tardiness", None)


def test_an_optimum_holds_only_for_the_jobs_and_the_machines_it_was_proved_on(read: Reader) -> None:
    text = document(entry())
    assert read("classic", text, cluster="1x1", fragment="B-3-0").optimum is not None
    assert read("classic", text, cluster="2x1", fragment="B-3-0").optimum is None
    assert read("classic", text, cluster=None, fragment="B-3-0", limit=2).optimum is None
    assert read("classic", text, cluster=None, fragment="B-3-0", limit=3).optimum is not None
    short = document(entry(p=[3, 0, 7]))
    skipped = read("classic", short, cluster=None, fragment="B-3-0", skip_bad=True)
    assert (skipped.optimum, skipped.skipped_rows) == (None, 1)


def test_bad_numbers_are_reported_by_position(read: Reader) -> None:
    text = document(entry(p=[0, 5, 7], r=[0, -2, 3], size=[1, 1, 2]))
    with pytest.raises(RowErrors) as caught:
        read("classic", text, cluster=None, fragment="B-3-0")
    assert [(p.row, p.field, p.value) for p in caught.value.problems] == [
        (1, "p", "0"),
        (2, "r", "-2"),
        (3, "size", "2"),
    ]
    assert "#B-3-0" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": "1|r_j|sumU"}, "unknown problem.*sumC, sumwC"),
        ({"problem": "sumC"}, "unknown problem"),
        ({"machines": 0}, "machines = 0: invalid"),
        ({"machines": True}, "machines = True: invalid"),
        ({"p": []}, "no jobs"),
        ({"r": [1]}, "r: wrong number of values.*a list of 3 numbers"),
        ({"optimum": "12"}, "optimum = '12'"),
    ],
)
def test_entries_that_are_no_instances(read: Reader, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read("classic", document(entry(**changes)), cluster=None, fragment="B-3-0")


def test_which_instance(read: Reader) -> None:
    text = document(entry(), entry(id="B-4-0"))
    with pytest.raises(InputError, match=r"which instance.*B-3-0, B-4-0"):
        read("classic", text, cluster=None)
    with pytest.raises(InputError, match=r"'B-3-1': no such instance.*did you mean"):
        read("classic", text, cluster=None, fragment="B-3-1")
    with pytest.raises(InputError, match=r"row 1: not JSON"):
        read("classic", "{oops", cluster=None, fragment="x")
    with pytest.raises(InputError, match="row 1, id: not an instance"):
        read("classic", "[3]", cluster=None, fragment="x")


# -- Dialect orlib-wt: numbers of p, w and d, lines without a meaning, instances counted from 1 ---------------------------


TEXT = " 26 24\n1 10 158 162\n 5  6\n\n1 0\n-3 11\n"  # two instances of two jobs


def test_the_second_instance_with_its_optimum(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "wt2_optima.txt").write_text("913\n1225.5\n")
    instance = read("orlib-wt", TEXT, cluster=None, name="wt2.txt", fragment="2").instance()
    assert instance.jobs == [Job("1", duration=5, due=-3), Job("2", duration=6, weight=0, due=11)]
    assert (instance.name, instance.cluster.spec) == ("wt2#2", "1x1")
    assert instance.objective == "total_weighted_tardiness"
    assert (instance.optimum["value"], instance.optimum["class"]) == (1225.5, "gang-nonpreemptive")


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


def test_bad_numbers_are_reported_by_position_orlib_wt(read: Reader) -> None:
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
