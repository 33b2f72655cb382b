"""Total completion time of jobs that come over time: what is best if all is known, or no length, or nothing of what comes.

**SRPT** is optimal on one machine (Schrage 1968). On several it is within 5/4 (Sitters 2010); of the total flow time only
within Theta(log min(n/m, P)), P the longest by the shortest job, and no online algorithm has less (Leonardi and Raz 1997,
2007). `halving` is their lower bound for SRPT: in phase i, of P / 2^i seconds, m/2 jobs of that length come, and m of half
of it. The short ones go first, on all machines; then m/2 machines are idle while the long ones run, and m/2 machine-phases
of work are left over. At the end m unit jobs a second come, for 4 P seconds, and none of the jobs that are left ever runs
before they stop.

**The order of its completions** (Phillips, Stein and Wein 1998). One machine. Let C'_j be the completions of SRPT. Serve
the jobs in their order, each as soon as it has come (or only from C'_j on, as A-SRPT with beta = 1 and overtake = 0 does,
which can do so online): C_j <= 2 C'_j, and sum C_j <= 2 OPT even against schedules with preemption. A-SRPT's own theorem
(`optsched.guarantees.a_srpt_theorem`) gives 3 here, too, with tau = 0 and nobody out of turn.

**No lengths** (Motwani, Phillips and Torng 1994). One machine, all jobs there at 0, all lengths multiples of the quantum:
SETF, which is round robin then, has sum C_j <= (2 - 2/(n + 1)) OPT. Proof: until j is done, k gets no more turns than j, so
that C_j <= sum_k min(p_j, p_k) (the audit). With A = sum p_j and B = sum_{j<k} min(p_j, p_k): sum C_j <= A + 2 B, OPT = A +
B by shortest first, and B <= sum_{j<k} (p_j + p_k) / 2 = (n - 1) A / 2. Hence the ratio is at most 1 + B / (A + B).

**No preemption**. Shortest job first starts whatever is there, and loses without limit: a long job alone at 0, and many
short ones a second later (`greedy_start`, folklore). Delayed SPT is within twice the optimum, the best possible (Hoogeveen
and Vestjens 1996). **Two lower bounds by one adversary**: a job of L seconds comes at 0 alone. If the policy lets it wait
for too long nothing else comes, and it has lost by waiting; otherwise, a second after its start at s, n unit jobs come,
which wait until s + L. The reference is the better one of two schedules: the long job first, from 0 on, or after all
others. Total completion time, L = n^3: 2 (Hoogeveen and Vestjens 1996). Total flow time, L = n^2: about n / 3, no constant
(Kellerer, Tautenhahn and Woeginger 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes import CLASSES
from optsched.errors import check_legal
from optsched.guarantees.a_srpt_theorem import TIE, virtual_srpt
from optsched.guarantees.assumptions import (
    all_at_once,
    all_of,
    instance_is,
    known_durations,
    no_restart_cost,
    one_machine,
    parallel_machines_over_time,
    policy_is,
)
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import TightFamily, Watch, guarantee, in_time, late, late_findings, lower_bound
from optsched.guarantees.optimum import stating
from optsched.policies.simulate import Specification
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance, Job
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run

OBJECTIVE = "total_completion_time"


def _long_and_units(long: int, arrivals: Iterable[float]) -> list[Job]:
    """A job of ``long`` seconds at 0, and unit jobs."""
    return [Job("long", duration=long), *(Job(f"{k}", arrival=r, duration=1) for k, r in enumerate(arrivals))]


# --- shortest remaining time first ---------------------------------------------------------------------------------------


@family(
    "a job of length k at 0, unit jobs at 1, ..., k - 1, on one machine",
    policy="srtf",
    objective=OBJECTIVE,
    ratio=lambda k: Fraction(1),
    limit="1: optimal",
)
def interrupted(k: int = 4) -> Instance:
    """A job of length k at 0 and unit jobs at 1, ..., k - 1: these complete at 2, ..., k, then the long one at 2 k - 1.

    Parameters
    ----------
    k
        Length of the long job, in seconds.
    """
    check_legal(k >= 2, "k", k, "an integer >= 2")
    jobs = [Job("long", duration=k), *(Job(f"{r}", arrival=r, duration=1) for r in range(1, k))]
    optimum = stating(k * (k + 1) // 2 - 1 + 2 * k - 1, OBJECTIVE, "gang", "exchange argument")
    return Instance(jobs, "1x1", f"interrupted-{k}", OBJECTIVE, optimum=optimum)


SRPT = guarantee(
    id="srpt-one-machine",
    statement="1 | r_j, pmtn | sum C_j: SRPT is optimal",
    knowledge="clairvoyant",
    source="Schrage 1968",
    status="proved",
    proof=(
        "Exchange: where j is served although k has less left, give all time that both get from then on first to k, then to"
        " j. The earlier of the two completions becomes earlier, the later one stays, the others do not change."
    ),
    objective=OBJECTIVE,
    policies=("srtf", "srtf-gpu"),
    assumptions=all_of(one_machine, no_restart_cost, known_durations),
    ratio=lambda policy, run: Fraction(1),
    tight=TightFamily("every instance", interrupted),
)


def _within_twice_srpt(policy: Any, run: Run) -> list[str]:
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
    objective=OBJECTIVE,
    policies=("a-srpt",),
    assumptions=all_of(
        one_machine,
        known_durations,
        policy_is(lambda policy: policy.beta == 1, "jobs join the queue before SRPT has completed them"),
        policy_is(lambda policy: policy.overtake == 0, "overtake={policy.overtake:g} leaves the order of SRPT"),
        policy_is(lambda policy: policy.predictor == "perfect", "lengths are predicted"),
    ),
    ratio=lambda policy, run: Fraction(2),
    audit=_within_twice_srpt,
    tight=TightFamily("one job: a-srpt:overtake=0 starts it when SRPT has completed it"),
)


STREAM = 4  # times P: for so long unit jobs come


@family(
    "phases of half the length each, in which short jobs first leaves work over, then a stream of unit jobs",
    policy="srtf",
    objective="total_flow_time",
    limit="grows with log P: no constant",
    sizes=(3, 5, 7),
)
def halving(phases: int = 3, m: int = 2) -> Challenge:
    """P = 2^``phases``: m/2 jobs of P / 2^i and m of half of that in phase i, then m unit jobs a second for 4 P seconds.

    Parameters
    ----------
    phases
        Number of phases before the stream of unit jobs.
    m
        Number of machines.
    """
    check_legal(1 <= phases <= 20, "phases", phases, "an integer from 1 to 20")
    check_legal(m >= 2 and m % 2 == 0, "m", m, "an even integer >= 2")
    longest, now, rows, flow = 2**phases, 0, [], 0
    for i in range(phases):
        length = longest >> i
        rows += [(now, length)] * (m // 2) + [(now, length // 2)] * m
        now += length
        # Long jobs on m/2 machines, two short ones after each other on each of the others: each phase ends with itself.
        flow += m // 2 * (length + length // 2 + length)
    rows += [(now + second, 1) for second in range(STREAM * longest) for _ in range(m)]
    jobs = [Job(f"{j}", arrival=arrival, duration=length) for j, (arrival, length) in enumerate(rows)]
    instance = Instance(jobs, f"1x{m}", f"halving-{phases}-{m}", "total_flow_time")
    return Challenge(instance, Fraction(flow + STREAM * longest * m))


SRPT_PARALLEL = guarantee(
    id="srpt-parallel-machines",
    statement="P | r_j, pmtn | sum C_j: SRPT <= 5/4 OPT",
    notation="P | r_j, pmtn, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Sitters 2010",
    status="published",
    proof="Not repeated here; the worst that a random search against the mean busy time bound found is 1.078.",
    objective=OBJECTIVE,
    policies=("srtf",),
    assumptions=all_of(
        instance_is(lambda instance: instance.cluster.gpus > 1, "one machine, on which it is optimal"),
        no_restart_cost,
        parallel_machines_over_time,
    ),
    ratio=lambda policy, run: Fraction(5, 4),
    tight=TightFamily("not known to be tight"),
)


# --- round robin ---------------------------------------------------------------------------------------------------------


def _whole_turns(policy: Any, placement: Placement, instance: Instance) -> str | None:
    turns = instance.duration / policy.quantum
    return None if (turns == np.floor(turns)).all() else "some duration is no multiple of the quantum"


def _in_turn(run: Run) -> Floats:
    p = np.sort(run.instance.duration)
    shorter = np.searchsorted(p, run.instance.duration)
    sums = np.concatenate([[0.0], np.cumsum(p)])
    return sums[shorter] + run.instance.duration * (run.instance.n - shorter)


@family(
    "n equal jobs at once on one machine, each of so many turns",
    policy="setf:quantum=1",
    objective=OBJECTIVE,
    ratio=lambda n, turns: Fraction(2 * n * (turns - 1) + n + 1, turns * (n + 1)),
    limit="2 - 2/(n + 1) for many turns",
    sizes=(2, 5, 20),
)
def equal_turns(n: int = 5, turns: int = 20) -> Instance:
    """n jobs of ``turns`` seconds at 0, with turns of one second: in turn, all complete in the last n seconds.

    Parameters
    ----------
    n
        Number of jobs.
    turns
        Length of each job, in turns of one second.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    check_legal(turns >= 1, "turns", turns, "an integer >= 1")
    optimum = stating(turns * n * (n + 1) // 2, OBJECTIVE, "gang", "shortest job first")
    return _of_lengths([turns] * n, f"equal-turns-{n}-{turns}", optimum)


def _of_lengths(lengths: Iterable[float], name: str, optimum: dict[str, Any] | None = None) -> Instance:
    jobs = [Job(f"{j}", duration=p) for j, p in enumerate(lengths)]
    return Instance(jobs, "1x1", name, OBJECTIVE, optimum=optimum)


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
    objective=OBJECTIVE,
    policies=("setf",),
    assumptions=all_of(one_machine, all_at_once, known_durations, _whole_turns),
    ratio=lambda policy, run: 2 - Fraction(2, run.instance.n + 1),
    audit=in_time(_in_turn),
    tight=TightFamily("equal jobs, the quantum going to 0", equal_turns, exact=False),
)


