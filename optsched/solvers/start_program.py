"""The time-indexed program of rigid gangs as arrays, with only the columns and rows that are still of interest.

The formulation is that of `optsched.models.rigid_time_indexed`, whose arrays these are when all columns and only the
plain rows are kept; here columns that no better schedule can use are left out, and rows that cut off fractional
solutions are added. Times are slots of a grid: ``origin + k unit`` seconds.

**Cuts** say more about gangs than their GPUs: lifted knapsack rows, separated slot by slot (`violated_rows`). For a gang
size e let ``u_j = floor(g_j / e)`` for gangs of at least e, and 1 for one smaller job k (0 for the others). If
e floor(G / e) + g_k > G, jobs that fit together have at most ``floor(G / e)`` of it: k only fits beside fewer of the large
ones. The plain row lets 7/8 of an 8-GPU gang run beside a 1-GPU job; with e = 8 this row does not. On the rigid instances of
12 to 20 jobs on 8 GPUs these rows close three quarters or more of the gap of the LP bound. Reference: lifted covers, Balas,
Math. Program. 8 (1975); Wolsey, Math. Program. 8 (1975).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optsched.bounds.certificate import Certificate
from optsched.bounds.lp_dual import PriceRow, Prices, price_certificate, row_capacity
from optsched.bounds.regular import regular_cost
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.linear_program import LinearProgram
from optsched.speeds.duration import seconds_alone

VIOLATED = 1e-4  # of a row's capacity unit: less is numerical noise of the LP
# Vertices of these LPs mostly have duals with small denominators; then the bound loses nothing at all.
DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 24, 60, 120, 360, 840, 2520, 27720)
NEARLY, FINE = 1e-6, 1 << 24


@dataclass(frozen=True)
class SlotJobs:
    """Jobs in slots: ``release`` and ``length`` i64[n], rounded down where the grid is too coarse to hold them.

    Costs are computed from the exact seconds: a start at slot s completes at ``origin + s unit + p_j``.
    """

    instance: Instance
    objective: str
    origin: float
    unit: Fraction
    release: Ints
    length: Ints

    @classmethod
    def on_grid(cls, instance: Instance, objective: str, origin: float, unit: Fraction) -> SlotJobs:
        """The jobs on a grid; exact where all times are multiples of the unit from the origin."""
        first = Fraction(origin)
        release = [int((Fraction(r) - first) // unit) for r in instance.arrival.tolist()]
        length = [int(Fraction(p) // unit) for p in seconds_alone(instance).tolist()]
        return cls(
            instance, objective, origin, unit, np.array(release, dtype=np.int64), np.array(length, dtype=np.int64)
        )

    @property
    def gpus(self) -> Ints:
        """Gang sizes."""
        return self.instance.gpus

    def costs(self, job: Ints, start: Ints) -> Floats:
        """Cost of job[i] starting at slot start[i], in the objective's unit."""
        cost = regular_cost(get_objective(self.objective), self.instance)
        end = self.origin + start * float(self.unit) + seconds_alone(self.instance)[job]
        return np.asarray(cost.base[job] + cost.slope[job] * np.maximum(end - cost.kink[job], 0.0))


@dataclass(frozen=True)
class RowFamily:
    """``sum_j width_j [j in process at slot t] <= capacity`` for every slot of ``slots`` (None: every crowded one)."""

    width: Ints
    capacity: int
    slots: Ints | None = None


