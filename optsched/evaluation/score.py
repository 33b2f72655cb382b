"""`score`: how good the schedule is that really ran, or one in a file, and how much of it could have been avoided."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from optsched.check.referee import check_file, check_schedule
from optsched.classes import class_stated, require_whole_jobs
from optsched.errors import InputError, OptschedError
from optsched.evaluation.accepted_run import accepted
from optsched.evaluation.advice.savings import queued_by_job
from optsched.evaluation.as_logged import IdleSpan, Inconsistency, LoggedRun, as_logged, jobs_that_ran
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.quick_bounds import SINGLE, least_bounded_slowdown, quick_bound
from optsched.evaluation.report import Line, Report
from optsched.io.traces.log_reading import dates_of, last_moment, unit_of
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import get_objective, objective_of
from optsched.problem.schedule import Schedule, Scheduled, schedule_in
from optsched.problem.table import Table
from optsched.rounding import Side, counted, fixed, number, ratio, were
from optsched.simulation.knowledge import NOT_STATED
from optsched.simulation.metrics import HOUR, bounded_slowdowns
from optsched.simulation.run import RUNS, Run

FLOW = "total_flow_time"
WEIGHTED = ("total_weighted_flow_time", "total_weighted_completion_time", "total_weighted_tardiness")
SUMS = {FLOW: "job-seconds", "total_completion_time": "job-seconds", **dict.fromkeys(WEIGHTED, "weighted job-seconds")}
TIMES = dict.fromkeys(("makespan", "max_flow_time"), "seconds")
UNITS = {**SUMS, **TIMES}  # of objectives
NEAREST: Side = "nearest"
UP: Side = "up"
WEEK = 7 * 86400.0
LISTED = 1000  # inconsistencies in a document; the others are counted
SPANS = 20  # spans of idle GPUs in a document


class RejectedSchedule(OptschedError):
    """A schedule that the referee rejects; the message names the rules that it breaks."""


@dataclass(frozen=True, repr=False)
class Score:
    """The value of one schedule, the certified bound, and what lies between them.

    Parameters
    ----------
    report
        The report of the schedule alone. If a log does not say when some jobs ran, its instance has only the others.
    left_out
        Ids of the jobs of the log that never ran.
    strong
        True to compute stronger bounds, too, which takes up to a minute.
    """

    report: Report
    left_out: tuple[str, ...] = ()
    strong: bool = False

    def __repr__(self) -> str:
        return f"Score({self.sentence})"

    @property
    def instance(self) -> Instance:
        """The jobs that ran, and the cluster."""
        return self.report.instance

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return self.report.objective

    @property
    def run(self) -> Run:
        """The schedule that is scored, as a run."""
        return self.report.runs[0]

    @property
    def line(self) -> Line:
        """Value, bound, ratio and metrics of the schedule."""
        return self.report.lines[0]

    @property
    def avoidable(self) -> float | None:
        """The most by which another schedule can improve the value; None if no bound is known or the log is below it."""
        bound = self.line.bound
        if bound is None or self.below_bound or np.isnan(self.line.value):
            return None
        return float(abs(self.line.value - bound.value))

    @property
    def below_bound(self) -> bool:
        """True if the value is better than the bound, which only an inconsistent log can be."""
        return self.line.ratio is not None and self.line.ratio < 1

    @property
    def optimal(self) -> bool:
        """True if the schedule is consistent and its value is the bound."""
        return self.line.optimal and not self.inconsistencies

    @property
    def inconsistencies(self) -> tuple[Inconsistency, ...]:
        """Everything in the log that no schedule can have; the referee has accepted a schedule that is no log."""
        return self.run.inconsistencies if isinstance(self.run, LoggedRun) else ()

    @property
    def idle_spans(self) -> tuple[IdleSpan, ...]:
        """Spans in which enough GPUs were idle for the next job, the most idle GPU-hours first."""
        return self.run.idle_spans if isinstance(self.run, LoggedRun) else ()

    @cached_property
    def least_slowdown(self) -> float:
        """A lower bound on the mean bounded slowdown of any schedule of rigid gangs."""
        return least_bounded_slowdown(self.instance, strong=self.strong)

    @cached_property
    def sentence(self) -> str:
        """The result in one sentence; bounds are rounded to the side on which it stays true."""
        line, gain, bound = self.line, get_objective(self.objective).gain, self.line.bound
        span, value = _span_in_words(self.run), in_words(self.line.value)
        if self.objective == FLOW:
            head = f"the jobs of these {span} took {value} job-seconds from submission to completion"
        else:
            head = f"{self.objective} of the jobs of these {span} is {value} {UNITS.get(self.objective, '')}".rstrip()
        if bound is None or line.ratio is None:
            return f"{head}; no bound is known"
        if self.below_bound:
            limit = in_words(bound.value, "up" if gain else "down")
            return f"{head}, which is better than the bound {limit}: {self._reason}"
        if self.optimal:
            return f"{head}, which is optimal"
        most, side = ("", NEAREST) if bound.exact else ("at most ", UP)
        times, left = ratio(line.ratio, 2, exact=bound.exact), in_words(self.avoidable or 0.0, side)
        left += " of them" * (self.objective == FLOW)
        if gain:
            return f"{head}, the best possible is {most}{times} times that; {most}{left} were missed"
        return f"{head}, {most}{times} times the best possible; {most}{left} were avoidable"

    @property
    def _reason(self) -> str:
        # why a log is better than the bound
        if isinstance(self.run, LoggedRun) and any(entry.rule == "capacity" for entry in self.inconsistencies):
            used, gpus = self.run.most_in_use, self.instance.cluster.gpus
            held = f"{counted(used, unit_of(self.instance))} {were(used)}"
            return f"up to {held} in use at once, and the cluster has {gpus:,}"
        return "some jobs did not run as the instance states them"

    def by(self, key: str) -> Table:
        """Return what the schedule made of every group of jobs.

        Parameters
        ----------
        key
            ``size`` (gangs, in powers of two), ``week`` (of the submission), ``user`` or ``group``.

        Returns
        -------
        Table
            A row a group: jobs, GPU-hours of their runs, queued GPU-hours, means, total flow time, a certified bound on
            it as if the group had the cluster alone, and the ratio of the two. A group of all jobs has the bound of the
            whole schedule if that is larger.

        Raises
        ------
        InputError
            If there is no such key, or no job states it.
        """
        if key not in self.keys:
            raise InputError("no such groups", field="by", value=key, legal=", ".join(self.keys))
        labels, order = self._labels(key)
        jobs, local, rows = self._jobs, self.instance.relative, []
        for label in sorted(labels.unique(maintain_order=True), key=order):
            member = (labels == label).fill_null(False) if label is not None else labels.is_null()
            group, alone = jobs.filter(member), local.replace(jobs=local.table.filter(member))
            flow, bound = float(group["jct"].sum()), quick_bound(alone, FLOW, SINGLE)
            if group.height == jobs.height and self.objective == FLOW and self.line.bound is not None:
                bound = max(bound or 0.0, self.line.bound.value)
            rows.append(
                {
                    key: label,
                    "jobs": group.height,
                    "gpu_hours": float((group["gpus"] * group["ran"]).sum()) / HOUR,
                    "queued_gpu_hours": float(group["queued"].sum()),
                    "mean_jct": group["jct"].mean(),
                    "mean_queueing": group["queueing"].mean(),
                    "p95_queueing": group["queueing"].quantile(0.95, "linear"),
                    "mean_bsld": group["bsld"].mean(),
                    FLOW: flow,
                    "bound": bound,
                    "ratio": flow / bound if bound else None,
                }
            )
        return Table(rows, infer_schema_length=None)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys that `by` takes."""
        table = self.instance.table
        stated = (name for name in ("user", "group") if table[name].null_count() < table.height)
        return ("size", "week", *stated)

    @cached_property
    def _jobs(self) -> pl.DataFrame:
        local = self.run.schedule.relative
        jobs = pl.DataFrame(self.run.jobs)
        slowdown = pl.Series("bsld", bounded_slowdowns(local.instance, local.completion))
        queued = pl.Series("queued", queued_by_job(self.run.schedule))
        return jobs.with_columns(slowdown, queued, ran=pl.col("jct") - pl.col("queueing"))

    def _labels(self, key: str) -> tuple[pl.Series, Callable[[Any], Any]]:
        # the label of every job, and the place of a label in the table
        table, local = self.instance.table, self.instance.relative
        if key == "size":
            power = np.ceil(np.log2(local.gpus)).astype(np.int64)
            names = [f"{2 ** (p - 1) + 1}-{2**p}" if p > 1 else str(2**p) for p in range(int(power.max(initial=0)) + 1)]
            return pl.Series([names[p] for p in power.tolist()]), names.index
        if key == "week":
            return pl.Series((local.arrival // WEEK).astype(np.int64) + 1), int
        stays = self._jobs.group_by(table[key]).agg(pl.col("jct").sum())
        longest = dict(stays.iter_rows())
        return table[key], lambda label: -longest[label]  # who waited and ran most comes first

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``score --json``."""
        document, line = self.report.to_json(), self.line
        [row] = document.pop("runs")
        hours, slowdown = row["metrics"]["gpu_hours"], row["metrics"]["mean_bsld"]
        counts = Counter(entry.rule for entry in self.inconsistencies)
        listed = [{"rule": x.rule, "job": x.job, "detail": x.detail} for x in self.inconsistencies[:LISTED]]
        spans = [{name: getattr(span, name) for name in IdleSpan.__slots__} for span in self.idle_spans[:SPANS]]
        return {
            **document,
            "sentence": self.sentence,
            "policy": line.policy,
            **{name: row[name] for name in ("knowledge", "value", "bound", "ratio", "ratio_to")},
            "avoidable": self.avoidable,
            "queued_gpu_hours": {
                "value": hours["waiting"] + hours["overhead"],
                "bound": self.report.least_queued,
                "avoidable": line.avoidable_queueing,
            },
            "mean_bsld": {
                "value": slowdown,
                "bound": self.least_slowdown,
                "ratio": None if slowdown is None else slowdown / self.least_slowdown,
            },
            "metrics": row["metrics"],
            "left_out": list(self.left_out),
            "inconsistencies": {"count": len(self.inconsistencies), "by_rule": dict(counts), "listed": listed},
            "idle_spans": {"count": len(self.idle_spans), "listed": spans},
            "by": {key: self.by(key).to_dicts() for key in self.keys},
        }


def score(
    what: Source | Schedule | Scheduled,
    instance: Source | None = None,
    objective: str | None = None,
    *,
    strong: bool = False,
    skipped_rows: int = 0,
) -> Score:
    """Compare the schedule that really ran, or another one, with the best possible.

    Parameters
    ----------
    what
        An instance whose log says what ran (or its SOURCE); or with ``instance`` a schedule, a run, or a schedule file,
        which may be ``{"starts": {"job id": seconds, ...}}``.
    instance
        The instance of a schedule; a schedule in memory has its own.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    strong
        True to compute the bounds that take up to a minute, too (see `optsched.bound`).
    skipped_rows
        Invalid rows of the source that were left out; only reported.

    Raises
    ------
    InputError
        No job says when it ran, or the input is invalid.
    RejectedSchedule
        The referee rejects the schedule. A log is never rejected: `Score.inconsistencies` lists what it cannot have.

    Examples
    --------
    >>> import optsched as osd
    >>> scored = osd.score(osd.simulate("rigid-06-1", "fifo"), objective="total_flow_time")
    >>> scored.line.value, round(scored.avoidable)
    (140.0, 49)
    """
    if instance is not None or isinstance(what, Schedule) or hasattr(what, "schedule"):
        run = _run_of(what, instance)
        return _score(run, objective, strong, skipped_rows)
    logged = instance_of(what)
    ran = jobs_that_ran(logged)
    if not ran.any():
        legal = "a log with starts and ends (columns start and end of csv:), or SCHEDULE --instance SOURCE"
        raise InputError("no job says when it ran", field="ran", legal=legal)
    require_whole_jobs(logged, "score")
    left_out = tuple(logged.table["id"].filter(~ran).to_list())
    log = as_logged(logged.replace(jobs=logged.table.filter(ran)) if left_out else logged)
    assert log is not None
    return _score(log, objective, strong, skipped_rows, left_out)


def _score(run: Run, objective: str | None, strong: bool, skipped_rows: int, left_out: tuple[str, ...] = ()) -> Score:
    name = objective_of(run.instance, objective).name
    judged = [] if isinstance(run, LoggedRun) else [run]  # only they bound the optimum from above
    proven = OptimumBounds(run.instance, judged, strong=strong)
    bound = proven.bound_for(run, name)
    certificate = proven.certificate(name, run.schedule_class)
    note = proven.note(name)
    report = Report(run.instance, name, (run,), certificate, (bound,), ((),), skipped_rows, note=note)
    return Score(report, left_out, strong)


def _run_of(what: Any, instance: Source | None) -> Run:
    if isinstance(what, Run):
        if what.unfinished:
            message = f"{len(what.unfinished)} jobs did not finish"
            raise InputError(message, field="run", value=what.policy, legal="a run in which every job finishes")
        return what if isinstance(what, LoggedRun) else accepted(what)
    if isinstance(what, str | os.PathLike):
        about = instance_of(instance)  # type: ignore[arg-type]
        require_whole_jobs(about, "score")
        violations = list(check_file(what, about).violations)
        _require_accepted(violations)
        schedule = Schedule.load(what, about)
    else:
        schedule = schedule_in(what)
        about = schedule.instance if instance is None else instance_of(instance)
        _require_accepted(check_schedule(about, schedule))
    stops = len(schedule) - int(np.unique(schedule.job).size)
    kind = RUNS.of(class_stated(about, {schedule.stated}).name).run
    return kind(schedule, schedule.policy or "schedule", NOT_STATED, stops > 0, 2 * about.n, stops, 0.0)


def _require_accepted(violations: list[Any]) -> None:
    wrong = [entry for entry in violations if entry.rule == "instance"] or violations
    if wrong:
        more = sum(entry.count for entry in wrong) - wrong[0].count
        others = f" (and {more} more)" if more else ""
        raise RejectedSchedule(f"the referee rejects the schedule: {wrong[0].rule}: {wrong[0].message}{others}")


# --- numbers in a sentence --------------------------------------------------------------------------------------------


def in_words(value: float, side: Side = "nearest") -> str:
    """Return a number as a sentence shows it: ``690.5 million``, or as in a table below a million.

    Parameters
    ----------
    value
        The number.
    side
        Side of the rounding, as for `optsched.rounding.fixed`.
    """
    for word, size in (("billion", 1e9), ("million", 1e6)):
        if abs(value) >= size:
            return f"{fixed(value / size, 1 if abs(value) >= 100 * size else 2, side)} {word}"
    return number(value, 4, side)


SPANS_OF_TIME = (("months", 30.44 * 86400), ("weeks", WEEK), ("days", 86400.0), ("hours", HOUR), ("minutes", 60.0))


def _span_in_words(run: Run) -> str:
    """Return the span of a schedule that ran, and otherwise of the log; without dates, that of the schedule."""
    instance, local = run.instance, run.schedule.relative
    first, end = float(local.instance.arrival.min(initial=0.0)), float(local.end.max(initial=0.0))
    if not isinstance(run, LoggedRun) and dates_of(instance):
        end = last_moment(instance) - instance.epoch  # a simulated schedule may last longer than its log
    seconds, dates = end - first, dates_of(instance, last=instance.epoch + end)
    found = next((f"{fixed(seconds / size, 0)} {unit}" for unit, size in SPANS_OF_TIME if seconds >= 2 * size), None)
    return (found or f"{number(seconds, 3)} seconds") + (f" ({dates})" if dates else "")
