"""Suites: named lists of instances. Every suite of the instance library is one; so is a folder, a file, a name.

A member of a family (`optsched.guarantees.family`) is a suite of one instance, written ``blocked-long-job:m=4``.

Suites of `MADE` consist of instances that are made when they are asked for; they belong to neither ``small`` nor ``all``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from optsched.classes import class_names
from optsched.errors import InputError, OptschedError, check_legal
from optsched.guarantees.family import FAMILIES, family_instance
from optsched.guarantees.optimum import proved_here, stating
from optsched.io.index import LibraryEntry, entries, shipped
from optsched.io.sources import INSTANCE_SUFFIXES, load
from optsched.io.traces.generate import RECIPES, generate
from optsched.problem.contention import Contention
from optsched.problem.files import note_source
from optsched.problem.instance import Instance
from optsched.problem.transfers import TransferProblem, transfer_instance
from optsched.registry import PartsByClass, near_matches
from optsched.solvers.transfer_search import best_event_order, transfer_optimum


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
PENALTIES = (0.0, 0.2745, 1.0)  # eta / b
SEEDS = {2: 9, 3: 9, 4: 3}  # of every number of transfers
TRANSFERS = tuple(f"transfers-{n}-{seed}" for n, seeds in SEEDS.items() for seed in range(1, seeds + 1))


SMALLEST, LARGEST, AT_ZERO, SPAN = 0.01, 10.0, 0.3, 0.7  # of random transfers


def random_transfers(n: int, seed: int, eta: float) -> TransferProblem:
    """n transfers on one link with b = 1, on which rules are compared with the exact optimum. Own design of this project.

    Sizes are log-uniform on [0.01, 10]; each release is 0 with probability 0.3, else uniform on [0, 0.7 W] with W = sum M_j,
    the seconds of all transfers one after the other.
    """
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), n))
    late = rng.random(n) >= AT_ZERO
    return TransferProblem(late * rng.uniform(0.0, SPAN * float(size.sum()), n), size, Contention(1.0, eta))


@cache
def small_transfers(member: str) -> Instance:
    """``transfers-N-S``: `random_transfers` of N with seed S, and their optimum; about a second for four of them.

    The optimum of sum C_j is what branch and bound over events finds, provided that the linear programs of all event orders,
    in which starts may lie anywhere, agree. Policies that go by service or by size ask the smallest transfer first. Raises
    `OptschedError` when the two methods disagree.
    """
    n, seed = (int(part) for part in member.split("-")[1:])
    problem = random_transfers(n, seed, PENALTIES[seed % len(PENALTIES)])
    found = transfer_optimum(problem)
    value = float(found.value)
    if not found.proved or abs(best_event_order(problem).value - value) > AGREE * value:
        raise OptschedError(f"{member}: branch and bound and the event orders disagree")
    optimum = stating(value, "total_completion_time", "task-sharing", "transfer-search", "transfer-orders")
    return proved_here(transfer_instance(problem, member, objective="total_flow_time", optimum=optimum))


_TRANSFERS = Suite(
    "transfers-small",
    TRANSFERS,
    f"{len(TRANSFERS)} instances: two to four transfers on one link, r_j | sum C_j - r_j (jobs with tasks)",
    make=small_transfers,
)
_RIGID_MEMBERS = ("rigid-06-1", "rigid-06-2", "rigid-08-1", "rigid-08-2", "rigid-08-3")
_RIGID = Suite(
    "rigid-small",
    _RIGID_MEMBERS,
    f"{len(_RIGID_MEMBERS)} instances of six and eight jobs with a proven optimum, quick to measure: P8|r_j,size_j|sum C_j",
)
# By class of schedules, suites of instances that are made when they are asked for.
MADE: PartsByClass[tuple[Suite, ...]] = PartsByClass("optsched.guarantees", ())
MADE.register("task-sharing", (_TRANSFERS,))


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