@dataclass(frozen=True)
class StartProgram:
    """Columns (job, start slot) and row families, compiled: ``program``; row i > n of it is (family, slot)[i - n]."""

    jobs: SlotJobs
    job: Ints
    start: Ints
    families: tuple[RowFamily, ...]
    row_family: Ints
    row_slot: Ints
    program: LinearProgram

    @classmethod
    def build(cls, jobs: SlotJobs, job: Ints, start: Ints, families: Sequence[RowFamily]) -> StartProgram:
        """Assemble; columns sorted by (job, start). O(nonzeros)."""
        n, length = jobs.release.size, jobs.length[job]
        horizon = int((start + length).max(initial=0)) + 1
        columns = np.repeat(np.arange(start.size), length)  # of every slot that a column covers
        slots = np.arange(columns.size) - np.repeat(np.cumsum(length) - length - start, length)
        possible = np.zeros((n, horizon + 1), dtype=np.int32)
        np.add.at(possible, (job, start), 1)
        np.subtract.at(possible, (job, start + length), 1)
        once = sp.csr_array((np.ones(job.size), (job, np.arange(job.size))), shape=(n, job.size))
        blocks, kept_family, kept_slot, capacity = [once], [], [], []
        for f, family in enumerate(families):
            # slots whose row is not implied by the columns that are left
            total = family.width @ (np.cumsum(possible, axis=1)[:, :horizon] > 0)
            rows = np.flatnonzero(total > family.capacity)
            rows = rows if family.slots is None else np.intersect1d(rows, family.slots)
            at = np.full(horizon, -1, dtype=np.int64)
            at[rows] = np.arange(rows.size)
            width = family.width[job[columns]]
            keep = (width > 0) & (at[slots] >= 0)
            entries = (width[keep].astype(np.float64), (at[slots[keep]], columns[keep]))
            blocks.append(sp.csr_array(entries, shape=(rows.size, job.size)))
            kept_family.append(np.full(rows.size, f))
            kept_slot.append(rows)
            capacity.append(np.full(rows.size, float(family.capacity)))
        upper = np.concatenate([np.ones(n), *capacity])
        lower = np.concatenate([np.ones(n), np.full(upper.size - n, -np.inf)])
        row_family, row_slot = np.concatenate(kept_family), np.concatenate(kept_slot)
        names = [f"job {name!r} runs once" for name in jobs.instance.ids]
        names += [f"row {f} at slot {t}" for f, t in zip(row_family.tolist(), row_slot.tolist(), strict=True)]
        program = LinearProgram.from_arrays(
            jobs.costs(job, start),
            sp.csc_array(sp.vstack(blocks)),
            lower,
            upper,
            upper=np.ones(job.size),
            integrality=np.ones(job.size, dtype=bool),
            columns=list(zip(job.tolist(), start.tolist(), strict=True)),
            rows=names,
        )
        return cls(jobs, job, start, tuple(families), row_family, row_slot, program)

    def certificate(self, row_dual: Floats) -> Certificate:
        """What the duals prove (HiGHS's: a ``<=`` row's is <= 0 in a minimisation), as prices of slots: integers over one
        denominator. Any prices >= 0 prove something, so rounding can cost a little of the bound, never its truth."""
        jobs = self.jobs
        amount, denominator = rational(-row_dual[jobs.release.size :])
        rows = []
        for f, family in enumerate(self.families):
            of_family = (self.row_family == f) & (amount > 0)
            if of_family.any():
                price = np.zeros(int(self.row_slot.max(initial=-1)) + 1, dtype=np.int64)
                price[self.row_slot[of_family]] = amount[of_family]
                rows.append(PriceRow(family.width, price))
        prices = Prices("rigid-time-indexed", Fraction(jobs.origin), jobs.unit, denominator, tuple(rows))
        return price_certificate(jobs.instance, jobs.objective, "gang-nonpreemptive", prices)

    def in_process(self, x: Floats) -> Floats:
        """Fraction of every job that runs in every slot, f64[n, slots], under column values ``x``."""
        begin, end = self.start, self.start + self.jobs.length[self.job]
        change = np.zeros((self.jobs.release.size, int(end.max(initial=0)) + 1))
        np.add.at(change, (self.job, begin), x)
        np.subtract.at(change, (self.job, end), x)
        return np.asarray(np.cumsum(change, axis=1))

    def starts(self, x: Floats) -> Floats:
        """Start of every job in seconds under an integer solution."""
        slot = np.zeros(self.jobs.release.size)
        chosen = x > 0.5
        slot[self.job[chosen]] = self.start[chosen]
        return np.asarray(self.jobs.origin + slot * float(self.jobs.unit))


def rational(values: Floats) -> tuple[Ints, int]:
    """Nonnegative floats as integers over the smallest denominator that fits all of them, else over 2**24."""
    values = np.maximum(values, 0.0)
    for denominator in DENOMINATORS:
        scaled = np.round(values * denominator)
        if np.all(np.abs(values * denominator - scaled) <= NEARLY * np.maximum(1.0, values)):
            return scaled.astype(np.int64), denominator
    return np.round(values * FINE).astype(np.int64), FINE


def violated_rows(jobs: SlotJobs, in_process: Floats, most: int) -> list[RowFamily]:
    """Row families that a fractional solution violates, with the slots at which it does; at most ``most`` rows.

    ``in_process`` f64[n, slots]. For every gang size e and slot, the smaller job k that is most in process there.
    """
    gpus, total = jobs.gpus, jobs.instance.cluster.gpus
    found: list[tuple[float, int, int, int]] = []
    for e in np.unique(gpus[gpus > 1]).tolist():
        units, rest = total // e, total % e
        lifted = np.flatnonzero((gpus < e) & (gpus > rest))
        activity = (gpus // e) @ in_process
        if lifted.size:
            k = lifted[np.argmax(in_process[lifted], axis=0)]
            activity = activity + in_process[k, np.arange(in_process.shape[1])]
        else:
            k = np.full(in_process.shape[1], -1)
        for t in np.flatnonzero(activity > units + VIOLATED).tolist():
            found.append((float(activity[t]) - units, e, int(k[t]), t))
    found.sort(reverse=True)
    slots: dict[tuple[int, int], list[int]] = {}
    for _, e, job, t in found[:most]:
        slots.setdefault((e, job), []).append(t)
    families = []
    for (e, job), at in sorted(slots.items()):
        width = gpus // e
        if job >= 0:
            width[job] = 1
        families.append(RowFamily(width, row_capacity(width, gpus, total), np.array(sorted(at))))
    return families
