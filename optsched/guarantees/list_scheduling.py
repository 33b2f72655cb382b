"""List scheduling: the makespan (Graham 1966 and 1969, for gangs Garey and Graham 1975, and strictly in order), flow times.

For restricted assignment Azar, Naor and Rom 1995: greedy loses a logarithm of the number of machines, and no more.

**Gangs** Garey and Graham's theorem (s resources: s + 1, hence 2 here) is proved for one resource with the constant 2 - 1/m
of Graham's for gangs of one. With T = OPT: sum_j size_j p_j <= m T and every p_j <= T, even with preemption. Let u(t) be
the GPUs in use, C_max = (1 + x) T, x > 0. For t < x T some job runs at t + T. It started after t, as it is no longer than
T, and did not fit at t although it was there: u(t) + u(t + T) >= u(t) + size_j >= m + 1. For t in [x T, T) at least one GPU
works. Added up, (m + 1) x T + (1 - x) T <= m T, so x <= 1 - 1/m. (For x > 1 the first part alone, over [0, T), is more than
m T.)

**Flow times** first come, first served, of jobs that come over time. **Theorem** P | r_j: max (C_j - r_j) <= (3 - 2/m) OPT,
even against preemption; optimal for m = 1. Proof: let t be the last time before j starts at s_j when some machine becomes
busy that was idle. Nobody waited then, so what is done in [t, s_j) is left of at most m - 1 jobs, or of jobs that came in
[t, r_j], of volume V without j: s_j - t <= ((m - 1) p_max + V) / m. Any schedule with largest flow time F has done these
and j by r_j + F: V + p_j <= m (r_j + F - t). Together C_j - r_j <= F + (1 - 1/m) (p_max + p_j) (the audit, with the best
such F), and p_max <= OPT.

`lagging_bursts`: bursts of small jobs, then m - 1 long ones, a long job's length apart. Serving the long ones first ends
every burst when the next comes; first come, first served has a lag x on m - 1 machines, in that length, which becomes
x (1 - 1/m) + 1/m with every burst and tends to 1. The long job that ends a last burst starts when the lag and the small jobs
are done: its flow is 1 + (1 - 1/m) (1 + x) lengths, 3 - 2/m in the limit, so that the factor is the least.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.bounds.best_bound import bound
from optsched.errors import check_legal
from optsched.guarantees.assumptions import (
    all_at_once,
    all_of,
    instance_is,
    known_durations,
    one_gpu_jobs,
    parallel_machines,
    parallel_machines_over_time,
    policy_is,
    rigid_gangs,
)
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, in_time
from optsched.guarantees.optimum import stating
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def _never_idle(run: Run) -> Floats:
    """Until job j starts no machine is idle, so that C_j <= (sum_k p_k - p_j) / m + p_j: all are released at 0."""
    p = run.instance.duration
    limit: Floats = (p.sum() - p) / run.instance.cluster.gpus + p
    return limit


def _of_lengths(name: str, m: int, lengths: list[int], optimum: int) -> Instance:
    jobs = [Job(f"{j}", duration=p) for j, p in enumerate(lengths)]
    return Instance(jobs, f"1x{m}", f"{name}-{m}", "makespan", optimum=stating(optimum, "makespan", "gang", "volume"))


@family(
    "m (m - 1) unit jobs, then one of length m, on m machines",
    policy="list",
    objective="makespan",
    ratio=lambda m: 2 - Fraction(1, m),
    limit="2 - 1/m",
)
def blocked_long_job(m: int = 4) -> Instance:
    """m (m - 1) unit jobs, then one of length m, on m machines: list scheduling takes 2 m - 1, the optimum is m.

    Parameters
    ----------
    m
        Number of machines.
    """
    check_legal(m >= 1, "m", m, "an integer >= 1")
    return _of_lengths("blocked-long-job", m, [*[1] * (m * (m - 1)), m], m)


GRAHAM = guarantee(
    id="graham-list",
    statement="P || C_max: list scheduling <= (2 - 1/m) OPT, whatever the list",
    knowledge="non-clairvoyant",
    source="Graham 1966",
    status="proved",
    proof=(
        "Until job j starts no machine is idle: C_j <= (sum p - p_j) / m + p_j. Both sum p / m and p_j are at most OPT, "
        "hence C_max <= OPT + (1 - 1/m) OPT."
    ),
    objective="makespan",
    policies=("list", "fifo", "sjf", "wspt"),
    assumptions=parallel_machines,
    ratio=lambda policy, run: 2 - Fraction(1, run.instance.cluster.gpus),
    audit=in_time(_never_idle),
    tight=TightFamily("m (m - 1) unit jobs, then one of length m", blocked_long_job),
)


@family(
    "lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines",
    policy="list:by=longest",
    objective="makespan",
    ratio=lambda m: Fraction(4, 3) - Fraction(1, 3 * m),
    limit="4/3 - 1/(3m)",
)
def three_last(m: int = 4) -> Instance:
    """Lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines: LPT takes 4 m - 1, the optimum is 3 m.

    Parameters
    ----------
    m
        Number of machines.
    """
    check_legal(m >= 2, "m", m, "an integer >= 2")
    lengths = [length for length in range(2 * m - 1, m, -1) for _ in range(2)] + [m, m, m]
    return _of_lengths("three-last", m, lengths, 3 * m)


LPT = guarantee(
    id="lpt",
    statement="P || C_max: the longest job first <= (4/3 - 1/(3m)) OPT",
    knowledge="offline",
    source="Graham 1969",
    status="proved",
    proof=(
        "Take a counterexample with fewest jobs: the shortest, p, ends last and starts at (sum p_j - p) / m at the latest, "
        "so that C_max <= OPT + (1 - 1/m) p and p > OPT / 3. Then no machine of the optimum has more than two jobs, and for"
        " at most two a machine LPT is optimal: pairing the longest with the shortest is never worse, by exchange."
    ),
    objective="makespan",
    policies=("list",),
    assumptions=all_of(
        policy_is(lambda policy: policy.by == "longest" and not policy.jobs, "the list is not by=longest"),
        parallel_machines,
    ),
    ratio=lambda policy, run: Fraction(4, 3) - Fraction(1, 3 * run.instance.cluster.gpus),
    tight=TightFamily("2m-1, 2m-1, ..., m+1, m+1, m, m, m; optimum 3m", three_last),
    # m + 1 unit jobs: 2 against (m + 1) / m for the best schedule that may preempt.
    schedule_class="gang-nonpreemptive",
)


GAREY_GRAHAM = guarantee(
    id="garey-graham",
    statement="P | size_j | C_max: list scheduling that passes over who does not fit <= (2 - 1/m) OPT",
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
    assumptions=all_of(
        policy_is(lambda policy: policy.name != "fifo" or policy.skip, "the head of the queue blocks the others"),
        instance_is(lambda instance: (instance.gpus > 1).any(), "no gangs: Graham's theorem"),
        all_at_once,
        rigid_gangs,
    ),
    ratio=lambda policy, run: 2 - Fraction(1, run.instance.cluster.gpus),
    tight=TightFamily("contains Graham's: gangs of one, blocked-long-job"),
)


@family(
    "m pairs of a short job on all m GPUs and a long one on one of them",
    policy="fifo",
    objective="makespan",
    ratio=lambda m, length: Fraction(m * (length + 1), length + m),
    limit="m for long narrow jobs",
    sizes=(2, 4, 8, 16, 64),
)
def wide_and_narrow(m: int = 4, length: int = 1000) -> Instance:
    """m pairs of jobs: one second on all m GPUs, then ``length`` seconds on one. Strictly in order no two jobs overlap.

    The optimum runs the wide ones first, then all narrow ones together: m + ``length``, and no GPU is ever idle.

    Parameters
    ----------
    m
        Number of GPUs, and of pairs.
    length
        Length of a narrow job, in seconds.
    """
    check_legal(m >= 1, "m", m, "an integer >= 1")
    check_legal(length >= 1, "length", length, "an integer >= 1")
    pairs = [(Job(f"wide-{i}", gpus=m, duration=1), Job(f"narrow-{i}", duration=length)) for i in range(m)]
    optimum = stating(m + length, "makespan", "gang", "volume")
    return Instance(
        [job for pair in pairs for job in pair], f"1x{m}", f"wide-and-narrow-{m}", "makespan", optimum=optimum
    )


FIFO_GANGS = guarantee(
    id="fifo-gangs",
    statement="P | size_j | C_max: strict first come, first served <= m OPT",
    knowledge="non-clairvoyant",
    source="folklore",
    status="proved",
    proof=(
        "While jobs are left at least one GPU works, so C_max <= sum p_j <= sum size_j p_j, which no schedule does in less "
        "than an m-th of that time."
    ),
    objective="makespan",
    policies=("fifo",),
    assumptions=all_of(
        policy_is(lambda policy: not policy.skip, "those that do not fit are passed over: a stronger theorem applies"),
        all_at_once,
        rigid_gangs,
    ),
    ratio=lambda policy, run: Fraction(run.instance.cluster.gpus),
    tight=TightFamily("short jobs on all GPUs and long ones on one, in turn; a limit", wide_and_narrow, exact=False),
)


THE_LOSERS = "each job on the machine that greedy does not choose"


def factor(m: int) -> int:
    """Return ceil(log2 m) + 1, computed in integers.

    Parameters
    ----------
    m
        Number of machines.
    """
    return (m - 1).bit_length() + 1


@family(
    "unit jobs for two machines each, the matches of a knock-out on 2^rounds machines",
    policy="restricted-greedy",
    objective="makespan",
    ratio=lambda rounds: Fraction(rounds + 1),
    limit="log2 m + 1",
    sizes=(2, 3, 4, 6, 8),
)
def tournament(rounds: int = 3) -> Instance:
    """Unit jobs on m = 2^rounds machines: one for every match of a knock-out, then one for the winner of the final.

    The job of a match may use only the two machines of the match, and the one that gets it plays on. On a tie greedy
    chooses the first, so that the winner of the final has ``rounds`` jobs and gets one more. If each job goes to the loser
    instead, every machine has at most one job, and the makespan is 1.

    Parameters
    ----------
    rounds
        Number of rounds of the knock-out.
    """
    check_legal(1 <= rounds <= 12, "rounds", rounds, "an integer in 1..12")
    m, jobs = 2**rounds, list[Job]()
    for k in range(rounds):
        for first in range(0, m, 2 ** (k + 1)):
            machines = (f"m{first}", f"m{first + 2**k}")
            jobs.append(Job(f"{k}-{first}", duration=1, gpu_types=machines))
    jobs.append(Job("final", duration=1, gpu_types=("m0",)))
    cluster = Cluster(tuple(NodeGroup(1, gpu=f"m{i}") for i in range(m)))
    optimum = stating(1, "makespan", "gang", THE_LOSERS)
    return Instance(jobs, cluster, f"tournament-{m}", "makespan", optimum=optimum)


RESTRICTED_GREEDY = guarantee(
    id="restricted-greedy",
    statement="P | M_j, online-list | C_max: greedy <= (ceil(log2 m) + 1) OPT",
    knowledge="clairvoyant",
    source="Azar, Naor and Rom 1995",
    status="proved",
    proof=(
        "Let W_i be the work that greedy puts above height i OPT of its machines. Take the jobs that the optimum has on one "
        "machine, OPT of work at most, and the highest at which greedy starts one of them, s: greedy could have put it "
        "there, so that the machine is filled up to s. If s >= i OPT, its stretch from (i - 1) OPT to i OPT is full, no "
        "less than what these jobs have above i OPT; otherwise they have OPT - (i OPT - s) above it, at most, and so much "
        "of the stretch is filled. Hence W_i <= W_(i-1) - W_i. With W_0 <= m OPT that gives W_k <= OPT for k = ceil(log2 "
        "m): no machine is higher than (k + 1) OPT."
    ),
    objective="makespan",
    policies=("restricted-greedy",),
    assumptions=all_of(one_gpu_jobs, all_at_once, known_durations),
    ratio=lambda policy, run: Fraction(factor(run.instance.cluster.gpus)),
    tight=TightFamily("a binary tournament", tournament),
)


# --- flow times ----------------------------------------------------------------------------------------------------------


def _flow_ratio(policy: Any, run: Run) -> Fraction:
    return 3 - Fraction(2, run.instance.cluster.gpus)


def _with_the_largest_flow(run: Run) -> Floats:
    instance, p = run.instance, run.instance.duration
    least, apart = bound(instance, "max_flow_time", "gang").exact_float, 1 - 1 / instance.cluster.gpus
    limit: Floats = instance.arrival + least + apart * (p.max(initial=0.0) + p)
    return limit


@family(
    "bursts of unit jobs, then m - 1 long ones, as far apart as these are long; at last unit jobs and one long one",
    policy="fifo",
    objective="max_flow_time",
    ratio=lambda bursts, m: 1 + (1 - Fraction(1, m)) * (2 - (1 - Fraction(1, m)) ** bursts),
    limit="3 - 2/m for many bursts",
    sizes=(0, 1, 2, 4, 6),
)
def lagging_bursts(bursts: int = 4, m: int = 2) -> Instance:
    """``bursts`` times m^(bursts + 1) unit jobs and m - 1 jobs of that length L, L apart; at last (m - 1) L and one.

    Parameters
    ----------
    bursts
        Number of bursts before the last one.
    m
        Number of machines.
    """
    check_legal(bursts >= 0, "bursts", bursts, "an integer >= 0")
    check_legal(m >= 2, "m", m, "an integer >= 2")
    length, jobs = m ** (bursts + 1), list[Job]()
    for burst in range(bursts + 1):
        small, long = (length, m - 1) if burst < bursts else ((m - 1) * length, 1)
        at = burst * length
        jobs += [Job(f"small-{burst}-{i}", arrival=at, duration=1) for i in range(small)]
        jobs += [Job(f"long-{burst}-{i}", arrival=at, duration=length) for i in range(long)]
    optimum = stating(length, "max_flow_time", "gang", "critical-job")
    return Instance(jobs, f"{m}x1", f"lagging-bursts-{bursts}-{m}", "max_flow_time", optimum=optimum)


@family(
    "a job of n seconds, and n unit jobs that come while it runs, one a second",
    policy="fifo",
    objective="total_flow_time",
    ratio=lambda n: Fraction(2 * n + n * (2 * n + 1), _best(n)),
    limit="(n + 3/2) / 3",
    sizes=(2, 10, 100),
)
def convoy(n: int = 10) -> Instance:
    """In half seconds: a job of 2 n at 0, n jobs of 2 at 1, 3, 5, ...: first come, first served has a flow of 2 n + 1 each.

    Shortest remaining time first serves them at once, 2 each, and the long one in between: it is done at 4 n.

    Parameters
    ----------
    n
        Number of short jobs.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    jobs = [Job("long", duration=2 * n), *(Job(f"{i}", arrival=2 * i + 1, duration=2) for i in range(n))]
    optimum = stating(_best(n), "total_flow_time", "gang", "shortest remaining time first")
    return Instance(jobs, "1x1", f"convoy-{n}", "total_flow_time", optimum=optimum)


