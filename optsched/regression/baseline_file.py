"""Baseline of a project's tests: a JSON file under version control with ratios by test and by measurement.

`optsched.evaluation.ratio_baseline` defines when a ratio is worse, as for the shipped baseline. For an instance without a
ratio (an optimum of 0) the value is stored and compared.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from optsched.evaluation.measured_ratio import MeasuredRatio
from optsched.evaluation.ratio_baseline import KeptRatio, KeptSummary, Worsening, kept, summary, worse_in_suite
from optsched.evaluation.suite_ratios import PolicyRatios
from optsched.problem.atomic_files import read_bytes, write_atomic
from optsched.problem.documents import Document, Number, parse_json, read_document
from optsched.problem.objectives import get_objective

FORMAT = "optsched-guarded-ratios/2"
FIRST = "optsched-guarded-ratios/1"  # ratios alone: neither digests nor values
UPDATE = "pytest --ratio-update"
ROUNDED = 1e-6  # a mean of rounded ratios is not quite the rounded mean
SHORT = 8  # digits of a digest that people are shown
Entries = Mapping[str, Mapping[str, Any]]  # what a test measures -> what is kept of it


class KeptInstance(Document):
    """An instance: its digest and its ratio, or the value and the bound if it has no ratio."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    ratio: KeptRatio
    value: Number | None = None
    bound: Number | None = None

    @model_validator(mode="after")
    def _either(self) -> KeptInstance:
        known = [each for each in (self.ratio, self.value) if each is not None]
        from_first_format = self.digest is None and self.value is None
        if len(known) != 1 and not from_first_format:
            raise ValueError("either ratio or, where there is none, value must be a number")
        return self


def _must_follow(stated: KeptSummary, every: Collection[float | None]) -> None:
    """A merge may mix two files: what is compared must be what the instances say."""
    ratios = [each for each in every if each is not None]
    counted = {"worst": max(ratios, default=None), "mean": sum(ratios) / len(ratios) if ratios else None}
    for name, value in counted.items():
        said = getattr(stated, name)
        if (said is None) != (value is None) or (value and abs(said / value - 1) > ROUNDED):
            raise ValueError(f"{name} must be that of the instances, {value}, not {said}")


class KeptEntry(KeptSummary):
    """Stored form of a measurement, as made by `entry`."""

    instances: dict[str, KeptInstance]

    @model_validator(mode="after")
    def _follow(self) -> KeptEntry:
        _must_follow(self, [each.ratio for each in self.instances.values()])
        return self


class FirstEntry(KeptSummary):
    """Stored form of a measurement in the first format."""

    instances: dict[str, KeptRatio]

    @model_validator(mode="after")
    def _follow(self) -> FirstEntry:
        _must_follow(self, self.instances.values())
        return self


class GuardedRatios(Document):
    """The file: entries by test, and by what the test measures."""

    format: Literal["optsched-guarded-ratios/2"]
    tests: dict[str, dict[str, KeptEntry]]


class FirstGuardedRatios(Document):
    """The file in the first format."""

    format: Literal["optsched-guarded-ratios/1"]
    tests: dict[str, dict[str, FirstEntry]]


