"""Speed augmentation: a policy on machines that are faster than those of the optimum it is held against.

A faster machine is an instance with shorter jobs (`faster`): the policy runs there, and its value is compared with what is
proven about the optimum of the instance itself. ``optsched ratio ... --speed 3/2`` does so over a suite.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from optsched.bounds.certificate import rounded_down
from optsched.errors import InputError, check_legal
from optsched.guarantees.assumptions import all_of, no_restart_cost, parallel_machines_over_time
from optsched.guarantees.guarantee import ROUNDING, PolicyTheorem
from optsched.guarantees.judge import Judgement, judgement
from optsched.guarantees.optimum_bounds import OptimumBounds, refereed
from optsched.policies.simulate import Specification, specify
from optsched.problem.instance import Instance
from optsched.registry import Registry
from optsched.simulation.run import Run


def faster(instance: Instance, speed: Fraction) -> Instance:
    """Return the same jobs on machines ``speed`` times as fast, without a stated optimum.

    Durations and iterations are divided by the speed, to the nearest float.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    speed
        The factor.

    Raises
    ------
    InputError
        The speed is not positive, or jobs have tasks.
    """
    check_legal(speed > 0, "speed", speed, "a number > 0")
    instance.require_whole_jobs("a faster machine")

    def less(amount: float | None) -> float | None:
        return None if amount is None else float(Fraction(amount) / speed)

    jobs = [
        dataclasses.replace(job, duration=less(job.duration), iterations=less(job.iterations)) for job in instance.jobs
    ]
    return instance.replace(jobs=jobs, name=f"{instance.name}-{speed}")


def speed_in(text: str) -> Fraction:
    """Return the speed that is written ``3/2`` or ``1.5``.

    Parameters
    ----------
    text
        The written form.

    Raises
    ------
    InputError
        The text is anything else.
    """
    written = re.fullmatch(r"[0-9]{1,9}(/[0-9]{1,9}|\.[0-9]{1,9})?", text.strip(), re.ASCII)
    legal = "a number > 0, e.g. 3/2 or 1.5"
    check_legal(written is not None and not re.fullmatch(r".*/0+", text.strip()), "speed", text, legal)
    speed = Fraction(text.strip())
    check_legal(speed > 0, "speed", text, legal)
    return speed


@dataclass(frozen=True, kw_only=True)
class SpeedTheorem(PolicyTheorem):
    """On machines ``speed`` times as fast the value is at most ``ratio`` of the speed times the optimum at speed 1.

    ``speed``: of an instance, the least that will do;
    ``proves``: ``(instance, run, speed)`` -> a lower bound on the optimum of ``instance`` at speed 1 that the run on the
    faster machines carries, by the proof at least its value / ``ratio``.
    """

    speed: Callable[[Instance], Fraction]
    ratio: Callable[[Fraction], Fraction]
    proves: Callable[[Instance, Run, Fraction], Fraction | None] = lambda instance, run, speed: None

    def lacks(self, chosen: Specification, instance: Instance, speed: Fraction) -> tuple[str, ...]:
        """Return in words what is missing for the theorem to apply; empty if it applies.

        Parameters
        ----------
        chosen
            Policy and placement.
        instance
            Jobs and a cluster.
        speed
            Speed of the machines.
        """
        if not self.is_about(chosen.policy):
            return (f"it is about {', '.join(self.policies)}",)
        least = self.speed(instance)
        broken = self.assumptions(chosen.policy, chosen.placement, instance)
        return broken if speed >= least else (f"it needs a speed of at least {least}", *broken)

    def judge(self, policy: str | Specification, instance: Instance, speed: Fraction | None = None) -> Judgement:
        """Check the theorem against a run of a policy at a speed: holds, violated or open, as for a guarantee.

        Parameters
        ----------
        policy
            The policy or its specification.
        instance
            Jobs and a cluster.
        speed
            Speed of the machines; None: the least that the theorem needs.

        Raises
        ------
        InputError
            The theorem does not apply.
        """
        chosen, at = specify(policy), self.speed(instance) if speed is None else speed
        lacks = self.lacks(chosen, instance, at)
        if lacks:
            raise InputError(f"{self.id} does not apply", field="policy", value=chosen.text, legal="; ".join(lacks))
        return self.hold(
            chosen, refereed(faster(instance, at), chosen), OptimumBounds(instance, [refereed(instance, chosen)]), at
        )

    def hold(self, chosen: Specification, run: Run, proven: OptimumBounds, speed: Fraction) -> Judgement:
        """Check the theorem, which applies, against a run at a speed and what is proven at speed 1.

        Parameters
        ----------
        chosen
            Policy and placement.
        run
            Their run on the faster machines.
        proven
            What is proven about the optimum of the instance at speed 1.
        speed
            Speed of the machines.
        """
        value, factor = run.value(self.objective), self.ratio(speed)
        certified, own = proven.lower(self.objective, "gang"), self.proves(proven.instance, run, speed)
        lower = max((each for each in (certified, own) if each is not None), default=None)
        least_optimum = Fraction(value) / (factor * (1 + Fraction(ROUNDING)))  # that the theorem allows
        upper, found = proven.upper(self.objective, "gang", least_optimum), []
        if upper is not None and least_optimum > upper:
            found.append(f"{self.objective} is {value:.12g} at speed {speed}")
        if own is not None and least_optimum > own:
            found.append(f"the run proves only {float(own):.12g}, not {float(least_optimum):.12g}")
        kept, bound = lower is not None and least_optimum <= lower, None if lower is None else rounded_down(lower)
        return judgement(self, factor, (value, bound), kept, chosen.text, found)


SPEED_THEOREMS: Registry[SpeedTheorem] = Registry("speed theorem", package="optsched.guarantees")
speed_theorem = SPEED_THEOREMS.maker(SpeedTheorem, lambda theorem: theorem.id)


def judgements_at(chosen: Specification, run: Run, proven: OptimumBounds, speed: Fraction) -> tuple[Judgement, ...]:
    """Return the judgement of every speed theorem that applies to a run at a speed.

    Parameters
    ----------
    chosen
        Policy and placement.
    run
        Their run on the faster machines.
    proven
        What is proven about the optimum of the instance at speed 1.
    speed
        Speed of the machines.
    """
    about = (theorem for _, theorem in SPEED_THEOREMS.items() if not theorem.lacks(chosen, proven.instance, speed))
    return tuple(theorem.hold(chosen, run, proven, speed) for theorem in about)


SRPT_FASTER = speed_theorem(
    id="srpt-faster",
    statement="P | r_j, pmtn | sum (C_j - r_j): SRPT on machines s >= 2 - 1/m times as fast <= OPT / s",
    notation="P | r_j, pmtn, online-r_j | sum (C_j - r_j)",
    knowledge="clairvoyant",
    source="Phillips, Stein, Torng and Wein 1997 (OPT); McCullough and Torng 2004 (OPT / s)",
    status="published",
    proof=(
        "Not repeated here. The idea for the first: machines that are so fast and never idle while jobs wait have at any "
        "time done at least as much of the work that has come as any other schedule, and SRPT spends it on what is nearly "
        "done."
    ),
    objective="total_flow_time",
    policies=("srtf",),
    assumptions=all_of(no_restart_cost, parallel_machines_over_time),
    speed=lambda instance: 2 - Fraction(1, instance.cluster.gpus),
    ratio=lambda speed: 1 / speed,
)
