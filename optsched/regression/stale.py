"""Stale entries of a baseline: of tests that are gone, by what pytest collected. The standard library alone is needed.

A test that was deselected, or whose file nobody asked for, is not gone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

Kept = dict[str, list[str]]  # a test -> what it measures


def kept_in(baseline: Path) -> Kept:
    """What the baseline has entries of; nothing where it is none, which is said when something is compared with it."""
    with contextlib.suppress(OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        document = json.loads(baseline.read_bytes())
        return {test: list(labels) for test, labels in document["tests"].items()}
    return {}


class Collected:
    """What pytest found in modules and classes, before anything was deselected. Names are node ids."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def add(self, collector: str, found: Iterable[str]) -> None:
        """A module or a class was read as a whole, and this is in it."""
        self._found.setdefault(collector, set()).update(found)

    def lacks(self, test: str) -> bool:
        """Would the test have been found, if it were there?"""
        inside = [each for each in self._found if test.startswith(f"{each}::")]
        if not inside:
            return False
        found = self._found[max(inside, key=len)]
        return test not in found and not any(test.startswith(f"{each}::") for each in found)

    def gone(self, kept: Iterable[str], root: Path) -> list[str]:
        """Tests of the baseline that are no longer there, and those whose file is not."""
        return [test for test in kept if not (root / test.partition("::")[0]).exists() or self.lacks(test)]


def stale(
    kept: Mapping[str, Iterable[str]], gone: Iterable[str], passed: Iterable[str], measured: Mapping[str, Iterable[str]]
) -> dict[tuple[str, str], str]:
    """(test, what it measured) of every stale entry -> why: its test is gone, or passed without measuring it.

    Where processes run groups of tests pytest-xdist writes ``@GROUP`` behind the name of a test that passed.
    """
    there, ran = set(gone), {each.rpartition("@")[0] or each for each in passed} | set(passed)
    found = {}
    for test, labels in kept.items():
        for label in labels:
            if test in there:
                found[test, label] = "the test is gone"
            elif test in ran and label not in measured.get(test, ()):
                found[test, label] = "the test passes without comparing it"
    return found
