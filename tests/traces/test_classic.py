"""Dialect classic: problem, machines and optimum of small instances."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import TraceRead

Reader = Callable[..., TraceRead]


def entry(**changes: Any) -> dict[str, Any]:
    base = {
        "id": "B-3-0",
        "problem": "1|r_j|sumwC",
        "machines": 1,
        "p": [3, 5, 7],
        "r": [0, 2, 36],
        "w": [7, 1, 10],
        "size": [1, 1, 1],
        "optimum": 500,
        "proved_by": ["one", "two"],
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def document(*entries: dict[str, Any]) -> str:
    return json.dumps(list(entries), indent=1)


def test_a_weighted_single_machine_instance_keeps_its_optimum(read: Reader) -> None:
    found = read("classic", document(entry(), entry(id="other")), cluster=None, fragment="B-3-0")
    instance = found.instance()
    assert instance.cluster.spec == "1x1"
    assert instance.duration.tolist() == [3.0, 5.0, 7.0]
    assert instance.arrival.tolist() == [0.0, 2.0, 36.0]
    assert instance.weight.tolist() == [7.0, 1.0, 10.0]
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
    assert instance.arrival.tolist() == [0.0, 0.0, 0.0]
    assert instance.weight.tolist() == [1.0, 1.0, 1.0]
    assert instance.due.tolist() == [-4.0, 9.0, 11.0]
    assert instance.objective == "total_weighted_tardiness"
    assert instance.optimum is None


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
