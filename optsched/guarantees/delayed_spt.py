"""One machine without preemption, online, sum C_j: delayed SPT and its factor 2, and what nobody can do.

Shortest job first starts whatever is there, and loses without limit: a long job alone at 0, and many short ones a second
later (`greedy_start`, folklore). Delayed SPT is within twice the optimum, the best possible (Hoogeveen and Vestjens 1996).

**Two lower bounds by one adversary.** A job of L seconds comes at 0 alone. If the policy lets it wait for too long nothing
else comes, and it has lost by waiting; otherwise, a second after its start at s, n unit jobs come, which wait until s + L.
``reference`` is the better one of two schedules: the long job first, from 0 on, or after all others.

Total completion time, L = n^3: 2 (Hoogeveen and Vestjens 1996). Total flow time, L = n^2: about n / 3, no constant
(Kellerer, Tautenhahn and Woeginger 1999).
"""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, known_durations, one_machine
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import Challenge, TightFamily, guarantee, lower_bound
from optsched.guarantees.optimum import stating
from optsched.policies.simulate import Specification, simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def _long_first(n: int, times: int) -> int:
    long = times * n
    return long + n * long + n * (n + 1) // 2


def _long_last(n: int, times: int) -> int:
    return n + n * (n + 1) // 2 + 1 + n + times * n


@family(
    "a job of 10 n seconds at 0, n unit jobs a second later, on one machine",
    policy="sjf",
    objective="total_completion_time",
    ratio=lambda n, times: max(Fraction(1), Fraction(_long_first(n, times), _long_last(n, times))),
    limit="2 times + 1 for many jobs: no constant",
    sizes=(2, 10, 100),
)
def greedy_start(n: int = 10, times: int = 10) -> Instance:
    """A job of ``times`` n seconds at 0 and n unit jobs at 1: sjf starts the long one at once.

    A schedule that starts it before 1 can do no better than sjf; among the others, which leave the first second idle,
    shortest first is best.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    check_legal(times >= 1, "times", times, "an integer >= 1")
    jobs = [Job("long", duration=times * n), *(Job(f"{i}", arrival=1, duration=1) for i in range(n))]
    best = min(_long_first(n, times), _long_last(n, times))
    optimum = stating(best, "total_completion_time", "gang-nonpreemptive", "the long job first or last")
    return Instance(jobs, "1x1", f"greedy-start-{n}-{times}", "total_completion_time", optimum=optimum)


@family(
    "a job of n^3 s at 0, and n unit jobs just after delayed SPT has started it",
    policy="delayed-spt",
    objective="total_completion_time",
    ratio=lambda n: Fraction(2 * n**3 + n * 2 * n**3 + n * (n + 1) // 2, _best(n)),
    limit="2 for many jobs",
    theorem="delayed-spt",
    sizes=(2, 10, 30, 100),
)
def just_started(n: int = 10) -> Instance:
    """A job of n^3 s at 0, n unit jobs at n^3 + 1: delayed SPT starts the long one at n^3, the optimum at 0."""
    check_legal(n >= 1, "n", n, "an integer >= 1")
    long = n**3
    jobs = [Job("long", duration=long), *(Job(f"{i}", arrival=long + 1, duration=1) for i in range(n))]
    optimum = stating(_best(n), "total_completion_time", "gang", "shortest remaining time first")
    return Instance(jobs, "1x1", f"just-started-{n}", "total_completion_time", optimum=optimum)


def _best(n: int) -> int:
    return n**3 + n * (n**3 + 1) + n * (n + 1) // 2


DELAYED_SPT = guarantee(
    id="delayed-spt",
    statement="1 | r_j | sum C_j: delayed SPT <= 2 OPT, and no deterministic online algorithm has less",
    notation="1 | r_j, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Hoogeveen and Vestjens 1996",
    status="published",
    proof=(
        "In the source: a smallest counterexample is one block without idle time, which is compared with shortest remaining"
        " time first. That nothing deterministic is better without preemption: one job of length 1 comes alone. Who starts "
        "it at 1 or later has lost a factor 2 already; otherwise many jobs that take next to nothing come right after its "
        "start."
    ),
    objective="total_completion_time",
    policies=("delayed-spt",),
    assumptions=all_of(one_machine, known_durations),
    ratio=lambda policy, run: Fraction(2),
    tight=TightFamily("a long job that has just started when many short ones come; a limit", just_started, exact=False),
    schedule_class="gang-nonpreemptive",
)


def _crowd(policy: Specification, n: int, long: int, delay: int, objective: str) -> Challenge:
    check_legal(n >= 2, "size", n, "an integer >= 2")
    alone = Instance([Job("long", duration=long)], "1x1", f"alone-{long}", objective)
    start = float(simulate(alone, policy).schedule.completion[0]) - long
    if start >= delay:
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
