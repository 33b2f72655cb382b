"""Ratios over a suite: the worst and the mean ratio of every policy to the best possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from optsched.errors import InputError
from optsched.evaluation.evaluate import measure, several
from optsched.evaluation.measured_ratio import MeasuredRatio
from optsched.evaluation.suites import Suite, suite
from optsched.guarantees.judge import Judgement, violated
from optsched.policies.simulate import PolicyLike, serves, specify
from optsched.problem.html import number
from optsched.problem.table import Table

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class PolicyRatios:
    """The ratios of one policy over a suite.

    Parameters
    ----------
    policy
        The policy as it is written.
    measured
        One entry an instance, in the order of the suite.
    """

    policy: str
    measured: tuple[MeasuredRatio, ...]

    @property
    def knowledge(self) -> str:
        """The knowledge of the policy."""
        return ", ".join(dict.fromkeys(row.knowledge for row in self.measured if row.knowledge))

    @property
    def classes(self) -> dict[str, str]:
        """The class of schedules that is bounded, by instance, for instances with a ratio."""
        rows = ((row.instance, row.bound) for row in self.measured if row.ratio is not None)
        return {name: bound.schedule_class for name, bound in rows if bound is not None}

    @cached_property
    def _ratios(self) -> list[tuple[float, str]]:
        return [(row.ratio, row.instance) for row in self.measured if row.ratio is not None]

    @property
    def worst(self) -> float | None:
        """The largest ratio; None if no instance has one."""
        return max(self._ratios)[0] if self._ratios else None

    @property
    def worst_instance(self) -> str | None:
        """The instance with the largest ratio; the first of equal ones."""
        return next((name for ratio, name in self._ratios if ratio == self.worst), None)

    @property
    def mean(self) -> float | None:
        """The mean ratio; None if no instance has one."""
        return sum(ratio for ratio, _ in self._ratios) / len(self._ratios) if self._ratios else None

    def percentile(self, share: float) -> float | None:
        """Return the ratio that ``share`` percent of the instances do not exceed, by nearest rank.

        Parameters
        ----------
        share
            Percentage, above 0 and at most 100.

        Returns
        -------
        float or None
            A ratio that was measured; None if no instance has one.
        """
        ordered = sorted(ratio for ratio, _ in self._ratios)
        return ordered[max(math.ceil(share / 100 * len(ordered)), 1) - 1] if ordered else None

    @property
    def without(self) -> tuple[str, ...]:
        """The instances without a ratio: nothing to divide by, or unfinished jobs."""
        return tuple(row.instance for row in self.measured if row.ratio is None)

    def guarantee(self) -> dict[str, Any] | None:
        """Return a summary of the judgements over the suite; None if no theorem applies.

        ``holds`` is false if a theorem was violated, true if all hold, else null.
        """
        shown = [(row, row.guarantee) for row in self.measured]
        judged = [(row, judgement) for row, judgement in shown if judgement is not None]
        if not judged:
            return None
        verdicts = [judgement.holds for _, judgement in judged]
        return {
            "id": ", ".join(dict.fromkeys(judgement.id for _, judgement in judged)),
            "objective": ", ".join(dict.fromkeys(judgement.objective for _, judgement in judged)),
            "applies": len(judged),
            "kept": verdicts.count(True),
            "open": verdicts.count(None),
            "violated": [row.instance for row, judgement in judged if judgement.holds is False],
            "holds": False if False in verdicts else None if None in verdicts else True,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``ratio --json``."""
        return {
            "policy": self.policy,
            "knowledge": self.knowledge,
            "worst": self.worst,
            "worst_instance": self.worst_instance,
            "mean": self.mean,
            "percentiles": {f"p{share}": self.percentile(share) for share in PERCENTILES},
            "without": list(self.without),
            "instances": [row.to_json() for row in self.measured],
            "guarantee": self.guarantee(),
        }


