"""`advise`: which policies avoid waiting on a cluster, what they must know for it, and who loses by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optsched.classes import require_whole_jobs
from optsched.errors import check_legal
from optsched.evaluation.advice.advice_row import AdviceRow, able_of, best_of, gained, promises_to_waiting, tied_with
from optsched.evaluation.advice.candidate_runs import runs_of
from optsched.evaluation.advice.candidates import RESTART, candidates
from optsched.evaluation.advice.fairness import fairness
from optsched.evaluation.advice.savings import DRAWS, WEEK, queued_by_job, savings
from optsched.evaluation.advice.sentences import details
from optsched.evaluation.advice.what_if import WhatIf, changes_of, on_changed
from optsched.evaluation.as_logged import as_logged, jobs_that_ran
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.report import Report, queued_hours
from optsched.evaluation.score import FLOW, Score, in_words
from optsched.policies.simulate import PolicyLike, Specification
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule
from optsched.simulation.metrics import bounded_slowdowns
from optsched.simulation.run import Run

CONSERVATIVE = "conservative"


@dataclass(frozen=True, repr=False)
class Advice:
    """The candidates on a cluster, the best first, with what each avoids and who loses.

    Parameters
    ----------
    rows
        The first row, which all are compared with, and then the candidates by queued GPU-hours avoided. The first row is
        the schedule that ran if the log says so, else the first policy.
    report
        The report of all runs, in the order of the rows.
    what_ifs
        The best policy on other clusters.
    restart
        Seconds that a restart costs where neither the policy nor the job states them.
    draws, seed
        Number of draws of the bootstrap, and their seed.
    left_out
        Ids of the jobs of the log that never ran.
    same
        Candidates without a row: another placement of their policy makes the same schedule.
    """

    rows: tuple[AdviceRow, ...]
    report: Report
    what_ifs: tuple[WhatIf, ...]
    restart: float = RESTART
    draws: int = DRAWS
    seed: int = 0
    left_out: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Advice({self.sentence})"

    @property
    def instance(self) -> Instance:
        """The jobs and the cluster."""
        return self.report.instance

    @property
    def base(self) -> AdviceRow:
        """The first row, which all are compared with."""
        return self.rows[0]

    @property
    def best(self) -> AdviceRow | None:
        """The policy that avoids most of those that need no durations and stop no job; None if none avoids anything."""
        return best_of(self.rows)

    @property
    def best_with_stops(self) -> AdviceRow | None:
        """The policy that stops jobs and avoids more than `best` without knowing durations; None if there is none."""
        best = best_of(self.rows, stops=True)
        return None if best is self.best else best

    @property
    def tied(self) -> list[AdviceRow]:
        """The candidates that avoid as much as `best`, with itself; empty if there is no best."""
        return [] if self.best is None else tied_with(self.best, self.rows)

    @property
    def people(self) -> str:
        """The people who are compared: ``user``, ``group``, or ``job`` if the jobs name neither."""
        return next((row.fairness.by for row in self.rows if row.fairness is not None), "job")

    @cached_property
    def score(self) -> Score:
        """The score of the first row."""
        return Score(self.report, self.left_out)

    @cached_property
    def weeks(self) -> int:
        """Number of weeks with submissions, which the bootstrap draws from."""
        return int(np.unique(self.instance.relative.arrival // WEEK).size)

    @cached_property
    def utilization(self) -> float:
        """Share of the GPU time from the first to the last submission that jobs hold GPUs in the first row."""
        return held_share(self.base.line.run.schedule)

    @cached_property
    def sentence(self) -> str:
        """The result in one sentence; bounds are rounded to the side on which it stays true."""
        logged = self.report.logged is not None
        said = f"{'' if logged else f'under {self.base.policy} '}{self.score.sentence}"
        row = next((row for row in self.rows[1:] if row.is_easy and row.saving is not None), self.best)
        if row is None or self.report.objective != FLOW:
            return said
        avoided = self.base.line.value - row.line.value
        verb = ("avoided" if logged else "avoids") if avoided >= 0 else ("added" if logged else "adds")
        of_them = " of them" * (avoided >= 0)
        return f"{said}; {row.named} {'would have ' * logged}{verb} {in_words(abs(avoided)) if avoided else 'none'}{of_them}"

    @cached_property
    def details(self) -> tuple[str, ...]:
        """Further sentences: the best policies by queued GPU-hours, who loses by them, and the limits of a replay."""
        return tuple(details(self.rows, self.utilization, self.score.idle_spans))

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``advise --json``."""
        best, document = self.best, self.report.to_json()
        document.pop("runs")
        return {
            **document,
            "sentence": self.sentence,
            "base": self.base.policy,
            "best": None if best is None else best.policy,
            "details": list(self.details),
            "avoidable": self.score.avoidable,
            "queued_gpu_hours": {
                "value": queued_hours(self.base.line.run),
                "bound": self.report.least_queued,
                "avoidable": self.base.line.avoidable_queueing,
            },
            "idle_spans": {
                "count": len(self.score.idle_spans),
                "gpu_hours": sum(span.gpu_hours for span in self.score.idle_spans),
            },
            "utilization": self.utilization,
            "restart": self.restart,
            "bootstrap": {"weeks": self.weeks, "draws": self.draws, "seed": self.seed},
            "left_out": list(self.left_out),
            "same": list(self.same),
            "candidates": [row.to_json() for row in self.rows],
            "what_if": [entry.to_json() for entry in self.what_ifs],
        }


