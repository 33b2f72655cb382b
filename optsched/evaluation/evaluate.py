"""`evaluate`: run policies, referee their schedules, bound the optimum, take ratios, and judge guarantees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import cast

from optsched.bounds import Certificate
from optsched.classes import usual_class
from optsched.evaluation.accepted_run import accepted, refereed
from optsched.evaluation.as_logged import as_logged
from optsched.evaluation.measured_ratio import MeasuredRatio
from optsched.evaluation.optimum_bounds import KNOWN, OptimumBounds
from optsched.evaluation.report import Report
from optsched.guarantees.judge import Judgement, judgements
from optsched.guarantees.speed import faster, judgements_at
from optsched.policies.simulate import PolicyLike, Specification, is_policy, simulate, specify
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.problem.table import Table
from optsched.simulation.engine import Advance
from optsched.simulation.run import Run


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
    """Run policies on an instance and compare each with the best possible.

    The referee (`optsched.check.referee`) accepts every schedule, every bound is verified from the instance, and every
    theorem that applies is judged. `Report.violations` are the guarantees that do not hold. If the log of the instance says
    what ran, that schedule is the first run (`optsched.evaluation.as_logged`), and the referee does not judge it.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    policies
        One policy or several: texts, or policy objects (see `optsched.simulate`). Default: `default_policies`.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    strong
        True to compute the bounds that take up to a minute, too (see `optsched.bound`).
    skipped_rows
        Invalid rows of the source that were left out; only reported.
    progress
        ``progress(policy)`` returns the callback for a run: (finished jobs, all jobs).
    finished
        Called with each run that the referee has accepted.

    Raises
    ------
    InputError
        Unknown policy or objective, or a run or a bound refutes the optimum that the instance states.
    SimulationError
        The referee rejects a schedule: a defect of optsched, or of a policy of one's own.

    Examples
    --------
    >>> import optsched as osd
    >>> report = osd.evaluate("rigid-06-1", ["fifo", "srtf"])
    >>> report
    Report(total_completion_time on 'rigid-06-1': fifo 205, srtf 155)
    >>> [line.ratio for line in report.lines][1] < 1.2, report.violations
    (True, [])
    """
    instance = instance_of(instance)
    name = objective_of(instance, objective).name
    specifications = [specify(p) for p in several(default_policies(instance) if policies is None else policies)]
    runs = []
    for specification in specifications:
        advance = progress(specification.text) if progress else None
        run = accepted(simulate(instance, specification, progress=advance), specification.policy)
        runs.append(run)
        if finished is not None:
            finished(run)
    proven = OptimumBounds(instance, runs, strong=strong)
    proven.check_stated_optimum(name)
    logged = as_logged(instance)
    first = () if logged is None else (logged,)
    judged = [judgements(spec, run, proven) for spec, run in zip(specifications, runs, strict=True)]
    return Report(
        instance,
        name,
        (*first, *runs),
        proven.certificate(name),
        tuple(proven.bound_for(run, name) for run in (*first, *runs)),
        (*[()] * len(first), *judged),
        skipped_rows,
        _other_certificates(proven, name),
        proven.note(name),
    )


def compare(
    instance: Source,
    policies: PolicyLike | Iterable[PolicyLike] | None = None,
    objective: str | None = None,
    *,
    strong: bool = False,
) -> Table:
    """Evaluate policies and return `Report.frame`, one row a policy.

    Parameters
    ----------
    instance, policies, objective, strong
        As for `evaluate`.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.compare("rigid-06-1", "fifo").select("policy", "value", "ratio_to").row(0)
    ('fifo', 205.0, 'optimum')
    >>> osd.compare("rigid-06-1", ["fifo", "sjf", "srtf"]).height
    3
    """
    return evaluate(instance, policies, objective, strong=strong).frame()


def measure(
    instance: Instance,
    specifications: Sequence[Specification],
    objective: str | None = None,
    *,
    name: str = "",
    speed: Fraction | None = None,
    strong: bool = False,
) -> list[MeasuredRatio]:
    """Measure the ratio of every policy on one instance.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    specifications
        The policies with their placements.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    name
        Name of the instance in the result. Default: the instance's own.
    speed
        Speed of the machines on which the policies run; the optimum is that at speed 1. Default: 1.
    strong
        True to compute the bounds that take up to a minute, too.

    Returns
    -------
    list of MeasuredRatio
        One entry a policy, in the order given. The referee has accepted the runs, and bounds are verified.
    """
    goal = objective_of(instance, objective).name
    runs = [refereed(instance, specification) for specification in specifications]
    proven = OptimumBounds(instance, runs, strong=strong)
    judge_run = judgements if speed is None else partial(judgements_at, speed=speed)
    if speed is not None:
        runs = [refereed(faster(instance, speed), specification) for specification in specifications]
    return [
        measured_run(run, proven, goal, judge_run(specification, run, proven), name=name)
        for specification, run in zip(specifications, runs, strict=True)
    ]


def measured_run(
    run: Run, proven: OptimumBounds, objective: str, judged: tuple[Judgement, ...] = (), *, name: str = ""
) -> MeasuredRatio:
    """Compare an accepted run with what is proven about the optimum.

    Parameters
    ----------
    run
        The run, accepted by the referee.
    proven
        Verified bounds on the optimum of the instance.
    objective
        Name of the objective.
    judged
        Judgements of theorems on the run.
    name
        Name of the instance in the result. Default: the instance's own.

    Raises
    ------
    InputError
        A run or a bound of ``proven`` refutes the optimum that the instance states.
    """
    proven.check_stated_optimum(objective)
    label = name or proven.instance.name
    about = judged, proven.note(objective), str(run.knowledge)
    return MeasuredRatio(label, objective, run.policy, run.value(objective), proven.bound_for(run, objective), *about)


def default_policies(instance: Instance) -> tuple[str, ...]:
    """Return the policies that are compared if the user names none.

    Parameters
    ----------
    instance
        Its jobs decide: whole jobs, jobs that may share GPUs, or jobs with tasks.
    """
    return usual_class(instance).policies(instance)


def several(policies: PolicyLike | Iterable[PolicyLike]) -> list[PolicyLike]:
    """Return a list of policies for one policy or several.

    Parameters
    ----------
    policies
        A text, a policy object or a specification, which all count as one policy; or an iterable of them.
    """
    if isinstance(policies, str | Specification) or is_policy(policies) or not isinstance(policies, Iterable):
        return [cast("PolicyLike", policies)]
    return list(policies)


def _other_certificates(proven: OptimumBounds, objective: str) -> tuple[Certificate, ...]:
    # One a class of schedules: where a run's own differs from the usual one, and no stated optimum replaces it.
    usual = proven.certificate(objective)
    bounds = [(run, proven.bound_for(run, objective)) for run in proven.runs]
    certificates = [
        proven.certificate(objective, run.schedule_class) for run, bound in bounds if bound and bound.kind != KNOWN
    ]
    return tuple({c.schedule_class: c for c in certificates if c is not None and c != usual}.values())