WATCHED = 1200  # seconds a job, on average


def _all_but_a_second(watch: Watch, n: int) -> Challenge:
    check_legal(n >= 1, "size", n, "an integer >= 1")
    until = float(n * WATCHED)
    watched = watch(_of_lengths([2 * until] * n, f"watched-{n}")).schedule
    seconds = np.zeros(n)
    np.add.at(seconds, watched.job, np.clip(np.minimum(watched.end, until) - watched.start, 0.0, None))
    instance = _of_lengths([length + 1 for length in seconds.tolist()], f"all-but-a-second-{n}")
    shortest_first = np.cumsum(np.sort(instance.duration))
    return Challenge(instance, sum(map(Fraction, shortest_first.tolist()), Fraction(0)))


UNKNOWN_LENGTHS = lower_bound(
    id="unknown-lengths",
    statement="1 | pmtn | sum C_j: no deterministic non-clairvoyant algorithm < (2 - 2/(n + 1)) OPT",
    knowledge="non-clairvoyant",
    source="Motwani, Phillips and Torng 1994",
    status="proved",
    proof=(
        "Watch until T, and let every job be a little longer than it has run by then. None is done before T, so the sum is "
        "n T; shortest first, whatever the lengths that add up to T are, needs at most (n + 1) / 2 T."
    ),
    objective=OBJECTIVE,
    excuses=lambda policy, run: (
        None if policy.policy.knowledge is Knowledge.NON_CLAIRVOYANT else "it knows more than what has run"
    ),
    challenge=_all_but_a_second,
    ratio=lambda n: Fraction(2 * n * WATCHED, (n + 1) * (WATCHED + 1)),
    limit="2 - 2/(n + 1)",
)


