"""Shortest remaining time first on m machines: 5/4 for completion times, no constant for flow times.

Total completion time: Sitters 2010. Total flow time: Theta(log min(n/m, P)), P the longest by the shortest job, and no
online algorithm has less (Leonardi and Raz 1997, 2007). `halving` is their lower bound for SRPT: in phase i, of P / 2^i
seconds, m/2 jobs of that length come, and m of half of it. The short ones go first, on all machines; then m/2 machines stand
idle while the long ones run, and m/2 machine-phases of work are left over. At the end m unit jobs a second come, for 4 P
seconds, and none of the jobs that are left ever runs before they stop.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, no_restart_cost, parallel_machines_over_time
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run

STREAM = 4  # times P: for so long unit jobs come


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    several = None if instance.cluster.gpus > 1 else "one machine, on which it is optimal"
    return broken(several, no_restart_cost(policy, instance), *parallel_machines_over_time(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(5, 4)


def halving(phases: int = 3, m: int = 2) -> Instance:
    """P = 2^``phases``: m/2 jobs of P / 2^i and m of half of that in phase i, then m unit jobs a second for 4 P seconds."""
    check_legal(1 <= phases <= 20, "phases", phases, "an integer from 1 to 20")
    check_legal(m >= 2 and m % 2 == 0, "m", m, "an even integer >= 2")
    longest, now, rows = 2**phases, 0, []
    for i in range(phases):
        length = longest >> i
        rows += [(now, length)] * (m // 2) + [(now, length // 2)] * m
        now += length
    rows += [(now + second, 1) for second in range(STREAM * longest) for _ in range(m)]
    jobs = [Job(f"{j}", arrival=arrival, duration=length) for j, (arrival, length) in enumerate(rows)]
    return Instance(jobs, f"1x{m}", f"halving-{phases}-{m}", "total_flow_time")


def _reference(phases: int, m: int) -> Fraction:
    # Long jobs on m/2 machines, two short ones after each other on each of the others: each phase ends with itself.
    longest = 2**phases
    of_phases = sum(m // 2 * (length + length // 2 + length) for length in (longest >> i for i in range(phases)))
    return Fraction(of_phases + STREAM * longest * m)


HALVING = family(
    name="halving",
    summary="phases of half the length each, in which short jobs first leaves work over, then a stream of unit jobs",
    policy="srtf",
    objective="total_flow_time",
    make=halving,
    reference=_reference,
    limit="grows with log P: no constant",
    sizes=(3, 5, 7),
)

SRPT_PARALLEL = guarantee(
    id="srpt-parallel-machines",
    statement="P | r_j, pmtn | sum C_j: SRPT <= 5/4 OPT",
    notation="P | r_j, pmtn, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Sitters 2010",
    status="published",
    proof="Not repeated here; the worst that a random search against the mean busy time bound found is 1.078.",
    objective="total_completion_time",
    policies=("srtf",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("not known to be tight"),
)
