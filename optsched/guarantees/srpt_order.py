"""Phillips, Stein and Wein 1998: jobs without preemption in the order in which SRPT completes them, within a factor 2.

**Theorem**. One machine. Let C'_j be the completions of SRPT. Serve the jobs in their order, each as soon as it has come (or
only from C'_j on, as A-SRPT with beta = 1 and overtake = 0 does, which can do so online): C_j <= 2 C'_j, and sum C_j <= 2
OPT even against schedules with preemption. Proof: SRPT has done all jobs up to j by C'_j, so that they have come by then,
and their lengths add up to at most C'_j; from C'_j on the machine serves nothing but these until j is done.

A-SRPT's own theorem (`optsched.guarantees.a_srpt`) gives 3 here, too, with tau = 0 and nobody out of turn.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.a_srpt import TIE, virtual_srpt
from optsched.guarantees.assumptions import broken, known_durations, one_machine
from optsched.guarantees.guarantee import TightFamily, guarantee, late, told
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def srpt_order(instance: Instance) -> Schedule:
    """The schedule on one machine, all known in advance: jobs in the order of SRPT's completions, as soon as they come.

    Its total completion time is at most twice the optimum with preemption. O(n log n). Raises `InputError` where there is
    more than one GPU or a job without a duration.
    """
    check_legal(instance.cluster.gpus == 1, "gpus", instance.cluster.gpus, "one machine")
    check_legal(known_durations(instance) is None, "duration", "unknown", "a duration of every job")
    order = np.argsort(virtual_srpt(instance.arrival, instance.duration), kind="stable")
    starts, now = np.zeros(instance.n), 0.0
    for j in order.tolist():
        starts[j] = max(now, float(instance.arrival[j]))
        now = starts[j] + float(instance.duration[j])
    return Schedule.from_starts(instance, starts.tolist(), policy="srpt-order")


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(
        one_machine(instance),
        known_durations(instance),
        None if policy.beta == 1 else "jobs join the queue before SRPT has completed them",
        None if policy.overtake == 0 else f"overtake={policy.overtake:g} leaves the order of SRPT",
        None if policy.predictor == "perfect" else "lengths are predicted",
    )


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(2)


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    arrival, length = run.instance.arrival, run.instance.duration
    limit = 2 * virtual_srpt(arrival, length)
    for j in late(run, limit).tolist():
        # The theorem holds for every order of ties, and the policy's is another: let the suspect lose its ties.
        longer = np.where(np.arange(length.size) == j, length * (1 + TIE), length)
        limit[j] = 2 * virtual_srpt(arrival, longer)[j]
    return told(run, late(run, limit), limit)


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
    assumptions=_assumptions,
    ratio=_ratio,
    audit=_audit,
    tight=TightFamily("one job: a-srpt:overtake=0 starts it when SRPT has completed it"),
)
