"""Policies and placements from text."""

from __future__ import annotations

from typing import Any

import pytest

from optsched.errors import InputError
from optsched.policies.queue_orders import fifo, list_scheduling, srtf, tiresias, wspt
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.registry import parameters_of


@pytest.mark.parametrize(
    ("text", "policy", "placement"),
    [
        ("fifo", fifo(), "count"),
        ("fifo:skip=true+consolidated", fifo(skip=True), "consolidated"),
        ("fifo:skip=No", fifo(), "count"),
        (" fifo : skip = 1 + first-fit ", fifo(skip=True), "first-fit"),
        ("srtf:restart=30", srtf(restart=30.0), "count"),
        ("srtf:restart=1e3", srtf(restart=1000.0), "count"),
        ("tiresias:threshold=100,starvation=2,round=60,restart=5", tiresias(100.0, 2.0, 60.0, 5.0), "count"),
        ("list:by=widest+random:seed=7", list_scheduling(by="widest"), "random"),
        ("wspt:gpus=true", wspt(gpus=True), "count"),
    ],
)
def test_text_names_a_policy_its_parameters_and_a_placement(text: str, policy: Any, placement: str) -> None:
    made = specify(text)
    assert made.policy == policy
    assert made.placement.name == placement
    assert made.text == text.strip()


def test_parameters_of_a_placement_are_set_too() -> None:
    assert specify("fifo+random:seed=7").placement.seed == 7
    assert specify("fifo", "random:seed=8").placement.seed == 8


def test_a_policy_object_takes_a_placement_and_a_specification_stays_as_it_is() -> None:
    made = specify(fifo(skip=True), "consolidated")
    assert (made.text, made.policy, made.placement.name) == ("fifo+consolidated", fifo(skip=True), "consolidated")
    assert specify(fifo()).text == "fifo"
    assert specify(made) is made


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("fof", "there is no policy named 'fof'; did you mean fifo?"),
        ("", "there is no policy named ''"),
        ("+count", "there is no policy named ''"),
        ("fifo+", "there is no placement named ''"),
        ("fifo+consolidate", "there is no placement named 'consolidate'; did you mean consolidated or count?"),
        ("random", "there is no policy named 'random'"),
        ("fifo:skipp=true", "skipp: unknown parameter of the policy fifo; did you mean skip?"),
        ("sjf:skip=true", "skip: unknown parameter of the policy sjf (expected: no parameters)"),
        ("fifo+count:seed=1", "seed: unknown parameter of the placement count (expected: no parameters)"),
        ("fifo:skip", "skip: a parameter of fifo without a value (expected: skip=...)"),
        ("fifo:skip=maybe", "fifo: skip = 'maybe': invalid (expected: true or false)"),
        ("srtf:restart=soon", "srtf: restart = 'soon': invalid (expected: a number)"),
        ("srtf:restart=", "srtf: restart = '': invalid (expected: a number)"),
        ("fifo+random:seed=1.5", "random: seed = '1.5': invalid (expected: an integer)"),
        ("srtf:restart=1,restart=2", "restart = '2': a parameter of srtf is given twice (expected: each one once)"),
        ("list:by=size", "list: by = 'size': unknown order (expected: "),
        ("list:jobs=a", "jobs: unknown parameter of the policy list"),
        ("fifo:name=x", "name: unknown parameter of the policy fifo"),
    ],
)
def test_what_is_not_a_specification_is_one_line(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        specify(text)
    assert str(caught.value).startswith(what)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("thing", [None, 3, fifo, object()])
def test_what_is_not_a_policy_is_one_line(thing: Any) -> None:
    with pytest.raises(InputError, match="not a policy") as caught:
        simulate(Instance([], "1x1"), thing)
    assert "\n" not in str(caught.value)


def test_a_placement_is_named_once() -> None:
    with pytest.raises(InputError, match=r"policy = 'fifo\+count': a placement is given twice"):
        specify("fifo+count", "consolidated")


def test_parameters_of_lists_what_text_can_set() -> None:
    assert parameters_of(fifo) == {"skip": False}
    assert parameters_of(list_scheduling) == {"by": "given"}


def test_simulate_names_the_run_as_it_was_written() -> None:
    instance = Instance([Job("a", duration=1)], "1x1")
    assert simulate(instance, "fifo:skip=true+consolidated").policy == "fifo:skip=true+consolidated"
    assert simulate(instance, "fifo", "first-fit").policy == "fifo+first-fit"
    assert simulate(instance, "fifo", "count").policy == "fifo"
    assert simulate(instance, fifo(), "first-fit").policy == "fifo+first-fit"
