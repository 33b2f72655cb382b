"""The ratios of every registered policy on every shipped suite, kept under version control.

``python -m optsched.evaluation.ratio_baseline`` lists what got worse. With ``--write`` it measures everything
again and writes ``instances/ratio-baseline.json``. Policies run with their default parameters; everything is
deterministic.
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

from optsched.evaluation.measured_ratio import MeasuredRatio
from optsched.evaluation.suite_ratios import PolicyRatios, RatioTable, ratios
from optsched.evaluation.suites import Suite, suite, suites
from optsched.io.index import instances_folder
from optsched.policies import POLICIES
from optsched.policies.simulate import serves, specify
from optsched.problem.atomic_files import read_bytes, write_atomic
from optsched.problem.documents import Document, Number, read_document
from optsched.progress import bars

FORMAT = "optsched-ratio-baseline/1"
FILE = "ratio-baseline.json"
COMMAND = "python -m optsched.evaluation.ratio_baseline --write"
WORSE = 1.01  # a ratio may grow by 1 % before it counts as worse
DIGITS = 9  # significant digits kept: more would record the rounding of one machine
KeptRatio = Annotated[Number, Field(ge=0)] | None


class KeptSummary(Document):
    """The summary of a policy over a suite, as the file keeps it (see `summary`)."""

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
    """Return the path of the baseline, next to the shipped instances."""
    return Path(str(instances_folder().joinpath(FILE)))


def measured(policies: Sequence[str] | None = None) -> RatioTable:
    """Measure every policy of `measurable` on every shipped instance.

    Parameters
    ----------
    policies
        Names of policies. Default: all that are measurable.
    """
    with bars() as shown:
        step = shown.step("measuring ratios")
        return ratios("all", measurable() if policies is None else policies, progress=step)


def measurable() -> list[str]:
    """Return the names of the registered policies that are for some shipped instance."""
    instances = [instance for _, instance in suite("all").instances()]
    return [name for name in POLICIES.names() if any(serves(specify(name).policy, each) for each in instances)]


def document(table: RatioTable, shipped: Mapping[str, Suite] | None = None) -> dict[str, Any]:
    """Return the baseline that a measurement of all instances gives.

    Parameters
    ----------
    table
        Ratios on all shipped instances.
    shipped
        The suites. Default: those of the library.

    Returns
    -------
    dict
        Ratios by policy and instance, and a summary by suite.
    """
    return {
        "format": FORMAT,
        "policies": {
            row.policy: {
                "suites": {name: summary(part) for name, part in _by_suite(row, shipped or suites()).items()},
                "instances": {entry.instance: kept(entry.ratio) for entry in row.measured},
            }
            for row in table.policies
        },
    }


def worse(table: RatioTable, baseline: Mapping[str, Any], shipped: Mapping[str, Suite] | None = None) -> list[str]:
    """List what a measurement of all instances makes worse than the baseline.

    A worst or mean ratio that grew by more than 1 %; an instance that lost its ratio; a violated guarantee; a
    policy, suite or instance that only one of the two knows.

    Parameters
    ----------
    table
        Ratios on all shipped instances.
    baseline
        The baseline, as `load` returns it.
    shipped
        The suites. Default: those of the library.

    Returns
    -------
    list of str
        One line a finding; it names policy, suite and instance.
    """
    known = baseline["policies"]
    found = [f"{judgement.complaint} (instance {instance})" for instance, judgement in table.violations]
    for row in table.policies:
        if row.policy not in known:
            found.append(f"{row.policy} is not in the baseline: run {COMMAND}")
            continue
        old = known[row.policy]
        now = {entry.instance: entry for entry in row.measured}
        parts = _by_suite(row, shipped or suites())
        if set(parts) != set(old["suites"]) or set(now) != set(old["instances"]):
            changed = sorted((set(parts) ^ set(old["suites"])) | (set(now) ^ set(old["instances"])))
            found.append(
                f"{row.policy}: the baseline has other suites or instances ({', '.join(changed)}): run {COMMAND}"
            )
            continue
        for name, part in parts.items():
            worsened = worse_in_suite(part, old["suites"][name], old["instances"])
            found += [f"{row.policy} on the suite {name}: {worsening.text}" for worsening in worsened]
    return found


def gone(table: RatioTable, baseline: Mapping[str, Any]) -> list[str]:
    """List the policies of the baseline that are no longer measured.

    Parameters
    ----------
    table
        Ratios on all shipped instances.
    baseline
        The baseline, as `load` returns it.
    """
    names = {row.policy for row in table.policies}
    return [
        f"{name} is in the baseline, and no longer a policy: run {COMMAND}"
        for name in baseline["policies"]
        if name not in names
    ]


def load(path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Read a baseline.

    Parameters
    ----------
    path
        The file. Default: the baseline under version control.

    Raises
    ------
    InputError
        The file is not a baseline.
    """
    place = baseline_path() if path is None else Path(path)
    return read_document(BaselineDocument, read_bytes(place), place, FORMAT).model_dump()


def save(content: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> None:
    """Write a baseline; a failure leaves the old file as it was.

    Parameters
    ----------
    content
        The baseline, as `document` returns it.
    path
        The file. Default: the baseline under version control.
    """
    write_atomic(baseline_path() if path is None else path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def _by_suite(row: PolicyRatios, shipped: Mapping[str, Suite]) -> dict[str, PolicyRatios]:
    # Only suites with instances that the policy is for: a policy for whole jobs is not measured where jobs have tasks.
    now = {entry.instance: entry for entry in row.measured}
    found = {name: tuple(now[member] for member in suite.members if member in now) for name, suite in shipped.items()}
    return {name: PolicyRatios(row.policy, measured) for name, measured in found.items() if measured}


def summary(part: PolicyRatios) -> dict[str, Any]:
    """Return what the baseline keeps of a policy over a suite.

    Parameters
    ----------
    part
        The ratios of the policy on the instances of the suite.
    """
    return {
        "worst": kept(part.worst),
        "worst_instance": part.worst_instance,
        "mean": kept(part.mean),
        "without": len(part.without),
    }


class Worsening(NamedTuple):
    """A ratio that got worse.

    Parameters
    ----------
    instance
        The instance on which it did.
    text
        One line for people.
    """

    instance: str
    text: str


def worse_in_suite(
    part: PolicyRatios, then: Mapping[str, Any], instances: Mapping[str, float | None], factor: float = WORSE
) -> list[Worsening]:
    """List where a policy got worse over a suite.

    The policy lost its ratio on an instance, or its worst or mean ratio grew by more than ``factor``.

    Parameters
    ----------
    part
        The ratios of the policy now.
    then
        The `summary` that was kept.
    instances
        The ratios that were kept, by instance.
    factor
        Growth up to this factor is not worse.
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
    def growth(entry: MeasuredRatio) -> float:
        then = instances[entry.instance]
        return -math.inf if entry.ratio is None or then is None else entry.ratio / then

    return max(rows, key=growth).instance


def kept(ratio: float | None) -> float | None:
    """Return a ratio with the number of digits that the file keeps.

    Parameters
    ----------
    ratio
        The ratio; None stays None.
    """
    return None if ratio is None else float(f"{ratio:.{DIGITS}g}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare with the baseline, or write it again; return the exit status, 1 if something got worse.

    Parameters
    ----------
    arguments
        Arguments of the command line. Default: those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m optsched.evaluation.ratio_baseline", description=(__doc__ or "").splitlines()[0]
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
