"""`Report`: what policies made of one instance, and how far each is from the best possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optsched.bounds import Certificate
from optsched.classes import CLASSES
from optsched.evaluation.as_logged import LoggedRun
from optsched.evaluation.measured_ratio import BoundShown, MeasuredRatio
from optsched.evaluation.quick_bounds import least_queued_hours
from optsched.guarantees.judge import Judgement, violated
from optsched.io.traces.log_reading import LEFT_OUT, NOT_MODELLED, SAID, SKIPPED, not_modelled
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance
from optsched.problem.table import Table
from optsched.simulation.run import Run


@dataclass(frozen=True, kw_only=True)
class Line(MeasuredRatio):
    """One policy of a report.

    Parameters
    ----------
    run
        The run.
    queued_avoided
        GPU-hours that gangs waited or restarted under the first policy of the report, minus the same number under this
        policy. None if one of the two policies left jobs unfinished. The number is not saved hardware: while many jobs
        wait, more GPU-hours queue than the cluster has.
    avoidable_queueing
        The most of the GPU-hours that gangs waited or restarted which any schedule of rigid gangs could avoid. None if no
        bound is known.
    """

    run: Run
    queued_avoided: float | None
    avoidable_queueing: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``run --json``; ``guarantee`` is null if no theorem applies."""
        metrics, measured = self.run.metrics, super().to_json()
        hours = {**metrics["gpu_hours"], "queued_avoided": self.queued_avoided}
        hours["queued_avoidable"] = self.avoidable_queueing
        return {
            "policy": self.policy,
            "knowledge": self.knowledge,
            **{name: measured[name] for name in ("value", "bound", "ratio", "ratio_to", "guarantee")},
            "metrics": {**metrics, "gpu_hours": hours},
            "events": self.run.events,
            "seconds": self.run.seconds,
        }


def queued_hours(run: Run) -> float:
    """Return the GPU-hours in which gangs waited or restarted.

    Parameters
    ----------
    run
        The run.
    """
    hours = run.metrics["gpu_hours"]
    return float(hours["waiting"] + hours["overhead"])


@dataclass(frozen=True, repr=False)
class Report:
    """Runs of policies on one instance, the bounds on its optimum, and the judgements of theorems.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    objective
        Name of the objective.
    runs
        One run a policy, each accepted by the referee. The first one is the schedule that really ran (`LoggedRun`) if the
        log of the instance says so; the referee has not judged it.
    certificate
        The verified bound for the class ``gang``, or for the sharing class if jobs may share GPUs; None if no bound on
        this objective is known. It holds for every run except those that fork or resize jobs.
    bounds
        For every run the bound with which it is compared. An optimum that the instance states is used only for runs of
        its own class of schedules, and only if this installation proved it.
    judged
        For every run the judgements of the theorems that apply.
    skipped_rows
        Invalid rows of the source that were left out.
    other_certificates
        Verified bounds for classes of schedules that ``certificate`` does not serve.
    note
        A remark on a stated optimum that is not proved here; empty if there is nothing to say.
    """

    instance: Instance
    objective: str
    runs: tuple[Run, ...]
    certificate: Certificate | None
    bounds: tuple[BoundShown | None, ...]
    judged: tuple[tuple[Judgement, ...], ...]
    skipped_rows: int = 0
    other_certificates: tuple[Certificate, ...] = ()
    note: str = ""

    def __repr__(self) -> str:
        values = ", ".join(f"{line.run.policy} {number(line.value)}" for line in self.lines[:4])
        more = ", ..." if len(self.lines) > 4 else ""
        return f"Report({self.objective} on {self.instance.name!r}: {values}{more})"

    def _repr_html_(self) -> str:
        return html_of("report", self)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """One line a policy, in the order given."""
        name, goal = self.instance.name, self.objective
        return tuple(
            Line(
                name,
                goal,
                run.policy,
                run.value(goal),
                bound,
                judged,
                knowledge=str(run.knowledge),
                run=run,
                queued_avoided=self._queued_avoided(run),
                avoidable_queueing=self._avoidable(run),
            )
            for run, bound, judged in zip(self.runs, self.bounds, self.judged, strict=True)
        )

    def _queued_avoided(self, run: Run) -> float | None:
        if self.runs[0].metrics["unfinished"] or run.metrics["unfinished"]:
            return None
        return queued_hours(self.runs[0]) - queued_hours(run)

    def _avoidable(self, run: Run) -> float | None:
        if not CLASSES.get(run.schedule_class).rigid or run.metrics["unfinished"] or self.least_queued is None:
            return None
        return max(0.0, queued_hours(run) - self.least_queued)

    @cached_property
    def least_queued(self) -> float | None:
        """GPU-hours that gangs wait or restart in any schedule of rigid gangs; None if no bound is known."""
        return least_queued_hours(self.instance)

    @property
    def logged(self) -> LoggedRun | None:
        """The schedule that really ran, if the log of the instance says so; it is the first run."""
        first = self.runs[0] if self.runs else None
        return first if isinstance(first, LoggedRun) else None

    @property
    def violations(self) -> list[Judgement]:
        """Every judgement of a guarantee that does not hold."""
        return [judgement for judged in self.judged for judgement in violated(judged)]

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``run --json``."""
        notes = not_modelled(self.instance)
        read = (self.instance.recipe or {}).get("parameters") or {}
        return {
            "instance": {
                "name": self.instance.name,
                "jobs": self.instance.n,
                "gpus": self.instance.cluster.gpus,
                "skipped_rows": self.skipped_rows,
                **({NOT_MODELLED: notes} if notes else {}),
                **{key: read[key] for key in (LEFT_OUT, SKIPPED, SAID) if key in read},
            },
            "objective": self.objective,
            "runs": [line.to_json() for line in self.lines],
        }

    def frame(self) -> Table:
        """Return a polars table with one row a policy.

        Returns
        -------
        Table
            Columns: policy, knowledge, value, bound with its kind and class, ratio, guarantee, metrics, GPU-hours, events
            and seconds.
        """
        rows = []
        for line in self.lines:
            document = line.to_json()
            shown = document.pop("bound") or {"value": None, "kind": None, "class": None, "exact": None}
            metrics = document.pop("metrics")
            hours = {f"gpu_hours_{key}": value for key, value in metrics.pop("gpu_hours").items()}
            head = {key: document[key] for key in ("policy", "knowledge", "value")}
            head |= {"bound": shown["value"], "bound_kind": shown["kind"], "bound_class": shown["class"]}
            tail = {key: document[key] for key in ("ratio", "ratio_to")}
            theorem = {"guarantee": getattr(line.guarantee, "id", None)}
            for name in ("objective", "ratio", "holds"):  # the objective need not be that of the report
                theorem[f"guarantee_{name}"] = getattr(line.guarantee, name, None)
            counts = {key: document[key] for key in ("events", "seconds")}
            rows.append(head | tail | theorem | metrics | hours | counts)
        return Table(rows, infer_schema_length=None)
