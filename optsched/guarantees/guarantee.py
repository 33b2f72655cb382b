"""`Guarantee`: a theorem "value <= ratio x optimum" as an object that can be checked against a run.

Every theorem registers itself in its own module, with its statement, source, assumptions and tight family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import OptschedError
from optsched.guarantees.family import Challenge, Family
from optsched.policies import POLICIES
from optsched.policies.simulate import Specification
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.registry import Registry
from optsched.simulation.placement import Placement
from optsched.simulation.run import Run

STATUSES = ("proved", "published", "recollected")
KNOWLEDGE = ("non-clairvoyant", "predicted", "clairvoyant", "offline")  # of lengths; offline: of everything, in advance


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A theorem in words.

    Attributes
    ----------
    id
        Name of the theorem.
    statement
        The theorem in one line.
    notation
        Its problem in Graham's three fields, with words for whatever they have no sign for; if it is not given, the
        text before the colon of the statement.
    knowledge
        What the algorithm needs to know, one of `KNOWLEDGE`.
    source
        Who proved it.
    status
        One of `STATUSES`. ``proved``: ``proof`` is complete, or the module of the theorem has it; ``published``: proved
        in the source, not repeated here; ``recollected``: as ``published``, but the source was not at hand.
    proof
        The proof in a few sentences, or the idea of the one in the source.
    objective
        Name of the objective that it bounds.
    """

    id: str
    statement: str
    notation: str = ""
    knowledge: str
    source: str
    status: str
    proof: str
    objective: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "notation", self.notation or self.statement.partition(":")[0])


SHOWN_JOBS = 20  # findings of an audit that are listed one by one
ROUNDING = 1e-9  # relative: times are float64, so a schedule is that of its algorithm up to rounding
MISSED = 2  # times the resolution of its clock: by so much a time that was read may miss what was meant


class GuaranteeError(OptschedError):
    """A theorem does not hold for a run: a defect of the policy, of its implementation, or of the proof."""


@dataclass(frozen=True)
class TightFamily:
    """Instances on which a guarantee is reached, so that no smaller ratio can be proved.

    Attributes
    ----------
    text
        The instances in words.
    family
        The family that makes them, if it exists.
    exact
        True if the policy of the family misses the optimum of every member by the ratio of the theorem, False if only
        in the limit.
    """

    text: str
    family: Family | None = None
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class PolicyTheorem(Statement):
    """A theorem about policies, by their registered names, under assumptions.

    Attributes
    ----------
    policies
        Names of the policies.
    assumptions
        Function of (policy, placement, instance) that returns, in words, which assumptions are broken.
    """

    policies: tuple[str, ...]
    assumptions: Callable[[Any, Placement, Instance], tuple[str, ...]]

    def is_about(self, policy: Any) -> bool:
        """Return whether a policy is one of the registered algorithms of the theorem; its name alone is not enough.

        Parameters
        ----------
        policy
            The policy.
        """
        return any(name in POLICIES and type(policy) is POLICIES.get(name) for name in self.policies)

    def applies(self, policy: Any, placement: Placement, instance: Instance) -> bool:
        """Return whether the theorem is about a policy and every assumption holds.

        Parameters
        ----------
        policy
            The policy.
        placement
            Its placement.
        instance
            Jobs and a cluster.
        """
        return self.is_about(policy) and not self.assumptions(policy, placement, instance)


@dataclass(frozen=True, kw_only=True)
class Guarantee(PolicyTheorem):
    """A theorem: under its assumptions the value of ``objective`` is at most ratio x optimum.

    Attributes
    ----------
    ratio
        Function of (policy, run) that returns the factor for this run, finite; a fraction if it is exact.
    tight
        Instances on which it is reached.
    audit
        Function of (policy, run) that returns per-job inequalities of the proof that do not hold, each with its job.
    proves
        Function of (policy, run) that returns an exact lower bound on the optimum that the run itself carries; None if
        it carries none.
    schedule_class
        The class of schedules whose optimum is meant: ``gang`` (the best schedule may preempt), ``gang-nonpreemptive``,
        or ``forking`` (the best schedule may also run a job in several copies at once).
    """

    ratio: Callable[[Any, Run], Fraction | float]
    tight: TightFamily
    audit: Callable[[Any, Run], list[str]] = lambda policy, run: []
    proves: Callable[[Any, Run], Fraction | None] = lambda policy, run: None
    schedule_class: str = "gang"


GUARANTEES: Registry[Guarantee] = Registry("guarantee", package="optsched.guarantees")
guarantee = GUARANTEES.maker(Guarantee, lambda theorem: theorem.id)


def late(run: Run, limit: Floats) -> Ints:
    """Return the jobs that complete after a limit, except for rounding and the resolution of the clock, i64[late].

    Parameters
    ----------
    run
        The run.
    limit
        Latest completion of every job in seconds, f64[n].
    """
    return np.flatnonzero(run.schedule.completion > limit * (1 + ROUNDING) + MISSED * run.schedule.resolution)


def late_findings(run: Run, limit: Floats) -> list[str]:
    """Return the findings of an audit for jobs that complete after their limit; the first ones one by one.

    Parameters
    ----------
    run
        The run, as `Run.relative`.
    limit
        Latest completion of every job in seconds, f64[n].
    """
    jobs, completion, ids = late(run, limit), run.schedule.completion, run.instance.ids
    lines = [
        f"job {ids[j]!r} completes at {completion[j]:.9g} s after the first arrival, "
        f"{completion[j] - limit[j]:.3g} s after {limit[j]:.9g}"
        for j in jobs[:SHOWN_JOBS].tolist()
    ]
    return lines + ([f"and {jobs.size - SHOWN_JOBS} more jobs"] if jobs.size > SHOWN_JOBS else [])


def in_time(limit: Callable[[Run], Floats]) -> Callable[[Any, Run], list[str]]:
    """Return the audit of a limit on completion times.

    Parameters
    ----------
    limit
        Function from `Run.relative` to the latest completion of every job in seconds, f64[n].
    """
    return lambda policy, run: late_findings(run.relative, limit(run.relative))


# `LowerBound`: an adversary that proves of any given policy of a kind that it is no better.
#
# The adversary watches the policy on a few jobs and decides which jobs come next (or how long jobs of unknown length were).
# A deterministic policy that does not see the future decides the same on the whole instance, up to that move.


Watch = Callable[[Instance], Run]  # a run of the policy under attack on an instance


@dataclass(frozen=True, kw_only=True)
class LowerBound(Statement):
    """A theorem: for every policy of a kind and every size some instance has value >= ``ratio`` x optimum.

    Parameters
    ----------
    excuses
        ``(policy, run)`` -> why the policy is not of this kind, in words, or None.
    challenge
        ``(watch, size)`` -> the adversary's instance. ``watch(instance)`` runs the policy that the adversary watches.
    ratio
        Size -> the factor, which rises to ``limit``.
    limit
        The limit of the factor, in words.
    """

    excuses: Callable[[Specification, Run], str | None]
    challenge: Callable[[Watch, int], Challenge]
    ratio: Callable[[int], Fraction]
    limit: str


LOWER_BOUNDS: Registry[LowerBound] = Registry("lower bound", package="optsched.guarantees")
lower_bound = LOWER_BOUNDS.maker(LowerBound, lambda made: made.id)
