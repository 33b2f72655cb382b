"""The makespan of list scheduling: Graham 1966 and 1969, for gangs Garey and Graham 1975, and strictly in order.

For restricted assignment Azar, Naor and Rom 1995: greedy loses a logarithm of the number of machines, and no more.

**Gangs** Garey and Graham's theorem (s resources: s + 1, hence 2 here) is proved for one resource with the constant 2 - 1/m
of Graham's for gangs of one. With T = OPT: sum_j size_j p_j <= m T and every p_j <= T, even with preemption. Let u(t) be
the GPUs in use, C_max = (1 + x) T, x > 0. For t < x T some job runs at t + T. It started after t, as it is no longer than
T, and did not fit at t although it was there: u(t) + u(t + T) >= u(t) + size_j >= m + 1. For t in [x T, T) at least one GPU
works. Added up, (m + 1) x T + (1 - x) T <= m T, so x <= 1 - 1/m. (For x > 1 the first part alone, over [0, T), is more than
m T.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import (
    all_at_once,
    all_of,
    instance_is,
    known_durations,
    one_gpu_jobs,
    parallel_machines,
    policy_is,
    rigid_gangs,
)
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late_findings
from optsched.guarantees.optimum import stating
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def _audit(policy: Any, run: Run) -> list[str]:
    """Until job j starts no machine is idle, so that C_j <= (sum_k p_k - p_j) / m + p_j."""
    run = run.relative  # all are released when the first one is
    p = run.instance.duration
    limit = (p.sum() - p) / run.instance.cluster.gpus + p
    return late_findings(run, limit)


def _of_lengths(name: str, m: int, lengths: list[int], optimum: int) -> Instance:
    jobs = [Job(f"{j}", duration=p) for j, p in enumerate(lengths)]
    return Instance(jobs, f"1x{m}", f"{name}-{m}", "makespan", optimum=stating(optimum, "makespan", "gang", "volume"))


@family(
    "m (m - 1) unit jobs, then one of length m, on m machines",
    policy="list",
    objective="makespan",
    ratio=lambda m: 2 - Fraction(1, m),
    limit="2 - 1/m",
    theorem="graham-list",
)
def blocked_long_job(m: int = 4) -> Instance:
    """m (m - 1) unit jobs, then one of length m, on m machines: list scheduling takes 2 m - 1, the optimum is m."""
    check_legal(m >= 1, "m", m, "an integer >= 1")
    return _of_lengths("blocked-long-job", m, [*[1] * (m * (m - 1)), m], m)


GRAHAM = guarantee(
    id="graham-list",
    statement="P || C_max: list scheduling <= (2 - 1/m) OPT, whatever the list",
    notation="P || C_max",
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
    audit=_audit,
    tight=TightFamily("m (m - 1) unit jobs, then one of length m", blocked_long_job),
)


@family(
    "lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines",
    policy="list:by=longest",
    objective="makespan",
    ratio=lambda m: Fraction(4, 3) - Fraction(1, 3 * m),
    limit="4/3 - 1/(3m)",
    theorem="lpt",
)
def three_last(m: int = 4) -> Instance:
    """Lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines: LPT takes 4 m - 1, the optimum is 3 m."""
    check_legal(m >= 2, "m", m, "an integer >= 2")
    lengths = [length for length in range(2 * m - 1, m, -1) for _ in range(2)] + [m, m, m]
    return _of_lengths("three-last", m, lengths, 3 * m)


LPT = guarantee(
    id="lpt",
    statement="P || C_max: the longest job first <= (4/3 - 1/(3m)) OPT",
    notation="P || C_max",
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
    notation="P | size_j | C_max",
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
    theorem="fifo-gangs",
    sizes=(2, 4, 8, 16, 64),
)
def wide_and_narrow(m: int = 4, length: int = 1000) -> Instance:
    """m pairs, in turn a second on all m GPUs and ``length`` seconds on one: strictly in order nothing runs side by side.

    The optimum runs the wide ones first, then all narrow ones together: m + ``length``, and no GPU is ever idle.
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
    notation="P | size_j | C_max",
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
    """ceil(log2 m) + 1, of integers."""
    return (m - 1).bit_length() + 1


@family(
    "unit jobs for two machines each, the matches of a knock-out on 2^rounds machines",
    policy="restricted-greedy",
    objective="makespan",
    ratio=lambda rounds: Fraction(rounds + 1),
    limit="log2 m + 1",
    theorem="restricted-greedy",
    sizes=(2, 3, 4, 6, 8),
)
def tournament(rounds: int = 3) -> Instance:
    """Unit jobs on m = 2^rounds machines: one for every match of a knock-out, then one for the winner of the final.

    The job of a match may use its two machines only; who gets it plays on. Greedy, on a tie, gives it to the first, so that
    the winner of the final has ``rounds`` of them, and gets one more; each could have gone to the loser instead: 1.
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
    notation="P | M_j, online-list | C_max",
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
