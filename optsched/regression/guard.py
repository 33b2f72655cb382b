"""`GuardedRatio`: the ratios of one subject (a policy, function or command) over a suite, with the checks of a test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.evaluation.evaluate import measured_run
from optsched.evaluation.measured_ratio import MeasuredRatio
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.suite_ratios import PolicyRatios, for_no_instance
from optsched.guarantees.guarantee import GUARANTEES, ROUNDING, Guarantee
from optsched.guarantees.judge import Judgement, judge
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.regression.baseline_file import UPDATE, compared, compared_alone, entry, has_digests, read
from optsched.regression.guarded_subject import GuardedSubject, Replay, real
from optsched.regression.guarded_suite import GuardSettings, SuiteLike, chosen_instances, suite_of
from optsched.simulation.run import Run


@dataclass(frozen=True)
class Measured:
    """A subject on an instance: its run, the proven bounds on the optimum, and the ratio."""

    instance: Instance
    run: Run
    proven: OptimumBounds
    row: MeasuredRatio


@dataclass
class GuardedRatio:
    """Ratios of a subject over a suite. Every check returns the object, or raises `AssertionError`.

    The error names the worst instance, its file, and the command that repeats the run. ``record`` is for the summary of
    a test session and for the baseline. ``asked``: whether a check was made, or a number was read that a test may
    compare itself (`ratios`, `worst`, `mean`).
    """

    guarded_subject: GuardedSubject
    suite: str
    measured: tuple[Measured, ...]
    replay: Replay
    settings: GuardSettings
    record: dict[str, Any] = field(default_factory=dict)
    asked: bool = False

    def __post_init__(self) -> None:
        self._ratios = ratios = PolicyRatios(self.guarded_subject.text, tuple(each.row for each in self.measured))
        self._digests = {each.row.instance: each.instance.digest for each in self.measured}
        self.record |= {"test": self.settings.test, "policy": ratios.policy, "suite": self.suite}
        self.record |= {"objective": self.objective, "instances": [_row(each) for each in self.measured]}
        self.record |= {"worst": ratios.worst, "worst_instance": ratios.worst_instance, "mean": ratios.mean}

    @property
    def ratios(self) -> PolicyRatios:
        """Ratios as in ``optsched ratio``."""
        self.asked = True
        return self._ratios

    @property
    def objective(self) -> str:
        """Measured objective, or the names of several."""
        return ", ".join(dict.fromkeys(each.row.objective for each in self.measured))

    @property
    def worst(self) -> float | None:
        """Largest ratio; None if no instance has one."""
        return self.ratios.worst

    @property
    def mean(self) -> float | None:
        """The mean ratio."""
        return self.ratios.mean

    def at_most(self, limit: float | Fraction | Decimal) -> GuardedRatio:
        """Check that every instance has a ratio and none is above a limit (except for rounding).

        A ratio refers to the optimum if it is proven, otherwise to a certified lower bound, so a passing check is valid
        whatever the optimum.

        Parameters
        ----------
        limit
            The limit, at least 1.

        Raises
        ------
        InputError
            If the limit is not a number or below 1.
        """
        __tracebackhide__ = True
        self.asked = True
        check_legal(real(limit) >= 1, "at_most", limit, "a finite number >= 1")
        self.record["limit"] = float(limit)
        for each in self.measured:
            if each.row.ratio is None:
                self._fail(each.row.instance, _ratio_text(each))
        over = [each for each in self.measured if (each.row.ratio or 0.0) > float(limit) * (1 + ROUNDING)]
        if over:
            worst = max(over, key=lambda each: each.row.ratio or 0.0)
            self._fail(worst.row.instance, f"{_ratio_text(worst)}, more than {float(limit):.9g}")
        return self

    def keeps_guarantee(self, theorem: str | None = None, *, like: str | None = None) -> GuardedRatio:
        """Check that some theorem applies and none is violated (see `optsched.guarantees.judge`).

        Parameters
        ----------
        theorem
            Name of a theorem; None: all theorems about the policy. With a name, any subject is checked.
        like
            Registered policy, as text, whose role the subject has in the theorem; default: the first that the theorem
            covers.
        """
        __tracebackhide__ = True
        self.asked = True
        found = [(each, judged) for each in self.measured for judged in self._judged(each, theorem, like)]
        if not found:
            known = ", ".join(GUARANTEES.names())
            applies = f"the theorem {theorem} applies to no instance" if theorem else "no theorem is about it"
            self._fail("", f"{applies} (name one with keeps_guarantee(NAME): {known})")
        verdicts = [judged.verdict for _, judged in found]
        names = ", ".join(dict.fromkeys(judged.id for _, judged in found))
        counted = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        self.record["guarantee"] = f"{names}: {counted}"
        for each, judged in found:
            if judged.holds is False:
                self._fail(each.row.instance, judged.complaint)
        return self

    def no_worse_than_baseline(self) -> GuardedRatio:
        """Check that neither worst nor mean ratio has grown since the baseline was written, by more than the tolerance.

        If there was no ratio (the optimum is 0), the value must not have grown. The instances must be those of the
        baseline, by their digests. A job that never finishes fails the test, because there is nothing to compare.

        With ``--ratio-update`` nothing is compared, and the baseline is written after all tests; with
        ``--ratio-update=lower`` there is no tolerance, and a new entry is not compared.
        """
        __tracebackhide__ = True
        self.asked = True
        for each in self.measured:
            if math.isnan(each.row.value):
                self._fail(each.row.instance, f"no value to compare: {_unfinished(each)}")
        label = f"{self.guarded_subject.text} on {self.suite}, {self.objective}"
        if not self.settings.only:
            self.record["entry"] = {label: entry(self._ratios, self._digests)}
        if self.settings.update == "all":
            return self
        then = read(self.settings.baseline).get(self.settings.test, {}).get(label)
        if then is None and self.settings.update == "lower":
            return self
        if then is None:
            self._fail("", f"{self.settings.baseline} has no entry of this test for {label!r}: run {UPDATE}")
        else:
            self.record |= {"before": then["worst"], "undated": not has_digests(then)}
            compare = compared_alone if self.settings.only else compared
            worse = compare(self._ratios, self._digests, then, 1.0 if self.settings.update else self.settings.factor)
            if worse:
                self._fail(worse[0].instance, "; ".join(each.text for each in worse))
        return self

    def _judged(self, each: Measured, theorem: str | None, like: str | None) -> tuple[Judgement, ...]:
        if theorem is None:
            return each.row.judged
        claimed: Guarantee = GUARANTEES.get(theorem)
        model = specify(like or claimed.policies[0])
        if not claimed.is_about(model.policy):
            raise InputError("the theorem is not about it", field="like", value=like, legal=", ".join(claimed.policies))
        if claimed.assumptions(model.policy, model.placement, each.instance.relative):
            return ()
        return (judge(claimed, model.policy, each.run, each.proven),)

    def _fail(self, instance: str, what: str) -> None:
        __tracebackhide__ = True
        lines = [f"{self.guarded_subject.text} on {self.suite}: {what}"]
        culprit = next((each.instance for each in self.measured if each.row.instance == instance), None)
        if culprit is not None:
            lines += self.replay.written(instance, culprit)
        raise AssertionError("\n".join(lines))


def guarded(
    guarded_subject: GuardedSubject,
    over: SuiteLike,
    objective: str | None = None,
    settings: GuardSettings | None = None,
) -> GuardedRatio:
    """Measure a subject on every instance of a suite that it supports.

    Parameters
    ----------
    guarded_subject
        The subject.
    over
        Name of a suite, a folder of instance files, an instance file or its name, a member of a family
        (`optsched.evaluation.suites.suite`), or instances.
    objective
        The objective; default: each instance's own.
    settings
        Settings of the project.

    Raises
    ------
    InputError
        If the suite has no instance for the subject. Errors of the subject are raised with a note on the instance and on
        how to repeat the run.
    """
    settings = settings or GuardSettings()
    where = suite_of(over, settings.root)
    if objective is not None and not isinstance(objective, str):
        raise InputError("not an objective", field="objective", value=objective, legal="the name of one")
    every = [
        (name, instance) for name, instance in chosen_instances(where, settings) if guarded_subject.serves(instance)
    ]
    if not every:
        raise for_no_instance(where, guarded_subject.text)
    replay = Replay(guarded_subject, objective, settings.test, settings.folder)
    measured = []
    for name, instance in every:
        goal = objective_of(instance, objective).name
        run = replay.run(name, instance, where.name)
        proven = OptimumBounds(instance, [run])
        row = measured_run(run, proven, goal, guarded_subject.judged(run, proven), name=name)
        measured.append(Measured(instance, run, proven, row))
    return GuardedRatio(guarded_subject, where.name, tuple(measured), replay, settings)


def _row(each: Measured) -> dict[str, Any]:
    """Return the report of an instance in types that every process can send."""
    row, bound = each.row, each.row.bound
    return {
        "instance": row.instance,
        "digest": each.instance.digest,
        "value": None if math.isnan(row.value) else float(row.value),
        "bound": None if bound is None else float(bound.value),
        "bound_kind": None if bound is None else bound.kind,
        "ratio": None if row.ratio is None else float(row.ratio),
        "ratio_to": None if row.ratio is None or bound is None else bound.ratio_to,
    }


def _unfinished(each: Measured) -> str:
    return f"on {each.row.instance} job {each.run.unfinished[0]!r} never finishes"


def _ratio_text(each: Measured) -> str:
    """The ratio and what it is to, or why there is none."""
    row, bound = each.row, each.row.bound
    if each.run.unfinished:
        return f"no ratio: {_unfinished(each)}"
    if bound is None:
        return f"no ratio: no bound on {row.objective} is known for {row.instance}"
    if row.ratio is None:
        return f"no ratio: the bound on {row.instance} is {bound.value:.6g}, nothing to divide by"
    what = "the proven optimum" if bound.exact else f"a certified bound, {bound.kind}; the optimum may be larger"
    numbers = f"{row.objective} {row.value:.12g}, {bound.value:.12g} is {what}"
    return f"the ratio on {row.instance} is {row.ratio:.9g} ({numbers})"
