"""Garey and Graham 1975: list scheduling of gangs that passes over those that do not fit, within 2 - 1/m.

Their theorem (s resources: s + 1, hence 2 here) is proved for one resource with the constant 2 - 1/m of Graham's for gangs
of one. With T = OPT: sum_j size_j p_j <= m T and every p_j <= T, even with preemption. Let u(t) be the GPUs in use, C_max =
(1 + x) T, x > 0. For t < x T some job runs at t + T. It started after t, as it is no longer than T, and did not fit at t
although it was there: u(t) + u(t + T) >= u(t) + size_j >= m + 1. For t in [x T, T) at least one GPU works. Added up, (m + 1)
x T + (1 - x) T <= m T, so x <= 1 - 1/m. (For x > 1 the first part alone, over [0, T), is more than m T.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.guarantees.assumptions import all_at_once, broken, rigid_gangs
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.problem.instance import Instance
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    strict = policy.name == "fifo" and not policy.skip
    return broken(
        "the head of the queue blocks the others" if strict else None,
        None if bool((instance.gpus > 1).any()) else "no gangs: Graham's theorem",
        all_at_once(instance),
        *rigid_gangs(placement, instance),
    )


def _ratio(policy: Any, run: Run) -> Fraction:
    return 2 - Fraction(1, run.instance.cluster.gpus)


GAREY_GRAHAM = guarantee(
    id="garey-graham",
    statement="P | size_j | C_max: list scheduling that passes over who does not fit <= (2 - 1/m) OPT",
    notation="P | size_j | C_max",
    knowledge="non-clairvoyant",
    source="Garey and Graham 1975 (2); the proof here gives 2 - 1/m",
    status="proved",
    proof=(
        "A job that runs OPT seconds after t was waiting at t, as it is no longer than OPT, and did not fit: the GPUs in "
        "use at the two times add up to m + 1 at least. So the first x OPT seconds of the two halves of a schedule of "
        "length (1 + x) OPT use (m + 1) x OPT GPU-seconds, the rest at least (1 - x) OPT, and there are m OPT in all."
    ),
    objective="makespan",
    policies=("list", "fifo", "sjf", "wspt"),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("contains Graham's: gangs of one, blocked-long-job"),
)
