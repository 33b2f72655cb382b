"""The baseline of a project's own tests: a JSON file under version control, ratios by test and by what it measures.

What counts as worse is decided where the shipped baseline is compared, too: `optsched.guarantees.baseline`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from optsched.guarantees.baseline import KeptRatio, KeptSummary, Worsening, kept, summary, worse_in_suite
from optsched.guarantees.evaluate import PolicyRatios
from optsched.problem.documents import Document, read_document
from optsched.problem.files import read_bytes, write_atomic

FORMAT = "optsched-guarded-ratios/1"
UPDATE = "pytest --ratio-update"
ROUNDED = 1e-6  # a mean of rounded ratios is not quite the rounded mean
Entries = Mapping[str, Mapping[str, Any]]  # what a test measures -> what is kept of it


class KeptEntry(KeptSummary):
    """What `entry` keeps of a measurement."""

    instances: dict[str, KeptRatio]

    @model_validator(mode="after")
    def _follow(self) -> KeptEntry:
        # A merge may mix two files: what is compared must be what the instances say.
        ratios = [each for each in self.instances.values() if each is not None]
        counted = {"worst": max(ratios, default=None), "mean": sum(ratios) / len(ratios) if ratios else None}
        for name, value in counted.items():
            stated = getattr(self, name)
            if (stated is None) != (value is None) or (value and abs(stated / value - 1) > ROUNDED):
                raise ValueError(f"{name} must be that of the instances, {value}, not {stated}")
        return self


class GuardedRatios(Document):
    """The file: entries by test, and by what the test measures."""

    format: Literal["optsched-guarded-ratios/1"]
    tests: dict[str, dict[str, KeptEntry]]


def entry(part: PolicyRatios) -> dict[str, Any]:
    """What is kept of a measurement: worst and mean ratio, and the ratio of every instance."""
    return {**summary(part), "instances": {each.instance: kept(each.ratio) for each in part.measured}}


def read(path: Path) -> dict[str, Entries]:
    """The entries by test; empty where there is no such file. Raises `InputError` for a file that is no baseline."""
    if not path.exists():
        return {}
    return dict(read_document(GuardedRatios, read_bytes(path), path, FORMAT).model_dump()["tests"])


def update(path: Path, measured: Mapping[str, Entries], root: Path) -> int:
    """Put what tests measured in the place of what the file has of them; returns how many entries changed.

    Tests that did not run keep their entries, unless the file of the test is gone from ``root``. The file is written whole
    or not at all.
    """
    old = read(path)
    new = {test: each for test, each in {**old, **measured}.items() if (root / test.partition("::")[0]).exists()}
    changed = sum(each != (old.get(test) or {}).get(label) for test, one in new.items() for label, each in one.items())
    gone = sum(label not in new.get(test, {}) for test, one in old.items() for label in one)
    if changed or gone:
        document = {"format": FORMAT, "tests": {test: dict(sorted(new[test].items())) for test in sorted(new)}}
        write_atomic(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return changed + gone


def compared(part: PolicyRatios, then: Mapping[str, Any], factor: float) -> list[Worsening]:
    """Where a measurement of a whole suite is worse than its entry by more than ``factor``."""
    other = sorted({each.instance for each in part.measured} ^ set(then["instances"]))
    if other:
        return [Worsening("", f"the baseline has other instances ({', '.join(other)}): run {UPDATE}")]
    return worse_in_suite(part, then, then["instances"], factor)


def compared_alone(part: PolicyRatios, then: Mapping[str, Any], factor: float) -> list[Worsening]:
    """The same of some instances of a suite, each for itself; of one that the entry does not know nothing is said."""
    known, found = then["instances"], []
    for each in part.measured:
        if each.instance in known:
            before = {"worst": known[each.instance], "mean": None}
            found += worse_in_suite(PolicyRatios(part.policy, (each,)), before, known, factor)
    return found
