"""Ratios over a suite: what every policy loses against the best possible, at worst and on average."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, cast

from optsched.errors import InputError
from optsched.guarantees.judge import Judgement, chosen, judgements, violated
from optsched.guarantees.optimum_bounds import BoundShown, OptimumBounds, refereed
from optsched.guarantees.speed import faster, judgements_at
from optsched.guarantees.suites import Suite, suite
from optsched.policies.simulate import PolicyLike as PolicyLike, Specification, is_policy, serves, specify
from optsched.problem.html import number
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.table import Table
from optsched.simulation.run import Run

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class MeasuredRatio:
    """One policy on one instance. ``value`` is nan when a job never finished; ``judged`` the theorems that apply; ``note``
    what there is to say of the optimum that the instance states; ``knowledge`` that of the policy.
    """

    instance: str
    objective: str
    policy: str
    value: float
    bound: BoundShown | None
    judged: tuple[Judgement, ...] = ()
    note: str = ""
    knowledge: str = ""

    @property
    def ratio(self) -> float | None:
        """value / optimum of the class of the run where that is known, else / verified bound; None where there is none."""
        return None if self.bound is None else self.bound.ratio(self.value)

    @property
    def guarantee(self) -> Judgement | None:
        """The judgement to show."""
        return chosen(self.judged, self.objective)

    def to_json(self) -> dict[str, Any]:
        """As in ``ratio --json``."""
        return {
            "instance": self.instance,
            "objective": self.objective,
            "value": self.value if self.value == self.value else None,
            "bound": self.bound.to_json() if self.bound else None,
            "ratio": self.ratio,
            "ratio_to": None if self.ratio is None or self.bound is None else self.bound.ratio_to,
            "guarantee": self.guarantee.to_json() if self.guarantee else None,
        }


@dataclass(frozen=True)
class PolicyRatios:
    """One policy over a suite. Instances without a ratio (nothing to divide by, or unfinished jobs) count as ``without``."""

    policy: str
    measured: tuple[MeasuredRatio, ...]

    @property
    def knowledge(self) -> str:
        """What the policy knows of jobs that have not completed."""
        return ", ".join(dict.fromkeys(each.knowledge for each in self.measured if each.knowledge))

    @property
    def classes(self) -> dict[str, str]:
        """The class of schedules that is bounded, by instance, where there is a ratio."""
        rows = ((each.instance, each.bound) for each in self.measured if each.ratio is not None)
        return {name: bound.schedule_class for name, bound in rows if bound is not None}

    @cached_property
    def _ratios(self) -> list[tuple[float, str]]:
        return [(each.ratio, each.instance) for each in self.measured if each.ratio is not None]

    @property
    def worst(self) -> float | None:
        """The largest ratio."""
        return max(self._ratios)[0] if self._ratios else None

    @property
    def worst_instance(self) -> str | None:
        """Where it is; the first of equal ones."""
        return next((name for ratio, name in self._ratios if ratio == self.worst), None)

    @property
    def mean(self) -> float | None:
        """The mean ratio."""
        return sum(ratio for ratio, _ in self._ratios) / len(self._ratios) if self._ratios else None

    def percentile(self, share: float) -> float | None:
        """The ratio that ``share`` percent of the instances do not exceed (nearest rank, so one that was measured)."""
        ordered = sorted(ratio for ratio, _ in self._ratios)
        return ordered[max(math.ceil(share / 100 * len(ordered)), 1) - 1] if ordered else None

    @property
    def without(self) -> tuple[str, ...]:
        """Instances without a ratio."""
        return tuple(each.instance for each in self.measured if each.ratio is None)

    def guarantee(self) -> dict[str, Any] | None:
        """What became of the theorems over the suite: ``holds`` is false if one was violated, true if all held."""
        shown = [(each, each.guarantee) for each in self.measured]
        judged = [(each, judgement) for each, judgement in shown if judgement is not None]
        if not judged:
            return None
        verdicts = [judgement.holds for _, judgement in judged]
        return {
            "id": ", ".join(dict.fromkeys(judgement.id for _, judgement in judged)),
            "objective": ", ".join(dict.fromkeys(judgement.objective for _, judgement in judged)),
            "applies": len(judged),
            "kept": verdicts.count(True),
            "open": verdicts.count(None),
            "violated": [each.instance for each, judgement in judged if judgement.holds is False],
            "holds": False if False in verdicts else None if None in verdicts else True,
        }

    def to_json(self) -> dict[str, Any]:
        """As in ``ratio --json``."""
        return {
            "policy": self.policy,
            "knowledge": self.knowledge,
            "worst": self.worst,
            "worst_instance": self.worst_instance,
            "mean": self.mean,
            "percentiles": {f"p{share}": self.percentile(share) for share in PERCENTILES},
            "without": list(self.without),
            "instances": [each.to_json() for each in self.measured],
            "guarantee": self.guarantee(),
        }


@dataclass(frozen=True, repr=False)
class RatioTable:
    """Policies over a suite. ``objective`` is None where every instance was measured on its own and they differ; ``speed``:
    that of the machines of the policies where it is not that of the optimum.
    """

    suite: str
    policies: tuple[PolicyRatios, ...]
    speed: Fraction | None = None

    @property
    def objective(self) -> str | None:
        """The one objective, if there is one."""
        names = {each.objective for policy in self.policies for each in policy.measured}
        return names.pop() if len(names) == 1 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say of optima that instances state, each once."""
        rows = [each for policy in self.policies for each in policy.measured if each.note]
        return tuple(dict.fromkeys(f"{each.instance}: {each.note}" for each in rows))

    @property
    def violations(self) -> list[tuple[str, Judgement]]:
        """(instance, judgement) of every theorem that does not hold."""
        rows = [each for policy in self.policies for each in policy.measured]
        return [(each.instance, judgement) for each in rows for judgement in violated(each.judged)]

    def __repr__(self) -> str:
        worst = ", ".join(f"{each.policy} {number(each.worst)}" for each in self.policies)
        return f"RatioTable({self.suite}, worst ratio: {worst})"

    def frame(self) -> Table:
        """A polars table, one row a policy and instance: knowledge, value, bound, ratio, and what that is to (``optimum``
        or ``bound``).
        """
        rows = [
            {"policy": each.policy, "knowledge": each.knowledge, **each.to_json()}
            | {"bound": each.bound.value if each.bound else None}
            for policy in self.policies
            for each in policy.measured
        ]
        return Table([{k: v for k, v in row.items() if k != "guarantee"} for row in rows], infer_schema_length=None)

    def to_json(self) -> dict[str, Any]:
        """The document of ``ratio --json``."""
        return {
            "suite": self.suite,
            "objective": self.objective,
            **({} if self.speed is None else {"speed": str(self.speed)}),
            "policies": [policy.to_json() for policy in self.policies],
        }


