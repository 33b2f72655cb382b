"""Runs of the policies and methods that theorems are about, and the judgements on them.

`optsched.evaluation.evaluate` judges guarantees on the way. This module is for the other theorems: on faster machines, on
methods of `optsched.solve`, and lower bounds on the ratio of every online algorithm of a kind.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from optsched.check.referee import schedule_value
from optsched.errors import InputError
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.family import Challenge
from optsched.guarantees.guarantee import LowerBound
from optsched.guarantees.judge import METHOD_THEOREMS, Judgement, MethodTheorem
from optsched.guarantees.speed import SpeedTheorem, faster
from optsched.policies.simulate import Specification, simulate, specify
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.solvers.solution import Solution
from optsched.solvers.solve import solve


def judge_at_speed(
    theorem: SpeedTheorem, policy: str | Specification, instance: Instance, speed: Fraction | None = None
) -> Judgement:
    """Run a policy on faster machines and judge a speed theorem.

    Parameters
    ----------
    theorem
        The theorem.
    policy
        The policy, as text or with its placement.
    instance
        Jobs and the cluster at speed 1.
    speed
        Speed of the machines of the policy. Default: the least for which the theorem holds.

    Raises
    ------
    InputError
        The theorem does not apply to the policy, the instance or the speed.
    """
    chosen, at = specify(policy), theorem.speed(instance) if speed is None else speed
    lacks = theorem.lacks(chosen, instance, at)
    if lacks:
        raise InputError(f"{theorem.id} does not apply", field="policy", value=chosen.text, legal="; ".join(lacks))
    proven = OptimumBounds(instance, [refereed(instance, chosen)])
    return theorem.hold(chosen, refereed(faster(instance, at), chosen), proven, at)


def judge_method(theorem: MethodTheorem, instance: Instance, schedule: Schedule | None = None) -> Judgement:
    """Judge a theorem on a method of `optsched.solve`.

    Parameters
    ----------
    theorem
        The theorem.
    instance
        Jobs and the cluster.
    schedule
        A schedule of the method. Default: the method is run.

    Raises
    ------
    InputError
        The method does not apply to the instance.
    """
    local = instance.relative
    if schedule is None:
        schedule = solve(local, theorem.objective, model=theorem.method).schedule
    if schedule is None:
        raise AssertionError("a method that keeps the best of some schedules has one")
    return theorem.judge(instance, schedule, OptimumBounds(local).lower(theorem.objective, "gang"))


def judge_solution(instance: Instance, solution: Solution) -> Judgement | None:
    """Judge the theorem on the method that found a solution; None if there is no theorem on its objective.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    solution
        A solution of `optsched.solve`.
    """
    about = (theorem for _, theorem in METHOD_THEOREMS.items() if theorem.method == solution.model)
    theorem = next((theorem for theorem in about if theorem.objective == solution.objective), None)
    if theorem is None or solution.schedule is None:
        return None
    return judge_method(theorem, instance, solution.schedule)


def challenge(bound: LowerBound, policy: str | Specification, size: int) -> tuple[Challenge, Fraction]:
    """Let the adversary of a lower bound meet a policy.

    Parameters
    ----------
    bound
        The lower bound on the ratio of every online algorithm of a kind.
    policy
        The policy, as text or with its placement.
    size
        Size of the adversary's instance.

    Returns
    -------
    tuple
        The challenge, and the value of the policy's run divided by that of the reference schedule, exact. The quotient is
        at least ``bound.ratio(size)``.

    Raises
    ------
    InputError
        The policy is not of the kind that the statement is about.
    """
    chosen = specify(policy)
    made = bound.challenge(partial(simulate, policy=chosen), size)
    run = simulate(made.instance, chosen)
    excuse = bound.excuses(chosen, run)
    if excuse is not None:
        raise InputError(f"{bound.id} is not about it", field="policy", value=chosen.text, legal=excuse)
    return made, schedule_value(made.instance, run.schedule, bound.objective) / made.reference