def _best(n: int) -> int:
    # With one job nothing is gained by stopping the long one, which has less left than the short one is long.
    return 6 * n if n > 1 else 2 * n + 2 * n + 1


FIRST_COME: dict[str, Any] = {
    "knowledge": "non-clairvoyant",
    "source": "Bender, Chakrabarti and Muthukrishnan 1998, from recollection; Mastrolilli 2003",
    "status": "proved",
    "policies": ("fifo",),
    "assumptions": parallel_machines_over_time,
    "audit": in_time(_with_the_largest_flow),
}

FIFO = guarantee(
    id="fifo-flow",
    statement="P | r_j | max F_j: first come, first served <= (3 - 2/m) OPT, even against preemption",
    notation="P | r_j, online-r_j | F_max",
    proof=(
        "Since a machine became busy last before j starts, the machines worked at what was left of m - 1 jobs and at jobs "
        "that came since then, no later than j. Any schedule with largest flow time F has done the latter within F of j's "
        "coming, so that j's flow time is at most F + (1 - 1/m) (p_max + p_j), and no job is longer than F."
    ),
    objective="max_flow_time",
    ratio=_flow_ratio,
    tight=TightFamily("bursts in which the long jobs come last, so that it lags behind", lagging_bursts, exact=False),
    **FIRST_COME,
)

FIFO_SUM = guarantee(
    id="fifo-total-flow",
    statement="P | r_j | sum F_j: first come, first served <= n (3 - 2/m) OPT, even against preemption",
    notation="P | r_j, online-r_j | sum (C_j - r_j)",
    proof=(
        "Each of n flow times is within 3 - 2/m of the largest one of any schedule (fifo-flow), which is at most the sum of "
        "all its flow times."
    ),
    objective="total_flow_time",
    ratio=lambda policy, run: max(1, run.instance.n) * _flow_ratio(policy, run),
    tight=TightFamily("one machine, short jobs that come while a long one runs: a third of n", convoy, exact=False),
    **FIRST_COME,
)
