"""How far is every policy from the best possible: runs, a verified bound, ratios and savings in one report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optsched.bounds import Certificate
from optsched.classes import usual_class
from optsched.guarantees.evaluate import MeasuredRatio, PolicyLike, several
from optsched.guarantees.judge import Judgement, judgements, violated
from optsched.guarantees.optimum_bounds import KNOWN, BoundShown, OptimumBounds, refereed
from optsched.io.traces.dialect import NOT_MODELLED, not_modelled
from optsched.policies.simulate import specify
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.problem.table import Table
from optsched.report.classes import marks
from optsched.simulation.engine import Advance
from optsched.simulation.run import Run


@dataclass(frozen=True, kw_only=True)
class Line(MeasuredRatio):
    """One policy of a report.

    ``queued_avoided``: GPU-hours that gangs spent waiting or restarting under the first policy of the report, less the same
    here; None where one of the two left jobs undone. No hardware is saved: of jobs that wait together more GPU-hours queue
    than there are.
    """

    run: Run
    queued_avoided: float | None

    def to_json(self) -> dict[str, Any]:
        """As in ``run --json``; ``guarantee`` is null where no theorem is known, or one of its assumptions is broken."""
        metrics, measured = self.run.metrics, super().to_json()
        hours = {**metrics["gpu_hours"], "queued_avoided": self.queued_avoided}
        return {
            "policy": self.policy,
            "knowledge": self.knowledge,
            **{name: measured[name] for name in ("value", "bound", "ratio", "ratio_to", "guarantee")},
            "metrics": {**metrics, "gpu_hours": hours},
            "events": self.run.events,
            "seconds": self.run.seconds,
        }


@dataclass(frozen=True, repr=False)
class Report:
    """What policies made of an instance, and how far each is from the best possible.

    ``certificate`` is the verified bound for the class ``gang``, the sharing one where jobs may share GPUs (None: no
    bound on this objective is known); it holds for every run but those that fork or resize jobs. An optimum that the
    instance states is used for runs of its own class of schedules where this installation proved it; else ``note`` says
    so. ``bounds`` and ``judged`` say for every run what it is compared with, and what the theorems that apply say of it;
    ``other_certificates`` prove bounds of classes that ``certificate`` does not.
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
            )
            for run, bound, judged in zip(self.runs, self.bounds, self.judged, strict=True)
        )

    @cached_property
    def marks(self) -> list[str]:
        """Of every line a letter: ratios with different letters cannot be compared (`optsched.report.classes.marks`)."""
        bounded = (None if line.ratio is None else line.bound for line in self.lines)
        return marks([{} if bound is None else {"": bound.schedule_class} for bound in bounded])

    def _queued_avoided(self, run: Run) -> float | None:
        first, mine = self.runs[0].metrics, run.metrics
        if first["unfinished"] or mine["unfinished"]:
            return None
        return float(sum(first["gpu_hours"][each] - mine["gpu_hours"][each] for each in ("waiting", "overhead")))

    @property
    def violations(self) -> list[Judgement]:
        """Every guarantee that does not hold."""
        return [each for judged in self.judged for each in violated(judged)]

    def to_json(self) -> dict[str, Any]:
        """The document of ``run --json``."""
        notes = not_modelled(self.instance)
        return {
            "instance": {
                "name": self.instance.name,
                "jobs": self.instance.n,
                "gpus": self.instance.cluster.gpus,
                "skipped_rows": self.skipped_rows,
                **({NOT_MODELLED: notes} if notes else {}),
            },
            "objective": self.objective,
            "runs": [line.to_json() for line in self.lines],
        }

    def frame(self) -> Table:
        """A polars table, one row a policy: knowledge, value, bound and its class, ratio, guarantee, metrics, GPU-hours."""
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


def default_policies(instance: Instance) -> tuple[str, ...]:
    """The policies that are compared where none is named."""
    return usual_class(instance).policies(instance)


def evaluate(
    instance: Source,
    policies: PolicyLike | Iterable[PolicyLike] | None = None,
    objective: str | None = None,
    *,
    strong: bool = False,
    skipped_rows: int = 0,
    progress: Callable[[str], Advance] | None = None,
    finished: Callable[[Run], None] | None = None,
) -> Report:
    """Run policies and bound the optimum; every schedule and every bound of the report has been checked twice.

    The referee (`optsched.check.referee`) accepts every schedule, and the certificate has been proved again from the
    instance, or an error is raised. Every theorem that applies is held against the run; `Report.violations` are those
    that do not hold.

    Parameters
    ----------
    instance : jobs and a cluster, or a SOURCE that `optsched.load` reads.
    policies : one, or several: texts, or policies of one's own (`optsched.simulate`); None: `default_policies`.
    objective : its name; None: the instance's own, else ``total_flow_time``.
    strong : bounds that take up to a minute, too (`optsched.bound`).
    progress : ``progress(policy)`` gives a callback for each run, and ``finished`` hears of each that the referee accepted.

    Raises `InputError`: unknown policies or objective; a stated optimum that a run or the bound refutes. `SimulationError`:
    the referee rejects a schedule (a defect of optsched, or of a policy of one's own).

    >>> import optsched as osd
    >>> report = osd.evaluate("rigid-06-1", ["fifo", "srtf"])
    >>> report
    Report(total_completion_time on 'rigid-06-1': fifo 205, srtf 155)
    >>> [line.ratio for line in report.lines][1] < 1.2, report.violations
    (True, [])
    """
    instance = instance_of(instance)
    name = objective_of(instance, objective).name
    specifications = [specify(each) for each in several(default_policies(instance) if policies is None else policies)]
    runs = []
    for spec in specifications:
        runs.append(refereed(instance, spec, progress(spec.text) if progress else None))
        if finished is not None:
            finished(runs[-1])
    proven = OptimumBounds(instance, runs, strong=strong)
    proven.stated_optimum_stands(name)
    return Report(
        instance,
        name,
        tuple(proven.runs),
        proven.certificate(name),
        tuple(proven.beside(run, name) for run in proven.runs),
        tuple(judgements(spec, run, proven) for spec, run in zip(specifications, proven.runs, strict=True)),
        skipped_rows,
        _others(proven, name),
        proven.note(name),
    )


def _others(proven: OptimumBounds, objective: str) -> tuple[Certificate, ...]:
    # One a class of schedules: where a run's own differs from the usual one, and no stated optimum replaces it.
    usual = proven.certificate(objective)
    beside = [(run, proven.beside(run, objective)) for run in proven.runs]
    found = [
        proven.certificate(objective, run.schedule_class) for run, bound in beside if bound and bound.kind != KNOWN
    ]
    return tuple({c.schedule_class: c for c in found if c is not None and c != usual}.values())


def compare(
    instance: Source,
    policies: PolicyLike | Iterable[PolicyLike] | None = None,
    objective: str | None = None,
    *,
    strong: bool = False,
) -> Table:
    """Run policies and bound the optimum: `Report.frame` of `evaluate`, which says what the parameters are.

    >>> import optsched as osd
    >>> osd.compare("rigid-06-1", "fifo").select("policy", "value", "ratio_to").row(0)
    ('fifo', 205.0, 'optimum')
    >>> osd.compare("rigid-06-1", ["fifo", "sjf", "srtf"]).height
    3
    """
    return evaluate(instance, policies, objective, strong=strong).frame()
