"""Every check finds the policy that is made to break it, and the command line says which, with an instance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.contract.checks import CHECKS
from optsched.contract.examine import Examination, examine
from optsched.contract.levels import Subject
from optsched.errors import InputError
from optsched.problem.instance import Instance

BAD = {name: f"contract.bad_policies:{name.capitalize()}" for name in CHECKS.names()}
BAD["asks"] = "contract.bad_policies:Asks"
# What else a policy cannot help breaking that breaks one: one that remembers its calls is not the same in another process.
ALSO = {
    "deterministic": {"clock", "knowledge", "memory", "names", "order", "pickles", "unit"},
    "knowledge": {"unit"},
    "parameters": {"feasible"},
    "memory": {"pickles"},
}


def broken(found: Examination) -> set[str]:
    return {each.check for each in found.broken}


def test_every_check_has_a_policy_that_breaks_it() -> None:
    assert len(CHECKS.names()) == 11
    assert all(check.summary for _, check in CHECKS.items())


@pytest.mark.parametrize("name", BAD)
def test_what_is_broken_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    found = examine(BAD[name])
    meant = "knowledge" if name == "asks" else name
    assert meant in broken(found)
    assert broken(found) <= {meant} | ALSO.get(name, set())
    files = found.save(tmp_path)
    for path in files.get(meant, []):
        assert Instance.load(path).n > 0
    assert (meant in files) == (name not in ("pickles", "parameters"))


@pytest.mark.parametrize("text", ["contract.bad_policies:Good", "contract.bad_policies:Sleeper", "srtf+first-fit"])
def test_what_is_good_is_found_good(text: str) -> None:
    found = examine(text)
    assert broken(found) == set()
    exempt = {each.check for each in found.findings if each.verdict == "exempt"}
    assert exempt == ({"unit"} if "Sleeper" in text else set())


def test_the_same_instance_shows_it_again(tmp_path: Path) -> None:
    first, second = (examine(BAD["unit"]).save(tmp_path) for _ in range(2))
    assert first == second
    instance, faster = map(Instance.load, first["unit"])
    assert (faster.arrival == instance.arrival * 8).all()


def test_the_command_names_what_is_broken_and_where(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command("check-policy", BAD["order"], "-o", tmp_path)
    assert done.code == 1
    assert "BROKEN" in done.out
    assert "order: with the same jobs in another order in the file it decides differently; see " in done.err
    assert len(list(tmp_path.glob("broken-order-*.json"))) == 2
    listed = command("check-policy", BAD["asks"], "-o", tmp_path, "--json").json
    verdicts = {each["name"]: each["verdict"] for each in listed["checks"]}
    assert (listed["holds"], verdicts["knowledge"], verdicts["order"]) == (False, "broken", "not run")
    good = command("check-policy", "contract.bad_policies:Good", "--json")
    assert (good.code, good.json["holds"], good.json["level"]) == (0, True, "whole jobs")


def test_what_a_policy_knows_is_said_of_its_form() -> None:
    assert [Subject(f"unified{text}").knowledge for text in ("", ":fork=true")] == ["predicted", "clairvoyant"]


def test_what_is_no_policy_is_one_line(command: Callable[..., Any]) -> None:
    assert "did you mean Good?" in command("check-policy", "contract.bad_policies:God").mistake
    with pytest.raises(InputError, match="policies that resize jobs cannot be checked"):
        examine("goodput")
