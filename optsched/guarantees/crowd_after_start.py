"""What no deterministic online algorithm can do on one machine without preemption: two lower bounds by one adversary.

A job of L seconds comes at 0 alone. If the policy lets it wait for too long nothing else comes, and it has lost by waiting;
otherwise, a second after its start at s, n unit jobs come, which wait until s + L. ``reference`` is the better one of two
schedules: the long job first, from 0 on, or after all others.

Total completion time, L = n^3: 2 (Hoogeveen and Vestjens 1996). Total flow time, L = n^2: about n / 3, no constant
(Kellerer, Tautenhahn and Woeginger 1999).
"""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import check_legal
from optsched.guarantees.lower_bound import Challenge, lower_bound
from optsched.policies.simulate import simulate
from optsched.policies.specification import Specification
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def _crowd(policy: Specification, n: int, long: int, patience: int, objective: str) -> Challenge:
    check_legal(n >= 2, "size", n, "an integer >= 2")
    alone = Instance([Job("long", duration=long)], "1x1", f"alone-{long}", objective)
    start = float(simulate(alone, policy).schedule.completion[0]) - long
    if start >= patience:
        return Challenge(alone, Fraction(long))
    come = Fraction(start + 1)
    jobs = [Job("long", duration=long), *(Job(f"{i}", arrival=start + 1, duration=1) for i in range(n))]
    units = Fraction(n * (n + 1), 2)
    first = long + n * max(Fraction(long), come) + units
    last = n * come + units + (come + n + long)
    releases = n * come if objective == "total_flow_time" else Fraction(0)
    return Challenge(Instance(jobs, "1x1", f"crowd-{n}", objective), min(first, last) - releases)


def _excuse(policy: Specification, run: Run) -> str | None:
    return None if run.schedule_class == "gang-nonpreemptive" else "it may preempt"


ONLINE_COMPLETION = lower_bound(
    id="online-completion",
    statement="1 | r_j | sum C_j: no deterministic online algorithm < 2 OPT",
    notation="1 | r_j, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Hoogeveen and Vestjens 1996",
    status="proved",
    proof=(
        "One job comes alone. Whoever starts it no earlier than at its length has twice the optimum. Otherwise many jobs "
        "that take next to nothing come just after its start s: they all wait until s + L, where the optimum serves them at"
        " s or, with the long job first, at L."
    ),
    objective="total_completion_time",
    excuses=_excuse,
    challenge=lambda policy, n: _crowd(policy, n, n**3, n**3, "total_completion_time"),
    ratio=lambda n: 2 - Fraction(3, n),
    limit="2",
)

ONLINE_FLOW = lower_bound(
    id="online-flow",
    statement="1 | r_j | sum (C_j - r_j): no deterministic online algorithm < n / 3 OPT",
    notation="1 | r_j, online-r_j | sum (C_j - r_j)",
    knowledge="clairvoyant",
    source="Kellerer, Tautenhahn and Woeginger 1999 (from recollection); the constant is that of the proof here",
    status="proved",
    proof=(
        "One job of n^2 seconds comes alone. Whoever starts it after n^3 has n times the optimum. Otherwise n unit jobs "
        "come a second after its start and wait for n^2 - 1 seconds each; the optimum, which has the long job first or "
        "last, is below 5/2 n^2 + 3/2 n."
    ),
    objective="total_flow_time",
    excuses=_excuse,
    challenge=lambda policy, n: _crowd(policy, n, n**2, n**3, "total_flow_time"),
    ratio=lambda n: Fraction(n, 3) - Fraction(1, 3),
    limit="n / 3",
)
