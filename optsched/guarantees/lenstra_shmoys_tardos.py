"""Lenstra, Shmoys and Tardos 1990: twice the optimum on unrelated machines, proved by the prices of a linear program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.check.referee import schedule_value
from optsched.guarantees.assumptions import (
    all_at_once,
    broken,
    one_gpu_jobs,
    own_network,
    speed_by_type,
)
from optsched.guarantees.guarantee import ROUNDING, TightFamily, guarantee
from optsched.guarantees.unrelated_machines import UnrelatedMachines
from optsched.problem.instance import Instance
from optsched.simulation.placing import Placement
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


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(one_gpu_jobs(instance), all_at_once(instance), speed_by_type(instance), own_network(instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return FACTOR


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
    assumptions=_assumptions,
    ratio=_ratio,
    audit=_audit,
    proves=_proves,
    tight=TightFamily("2 - 1/m where the vertex is unlucky: m (m - 1) unit jobs and one of length m; no family here"),
    schedule_class="gang-nonpreemptive",
)
