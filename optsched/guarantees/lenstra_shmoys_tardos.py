"""Lenstra, Shmoys and Tardos 1990: twice the optimum on unrelated machines, proved by the prices of a linear program.

`torn_job`: on each of m machines m - 1 jobs of 1 s that take 2 s elsewhere, and one job of m + 1 s on any. The program is
least in one point only: all at home, since elsewhere they take more of machines that are all full, and 1/m of the long job
on every machine, which makes them equally full. Whoever gets it whole has m - 1 + m + 1 seconds. But m + 1 are enough: a
machine for the long job alone, whose own jobs go to the others, one each.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.check.referee import schedule_value
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, all_of, one_gpu_jobs, own_network, speed_by_type
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import ROUNDING, TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.guarantees.unrelated_machines import UnrelatedMachines
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.run import Run

FACTOR = Fraction(2)
EQUAL = Fraction(1, 2**50)  # relative: seconds that differ by no more are one limit, rounded


def least_makespan(machines: UnrelatedMachines, prices: list[Fraction], limit: Fraction) -> Fraction:
    """No schedule without preemption of jobs that are all there at 0 is shorter, whatever ``prices`` [m] >= 0 and ``limit``.

    Every job takes p_ij on some machine. A schedule shorter than the least p_ij above the limit uses pairs up to it only; so
    its machines, machine i at the price y_i, work for no less than the sum of the least y_i p_ij of every job, all of them
    for no longer than the makespan. O(n m) fractions.
    """
    alone, together, longer = Fraction(0), Fraction(0), list[Fraction]()
    for j in range(machines.release.size):
        every = [(machines.seconds(i, j), price) for i, price in enumerate(prices)]
        seconds = [(p, price) for p, price in every if p is not None]
        alone = max(alone, min(p for p, _ in seconds))
        together += min((p * price for p, price in seconds if p <= limit), default=Fraction(0))
        longer += [p for p, _ in seconds if p > limit]
    total = sum(prices, Fraction(0))
    return max(alone, min([together / total, *longer]) if total else Fraction(0))


def _proves(policy: Any, run: Run) -> Fraction | None:
    if not run.instance.n:
        return None
    nothing = {"assignment_prices": np.zeros(run.instance.cluster.gpus), "assignment_limit": np.zeros(1)}
    notes = run.notes or nothing  # of a job alone
    prices = [Fraction(y) for y in np.asarray(notes["assignment_prices"]).tolist()]
    limit = Fraction(float(notes["assignment_limit"][0])) * (1 + EQUAL)
    return least_makespan(UnrelatedMachines.of(run.instance), prices, limit)


def _audit(policy: Any, run: Run) -> list[str]:
    """The proof's own inequality: no longer than twice what the prices of this run prove."""
    least, run = _proves(policy, run), run.relative
    if least is None or run.unfinished:
        return []
    value = schedule_value(run.instance, run.schedule, "makespan")
    if value <= FACTOR * least * (1 + Fraction(ROUNDING)):
        return []
    return [f"the makespan is {float(value):.12g}, more than twice what the prices prove, {float(least):.12g}"]


@family(
    "m - 1 jobs at home on each of m machines, and a long job that the linear program gives to all of them in parts",
    policy="lenstra-shmoys-tardos",
    objective="makespan",
    ratio=lambda m: Fraction(2 * m, m + 1),
    limit="2 for many machines",
    theorem="lenstra-shmoys-tardos",
)
def torn_job(m: int = 4) -> Instance:
    """m machines; m - 1 jobs at home on each, 1 s there and 2 s elsewhere; a job of m + 1 s on any machine: the optimum.

    The linear program gives every machine a part of the long job, and rounding all of it to one that keeps its own jobs.
    """
    check_legal(2 <= m <= 32, "m", m, "an integer in 2..32")
    machines = [f"m{i}" for i in range(m)]
    rates = {(f"of-{home}", gpu, 1): Throughput(2.0 if gpu == home else 1.0) for home in machines for gpu in machines}
    jobs = [Job(f"{home}-{k}", iterations=2, profile=f"of-{home}") for home in machines for k in range(m - 1)]
    return Instance(
        [*jobs, Job("long", duration=m + 1)],
        Cluster(tuple(NodeGroup(1, gpu=gpu) for gpu in machines)),
        name=f"torn-job-{m}",
        objective="makespan",
        throughputs=Throughputs(rates),
        optimum=stating(m + 1, "makespan", "gang-nonpreemptive", "the long job alone on a machine"),
    )


LENSTRA_SHMOYS_TARDOS = guarantee(
    id="lenstra-shmoys-tardos",
    statement="R || C_max: rounding a vertex of the linear program <= 2 OPT",
    notation="R || C_max",
    knowledge="offline",
    source="Lenstra, Shmoys and Tardos 1990",
    status="proved",
    proof=(
        "Let T* be the least time for which the jobs, in parts, fit on the machines when no pair with p_ij > T* may be used;"
        " the optimum is one such time. A vertex of that program has no more positive variables than jobs and machines, in "
        "each of its components: jobs in parts and their machines are trees with one edge more at most, in which every such "
        "job can be given a machine of its own, where it has a part. So a machine has whole jobs that fit into T* and one "
        "more of T* at most. That T* is least is proved by the prices of the dual, in fractions, for every run."
    ),
    objective="makespan",
    policies=("lenstra-shmoys-tardos",),
    assumptions=all_of(one_gpu_jobs, all_at_once, speed_by_type, own_network),
    ratio=lambda policy, run: FACTOR,
    audit=_audit,
    proves=_proves,
    tight=TightFamily("a long job in equal parts on all machines, which have jobs of their own", torn_job, exact=False),
    schedule_class="gang-nonpreemptive",
)