# --- without preemption --------------------------------------------------------------------------------------------------


def _crowd(n: int, long: int, come: Fraction) -> tuple[Fraction, Fraction]:
    """sum C_j of a job of ``long`` seconds and n unit jobs that come at ``come``: the long one first, or last."""
    units = Fraction(n * (n + 1), 2)
    return long + n * max(Fraction(long), come) + units, n * come + units + (come + n + long)


@family(
    "a job of 10 n seconds at 0, n unit jobs a second later, on one machine",
    policy="sjf",
    objective=OBJECTIVE,
    ratio=lambda n, times: (first := _crowd(n, times * n, Fraction(1)))[0] / min(first),
    limit="2 times + 1 for many jobs: no constant",
    sizes=(2, 10, 100),
)
def greedy_start(n: int = 10, times: int = 10) -> Instance:
    """A job of ``times`` n seconds at 0 and n unit jobs at 1: sjf starts the long one at once.

    A schedule that starts it before 1 can do no better than sjf; among the others, which leave the first second idle,
    shortest first is best.

    Parameters
    ----------
    n
        Number of unit jobs.
    times
        Length of the long job divided by n, in seconds.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    check_legal(times >= 1, "times", times, "an integer >= 1")
    best = min(_crowd(n, times * n, Fraction(1)))
    optimum = stating(int(best), OBJECTIVE, "gang-nonpreemptive", "the long job first or last")
    return Instance(_long_and_units(times * n, [1] * n), "1x1", f"greedy-start-{n}-{times}", OBJECTIVE, optimum=optimum)


@family(
    "a job of n^3 s at 0, and n unit jobs just after delayed SPT has started it",
    policy="delayed-spt",
    objective=OBJECTIVE,
    ratio=lambda n: Fraction(2 * n**3 + n * 2 * n**3 + n * (n + 1) // 2) / _crowd(n, n**3, Fraction(n**3 + 1))[0],
    limit="2 for many jobs",
    sizes=(2, 10, 30, 100),
)
def just_started(n: int = 10) -> Instance:
    """A job of n^3 s at 0, n unit jobs at n^3 + 1: delayed SPT starts the long one at n^3, the optimum at 0.

    Parameters
    ----------
    n
        Number of unit jobs.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    best = int(_crowd(n, n**3, Fraction(n**3 + 1))[0])
    optimum = stating(best, OBJECTIVE, "gang", "shortest remaining time first")
    jobs = _long_and_units(n**3, [n**3 + 1] * n)
    return Instance(jobs, "1x1", f"just-started-{n}", OBJECTIVE, optimum=optimum)


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
    objective=OBJECTIVE,
    policies=("delayed-spt",),
    assumptions=all_of(one_machine, known_durations),
    ratio=lambda policy, run: Fraction(2),
    tight=TightFamily("a long job that has just started when many short ones come; a limit", just_started, exact=False),
    schedule_class="gang-nonpreemptive",
)


def _after_its_start(watch: Watch, n: int, long: int, objective: str) -> Challenge:
    check_legal(n >= 2, "size", n, "an integer >= 2")
    alone = Instance([Job("long", duration=long)], "1x1", f"alone-{long}", objective)
    start = float(watch(alone).schedule.completion[0]) - long
    if start >= n**3:
        return Challenge(alone, Fraction(long))
    come = Fraction(start + 1)
    releases = n * come if objective == "total_flow_time" else Fraction(0)
    crowd = Instance(_long_and_units(long, [start + 1] * n), "1x1", f"crowd-{n}", objective)
    return Challenge(crowd, min(_crowd(n, long, come)) - releases)


def _may_preempt(policy: Specification, run: Run) -> str | None:
    return "it may preempt" if CLASSES.get(run.schedule_class).preemptive else None


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
    objective=OBJECTIVE,
    excuses=_may_preempt,
    challenge=lambda watch, n: _after_its_start(watch, n, n**3, OBJECTIVE),
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
    excuses=_may_preempt,
    challenge=lambda watch, n: _after_its_start(watch, n, n**2, "total_flow_time"),
    ratio=lambda n: Fraction(n, 3) - Fraction(1, 3),
    limit="n / 3",
)
