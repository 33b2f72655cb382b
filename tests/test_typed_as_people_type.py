"""Whoever takes an instance takes the text that names one, and whoever takes policies takes one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

import optsched as osd
from optsched.check.referee import check_file
from optsched.errors import InputError

NAME = "rigid-06-1"
STARTS = range(0, 600, 100)


@pytest.fixture(scope="module")
def instance() -> osd.Instance:
    return osd.load(NAME)


@pytest.fixture(scope="module")
def run(instance: osd.Instance) -> osd.Run:
    return osd.simulate(instance, "srtf")


def public() -> list[tuple[str, Callable[..., Any]]]:
    """Functions and methods of classes that the package offers."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for place in (osd, osd.plot):
        for name in place.__all__:
            thing = getattr(place, name)
            if inspect.isclass(thing):
                members = inspect.getmembers(thing, lambda each: inspect.isfunction(each) or inspect.ismethod(each))
                found += [(f"{name}.{key}", member) for key, member in members if not key.startswith("_")]
            elif callable(thing):
                found.append((name, thing))
    return found


# `on_clock` puts a schedule or certificate of `Instance.relative` back on the clock of the very instance that it was made
# from; `form` and `properties` of a policy are called by the engine.
INNER = {"on_clock", "form", "properties"}


def test_no_public_function_insists_on_an_instance() -> None:
    asked = {
        name: parameter.annotation
        for name, function in public()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name == "instance" and name.rpartition(".")[2] not in INNER
    }
    assert {"solve", "simulate", "bound", "compare", "evaluate", "check_schedule", "plot_file"} <= set(asked)
    assert {"Certificate.verify", "Schedule.load", "Schedule.from_starts"} <= set(asked)
    assert {name: kind for name, kind in asked.items() if kind not in ("Source", "Source | None")} == {}


def test_a_text_stands_for_the_instance_it_names(instance: osd.Instance, run: osd.Run, tmp_path: Path) -> None:
    assert osd.solve(NAME).value == 156
    assert osd.simulate(NAME, "srtf").value() == run.value()
    certificate = osd.bound(NAME)
    assert certificate == osd.bound(instance)
    certificate.verify(NAME)
    assert osd.compare(NAME, "fifo")["value"].item() == osd.compare(instance, ["fifo"])["value"].item()
    assert osd.evaluate(NAME, "fifo").instance == instance
    assert osd.check_schedule(NAME, run.schedule) == []
    place = tmp_path / "srtf.json"
    run.schedule.save(place)
    assert osd.Schedule.load(place, NAME).instance == instance
    assert check_file(place, NAME).holds
    osd.plot.plot_file(place, tmp_path / "srtf.png", NAME)
    saved = tmp_path / "instance.json"
    instance.save(saved)
    assert osd.Schedule.from_starts(saved, STARTS).instance == instance  # a path is a source, too
    with pytest.raises(osd.CertificateError, match="the certificate is of the instance"):
        certificate.verify("rigid-06-2")


@pytest.mark.parametrize("wrong", [17, None, ["rigid-06-1"]])
def test_what_names_no_instance_is_said_in_one_line(wrong: Any) -> None:
    for call in (osd.solve, osd.bound, osd.compare, lambda x: osd.simulate(x, "fifo")):
        with one_line("not an instance"):
            call(wrong)


class Mine:
    """A policy of one's own that can be looped over, as a list of policies can."""

    name = "mine"
    knowledge = "non-clairvoyant"

    def decide(self, view: Any) -> Any:
        return [osd.Start(job) for job in view.waiting[:1] if view.fits(job)]

    def __iter__(self) -> Any:
        raise AssertionError("this is no list of policies")


@pytest.mark.parametrize("policies", ["fifo", ["fifo"], ("fifo",), iter(["fifo"]), Mine(), [Mine()]])
def test_one_policy_is_as_good_as_a_list_of_one(instance: osd.Instance, policies: Any) -> None:
    assert osd.compare(instance, policies)["policy"].item() in ("fifo", "mine")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, r"^Broken\.name: a policy has a name \(expected: text, shown in reports\)$"),
        ({"name": 7}, r"^Broken\.name = 7: a policy has a name"),
        ({"name": " "}, r"^Broken\.name = ' ': a policy has a name"),
        (
            {"knowledge": None},
            r"^Broken\.knowledge: a policy says what it knows \(expected: one of clairvoyant, predicted",
        ),
        ({"knowledge": "everything"}, r"^Broken\.knowledge = 'everything': a policy says what it knows"),
        (
            {"decide": None},
            r"^policy = .*: not a policy \(expected: text, or an object with one of the methods order, decide",
        ),
    ],
)
@pytest.mark.parametrize("call", [osd.simulate, osd.compare, osd.evaluate])
def test_a_policy_that_is_none_is_told_in_one_line(call: Any, change: dict[str, Any], message: str) -> None:
    broken = type("Broken", (), {"name": "broken", "knowledge": "clairvoyant", "decide": Mine.decide, **change})
    with one_line(match=message):
        call(NAME, broken())


def test_a_class_is_not_yet_a_policy() -> None:
    with pytest.raises(InputError, match=r"not a policy \(expected: an object of it: Mine\(\.\.\.\)\)"):
        osd.simulate(NAME, Mine)


def test_runs_and_solutions_are_drawn_and_judged_as_their_schedules(instance: osd.Instance, run: osd.Run) -> None:
    best = osd.solve(instance)
    assert osd.check_schedule(instance, best) == osd.check_schedule(instance, run) == []
    for draw in (osd.plot.gantt, osd.plot.overview, osd.plot.occupancy):
        for what in (run, best):
            assert draw(what)
    assert osd.plot.gantt(run).get_title(loc="left") == "srtf on rigid-06-1: 6 jobs, 8 GPUs"


def test_a_solved_schedule_is_titled_by_what_is_known_of_the_optimum(instance: osd.Instance, tmp_path: Path) -> None:
    best = osd.solve(instance)
    title = "optimal total_completion_time 156 on rigid-06-1: 6 jobs, 8 GPUs"
    for what in (best, best.schedule):
        assert osd.plot.gantt(what).get_title(loc="left") == title
    best.schedule.save(tmp_path / "best.json")
    assert osd.plot.gantt(osd.Schedule.load(tmp_path / "best.json", instance)).get_title(loc="left") == title
    stopped = osd.solve(osd.generate("rigid", seed=3, jobs=40), time_limit=1e-3)
    text = r"total_completion_time [\d.]+, the optimum is at least [\d.]+"
    assert stopped.status == "limit"
    assert re.match(text, stopped.schedule.policy), stopped.schedule.policy


def test_there_is_nothing_to_draw_without_a_schedule() -> None:
    none = osd.solve("rigid-06-1", horizon=10, model="rigid-time-indexed")
    assert none.status == "infeasible"
    with pytest.raises(InputError, match="no schedule was found: infeasible"):
        osd.plot.gantt(none)
    with pytest.raises(InputError, match="no schedule was found"):
        _ = none.jobs
    with pytest.raises(InputError, match=r"schedule = 'str': not a schedule"):
        osd.plot.gantt("srtf")
