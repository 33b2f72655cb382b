"""Suites: named lists of instances. Every suite of the instance library is one; so is a folder, a file, a name.

A member of a family (`optsched.guarantees.family`) is a suite of one instance, written ``blocked-long-job:m=4``.

Suites of `MADE` consist of instances that are made when they are asked for; they belong to neither ``small`` nor ``all``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.classes import class_names
from optsched.errors import InputError, check_legal
from optsched.guarantees.family import FAMILIES, family_instance
from optsched.io.index import LibraryEntry, entries, shipped
from optsched.io.sources import INSTANCE_SUFFIXES, load
from optsched.io.traces.generate import RECIPES, generate
from optsched.problem.files import note_source
from optsched.problem.instance import Instance
from optsched.registry import PartsByClass, near_matches


@dataclass(frozen=True)
class Suite:
    """``members`` are SOURCEs (names of instances of the library, or files), ``summary`` one line for people.

    ``make``: members are no SOURCEs, but made by this from their name.
    """

    name: str
    members: tuple[str, ...]
    summary: str = ""
    make: Callable[[str], Instance] | None = None

    def instances(self) -> list[tuple[str, Instance]]:
        """(member, instance) in order."""
        return [(member, (self.make or load)(member)) for member in self.members]


AGREE = 1e-7  # relative: what a linear program may miss


_RIGID_MEMBERS = ("rigid-06-1", "rigid-06-2", "rigid-08-1", "rigid-08-2", "rigid-08-3")
_RIGID = Suite(
    "rigid-small",
    _RIGID_MEMBERS,
    f"{len(_RIGID_MEMBERS)} instances of six and eight jobs with a proven optimum, quick to measure: P8|r_j,size_j|sum C_j",
)
# By class of schedules, suites of instances that are made when they are asked for.
MADE: PartsByClass[tuple[Suite, ...]] = PartsByClass("optsched.guarantees", ())


def beside() -> dict[str, Suite]:
    """What is in no baseline of ratios: `MADE`, suites of the library whose instances are no files, a quick part of one."""
    made = {suite.name: suite for name in class_names() for suite in MADE.of(name)}
    return {**made, _RIGID.name: _RIGID, **_by_suite([each for each in entries() if not each.file])}


def suites() -> dict[str, Suite]:
    """The suites of stored instances by name, and of them ``small`` (all with a proven optimum) and ``all``.

    Their ratios are kept (`optsched.guarantees.baseline`), so that what the library gains otherwise changes no ratio.
    """
    every = shipped()
    found = _by_suite(every)
    small = [each for each in every if each.optimum is not None]
    found["small"] = _suite("small", small, "every stored instance with a proven optimum")
    found["all"] = _suite("all", every, "every stored instance")
    return found


def _by_suite(every: list[LibraryEntry]) -> dict[str, Suite]:
    members: dict[str, list[LibraryEntry]] = {}
    for each in every:
        members.setdefault(each.suite, []).append(each)
    return {name: _suite(name, some) for name, some in sorted(members.items())}


def suite(text: str) -> Suite:
    """The suite of that name, the instance files of a folder, or one instance (a file, a shipped name, a member of a
    family).

    Raises `InputError`: no such suite, folder, file, instance or family (with near matches); a folder without instances;
    parameters of a family that are invalid.
    """
    known, path = suites() | beside(), Path(text)
    text = text if path.exists() or text.lower() not in known else text.lower()
    if text in known:
        return known[text]
    if path.is_dir():
        files = sorted(str(file) for file in path.iterdir() if file.suffix.lower() in INSTANCE_SUFFIXES)
        if not files:
            raise InputError("no instances in this folder", file=text, legal=f"files {' or '.join(INSTANCE_SUFFIXES)}")
        for file in files:
            note_source(file)
        return Suite(text, tuple(files))
    names = [each.name for each in entries()]
    if text in names or path.is_file() or path.suffix.lower() in INSTANCE_SUFFIXES:
        return Suite(text, (text,))
    if text.partition(":")[0].strip() in FAMILIES:
        return Suite(text, (text,), make=family_instance)
    if RECIPES.canonical(text) in RECIPES:
        raise InputError("a recipe, not a suite", field="suite", value=text, legal=f"{text.lower()} --seeds N")
    raise InputError(
        "neither a suite nor an instance",
        field="suite",
        value=text,
        legal=f"a folder, an instance, a family, or a suite; "
        f"{near_matches(text, [*known, *names, *FAMILIES.names()], kind='name')}",
    )


def drawn(recipe: str, seeds: int, **parameters: Any) -> Suite:
    """The instances of a recipe with the seeds 1 .. ``seeds``; `InputError` for what `generate` refuses."""
    check_legal(seeds >= 1, "seeds", seeds, "an integer >= 1")
    members = tuple(f"{recipe}-{seed}" for seed in range(1, seeds + 1))

    def make(member: str) -> Instance:
        return generate(recipe, int(member.rpartition("-")[2]), **parameters)

    make(members[0])  # what is wrong is said before anything runs
    return Suite(recipe, members, f"{recipe}, seeds 1 to {seeds}", make=make)


def _suite(name: str, members: list[LibraryEntry], summary: str = "") -> Suite:
    problems = " and ".join(dict.fromkeys(each.problem for each in members))
    count = f"{len(members)} instance{'s' if len(members) != 1 else ''}"
    return Suite(name, tuple(each.name for each in members), f"{count}: {summary or problems}")
