"""Speed augmentation: theorems on policies whose machines are faster than those of the optimum.

A faster machine is an instance with shorter jobs (`faster`). The policy runs there, and its value is compared with the
proven bounds on the optimum of the instance itself. ``optsched ratio ... --speed 3/2`` does so over a suite.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from optsched.bounds.certificate import rounded_down
from optsched.classes import classes_of, require_whole_jobs
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, no_restart_cost, parallel_machines_over_time
from optsched.guarantees.guarantee import ROUNDING, PolicyTheorem
from optsched.guarantees.judge import Judgement, ProvenOptimum, judgement
from optsched.policies.simulate import Specification
from optsched.problem.instance import Instance
from optsched.registry import Registry
from optsched.simulation.run import Run


def faster(instance: Instance, speed: Fraction) -> Instance:
    """Return the instance with the same jobs on machines ``speed`` times as fast.

    Durations and iterations are divided by the speed, to the nearest float. The result states no optimum.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    speed
        The factor, positive.

    Raises
    ------
    InputError
        The speed is not positive, or jobs have tasks.
    """
    check_legal(speed > 0, "speed", speed, "a number > 0")
    require_whole_jobs(instance, "a faster machine")

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
        The speed as a fraction or a decimal number.

    Raises
    ------
    InputError
        The text is not a positive number of this form.
    """
    written = re.fullmatch(r"[0-9]{1,9}(/[0-9]{1,9}|\.[0-9]{1,9})?", text.strip(), re.ASCII)
    legal = "a number > 0, e.g. 3/2 or 1.5"
    check_legal(written is not None and not re.fullmatch(r".*/0+", text.strip()), "speed", text, legal)
    speed = Fraction(text.strip())
    check_legal(speed > 0, "speed", text, legal)
    return speed


@dataclass(frozen=True, kw_only=True)
class SpeedTheorem(PolicyTheorem):
    """A theorem: on faster machines the value is at most ``ratio(speed)`` x the optimum at speed 1.

    Parameters
    ----------
    speed
        Instance -> the least speed for which the theorem holds.
    ratio
        Speed -> the factor.
    proves
        ``(instance, run, speed)`` -> a lower bound on the optimum of ``instance`` at speed 1 that the run on the faster
        machines carries; by the proof it is at least the value of the run / ``ratio``. None if the run carries no bound.
    """

    speed: Callable[[Instance], Fraction]
    ratio: Callable[[Fraction], Fraction]
    proves: Callable[[Instance, Run, Fraction], Fraction | None] = lambda instance, run, speed: None

    def lacks(self, chosen: Specification, instance: Instance, speed: Fraction) -> tuple[str, ...]:
        """Return the reasons why the theorem does not apply, in words; empty if it applies.

        Parameters
        ----------
        chosen
            The policy and its placement.
        instance
            Jobs and the cluster at speed 1.
        speed
            Speed of the machines of the policy.
        """
        if not self.is_about(chosen.policy):
            return (f"it is about {', '.join(self.policies)}",)
        least = self.speed(instance)
        broken = self.assumptions(chosen.policy, chosen.placement, instance)
        return broken if speed >= least else (f"it needs a speed of at least {least}", *broken)

    def hold(self, chosen: Specification, run: Run, proven: ProvenOptimum, speed: Fraction) -> Judgement:
        """Judge whether the theorem, which applies, holds for a run on faster machines.

        Parameters
        ----------
        chosen
            The policy and its placement.
        run
            Its run at ``speed``.
        proven
            Proven bounds on the optimum of the instance at speed 1.
        speed
            Speed of the machines of the policy.
        """
        value, factor = run.value(self.objective), self.ratio(speed)
        certified, carried = proven.lower(self.objective, "gang"), self.proves(proven.instance, run, speed)
        lower = max((bound for bound in (certified, carried) if bound is not None), default=None)
        least_optimum = Fraction(value) / (factor * (1 + Fraction(ROUNDING)))  # that the theorem allows
        upper, findings = proven.upper(self.objective, "gang", least_optimum), []
        if upper is not None and least_optimum > upper:
            findings.append(f"{self.objective} is {value:.12g} at speed {speed}")
        if carried is not None and least_optimum > carried:
            findings.append(f"the run proves only {float(carried):.12g}, not {float(least_optimum):.12g}")
        kept, bound = lower is not None and least_optimum <= lower, None if lower is None else rounded_down(lower)
        return judgement(self, factor, (value, bound), kept, chosen.text, findings)


SPEED_THEOREMS: Registry[SpeedTheorem] = Registry("speed theorem", package="optsched.guarantees")
speed_theorem = SPEED_THEOREMS.maker(SpeedTheorem, lambda theorem: theorem.id)


def judgements_at(chosen: Specification, run: Run, proven: ProvenOptimum, speed: Fraction) -> tuple[Judgement, ...]:
    """Judge every theorem that applies to a run on faster machines.

    Parameters
    ----------
    chosen
        The policy and its placement.
    run
        Its run at ``speed``.
    proven
        Proven bounds on the optimum of the instance at speed 1.
    speed
        Speed of the machines of the policy.
    """
    theorems = SPEED_THEOREMS.items(classes_of(proven.instance))
    about = (theorem for _, theorem in theorems if not theorem.lacks(chosen, proven.instance, speed))
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