def entry(part: PolicyRatios, digests: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored form of a measurement: worst and mean ratio, and every instance.

    Parameters
    ----------
    part
        Ratios of one subject.
    digests
        Digests of the instances by name.
    """
    return {
        **summary(part),
        "instances": {row.instance: _instance(row, digests[row.instance]) for row in part.measured},
    }


def _instance(row: MeasuredRatio, digest: str) -> dict[str, Any]:
    if row.ratio is not None:
        return {"digest": digest, "ratio": kept(row.ratio)}
    bound = None if row.bound is None else kept(row.bound.value)
    return {"digest": digest, "ratio": None, "value": kept(row.value), "bound": bound}


def read(path: Path) -> dict[str, Entries]:
    """Return the entries of a file by test; empty if there is no such file.

    Instances of a file in the first format have only a ratio.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is not a baseline.
    """
    if not path.exists():
        return {}
    content = read_bytes(path)
    document = parse_json(content, path, f"format {FORMAT}")
    if not (isinstance(document, dict) and document.get("format") == FIRST):
        found = read_document(GuardedRatios, content, path, FORMAT)
        return dict(found.model_dump(exclude_unset=True)["tests"])
    tests = read_document(FirstGuardedRatios, content, path, FIRST).model_dump()["tests"]
    for each in (one for labels in tests.values() for one in labels.values()):
        each["instances"] = {name: {"ratio": ratio} for name, ratio in each["instances"].items()}
    return dict(tests)


def update(path: Path, measured: Mapping[str, Entries], root: Path, stale: Collection[tuple[str, str]] = ()) -> int:
    """Replace the entries of tests by new measurements, and return the number of changed entries.

    Tests that did not run keep their entries, except those that are ``stale`` and those whose file is gone. The file is
    written atomically.

    Parameters
    ----------
    path
        The file.
    measured
        New entries by test.
    root
        Folder of the project.
    stale
        Stale entries: (test, measurement).
    """
    old = read(path)
    left = {test: {k: v for k, v in one.items() if (test, k) not in stale} for test, one in old.items()}
    there = {test: one for test, one in {**left, **measured}.items() if (root / test.partition("::")[0]).exists()}
    new = {test: one for test, one in there.items() if one}
    changed = sum(each != old.get(test, {}).get(label) for test, one in new.items() for label, each in one.items())
    gone = sum(label not in new.get(test, {}) for test, one in old.items() for label in one)
    if changed or gone:
        document = {"format": FORMAT, "tests": {test: dict(sorted(new[test].items())) for test in sorted(new)}}
        write_atomic(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return changed + gone


def has_digests(then: Mapping[str, Any]) -> bool:
    """Return whether an entry has digests, and so detects changed instances.

    Parameters
    ----------
    then
        The entry.
    """
    return all(each.get("digest") for each in then["instances"].values())


def compared(part: PolicyRatios, digests: Mapping[str, str], then: Mapping[str, Any], factor: float) -> list[Worsening]:
    """Return where a measurement of a whole suite is worse than its entry, or has other instances.

    Parameters
    ----------
    part
        Ratios of one subject.
    digests
        Digests of the instances by name.
    then
        The entry.
    factor
        Factor by which a ratio may grow.
    """
    known = then["instances"]
    other = sorted({each.instance for each in part.measured} ^ set(known))
    if other:
        return [Worsening("", f"the baseline has other instances ({', '.join(other)}): run {UPDATE}")]
    changed = _changed(part, digests, known)
    if changed:
        return changed
    # Who had no ratio then has changed neither worst nor mean.
    rated = PolicyRatios(part.policy, tuple(row for row in part.measured if known[row.instance]["ratio"] is not None))
    ratios = {name: each["ratio"] for name, each in known.items()}
    return worse_in_suite(rated, then, ratios, factor) + _worse_values(part, known, factor)


def compared_alone(
    part: PolicyRatios, digests: Mapping[str, str], then: Mapping[str, Any], factor: float
) -> list[Worsening]:
    """Return where some instances of a suite, each alone, are worse than the entry; unknown instances are ignored.

    Parameters
    ----------
    part
        Ratios of one subject.
    digests
        Digests of the instances by name.
    then
        The entry.
    factor
        Factor by which a ratio may grow.
    """
    known, found = then["instances"], list[Worsening]()
    for row in part.measured:
        if row.instance in known:
            before = {
                "instances": {row.instance: known[row.instance]},
                "worst": known[row.instance]["ratio"],
                "mean": None,
            }
            found += compared(PolicyRatios(part.policy, (row,)), digests, before, factor)
    return found


def _changed(part: PolicyRatios, digests: Mapping[str, str], known: Mapping[str, Any]) -> list[Worsening]:
    found = []
    for name in (row.instance for row in part.measured):
        now, before = digests[name], known[name].get("digest")
        if before not in (None, now):
            what = f"the instance {name} is not that of the baseline (digest {now[:SHORT]}, it was {before[:SHORT]})"
            found.append(Worsening("", f"{what}: run {UPDATE} if it was meant to change"))
    return found


def _worse_values(part: PolicyRatios, known: Mapping[str, Any], factor: float) -> list[Worsening]:
    """Instances without a ratio in the baseline: a value that is worse than the one kept by more than ``factor``."""
    found = []
    for row in part.measured:
        before, now = known[row.instance], kept(row.value)
        if before["ratio"] is not None or now is None:
            continue
        if before.get("value") is None:
            said = f"the baseline has neither a ratio nor a value of the instance {row.instance}: run {UPDATE}"
            found.append(Worsening("", said))
            continue
        then, gain = before["value"], get_objective(row.objective).gain
        if (then - now if gain else now - then) > (factor - 1) * abs(then):
            over = "no bound is known" if row.bound is None else f"{row.bound.ratio_to} {row.bound.value:.9g}"
            moved = f"{row.objective} {'fell' if gain else 'rose'} from {then:.9g} to {now:.9g}"
            said = f"{moved}, on the instance {row.instance} ({over}, so there is no ratio)"
            found.append(Worsening(row.instance, said))
    return found
