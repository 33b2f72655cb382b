"""Kawaguchi and Kyan 1986: Smith's rule on identical machines, within (1 + sqrt 2) / 2 = 1.2071 of the optimum.

`sand`: where w_j = p_j every order is one of Smith's rule, and sum w_j C_j = (sum_i L_i^2 + sum_j p_j^2) / 2 for loads L_i,
so that only the loads count. Smith's rule spreads m N unit jobs evenly and puts k jobs of length L on top; the best schedule
gives each of these a machine of its own and the other m - k machines the rest, if these are loaded no more. For N -> inf the
ratio is largest at L / N = m (1 + sqrt(2m/k - 1)) / (2 (m - k)); with k/m -> 1 - sqrt(1/2), L / N -> 1 + sqrt 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, parallel_machines
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run

BOUND = (1 + math.sqrt(2)) / 2


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(*parallel_machines(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction | float:
    return Fraction(1) if run.instance.cluster.gpus == 1 else BOUND


@dataclass(frozen=True)
class _Sand:
    """``fine`` N unit jobs a machine, then ``long`` k jobs of ``length`` L on ``machines`` m."""

    machines: int
    long: int
    fine: int
    length: int

    @classmethod
    def of(cls, m: int, grains: int) -> _Sand:
        """``grains`` unit jobs a machine for each of m - k, so that the best schedule can spread them evenly."""
        check_legal(m >= 2, "m", m, "an integer >= 2")
        check_legal(grains >= 1, "grains", grains, "an integer >= 1")
        k = max(1, round(m * (1 - math.sqrt(0.5))))
        fine = grains * (m - k)
        length = m * (fine * k + math.isqrt(fine * fine * k * (2 * m - k))) // (2 * k * (m - k))
        return cls(m, k, fine, length)

    @property
    def pieces(self) -> int:
        """sum p_j^2."""
        return self.machines * self.fine + self.long * self.length**2

    @property
    def by_smiths_rule(self) -> Fraction:
        """sum w_j C_j of sand first."""
        m, k = self.machines, self.long
        return Fraction((m - k) * self.fine**2 + k * (self.fine + self.length) ** 2 + self.pieces, 2)

    @property
    def optimum(self) -> Fraction:
        """sum w_j C_j of loads m N / (m - k) and L."""
        m, k = self.machines, self.long
        return Fraction((m - k) * (m * self.fine // (m - k)) ** 2 + k * self.length**2 + self.pieces, 2)


@of_a_theorem
def sand(m: int = 4, grains: int = 8) -> Instance:
    """m (m - k) ``grains`` unit jobs, then k long ones, w_j = p_j: Smith's rule puts the long ones on top of the sand."""
    made = _Sand.of(m, grains)
    lengths = [*[1] * (m * made.fine), *[made.length] * made.long]
    jobs = [Job(f"{j}", duration=length, weight=length) for j, length in enumerate(lengths)]
    objective = "total_weighted_completion_time"
    optimum = stating(int(made.optimum), objective, "gang-nonpreemptive", "loads are as equal as they can be")
    return Instance(jobs, f"1x{m}", f"sand-{m}-{grains}", objective, optimum=optimum)


def _lost(m: int, grains: int) -> Fraction:
    made = _Sand.of(m, grains)
    return made.by_smiths_rule / made.optimum


SAND = family(
    name="sand",
    summary="w_j = p_j: unit jobs, as many on every machine, then k long ones with k/m about 1 - sqrt(1/2)",
    policy="wspt",
    objective="total_weighted_completion_time",
    make=sand,
    ratio=_lost,
    limit="(1 + sqrt 2) / 2 for many machines and grains",
    theorem="wspt-parallel-machines",
    sizes=(2, 4, 10),
)

WSPT = guarantee(
    id="wspt-parallel-machines",
    statement="P || sum w_j C_j: Smith's rule <= (1 + sqrt 2) / 2 OPT, and optimal on one machine",
    notation="P || sum w_j C_j",
    knowledge="clairvoyant",
    source="Kawaguchi and Kyan 1986; one machine: Smith 1956",
    status="published",
    proof=(
        "One machine: exchanging two neighbours in the wrong order gains. More: the worst instances have w_j = p_j, since a"
        " list by p_j / w_j is a sum of nested lists in which all these ratios are equal; there only the loads count, jobs "
        "that are no longer than the least load may be ground to sand, and what is left is to maximise a function of k / m "
        "and L."
    ),
    objective="total_weighted_completion_time",
    policies=("wspt",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("sand, then k long jobs, w_j = p_j; a limit for many machines", SAND, exact=False),
    schedule_class="gang-nonpreemptive",
)