def several(policies: PolicyLike | Iterable[PolicyLike]) -> list[PolicyLike]:
    """One policy, or those that are given. A text is iterable, and a policy may be: one of either is no list of policies."""
    if isinstance(policies, str | Specification) or is_policy(policies) or not isinstance(policies, Iterable):
        return [cast("PolicyLike", policies)]
    return list(policies)


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
    """Run policies on every instance of a suite and hold them against what is proven about the optimum.

    A policy for whole jobs is not run where jobs have tasks, nor the other way round.

    Parameters
    ----------
    over : a suite, or its name; a folder of instance files; an instance (see `optsched.guarantees.suites.suite`).
    policies : one, or a list of them; in text or as objects.
    objective : default: each instance's own.
    speed : of the machines on which the policies run (`optsched.guarantees.speed`), with the theorems for it; the optimum
        is that at speed 1. None: the same machines.
    strong : bounds that take up to a minute an instance, too (`optsched.bound`).
    progress : called with (instances done, all instances); ``so_far``: with the table of those done.

    Raises `InputError`: an unknown suite, policy or objective; a stated optimum that a run refutes; a policy that none of
    the instances is for. `SimulationError`: the referee rejects a schedule.
    """
    where = over if isinstance(over, Suite) else suite(over)
    specifications = [specify(each) for each in several(policies)]
    rows: list[list[MeasuredRatio]] = [[] for _ in specifications]
    instances, texts = where.instances(), [specification.text for specification in specifications]

    def table() -> RatioTable:
        return RatioTable(where.name, tuple(PolicyRatios(t, tuple(r)) for t, r in zip(texts, rows, strict=True)), speed)

    for done, (name, instance) in enumerate(instances, 1):
        fitting = [k for k, each in enumerate(specifications) if serves(each.policy, instance)]
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
    """What to say of a policy that no instance of a suite is for."""
    legal = "policies of the task level for tasks, for sharing where there is interference, else for whole jobs"
    return InputError(f"no instance of {where.name} is for it", field="policy", value=policy, legal=legal)


def measure(
    instance: Instance,
    specifications: list[Specification],
    objective: str | None = None,
    *,
    name: str = "",
    speed: Fraction | None = None,
    strong: bool = False,
) -> list[MeasuredRatio]:
    """Every policy on one instance, in order; runs are accepted by the referee and bounds proved again."""
    goal = objective_of(instance, objective).name
    runs = [refereed(instance, specification) for specification in specifications]
    proven = OptimumBounds(instance, runs, strong=strong)
    judged = judgements if speed is None else partial(judgements_at, speed=speed)
    if speed is not None:
        runs = [refereed(faster(instance, speed), specification) for specification in specifications]
    return [
        measured_run(run, proven, goal, judged(specification, run, proven), name=name)
        for specification, run in zip(specifications, runs, strict=True)
    ]


def measured_run(
    run: Run, proven: OptimumBounds, objective: str, judged: tuple[Judgement, ...] = (), *, name: str = ""
) -> MeasuredRatio:
    """A run that the referee accepted beside what is proven about the optimum, whoever made it.

    Raises `InputError` for a stated optimum that a run of ``proven`` refutes.
    """
    proven.stated_optimum_stands(objective)
    shown = proven.beside(run, objective)
    label = name or proven.instance.name
    about = judged, proven.note(objective), str(run.knowledge)
    return MeasuredRatio(label, objective, run.policy, run.value(objective), shown, *about)
