"""Suites: named lists of instances.

Suites are those of the instance library, a folder of instance files, one file, one instance, and a member of a family
(`optsched.guarantees.family`), written ``blocked-long-job:m=4``. Instances of `MADE` are made and solved when they are
asked for; they belong to neither ``small`` nor ``all``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.classes import class_names
from optsched.errors import InputError, check_legal
from optsched.evaluation.known_schedules import NAME, known_schedules
from optsched.guarantees.family import FAMILIES, family_instance
from optsched.io.index import LibraryEntry, entries, shipped
from optsched.io.sources import INSTANCE_SUFFIXES, load
from optsched.io.traces.generate import RECIPES, generate
from optsched.problem.atomic_files import note_source
from optsched.problem.instance import Instance
from optsched.registry import PartsByClass, near_matches

AGREE = 1e-7  # relative: tolerance of a linear program


@dataclass(frozen=True)
class Suite:
    """A named list of instances.

    Parameters
    ----------
    name
        Name of the suite.
    members
        SOURCEs: names of instances of the library, or files.
    summary
        One line for people.
    make
        If given, it makes the instance of a member from its name; the members are then not SOURCEs.
    """

    name: str
    members: tuple[str, ...]
    summary: str = ""
    make: Callable[[str], Instance] | None = None

    def instances(self) -> list[tuple[str, Instance]]:
        """Return (member, instance) in order."""
        return [(member, (self.make or load)(member)) for member in self.members]


_RIGID_MEMBERS = ("rigid-06-1", "rigid-06-2", "rigid-08-1", "rigid-08-2", "rigid-08-3")
_RIGID = Suite(
    "rigid-small",
    _RIGID_MEMBERS,
    f"{len(_RIGID_MEMBERS)} instances of six and eight jobs with a proven optimum, quick to measure: P8|r_j,size_j|sum C_j",
)


def _known() -> Suite:
    members = tuple(known_schedules())
    summary = (
        f"{len(members)} small workloads with their schedules under FCFS, EASY, first fit and conservative backfilling"
    )
    return Suite(NAME, members, summary, make=lambda member: known_schedules()[member].instance)


# by class of schedules: suites of instances that are made when they are asked for
MADE: PartsByClass[tuple[Suite, ...]] = PartsByClass("optsched.evaluation", ())


def suites_outside_baseline() -> dict[str, Suite]:
    """Return the suites that the baseline of ratios leaves out.

    They are `MADE`, the suites of the library whose instances are not files, a quick part of one suite, and the workloads
    with known schedules.
    """
    made = {suite.name: suite for name in class_names() for suite in MADE.of(name)}
    return {**made, _RIGID.name: _RIGID, NAME: _known(), **_by_suite([entry for entry in entries() if not entry.file])}


def suites() -> dict[str, Suite]:
    """Return the suites of stored instances by name, with ``small`` (all with a proven optimum) and ``all``.

    The baseline (`optsched.evaluation.ratio_baseline`) keeps their ratios. Instances that the library gets in another way
    change no ratio of it.
    """
    stored = shipped()
    named = _by_suite(stored)
    small = [entry for entry in stored if entry.optimum is not None]
    named["small"] = _suite("small", small, "every stored instance with a proven optimum")
    named["all"] = _suite("all", stored, "every stored instance")
    return named


def _by_suite(instances: list[LibraryEntry]) -> dict[str, Suite]:
    members: dict[str, list[LibraryEntry]] = {}
    for entry in instances:
        members.setdefault(entry.suite, []).append(entry)
    return {name: _suite(name, entries_of) for name, entries_of in sorted(members.items())}


def suite(text: str) -> Suite:
    """Return the suite that a text names.

    Parameters
    ----------
    text
        The name of a suite, a folder of instance files, or one instance: a file, a shipped name, a member of a family.

    Raises
    ------
    InputError
        No such suite, folder, file, instance or family (with near matches); a folder without instances; invalid parameters
        of a family.
    """
    known, path = suites() | suites_outside_baseline(), Path(text)
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
    names = [entry.name for entry in entries()]
    if text in names or path.is_file() or path.suffix.lower() in INSTANCE_SUFFIXES:
        return Suite(text, (text,))
    if text.partition(":")[0].strip() in FAMILIES:
        return Suite(text, (text,), make=family_instance)
    if RECIPES.canonical(text) in RECIPES:
        raise InputError("a recipe, not a suite", field="suite", value=text, legal=f"{text.lower()} --seeds N")
    raise InputError(
        "not a suite, an instance, a family or a folder of instances",
        field="suite",
        value=text,
        legal=near_matches(text, [*known, *names, *FAMILIES.names()], kind="name"),
    )


def drawn(recipe: str, seeds: int, **parameters: Any) -> Suite:
    """Return the instances of a recipe with the seeds 1 to ``seeds``.

    Parameters
    ----------
    recipe
        Name of the recipe.
    seeds
        Number of instances, at least 1.
    **parameters
        Parameters of the recipe.

    Raises
    ------
    InputError
        ``seeds`` < 1, or `optsched.generate` refuses the recipe or a parameter.
    """
    check_legal(seeds >= 1, "seeds", seeds, "an integer >= 1")
    members = tuple(f"{recipe}-{seed}" for seed in range(1, seeds + 1))

    def make(member: str) -> Instance:
        return generate(recipe, int(member.rpartition("-")[2]), **parameters)

    make(members[0])  # errors in the parameters are reported before anything runs
    return Suite(recipe, members, f"{recipe}, seeds 1 to {seeds}", make=make)


def _suite(name: str, members: list[LibraryEntry], summary: str = "") -> Suite:
    problems = " and ".join(dict.fromkeys(entry.problem for entry in members))
    count = f"{len(members)} instance{'s' if len(members) != 1 else ''}"
    return Suite(name, tuple(entry.name for entry in members), f"{count}: {summary or problems}")
