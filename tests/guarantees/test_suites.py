"""Suites: families of shipped instances, their unions, folders and single instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.guarantees.suites import suite, suites
from optsched.io.index import shipped
from optsched.problem.instance import Instance, Job


def test_every_shipped_instance_is_in_its_family_and_in_all() -> None:
    found = suites()
    names = [each.name for each in shipped()]
    families = [name for name in found if name not in ("all", "small")]
    assert sorted(member for name in families for member in found[name].members) == sorted(names)
    assert list(found["all"].members) == names
    assert set(found["small"].members) == {each.name for each in shipped() if each.optimum is not None}
    assert {"single", "rigid", "rigid-makespan", "wide-gangs", "machines", "tardiness"} <= set(families)
    assert all(each.summary for each in found.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("machines-2-06-1", "machines"), ("rigid-weighted-08-2", "rigid-weighted"), ("cluster-week", "cluster-week")],
)
def test_an_instance_is_in_the_suite_that_the_index_names(name: str, expected: str) -> None:
    assert name in suites()[expected].members


def test_suites_of_the_library_that_are_no_files_are_suites_too_and_in_no_other() -> None:
    every = suites()["all"].members
    found = suite("graphs")
    assert found.members
    assert not set(found.members) & set(every)
    name, instance = found.instances()[0]
    assert (instance.name, instance.objective) == (name, "total_completion_time")


def test_members_come_with_the_objective_of_the_index() -> None:
    stated = {each.name: each.objective for each in shipped()}
    for name, instance in suites()["small"].instances():
        assert instance.objective == stated[name]


def test_a_folder_a_file_and_a_name_are_suites(tmp_path: Path) -> None:
    for name in ("b", "a"):
        Instance([Job("x", duration=3)], "1x1", name=name).save(tmp_path / f"{name}.json")
    (tmp_path / "notes.txt").write_text("no instance")
    folder = suite(str(tmp_path))
    assert [Path(member).name for member in folder.members] == ["a.json", "b.json"]
    assert [instance.name for _, instance in folder.instances()] == ["a", "b"]
    assert suite(str(tmp_path / "a.json")).members == (str(tmp_path / "a.json"),)
    assert suite("single-06-1").members == ("single-06-1",)


def test_what_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rigid"):
        suite("rigd")
    with pytest.raises(InputError, match="no instances in this folder"):
        suite(str(tmp_path))
    with pytest.raises(InputError, match=r"none\.json"):
        suite(str(tmp_path / "none.json")).instances()
