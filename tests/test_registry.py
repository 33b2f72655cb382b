"""Registries: names, near matches, discovery of new files."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.problem.objectives import OBJECTIVES
from optsched.registry import Registry, near_matches


def test_get_returns_what_was_registered_and_names_are_sorted() -> None:
    things: Registry[int] = Registry("thing")
    things.register("b")(2)
    things.register("a")(1)
    assert things.names() == ["a", "b"]
    assert list(things.items()) == [("a", 1), ("b", 2)]
    assert things.get("b") == 2
    assert "a" in things
    assert "c" not in things


def test_a_name_is_given_once_but_the_same_thing_may_come_again() -> None:
    things: Registry[object] = Registry("thing")
    thing = object()
    things.register("a")(thing)
    things.register("a")(thing)
    with pytest.raises(ValueError, match="'a' is registered twice"):
        things.register("a")(object())


@pytest.mark.parametrize(("asked", "meant"), [("ffio", "fifo"), ("Fif", "fifo"), ("srtf_gpu", "srtf-gpu")])
def test_an_unknown_name_is_one_line_with_near_matches_first(asked: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        POLICIES.get(asked)
    text = str(caught.value)
    assert "\n" not in text
    assert f"there is no policy named {asked!r}" in text
    assert f"did you mean {meant}" in text
    listed = text.partition("did you mean ")[2].partition("?")[0].replace(" or ", ", ").split(", ")
    assert 1 <= len(listed) == len(set(listed)) <= 3
    assert set(listed) <= set(POLICIES.names())
    assert text.endswith(f"? (one of {len(POLICIES.names())} policies)")


def test_without_a_near_match_the_nearest_names_are_listed_once() -> None:
    with pytest.raises(InputError) as caught:
        POLICIES.get("qqqqqq")
    listed = str(caught.value).partition("policies: ")[2].rstrip(")").split(", ")
    assert len(listed) == len(set(listed)) == 5
    assert set(listed) <= set(POLICIES.names())


def test_of_few_names_each_is_listed_once() -> None:
    assert near_matches("gan", ["gang", "forking"], kind="class") == "did you mean gang? other classes: forking"
    assert near_matches("zzz", ["gang", "forking"], kind="class") == "classes: gang, forking"


@pytest.mark.parametrize("asked", ["fifo", "Fifo", "FIFO"])
def test_a_thing_is_found_whatever_the_case_of_its_name(asked: str) -> None:
    assert POLICIES.get(asked) is POLICIES.get("fifo")
    assert POLICIES.canonical(asked) == "fifo"
    assert POLICIES.canonical("Nobody") == "Nobody"
    assert ("Fifo" in POLICIES) is False  # what files say is taken as it stands


def test_a_word_from_elsewhere_is_told_what_is_meant_here() -> None:
    things: Registry[int] = Registry("thing", meant={"gizmo": "gadget? a gizmo is one"})
    things.register("gadget")(1)
    with pytest.raises(InputError, match=r"^there is no thing named 'Gizmo'; did you mean gadget\? a gizmo is one$"):
        things.get("Gizmo")


def test_a_name_like_nothing_lists_what_is_legal() -> None:
    assert near_matches("zzzzzz", ["alpha", "beta"], kind="thing") == "things: alpha, beta"
    assert near_matches("zzzzzz", ["alpha", "beta"], kind="class") == "classes: alpha, beta"
    assert near_matches("zzzzzz", ["alpha", "beta"], kind="policy") == "policies: alpha, beta"
    assert near_matches("zzzzzz", ["alpha", "beta"], kind="method of attack") == "methods of attack: alpha, beta"
    assert near_matches("zzzzzz", [], kind="class") == "there are no classes"


def test_discovery_imports_every_module_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "__init__.py").write_text(
        "from optsched.registry import Registry\nANIMALS = Registry('animal', package='zoo')\n"
    )
    (tmp_path / "zoo" / "cat.py").write_text("from zoo import ANIMALS\nANIMALS.register('cat')(9)\n")
    program = "from zoo import ANIMALS; assert 'cat' in ANIMALS; assert ANIMALS.get('cat') == 9; print('found')"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parent.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.strip() == "found", result.stderr


def test_a_table_is_looked_through_before_all_else_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "farm").mkdir()
    (tmp_path / "farm" / "__init__.py").write_text(
        "from optsched.registry import Registry\nBEASTS = Registry('beast', package='farm', tables=('cows', 'sheep'))\n"
    )
    cows = "from farm import BEASTS\nBEASTS.register('ox')(1)\nBEASTS.register('calf')(2)\n"
    (tmp_path / "farm" / "cows.py").write_text(cows)
    (tmp_path / "farm" / "dog.py").write_text("from farm import BEASTS\nBEASTS.register('dog')(3)\n")
    (tmp_path / "farm" / "sheep.py").write_text("raise AssertionError('nobody asked for sheep')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    beasts = importlib.import_module("farm").BEASTS
    assert (beasts.get("dog"), "farm.cows" in sys.modules) == (3, False)
    assert beasts.get("calf") == 2
    with pytest.raises(AssertionError, match="sheep"):
        beasts.get("lamb")


def test_names_are_lower_case_words() -> None:
    for registry in (POLICIES, PLACEMENTS):
        for name in registry.names():
            assert name == name.lower()
            assert all(part.isalnum() for part in name.split("-"))
    for name in OBJECTIVES.names():
        assert all(part.isalnum() for part in name.split("_"))