def advise(
    instance: Source,
    policies: PolicyLike | Iterable[PolicyLike] = (),
    objective: str | None = None,
    *,
    placements: str | Iterable[str] = (),
    what_if: str | Iterable[str] | None = None,
    restart: float = RESTART,
    only: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    workers: int | None = None,
    skipped_rows: int = 0,
    finished: Callable[[Run], None] | None = None,
) -> Advice:
    """Compare the policies that could run on a cluster with the schedule that ran, and with other clusters.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    policies
        Policies in addition to `optsched.evaluation.advice.candidates.default_policies`.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    placements
        Placements of policies that name none. Default: ``count``, and ``consolidated`` where gangs can be spread.
    what_if
        One change of the cluster or several: ``gpus=+10%``, ``nodes=-1``, ``cluster=SPEC``. Default: 10 % more and fewer
        GPUs; a node more and fewer on a cluster of fewer than ten nodes.
    restart
        Seconds that a restart costs where neither the policy nor the job states them.
    only
        True to compare only ``policies``.
    draws
        Number of draws of the bootstrap over weeks.
    seed
        Seed of the draws.
    workers
        Number of processes. Default: one a processor, if the runs are worth it. The result does not depend on it.
    skipped_rows
        Invalid rows of the source that were left out; only reported.
    finished
        Called with each run that the referee has accepted.

    Raises
    ------
    InputError
        An unknown name, an illegal number, or a change that leaves no GPU.

    Examples
    --------
    >>> import optsched as osd
    >>> advice = osd.advise("rigid-12-1", ["fifo", "sjf"], only=True, objective="total_flow_time")
    >>> [row.policy for row in advice.rows], advice.best
    (['fifo', 'sjf'], None)
    """
    loaded = instance_of(instance)
    check_legal(0 <= restart < np.inf, "restart", restart, "a finite number of seconds >= 0")
    check_legal(draws >= 0, "draws", draws, "a whole number >= 0")
    check_legal(loaded.n > 0, "jobs", loaded.n, "at least one job")
    require_whole_jobs(loaded, "advise")
    ran = jobs_that_ran(loaded)
    left_out = tuple(loaded.table["id"].filter(~ran).to_list()) if ran.any() else ()
    if left_out:  # the schedule that ran and the candidates have the same jobs
        loaded = loaded.replace(jobs=loaded.table.filter(ran))
    changes = changes_of(loaded, what_if)
    places = [placements] if isinstance(placements, str) else placements
    named = [policies] if isinstance(policies, str | Specification) else policies
    chosen = candidates(loaded, named, places, restart, only=only)  # type: ignore[arg-type]
    runs = runs_of([(loaded, specification) for specification in chosen], workers, finished)
    runs, same = _distinct(runs)
    rows, report = _compared(loaded, runs, objective_of(loaded, objective).name, skipped_rows, draws, seed)
    best = max(able_of(rows) or rows[1:] or rows, key=gained).policy
    specification = next(specification for specification in chosen if specification.text == best)
    what_ifs = on_changed(rows[0].line.run, changes, specification, workers, draws, seed)
    return Advice(rows, report, what_ifs, restart, draws, seed, left_out, same)


