"""Policies and placements from text; ``MODULE:CLASS`` stands wherever the name of a policy may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from optsched.classes.task_sharing.policies.task_orders import ada_srsf
from optsched.errors import InputError
from optsched.policies.queue_orders import fifo, list_scheduling, srtf, tiresias, wspt
from optsched.policies.simulate import names_a_class, simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.registry import parameters_of
from optsched.simulation.adopted import plain


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
        ("ada-srsf", ada_srsf(), "lwf"),
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
    assert specify("srsf:k=2+lwf:kappa=4").placement.shared.numbers == (4.0,)


def test_a_policy_object_takes_a_placement_and_a_specification_stays_as_it_is() -> None:
    made = specify(fifo(skip=True), "consolidated")
    assert (made.text, made.policy, made.placement.name) == ("fifo+consolidated", fifo(skip=True), "consolidated")
    assert specify(fifo()).text == "fifo"
    assert specify(made) is made


@pytest.mark.usefixtures("own_modules")
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
        ("srtf:restart=soon", "srtf: restart = 'soon': not a time (expected: a number of seconds, or a time"),
        ("srtf:restart=", "srtf: restart = '': not a time (expected: a number of seconds, or a time"),
        ("fifo+random:seed=1.5", "random: seed = '1.5': invalid (expected: an integer)"),
        ("srtf:restart=1,restart=2", "restart = '2': a parameter of srtf is given twice (expected: each one once)"),
        ("list:by=size", "list: by = 'size': unknown order (expected: "),
        ("list:jobs=a", "jobs: unknown parameter of the policy list"),
        ("fifo:name=x", "name: unknown parameter of the policy fifo"),
        ("nowhere:Policy", "module = 'nowhere': there is no such module (expected: a module of the current folder"),
        ("broken_policies:Policy", "module = 'broken_policies': cannot import it: ValueError: no luck"),
        ("narrow_policies:Narow", "policy = 'Narow': there is no 'Narow' in narrow_policies; did you mean Narrow?"),
        ("narrow_policies:Narrow:wide=1", "wide: unknown parameter of the policy Narrow; did you mean widest?"),
        ("narrow_policies:ready:widest=1", "policy = 'narrow_policies:ready:widest=1': it is made already"),
        ("narrow_policies:Needs", "policy = 'narrow_policies:Needs': cannot make it: TypeError"),
        ("pathlib:Path", "policy = "),
        ("fifo:Policy", "Policy: unknown parameter of the policy fifo"),
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


# -- a class of somebody's own --

MODULE = '''
from dataclasses import dataclass

import optsched as osd


@dataclass
class Narrow:
    """Narrowest first, or widest."""

    widest: bool = False
    name = "narrow"
    knowledge = "non-clairvoyant"

    def decide(self, view):
        sign = -1 if self.widest else 1
        for job in sorted(view.waiting, key=lambda j: (sign * view.gpus(j), view.arrival(j))):
            if view.fits(job):
                yield osd.Start(job)


class Needs:
    def __init__(self, number):
        self.number = number


ready = Narrow(widest=True)
'''


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of somebody's own, not on the path of Python."""
    (tmp_path / "narrow_policies.py").write_text(MODULE)
    (tmp_path / "broken_policies.py").write_text("raise ValueError('no\\nluck')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    yield tmp_path
    for name in ("narrow_policies", "broken_policies"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("text", "widest", "placement"),
    [
        ("narrow_policies:Narrow", False, "count"),
        ("narrow_policies:Narrow:widest=true+consolidated", True, "consolidated"),
        ("narrow_policies:ready", True, "count"),
    ],
)
def test_a_class_of_a_module_is_a_policy(text: str, widest: bool, placement: str) -> None:
    made: Any = specify(text)
    assert (plain(made.policy).widest, made.placement.name, made.text) == (widest, placement, text)
    assert simulate("rigid-06-1", text).policy == text


def test_names_of_registered_policies_are_none() -> None:
    assert [names_a_class(text) for text in ("fifo", "fifo:skip=true", "a-srpt:tau", "x:y=1")] == [False] * 4
    assert names_a_class("package.module:Class:key=1")


@pytest.mark.usefixtures("own_modules")
def test_the_command_line_takes_it(command: Callable[..., Any]) -> None:
    done = command("ratio", "rigid-06-1", "-p", "narrow_policies:Narrow", "--json")
    assert (done.code, done.json["policies"][0]["policy"]) == (0, "narrow_policies:Narrow")
