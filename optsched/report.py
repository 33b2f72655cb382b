"""How far is every policy from the best possible: runs, a verified bound, ratios and savings in one report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import polars as pl

from optsched.bounds import Certificate, NoBoundError, bound
from optsched.check import check_schedule, schedule_value
from optsched.errors import InputError, SimulationError
from optsched.instance import Instance
from optsched.objectives import get_objective, objective_of
from optsched.online.simulate import simulate
from optsched.online.specification import Specification, specify
from optsched.policy import OrderedPolicy, Policy
from optsched.simulation.engine import Progress
from optsched.simulation.run import Run

KNOWN = "known-optimum"  # the kind of bound that the instance states itself
DEFAULT_POLICIES = ("fifo", "sjf", "srtf")
PolicyLike = str | Policy | OrderedPolicy | Specification


@dataclass(frozen=True)
class BoundShown:
    """The lower bound beside a run: ``exact`` when it is known to be the optimum of its class of schedules."""

    value: float
    kind: str
    schedule_class: str
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """As in ``run --json``."""
        return {"value": self.value, "kind": self.kind, "class": self.schedule_class, "exact": self.exact}


@dataclass(frozen=True)
class Line:
    """One policy of a report.

    ``saved``: GPU-hours that gangs spent waiting or restarting under the first policy of the report, less the same here.
    """

    run: Run
    value: float
    bound: BoundShown | None
    saved: float

    @property
    def ratio(self) -> float | None:
        """value / optimum, or value / bound; None where either is missing, or the bound is 0 and the value is not."""
        if self.bound is None or math.isnan(self.value):
            return None
        if self.bound.value <= 0:
            return 1.0 if self.value == 0 else None
        return self.value / self.bound.value

    def to_json(self) -> dict[str, Any]:
        """As in ``run --json``; ``guarantee`` is null where no theorem is known for the policy."""
        metrics = self.run.metrics
        return {
            "policy": self.run.policy,
            "knowledge": str(self.run.knowledge),
            "value": None if math.isnan(self.value) else self.value,
            "bound": self.bound.to_json() if self.bound else None,
            "ratio": self.ratio,
            "ratio_to": None if self.ratio is None else "optimum" if self.bound and self.bound.exact else "bound",
            "guarantee": None,
            "metrics": {**metrics, "gpu_hours": {**metrics["gpu_hours"], "saved": self.saved}},
            "events": self.run.events,
            "seconds": self.run.seconds,
        }


@dataclass(frozen=True)
class Report:
    """What policies made of an instance, and how far each is from the best possible.

    ``certificate`` is the verified bound for the class ``gang`` (None: no bound on this objective is known); it holds for
    every run. A proven optimum that the instance states is used for runs of its own class of schedules.
    """

    instance: Instance
    objective: str
    runs: tuple[Run, ...]
    certificate: Certificate | None
    skipped_rows: int = 0

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """One line a policy, in the order given."""
        values = [run.value(self.objective) for run in self.runs]
        lost = [run.metrics["gpu_hours"]["waiting"] + run.metrics["gpu_hours"]["overhead"] for run in self.runs]
        return tuple(
            Line(run, value, self._bound_of(run), lost[0] - mine)
            for run, value, mine in zip(self.runs, values, lost, strict=True)
        )

    @cached_property
    def _best(self) -> Fraction | None:
        # The smallest exact value of a finished run: when the bound reaches it, the bound is the optimum.
        if self.certificate is None:
            return None
        floor = self.certificate.exact_float
        close = [r for r in self.runs if not r.unfinished and r.value(self.objective) <= floor * (1 + 1e-9) + 1e-9]
        return min((schedule_value(self.instance, r.schedule, self.objective) for r in close), default=None)

    def _bound_of(self, run: Run) -> BoundShown | None:
        known = stated_optimum(self.instance, self.objective)
        if known is not None and run.schedule_class == known[1]:
            return BoundShown(known[0], KNOWN, known[1], True)
        if self.certificate is None:
            return None
        c = self.certificate
        return BoundShown(c.exact_float, c.kind, c.schedule_class, self._best == c.value)

    def to_json(self) -> dict[str, Any]:
        """The document of ``run --json``."""
        return {
            "instance": {
                "name": self.instance.name,
                "jobs": self.instance.n,
                "gpus": self.instance.cluster.gpus,
                "skipped_rows": self.skipped_rows,
            },
            "objective": self.objective,
            "runs": [line.to_json() for line in self.lines],
        }

    def frame(self) -> pl.DataFrame:
        """A polars table: policy, knowledge, value, bound, ratio, ratio_to, metrics and GPU-hours, one row a policy."""
        rows = []
        for line in self.lines:
            document = line.to_json()
            shown = document.pop("bound") or {"value": None, "kind": None, "class": None, "exact": None}
            metrics = document.pop("metrics")
            hours = {f"gpu_hours_{key}": value for key, value in metrics.pop("gpu_hours").items()}
            head = {key: document[key] for key in ("policy", "knowledge", "value")}
            tail = {key: document[key] for key in ("ratio", "ratio_to", "guarantee")}
            rows.append(
                {**head, "bound": shown["value"], "bound_kind": shown["kind"], **tail, **metrics, **hours}
                | {"events": document["events"], "seconds": document["seconds"]}
            )
        return pl.DataFrame(rows, infer_schema_length=None)


def stated_optimum(instance: Instance, objective: str) -> tuple[float, str] | None:
    """(value, class of schedules) of the proven optimum that the instance states for this objective, or None.

    A flow time and its completion time differ by a constant, so that either states the other.
    """
    if not instance.optimum:
        return None
    stated, wanted = get_objective(str(instance.optimum["objective"])), get_objective(objective)
    value = float(instance.optimum["value"])
    if stated.name != wanted.name:
        if (stated.completion_form or stated.name) != (wanted.completion_form or wanted.name):
            return None
        weight = instance.weight if wanted.weighted else 1.0
        constant = float((weight * instance.arrival).sum())
        value += constant if stated.completion_form else -constant
    return value, str(instance.optimum.get("class", "gang-nonpreemptive"))


def evaluate(
    instance: Instance,
    policies: Iterable[PolicyLike] = DEFAULT_POLICIES,
    objective: str | None = None,
    *,
    skipped_rows: int = 0,
    progress: Callable[[str], Progress] | None = None,
) -> Report:
    """Run policies and bound the optimum; everything in the report has been checked twice.

    The referee (`optsched.check`) accepts every schedule, and the certificate has been proved again from the instance, or
    an error is raised. ``progress(policy)`` gives a callback for each run.

    Raises
    ------
    InputError
        Unknown policies or objective; a stated optimum that a run or the bound refutes.
    SimulationError
        The referee rejects a schedule (a defect of optsched, or of a policy of one's own).
    """
    name = objective_of(instance, objective).name
    chosen = [specify(policy) for policy in policies]
    runs = []
    for spec in chosen:
        run = simulate(instance, spec, progress=progress(spec.text) if progress else None)
        _referee(run)
        runs.append(run)
    report = Report(instance, name, tuple(runs), verified_bound(instance, name), skipped_rows)
    _stated_optimum_stands(report)
    return report


def compare(
    instance: Instance, policies: Iterable[PolicyLike] = DEFAULT_POLICIES, objective: str | None = None
) -> pl.DataFrame:
    """Run policies and bound the optimum: `Report.frame` of `evaluate`."""
    return evaluate(instance, policies, objective).frame()


def verified_bound(instance: Instance, objective: str, schedule_class: str = "gang") -> Certificate | None:
    """The best certificate for an objective, proved again before it is returned; None where no bound is known."""
    try:
        certificate = bound(instance, objective, schedule_class)
    except NoBoundError:
        return None
    certificate.verify(instance)
    return certificate


def _referee(run: Run) -> None:
    violations = check_schedule(run.instance, run.schedule, preemptive=run.preemptive)
    # Jobs that never finished are named in the report; what they miss is not the schedule's fault.
    broken = [v for v in violations if not (v.rule in ("completeness", "work") and run.unfinished)]
    if broken:
        raise SimulationError(
            f"the referee rejects the schedule of {run.policy}: {broken[0].rule}: {broken[0].message}"
        )


def _stated_optimum_stands(report: Report) -> None:
    known = stated_optimum(report.instance, report.objective)
    if known is None:
        return
    value, schedule_class = known
    slack = 1e-9 * max(1.0, abs(value))
    better = [
        run
        for run in report.runs
        if run.schedule_class == schedule_class and run.value(report.objective) < value - slack
    ]
    floor = report.certificate.exact_float if report.certificate else -math.inf
    if better or floor > value + slack:
        found = (
            f"{better[0].policy} reaches {better[0].value(report.objective):g}" if better else f"a bound is {floor:g}"
        )
        raise InputError(
            f"the optimum that the instance states is refuted: {found}",
            field="optimum",
            value=value,
            legal="none, or a proven one",
        )
