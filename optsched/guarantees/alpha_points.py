"""Goemans, Queyranne, Schulz, Skutella and Wang 2002: alpha points on one machine, against the linear program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.guarantees.assumptions import broken, known_durations, one_machine
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.problem.instance import Instance
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(one_machine(instance), known_durations(instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    alpha = Fraction(policy.alpha)
    return max(1 + 1 / alpha, 1 + 2 * alpha)


ALPHA_POINTS = guarantee(
    id="alpha-points",
    statement="1 | r_j, online-r_j | sum w_j C_j: alpha points <= max(1 + 1 / alpha, 1 + 2 alpha) OPT",
    notation="1 | r_j, online-r_j | sum w_j C_j",
    knowledge="clairvoyant",
    source="Goemans, Queyranne, Schulz, Skutella and Wang 2002",
    status="recollected",
    proof=(
        "Preemptive WSPT is the optimum of the linear program in mean busy times, C_j >= M_j + p_j / 2. From the alpha "
        "point t_j of j on only jobs with earlier points run before it, so that C_j <= t_j + their p_k + p_j; a part alpha "
        "of each of them was done before t_j. Added up with weights over the order of WSPT, that is at most the factor "
        "times the program's sum w_j (M_j + p_j / 2)."
    ),
    objective="total_weighted_completion_time",
    policies=("alpha-points",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily(
        "not known to be tight; drawn at random (random-alpha-points) 1.6853 in expectation", exact=False
    ),
)
