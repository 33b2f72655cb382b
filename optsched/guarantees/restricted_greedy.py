"""Azar, Naor and Rom 1995: greedy for restricted assignment loses a logarithm of the number of machines, and no more."""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, all_of, known_durations, one_gpu_jobs
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job

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
