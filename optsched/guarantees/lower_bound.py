"""`LowerBound`: no online algorithm of a kind is better, as an adversary that proves it of any given one.

The adversary watches the policy on a few jobs and decides what comes next (or how long jobs were that nobody knows the
length of). A deterministic policy that sees no future does the same again on the whole instance, up to the adversary's move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from optsched.check.referee import schedule_value
from optsched.errors import InputError
from optsched.guarantees.guarantee import Statement
from optsched.policies.simulate import Specification, simulate, specify
from optsched.problem.instance import Instance
from optsched.registry import Registry
from optsched.simulation.run import Run


@dataclass(frozen=True)
class Challenge:
    """What the adversary made for one policy: an instance, and in ``reference`` what some schedule of it reaches."""

    instance: Instance
    reference: Fraction


@dataclass(frozen=True, kw_only=True)
class LowerBound(Statement):
    """For every policy of the kind and every size some instance has value >= ``ratio`` x optimum.

    ``excuses``: a policy and what it did alone -> why it is none of the kind, or None. ``challenge``: (policy, size) -> the
    adversary's answer. ``ratio``: of the size, rising to ``limit``.
    """

    excuses: Callable[[Specification, Run], str | None]
    challenge: Callable[[Specification, int], Challenge]
    ratio: Callable[[int], Fraction]
    limit: str

    def against(self, policy: str | Specification, size: int) -> tuple[Challenge, Fraction]:
        """The challenge of a policy, and value / reference of its run there, exact: at least ``ratio(size)``.

        Raises `InputError` for a policy that the statement is not about.
        """
        chosen = specify(policy)
        made = self.challenge(chosen, size)
        run = simulate(made.instance, chosen)
        excuse = self.excuses(chosen, run)
        if excuse is not None:
            raise InputError(f"{self.id} is not about it", field="policy", value=chosen.text, legal=excuse)
        return made, schedule_value(made.instance, run.schedule, self.objective) / made.reference


LOWER_BOUNDS: Registry[LowerBound] = Registry("lower bound", package="optsched.guarantees")
lower_bound = LOWER_BOUNDS.maker(LowerBound, lambda made: made.id)