def _distinct(runs: Sequence[Run]) -> tuple[list[Run], tuple[str, ...]]:
    """Return the runs without those of a policy that completes all jobs at the same times under another placement."""
    distinct: dict[tuple[str, bytes], Run] = {}
    same = []
    for run in runs:
        first = distinct.setdefault((run.policy.partition("+")[0], run.schedule.completion.tobytes()), run)
        if first is not run:
            same.append(run.policy)
    return list(distinct.values()), tuple(same)


def _compared(
    instance: Instance, runs: Sequence[Run], objective: str, skipped_rows: int, draws: int, seed: int
) -> tuple[tuple[AdviceRow, ...], Report]:
    """Return the rows, sorted, and the report of their runs in that order."""
    logged = as_logged(instance)
    base, others = (logged, list(runs)) if logged is not None else (runs[0], list(runs[1:]))
    # the bounds of `score`: a candidate that reaches a bound does not make it an optimum
    proven = OptimumBounds(instance, [] if logged is not None else [base])

    def reported(ordered: Sequence[Run]) -> Report:
        bounds = tuple(proven.bound_for(run, objective) for run in ordered)
        certificate = proven.certificate(objective, base.schedule_class)
        nothing = tuple(() for _ in ordered)
        return Report(
            instance, objective, tuple(ordered), certificate, bounds, nothing, skipped_rows, note=proven.note(objective)
        )

    queued = [queued_by_job(run.schedule) for run in (base, *others)]
    saved = savings(queued[0], queued[1:], instance.relative.arrival, draws, seed)
    slowdowns = [_slowdowns(run) for run in (base, *others)]
    yardstick = next((run for run in (base, *others) if run.policy.startswith(CONSERVATIVE)), None)
    stays = None if yardstick is None else _stays(yardstick)
    found = []
    for run, saving, slowdown in zip(others, saved, slowdowns[1:], strict=True):
        complete = not run.unfinished and not base.unfinished
        fair = fairness(instance, slowdowns[0], slowdown, _stays(run), stays)
        found.append((run, saving if complete else None, fair if complete else None))
    found.sort(key=lambda entry: -np.inf if entry[1] is None else entry[1].gpu_hours, reverse=True)
    report = reported([base, *(run for run, _, _ in found)])
    rows = [AdviceRow(report.lines[0], promises=promises_to_waiting(base))]
    rows += [
        AdviceRow(line, saving, fair, promises_to_waiting(run))
        for line, (run, saving, fair) in zip(report.lines[1:], found, strict=True)
    ]
    return tuple(rows), report


def held_share(schedule: Schedule) -> float:
    """Return the share of the GPU time from the first to the last submission that jobs hold GPUs.

    Parameters
    ----------
    schedule
        The schedule.
    """
    local = schedule.relative
    first, last = float(local.instance.arrival.min()), float(local.instance.arrival.max())
    if last <= first:
        return 0.0
    held = np.clip(local.end, first, last) - np.clip(local.start, first, last)
    return float(np.dot(local.gangs, held)) / (local.instance.cluster.gpus * (last - first))


def _slowdowns(run: Run) -> np.ndarray:
    local = run.schedule.relative
    return bounded_slowdowns(local.instance, np.where(local.finished, local.completion, np.nan))


def _stays(run: Run) -> np.ndarray:
    local = run.schedule.relative
    return np.where(local.finished, local.completion - local.instance.arrival, np.nan)
