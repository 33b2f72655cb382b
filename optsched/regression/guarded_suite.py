"""The instances that a test names, and the settings that the tests of a project share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from optsched.errors import InputError, check_legal
from optsched.evaluation.ratio_baseline import WORSE
from optsched.evaluation.suites import Suite, suite
from optsched.problem.instance import Instance

SuiteLike = str | os.PathLike[str] | Suite | Instance | Iterable[Instance]


@dataclass(frozen=True)
class GuardSettings:
    """Settings shared by the tests of a project; ``test`` is the present one.

    ``factor``: factor by which a ratio may grow before it is worse than the ``baseline``. ``update``: "all" compares
    nothing and records everything, "lower" records entries that are new or not worse at all. ``only``: an instance of
    the suite, or an instance file, that is measured alone. ``folder``: folder for instances on which a test fails.
    """

    test: str = ""
    root: Path = Path()
    baseline: Path = Path("ratio-baseline.json")
    folder: Path = Path(".optsched/ratio-failures")
    factor: float = WORSE
    update: Literal["", "all", "lower"] = ""
    only: str = ""


def suite_of(over: SuiteLike, root: Path) -> Suite:
    """Return the suite that a test names.

    Parameters
    ----------
    over
        A suite, its name, a folder or file of instances, an instance, or instances.
    root
        Folder of the project, in which files and folders are looked for first.

    Raises
    ------
    InputError
        It is none of these, or two instances have one name.
    """
    if isinstance(over, Suite):
        return over
    legal = "the name of a suite, a folder or file of instances, an instance, or a list of instances"
    if isinstance(over, str | os.PathLike):
        name = os.fspath(over)
        if not name.strip():
            raise InputError("not a suite", field="suite", value=name, legal=legal)
        inside = root.resolve() / name
        found = suite(str(inside) if inside.exists() else name)
        return Suite(name, found.members, found.summary, found.make)
    given: Any = over
    every = [given] if isinstance(over, Instance | Mapping | bytes) or not isinstance(over, Iterable) else list(given)
    for each in every:
        if not isinstance(each, Instance):
            raise InputError("not a suite", field="suite", value=each, legal=legal)
    check_legal(bool(every), "suite", every, "at least one instance")
    by_name = {each.name: each for each in every}
    if len(by_name) < len(every):
        names = [each.name for each in every]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("two instances have one name", field="suite", value=twice, legal="a name for each")
    return Suite("given instances", tuple(by_name), make=by_name.__getitem__)


def chosen_instances(where: Suite, settings: GuardSettings) -> list[tuple[str, Instance]]:
    """Return (name, instance) of the instances to run: all, or the one that the settings choose.

    Files are named as seen from the root of the project, because a baseline is read on other machines.

    Parameters
    ----------
    where
        The suite.
    settings
        Settings of the project.
    """
    root, every = settings.root.resolve(), []
    for name, instance in where.instances():
        path = Path(name)
        inside = path.is_absolute() and path.is_relative_to(root)
        every.append((path.relative_to(root).as_posix() if inside else name, instance))
    if not settings.only:
        return every
    chosen = [(name, instance) for name, instance in every if name == settings.only]
    return chosen or [(instance.name, instance) for _, instance in suite(settings.only).instances()]
