"""Motwani, Phillips and Torng 1994: who does not know lengths has no less than 2 - 2/(n + 1) times the optimum.

n jobs come at 0. The adversary watches until T = n K: job j has run for a_j, and it decides that this was all but one second
of it. So nothing is done before T, while shortest first needs at most (n + 1) / 2 T + n (n + 1) / 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.lower_bound import Challenge, lower_bound
from optsched.policies.simulate import simulate
from optsched.policies.specification import Specification
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run

WATCHED = 1200  # seconds a job, on average


def _jobs(lengths: list[float], name: str) -> Instance:
    return Instance([Job(f"{j}", duration=p) for j, p in enumerate(lengths)], "1x1", name, "total_completion_time")


def _all_but_a_second(policy: Specification, n: int) -> Challenge:
    check_legal(n >= 1, "size", n, "an integer >= 1")
    until = float(n * WATCHED)
    watched = simulate(_jobs([2 * until] * n, f"watched-{n}"), policy).schedule
    seconds = np.zeros(n)
    np.add.at(seconds, watched.job, np.clip(np.minimum(watched.end, until) - watched.start, 0.0, None))
    instance = _jobs([length + 1 for length in seconds.tolist()], f"all-but-a-second-{n}")
    shortest_first = np.cumsum(np.sort(instance.duration))
    return Challenge(instance, sum(map(Fraction, shortest_first.tolist()), Fraction(0)))


def _excuse(policy: Specification, run: Run) -> str | None:
    return None if policy.policy.knowledge is Knowledge.NON_CLAIRVOYANT else "it knows more than what has run"


UNKNOWN_LENGTHS = lower_bound(
    id="unknown-lengths",
    statement="1 | pmtn | sum C_j: no deterministic non-clairvoyant algorithm < (2 - 2/(n + 1)) OPT",
    notation="1 | pmtn | sum C_j",
    knowledge="non-clairvoyant",
    source="Motwani, Phillips and Torng 1994",
    status="proved",
    proof=(
        "Watch until T, and let every job be a little longer than it has run by then. None is done before T, so the sum is "
        "n T; shortest first, whatever the lengths that add up to T are, needs at most (n + 1) / 2 T."
    ),
    objective="total_completion_time",
    excuses=_excuse,
    challenge=_all_but_a_second,
    ratio=lambda n: Fraction(2 * n * WATCHED, (n + 1) * (WATCHED + 1)),
    limit="2 - 2/(n + 1)",
)
