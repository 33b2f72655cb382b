"""Motwani, Phillips and Torng 1994: round robin knows no lengths and is within 2 - 2/(n + 1) of the optimum.

**Theorem.** One machine, all jobs there at 0, all lengths multiples of the quantum: SETF, which is round robin then, has
sum C_j <= (2 - 2/(n + 1)) OPT. Proof: until j is done, k gets no more turns than j, so that C_j <= sum_k min(p_j, p_k) (the
audit). With A = sum p_j and B = sum_{j<k} min(p_j, p_k): sum C_j <= A + 2 B, OPT = A + B by shortest first, and
B <= sum_{j<k} (p_j + p_k) / 2 = (n - 1) A / 2. Hence the ratio is at most 1 + B / (A + B) <= 2 - 2/(n + 1).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, all_of, known_durations, one_machine
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import Challenge, TightFamily, guarantee, late_findings, lower_bound
from optsched.guarantees.optimum import stating
from optsched.policies.simulate import Specification, simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, Placement
from optsched.simulation.run import Run


def _whole_turns(policy: Any, placement: Placement, instance: Instance) -> str | None:
    turns = instance.duration / policy.quantum
    return None if (turns == np.floor(turns)).all() else "some duration is no multiple of the quantum"


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    p = np.sort(run.instance.duration)
    shorter = np.searchsorted(p, run.instance.duration)
    sums = np.concatenate([[0.0], np.cumsum(p)])
    limit = sums[shorter] + run.instance.duration * (run.instance.n - shorter)
    return late_findings(run, limit)


@family(
    "n equal jobs at once on one machine, each of so many turns",
    policy="setf:quantum=1",
    objective="total_completion_time",
    ratio=lambda n, turns: Fraction(2 * n * (turns - 1) + n + 1, turns * (n + 1)),
    limit="2 - 2/(n + 1) for many turns",
    theorem="round-robin",
    sizes=(2, 5, 20),
)
def equal_turns(n: int = 5, turns: int = 20) -> Instance:
    """n jobs of ``turns`` seconds at 0, a second a turn: in turn they are done in the last n seconds."""
    check_legal(n >= 1, "n", n, "an integer >= 1")
    check_legal(turns >= 1, "turns", turns, "an integer >= 1")
    jobs = [Job(f"{j}", duration=turns) for j in range(n)]
    optimum = stating(turns * n * (n + 1) // 2, "total_completion_time", "gang", "shortest job first")
    return Instance(jobs, "1x1", f"equal-turns-{n}-{turns}", "total_completion_time", optimum=optimum)


ROUND_ROBIN = guarantee(
    id="round-robin",
    statement="1 | pmtn, unknown p_j | sum C_j: round robin <= (2 - 2/(n + 1)) OPT, p_j multiples of the quantum",
    notation="1 | pmtn | sum C_j",
    knowledge="non-clairvoyant",
    source="Motwani, Phillips and Torng 1994",
    status="proved",
    proof=(
        "Until j is done no job gets more turns than j, so C_j <= sum_k min(p_j, p_k). Each pair of jobs delays each other "
        "by twice the shorter length at most, in the optimum by once; and the shorter of two is at most half of both, so "
        "that all pairs together are at most (n - 1) / 2 times all lengths."
    ),
    objective="total_completion_time",
    policies=("setf",),
    assumptions=all_of(one_machine, all_at_once, known_durations, _whole_turns),
    ratio=lambda policy, run: 2 - Fraction(2, run.instance.n + 1),
    audit=_audit,
    tight=TightFamily("equal jobs, the quantum going to 0", equal_turns, exact=False),
)


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
    excuses=lambda policy, run: (
        None if policy.policy.knowledge is Knowledge.NON_CLAIRVOYANT else "it knows more than what has run"
    ),
    challenge=_all_but_a_second,
    ratio=lambda n: Fraction(2 * n * WATCHED, (n + 1) * (WATCHED + 1)),
    limit="2 - 2/(n + 1)",
)
