"""The ratios of every registered policy on every shipped suite, kept under version control.

``python -m optsched.guarantees.baseline`` says what got worse; with ``--write`` it measures everything anew and writes
``instances/ratio-baseline.json``. Policies run with their default parameters; everything is deterministic.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from optsched.guarantees.evaluate import MeasuredRatio, PolicyRatios, RatioTable, ratios
from optsched.guarantees.suites import Suite, suites
from optsched.io.index import instances_folder
from optsched.policies import POLICIES
from optsched.problem.atomic_files import read_bytes, write_atomic
from optsched.problem.documents import Document, Number, read_document
from optsched.progress import bars

FORMAT = "optsched-ratio-baseline/1"
FILE = "ratio-baseline.json"
COMMAND = "python -m optsched.guarantees.baseline --write"
WORSE = 1.01  # a ratio may grow by 1 % before it counts as worse
DIGITS = 9  # significant digits kept: more would record the rounding of one machine
KeptRatio = Annotated[Number, Field(ge=0)] | None


class KeptSummary(Document):
    """What `summary` keeps."""

    worst: KeptRatio
    worst_instance: str | None
    mean: KeptRatio
    without: int = Field(ge=0)


class KeptPolicy(Document):
    """The ratios of one policy, by suite and by instance."""

    suites: dict[str, KeptSummary]
    instances: dict[str, KeptRatio]


class BaselineDocument(Document):
    """The file of the shipped baseline."""

    format: Literal["optsched-ratio-baseline/1"]
    policies: dict[str, KeptPolicy]


def baseline_path() -> Path:
    """Where the baseline lies: beside the shipped instances."""
    return Path(str(instances_folder().joinpath(FILE)))


def measured(policies: Sequence[str] | None = None) -> RatioTable:
    """Every registered policy (or those named) on every shipped instance."""
    with bars() as shown:
        step = shown.step("measuring ratios")
        return ratios("all", POLICIES.names() if policies is None else policies, progress=step)


def document(table: RatioTable, shipped: Mapping[str, Suite] | None = None) -> dict[str, Any]:
    """The baseline that a measurement of all instances gives: ratios by policy and instance, and a summary by suite."""
    return {
        "format": FORMAT,
        "policies": {
            row.policy: {
                "suites": {name: summary(part) for name, part in _by_suite(row, shipped or suites()).items()},
                "instances": {each.instance: kept(each.ratio) for each in row.measured},
            }
            for row in table.policies
        },
    }


def worse(table: RatioTable, baseline: Mapping[str, Any], shipped: Mapping[str, Suite] | None = None) -> list[str]:
    """What a measurement of all instances makes worse than the baseline, a line each that names policy, suite and instance.

    A worst or mean ratio that grew by more than 1 %; an instance that lost its ratio; a violated guarantee; a policy,
    suite or instance that the baseline does not know, or knows and that is gone.
    """
    known = baseline["policies"]
    found = [f"{judgement.complaint} (instance {instance})" for instance, judgement in table.violations]
    for row in table.policies:
        if row.policy not in known:
            found.append(f"{row.policy} is not in the baseline: run {COMMAND}")
            continue
        old = known[row.policy]
        now = {each.instance: each for each in row.measured}
        parts = _by_suite(row, shipped or suites())
        if set(parts) != set(old["suites"]) or set(now) != set(old["instances"]):
            changed = sorted((set(parts) ^ set(old["suites"])) | (set(now) ^ set(old["instances"])))
            found.append(
                f"{row.policy}: the baseline has other suites or instances ({', '.join(changed)}): run {COMMAND}"
            )
            continue
        for name, part in parts.items():
            worsened = worse_in_suite(part, old["suites"][name], old["instances"])
            found += [f"{row.policy} on the suite {name}: {each.text}" for each in worsened]
    return found


def gone(table: RatioTable, baseline: Mapping[str, Any]) -> list[str]:
    """Policies of the baseline that are no longer measured."""
    names = {row.policy for row in table.policies}
    return [
        f"{name} is in the baseline, and no longer a policy: run {COMMAND}"
        for name in baseline["policies"]
        if name not in names
    ]


def load(path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The baseline under version control (or in ``path``); `InputError` when it is not one."""
    place = baseline_path() if path is None else Path(path)
    return read_document(BaselineDocument, read_bytes(place), place, FORMAT).model_dump()


def save(content: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> None:
    """Write a baseline, whole or not at all."""
    write_atomic(baseline_path() if path is None else path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def _by_suite(row: PolicyRatios, shipped: Mapping[str, Suite]) -> dict[str, PolicyRatios]:
    # Only suites with instances that the policy is for: a policy for whole jobs is not measured where jobs have tasks.
    now = {each.instance: each for each in row.measured}
    found = {name: tuple(now[member] for member in suite.members if member in now) for name, suite in shipped.items()}
    return {name: PolicyRatios(row.policy, measured) for name, measured in found.items() if measured}


def summary(part: PolicyRatios) -> dict[str, Any]:
    """What is kept of a policy over a suite."""
    return {
        "worst": kept(part.worst),
        "worst_instance": part.worst_instance,
        "mean": kept(part.mean),
        "without": len(part.without),
    }


class Worsening(NamedTuple):
    """What got worse, in a line, and the instance on which it did."""

    instance: str
    text: str


def worse_in_suite(
    part: PolicyRatios, then: Mapping[str, Any], instances: Mapping[str, float | None], factor: float = WORSE
) -> list[Worsening]:
    """Where a policy lost its ratio on an instance, or its worst or mean ratio over a suite grew by more than ``factor``.

    ``then`` is the `summary` that was kept, ``instances`` the ratios by instance.
    """
    found = []
    lost = [name for name in part.without if instances[name] is not None]
    if lost:
        found.append(Worsening(lost[0], f"no ratio any more on the instance {', '.join(lost)}"))
    for what, ratio in (("worst", kept(part.worst)), ("mean", kept(part.mean))):
        if ratio is not None and then[what] is not None and ratio > factor * then[what]:
            culprit = str(part.worst_instance) if what == "worst" else _grown_most(part.measured, instances)
            said = f"the {what} ratio rose from {then[what]:.4f} to {ratio:.4f}, on the instance {culprit}"
            found.append(Worsening(culprit, said))
    return found


def _grown_most(rows: Sequence[MeasuredRatio], instances: Mapping[str, float | None]) -> str:
    def growth(each: MeasuredRatio) -> float:
        then = instances[each.instance]
        return -math.inf if each.ratio is None or then is None else each.ratio / then

    return max(rows, key=growth).instance


def kept(ratio: float | None) -> float | None:
    """A ratio as it is written."""
    return None if ratio is None else float(f"{ratio:.{DIGITS}g}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare (exit 1 when something got worse), or write anew."""
    parser = argparse.ArgumentParser(
        prog="python -m optsched.guarantees.baseline", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help="write what is measured now")
    parser.add_argument("--file", help=f"default: instances/{FILE}", default=None)
    options = parser.parse_args(arguments)
    table = measured()
    if options.write:
        broken = [judgement.complaint for _, judgement in table.violations]
        if not broken:
            save(document(table), options.file)
        return _said(broken)
    baseline = load(options.file)
    return _said(worse(table, baseline) + gone(table, baseline))


def _said(problems: list[str]) -> int:
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
