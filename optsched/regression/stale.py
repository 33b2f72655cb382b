"""Stale entries of a baseline: those of tests that no longer exist, by what pytest collected; standard library only.

A test that was deselected, or whose file was not requested, is not stale.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

Kept = dict[str, list[str]]  # a test -> what it measures


def kept_in(baseline: Path) -> Kept:
    """Return the entries of a baseline by test; empty if the file is not a baseline, which a later comparison reports.

    Parameters
    ----------
    baseline
        The file.
    """
    with contextlib.suppress(OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        document = json.loads(baseline.read_bytes())
        return {test: list(labels) for test, labels in document["tests"].items()}
    return {}


class Collected:
    """Tests that pytest found in modules and classes, before any was deselected, by node id."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def add(self, collector: str, found: Iterable[str]) -> None:
        """Add the tests in a module or class that was read completely.

        Parameters
        ----------
        collector
            Node id of the module or class.
        found
            Node ids in it.
        """
        self._found.setdefault(collector, set()).update(found)

    def lacks(self, test: str) -> bool:
        """Return whether a test is missing, although its module or class was read.

        Parameters
        ----------
        test
            Node id of the test.
        """
        inside = [each for each in self._found if test.startswith(f"{each}::")]
        if not inside:
            return False
        found = self._found[max(inside, key=len)]
        return test not in found and not any(test.startswith(f"{each}::") for each in found)

    def gone(self, kept: Iterable[str], root: Path) -> list[str]:
        """Return the tests of a baseline that no longer exist, or whose file does not.

        Parameters
        ----------
        kept
            Node ids in the baseline.
        root
            Folder of the project.
        """
        return [test for test in kept if not (root / test.partition("::")[0]).exists() or self.lacks(test)]


def stale(
    kept: Mapping[str, Iterable[str]], gone: Iterable[str], passed: Iterable[str], measured: Mapping[str, Iterable[str]]
) -> dict[tuple[str, str], str]:
    """Return every stale entry, as (test, measurement), with its reason: the test is gone, or passes without measuring it.

    With groups of tests, pytest-xdist appends ``@GROUP`` to the name of a test that passed.

    Parameters
    ----------
    kept
        Measurements in the baseline by test.
    gone
        Tests that no longer exist.
    passed
        Tests that passed.
    measured
        Measurements of this session by test.
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
