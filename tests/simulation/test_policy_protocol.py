"""Base classes of policies: defaults, plain classes beside them, misspelt names."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import optsched as osd
from optsched.policies import POLICIES
from optsched.registry import parameters_of
from optsched.simulation.adopted import adopt, methods, methods_of, plain
from optsched.simulation.policy import BasePolicy, Decision, OrderedPolicy, Policy, View
from optsched.simulation.view import EngineView


class Narrowest(osd.Policy):
    """A subclass of the base class."""

    name, knowledge = "narrowest", "non-clairvoyant"

    def decide(self, view: View) -> Iterator[Decision]:
        for job in sorted(view.waiting, key=view.gpus):
            if view.fits(job):
                yield osd.Start(job)


class PlainNarrowest:
    """The same without the base class, with an attribute of its own."""

    name, knowledge, quota = "narrowest", "non-clairvoyant", 7

    def decide(self, view: Any) -> Iterator[Any]:
        for job in sorted(view.waiting, key=view.gpus):
            if view.fits(job):
                yield osd.Start(job)

    def notes(self) -> dict[str, Any]:
        return {}


def test_a_plain_class_runs_as_a_subclass_does() -> None:
    runs = [osd.simulate("rigid-08-1", policy) for policy in (Narrowest(), PlainNarrowest())]
    assert runs[0].segments.equals(runs[1].segments)


def test_a_plain_object_is_adopted_once_and_keeps_what_it_declares() -> None:
    own = PlainNarrowest()
    adopted = adopt(own)
    assert isinstance(adopted, Policy)
    assert adopt(adopted) is adopted
    assert plain(adopted) is own
    assert (adopted.name, adopted.uses, adopted.copies, adopted.restart) == ("narrowest", (), 0, 0.0)
    assert methods_of(adopted) == ["decide"]
    assert not hasattr(adopted, "quota")
    back = pickle.loads(pickle.dumps(adopted))
    assert osd.simulate("rigid-06-1", back).segments.equals(osd.simulate("rigid-06-1", own).segments)


@pytest.mark.parametrize(
    ("attribute", "near"),
    [("use", "uses"), ("knowlege", "knowledge"), ("default_placment", "default_placement"), ("restarts", "restart")],
)
def test_a_misspelt_attribute_is_one_clear_error(attribute: str, near: str) -> None:
    def members() -> dict[str, Any]:
        named = {"name": "mine", "knowledge": "clairvoyant", "decide": lambda self, view: [], "__module__": __name__}
        return {**named, attribute: ("nodes",)}

    with pytest.raises(osd.InputError, match=f"Mine.{attribute}: .*expected: {near};"):
        type("Mine", (osd.Policy,), members())  # at once
    with pytest.raises(osd.InputError, match=f"Mine.{attribute}: .*expected: {near};"):
        osd.simulate("rigid-06-1", type("Mine", (), members())())


def test_an_attribute_of_ones_own_is_no_misspelling() -> None:
    members = {"name": "mine", "knowledge": "clairvoyant", "decide": lambda self, view: [], "__module__": __name__}
    type("Mine", (osd.Policy,), {**members, "quota": 3, "_use": 1, "weights": (), "threshold": 0.5})


def test_every_registered_policy_is_a_subclass_with_one_way_to_decide() -> None:
    for name, kind in POLICIES.items():
        assert issubclass(kind, BasePolicy), name
        assert [method for method in methods() if hasattr(kind, method)] in (
            ["decide"],
            ["order"],
            ["tasks"],
            ["ranks"],
        ), name
        assert kind().name == name
        assert not parameters_of(kind).keys() & {"name", "knowledge", "uses"}, name
    assert issubclass(POLICIES.get("fifo"), OrderedPolicy)


def test_the_engine_gives_all_that_the_view_promises_and_nothing_else() -> None:
    promised = {name for name in vars(View) if not name.startswith("_")}
    assert {name for name in vars(EngineView) if not name.startswith("_")} == promised
    for name in promised:
        member = vars(View)[name]
        assert inspect.getdoc(member.fget if isinstance(member, property) else member), name
