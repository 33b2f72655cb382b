"""Suites: named lists of instances. Every family of shipped instances is one; so is a folder, a file, a name.

A member of a family (`optsched.guarantees.family`) is a suite of one instance, written ``blocked-long-job:m=4``.

Suites of `MADE` consist of instances that are made when they are asked for; they belong to neither ``small`` nor ``all``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.guarantees import sharing_suite, transfer_suite
from optsched.guarantees.family import FAMILIES, family_instance, is_member
from optsched.io.sources import INSTANCE_SUFFIXES, ShippedInstance, load, shipped
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.registry import near_matches

_NUMBERS = re.compile(r"(-\d+)+$")


@dataclass(frozen=True)
class Suite:
    """``members`` are SOURCEs (names of shipped instances, or files), ``summary`` one line for people.

    ``objectives`` are what the index states for members whose file names none. ``make``: members are no SOURCEs, but made by
    this from their name.
    """

    name: str
    members: tuple[str, ...]
    summary: str = ""
    objectives: tuple[str | None, ...] = ()
    make: Callable[[str], Instance] | None = None

    def instances(self) -> list[tuple[str, Instance]]:
        """(member, instance) in order; an instance that names no objective takes the one of the index."""
        if self.make is not None:
            return [(member, self.make(member)) for member in self.members]
        stated = self.objectives or (None,) * len(self.members)
        return [(member, _loaded(member, objective)) for member, objective in zip(self.members, stated, strict=True)]


_TRANSFERS = Suite(
    "transfers-small",
    transfer_suite.MEMBERS,
    f"{len(transfer_suite.MEMBERS)} instances: two to four transfers on one link, r_j | sum C_j - r_j (jobs with tasks)",
    make=transfer_suite.small_transfers,
)
_SHARING = Suite(
    "sharing-small",
    sharing_suite.MEMBERS,
    f"{len(sharing_suite.MEMBERS)} instances: three or four jobs that may share one GPU, r_j | sum C_j - r_j",
    make=sharing_suite.small_sharing,
)
_RIGID_MEMBERS = ("rigid-06-1", "rigid-06-2", "rigid-08-1", "rigid-08-2", "rigid-08-3")
_RIGID = Suite(
    "rigid-small",
    _RIGID_MEMBERS,
    f"{len(_RIGID_MEMBERS)} instances of six and eight jobs with a proven optimum, quick to measure: P8|r_j,size_j|sum C_j",
    ("total_completion_time",) * len(_RIGID_MEMBERS),
)
MADE = {each.name: each for each in (_TRANSFERS, _SHARING)}
BESIDE = {**MADE, _RIGID.name: _RIGID}  # what is no family of shipped instances, and in no baseline of them


def family(name: str) -> str:
    """The suite of a shipped instance: its name without the numbers at the end."""
    return _NUMBERS.sub("", name)


def suites() -> dict[str, Suite]:
    """The shipped suites by name: every family, ``small`` (all with a proven optimum) and ``all``."""
    every = shipped()
    families: dict[str, list[ShippedInstance]] = {}
    for each in every:
        families.setdefault(family(each.name), []).append(each)
    found = {name: _suite(name, members) for name, members in sorted(families.items())}
    found["small"] = _suite(
        "small", [e for e in every if e.optimum is not None], "every instance with a proven optimum"
    )
    found["all"] = _suite("all", every, "every shipped instance")
    return found


def suite(text: str) -> Suite:
    """The suite of that name, the instance files of a folder, or one instance (a file, a shipped name, a member of a
    family).

    Raises
    ------
    InputError
        No such suite, folder, file, instance or family (with near matches); a folder without instances; parameters of a
        family that are invalid.
    """
    known = suites() | BESIDE
    if text in known:
        return known[text]
    path = Path(text)
    if path.is_dir():
        files = sorted(str(file) for file in path.iterdir() if file.suffix.lower() in INSTANCE_SUFFIXES)
        if not files:
            raise InputError("no instances in this folder", file=text, legal=f"files {' or '.join(INSTANCE_SUFFIXES)}")
        return Suite(text, tuple(files))
    names = [each.name for each in shipped()]
    if text in names or path.is_file() or path.suffix.lower() in INSTANCE_SUFFIXES:
        return Suite(text, (text,))
    if is_member(text):
        return Suite(text, (text,), make=family_instance)
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


def _suite(name: str, members: list[ShippedInstance], summary: str = "") -> Suite:
    problems = " and ".join(dict.fromkeys(each.problem for each in members))
    count = f"{len(members)} instance{'s' if len(members) != 1 else ''}"
    return Suite(
        name,
        tuple(each.name for each in members),
        f"{count}: {summary or problems}",
        tuple(each.objective for each in members),
    )


def _loaded(member: str, objective: str | None) -> Instance:
    instance = load(member)
    return instance if instance.objective or objective is None else instance.replace(objective=objective)
