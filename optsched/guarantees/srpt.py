"""SRPT: optimal on one machine (Schrage 1968), 5/4 on several (Sitters 2010), and the order of its completions (2).

**m machines**. Total completion time: Sitters 2010. Total flow time: Theta(log min(n/m, P)), P the longest by the shortest
job, and no online algorithm has less (Leonardi and Raz 1997, 2007). `halving` is their lower bound for SRPT: in phase i, of
P / 2^i seconds, m/2 jobs of that length come, and m of half of it. The short ones go first, on all machines; then m/2
machines are idle while the long ones run, and m/2 machine-phases of work are left over. At the end m unit jobs a second
come, for 4 P seconds, and none of the jobs that are left ever runs before they stop.

**The order of its completions** (Phillips, Stein and Wein 1998). One machine. Let C'_j be the completions of SRPT. Serve
the jobs in their order, each as soon as it has come (or only from C'_j on, as A-SRPT with beta = 1 and overtake = 0 does,
which can do so online): C_j <= 2 C'_j, and sum C_j <= 2 OPT even against schedules with preemption.

A-SRPT's own theorem (`optsched.guarantees.a_srpt`) gives 3 here, too, with tau = 0 and nobody out of turn.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.a_srpt import TIE, virtual_srpt
from optsched.guarantees.assumptions import (
    all_of,
    instance_is,
    known_durations,
    no_restart_cost,
    one_machine,
    parallel_machines_over_time,
    policy_is,
)
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late, late_findings
from optsched.guarantees.optimum import stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


@family(
    "a job of length k at 0, unit jobs at 1, ..., k - 1, on one machine",
    policy="srtf",
    objective="total_completion_time",
    ratio=lambda k: Fraction(1),
    limit="1: optimal",
    theorem="srpt-one-machine",
)
def interrupted(k: int = 4) -> Instance:
    """A job of length k at 0 and unit jobs at 1, ..., k - 1: these complete at 2, ..., k, then the long one at 2 k - 1."""
    check_legal(k >= 2, "k", k, "an integer >= 2")
    jobs = [Job("long", duration=k), *(Job(f"{r}", arrival=r, duration=1) for r in range(1, k))]
    optimum = stating(k * (k + 1) // 2 - 1 + 2 * k - 1, "total_completion_time", "gang", "exchange argument")
    return Instance(jobs, "1x1", f"interrupted-{k}", "total_completion_time", optimum=optimum)


SRPT = guarantee(
    id="srpt-one-machine",
    statement="1 | r_j, pmtn | sum C_j: SRPT is optimal",
    notation="1 | r_j, pmtn | sum C_j",
    knowledge="clairvoyant",
    source="Schrage 1968",
    status="proved",
    proof=(
        "Exchange: where j is served although k has less left, give all time that both get from then on first to k, then to"
        " j. The earlier of the two completions becomes earlier, the later one stays, the others do not change."
    ),
    objective="total_completion_time",
    policies=("srtf", "srtf-gpu"),
    assumptions=all_of(one_machine, no_restart_cost, known_durations),
    ratio=lambda policy, run: Fraction(1),
    tight=TightFamily("every instance", interrupted),
)


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    arrival, length = run.instance.arrival, run.instance.duration
    limit = 2 * virtual_srpt(arrival, length)
    for j in late(run, limit).tolist():
        # The theorem holds for every order of ties, and the policy's is another: let the suspect lose its ties.
        longer = np.where(np.arange(length.size) == j, length * (1 + TIE), length)
        limit[j] = 2 * virtual_srpt(arrival, longer)[j]
    return late_findings(run, limit)


SRPT_ORDER = guarantee(
    id="srpt-order",
    statement="1 | r_j | sum C_j: the order in which SRPT completes them <= 2 OPT, even against preemption",
    notation="1 | r_j, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Phillips, Stein and Wein 1998",
    status="proved",
    proof=(
        "Let C' be the completions of SRPT, which is optimal with preemption. By C'_j all jobs up to j in its order have "
        "come and their lengths add up to at most C'_j; from then on nothing else is served until j is done. So C_j <= 2 "
        "C'_j."
    ),
    objective="total_completion_time",
    policies=("a-srpt",),
    assumptions=all_of(
        one_machine,
        known_durations,
        policy_is(lambda policy: policy.beta == 1, "jobs join the queue before SRPT has completed them"),
        policy_is(lambda policy: policy.overtake == 0, "overtake={policy.overtake:g} leaves the order of SRPT"),
        policy_is(lambda policy: policy.predictor == "perfect", "lengths are predicted"),
    ),
    ratio=lambda policy, run: Fraction(2),
    audit=_audit,
    tight=TightFamily("one job: a-srpt:overtake=0 starts it when SRPT has completed it"),
)


STREAM = 4  # times P: for so long unit jobs come


def _reference(phases: int, m: int) -> Fraction:
    # Long jobs on m/2 machines, two short ones after each other on each of the others: each phase ends with itself.
    longest = 2**phases
    of_phases = sum(m // 2 * (length + length // 2 + length) for length in (longest >> i for i in range(phases)))
    return Fraction(of_phases + STREAM * longest * m)


@family(
    "phases of half the length each, in which short jobs first leaves work over, then a stream of unit jobs",
    policy="srtf",
    objective="total_flow_time",
    reference=_reference,
    limit="grows with log P: no constant",
    sizes=(3, 5, 7),
)
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
    assumptions=all_of(
        instance_is(lambda instance: instance.cluster.gpus > 1, "one machine, on which it is optimal"),
        no_restart_cost,
        parallel_machines_over_time,
    ),
    ratio=lambda policy, run: Fraction(5, 4),
    tight=TightFamily("not known to be tight"),
)