@dataclass(frozen=True, repr=False)
class RatioTable:
    """The ratios of several policies over a suite.

    Parameters
    ----------
    suite
        Name of the suite.
    policies
        One entry a policy.
    speed
        Speed of the machines on which the policies ran; None if it is that of the optimum.
    """

    suite: str
    policies: tuple[PolicyRatios, ...]
    speed: Fraction | None = None

    @property
    def objective(self) -> str | None:
        """The objective of all rows; None if instances were measured on different ones."""
        names = {row.objective for policy in self.policies for row in policy.measured}
        return names.pop() if len(names) == 1 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on stated optima that are not proved here, each once."""
        rows = [row for policy in self.policies for row in policy.measured if row.note]
        return tuple(dict.fromkeys(f"{row.instance}: {row.note}" for row in rows))

    @property
    def violations(self) -> list[tuple[str, Judgement]]:
        """(instance, judgement) of every theorem that does not hold."""
        rows = [row for policy in self.policies for row in policy.measured]
        return [(row.instance, judgement) for row in rows for judgement in violated(row.judged)]

    def __repr__(self) -> str:
        worst = ", ".join(f"{row.policy} {number(row.worst)}" for row in self.policies)
        return f"RatioTable({self.suite}, worst ratio: {worst})"

    def frame(self) -> Table:
        """Return a polars table with one row a policy and instance.

        Returns
        -------
        Table
            Columns: policy, knowledge, instance, objective, value, bound, ratio, and ``ratio_to`` (``optimum`` or
            ``bound``).
        """
        rows = [
            {"policy": row.policy, "knowledge": row.knowledge, **row.to_json()}
            | {"bound": row.bound.value if row.bound else None}
            for policy in self.policies
            for row in policy.measured
        ]
        return Table([{k: v for k, v in row.items() if k != "guarantee"} for row in rows], infer_schema_length=None)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``ratio --json``."""
        return {
            "suite": self.suite,
            "objective": self.objective,
            **({} if self.speed is None else {"speed": str(self.speed)}),
            "policies": [policy.to_json() for policy in self.policies],
        }


def ratios(
    over: str | Suite,
    policies: PolicyLike | Iterable[PolicyLike],
    objective: str | None = None,
    *,
    speed: Fraction | None = None,
    strong: bool = False,
    progress: Callable[[int, int], None] | None = None,
    so_far: Callable[[RatioTable], None] | None = None,
) -> RatioTable:
    """Measure the ratios of policies over a suite of instances.

    A policy for whole jobs is not run on instances whose jobs have tasks, and vice versa.

    Parameters
    ----------
    over
        A suite or its name, a folder of instance files, or an instance (see `optsched.evaluation.suites.suite`).
    policies
        One policy or several: texts or policy objects.
    objective
        Name of the objective. Default: each instance's own.
    speed
        Speed of the machines on which the policies run (`optsched.guarantees.speed`); the theorems are then those
        for faster machines, and the optimum is that at speed 1. Default: the same machines.
    strong
        True to compute the bounds that take up to a minute an instance, too (see `optsched.bound`).
    progress
        Called with (instances done, all instances).
    so_far
        Called after each instance with the table of those done.

    Raises
    ------
    InputError
        Unknown suite, policy or objective; a run refutes a stated optimum; no instance of the suite is for a
        policy.
    SimulationError
        The referee rejects a schedule.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.ratios("rigid-small", ["fifo", "srtf"], objective="total_flow_time")
    RatioTable(rigid-small, worst ratio: fifo 1.538, srtf 1.396)
    """
    where = over if isinstance(over, Suite) else suite(over)
    specifications = [specify(specification) for specification in several(policies)]
    rows: list[list[MeasuredRatio]] = [[] for _ in specifications]
    instances, texts = where.instances(), [specification.text for specification in specifications]

    def table() -> RatioTable:
        return RatioTable(where.name, tuple(PolicyRatios(t, tuple(r)) for t, r in zip(texts, rows, strict=True)), speed)

    for done, (name, instance) in enumerate(instances, 1):
        fitting = [k for k, specification in enumerate(specifications) if serves(specification.policy, instance)]
        found = measure(
            instance, [specifications[k] for k in fitting], objective, name=name, speed=speed, strong=strong
        )
        for k, measured in zip(fitting, found, strict=True):
            rows[k].append(measured)
        if progress is not None:
            progress(done, len(instances))
        if so_far is not None:
            so_far(table())
    for text, row in zip(texts, rows, strict=True):
        if instances and not row:
            raise for_no_instance(where, text)
    return table()


def for_no_instance(where: Suite, policy: str) -> InputError:
    """Return the error for a policy that no instance of a suite is for.

    Parameters
    ----------
    where
        The suite.
    policy
        The policy as it is written.
    """
    legal = "policies of the task level for tasks, for sharing where there is interference, else for whole jobs"
    return InputError(f"no instance of {where.name} is for it", field="policy", value=policy, legal=legal)
