"""The fast machine of a cluster whose GPUs two jobs may share: a charge for every class of jobs, whoever its partners are.

**Model** (`optsched.problem.interference`, `optsched.speeds.gpu_sharing`; class ``gpu-sharing``): job j has work_j units to
do on gangs of n_j GPUs and takes at least a_jt seconds a unit with a whole gang on GPUs of type t (infinite where it
may not run), times s >= 1 with a sub-batch that needs less memory, times xi_{j | partner} >= 1 on every GPU that it
shares; the slowest GPU rules. At most two jobs are on a GPU; their memory, at the sub-batches they run with, fits
there.

**Charges**: jobs are put into classes of one kind each, with 0 <= c_kt <= 1 for class k on type t such that

    c_at / (xi_{a|b} s_a) + c_bt / (xi_{b|a} s_b) <= 1

for all a, b of which two different jobs can be on a GPU of type t together, with any sub-batches (stretches s_a, s_b) that
fit there. With prices omega_t >= 0 of the G_t GPUs of type t,

    v_j = work_j n_j min_t omega_t c_jt a_jt,     U = sum_t G_t omega_t,     p_j = v_j / U.

**Theorem.** Completion times of a schedule of the class are those of a preemptive schedule on one unit-speed machine with
works p_j.
**Proof.** Let x_j be the units of work that j does a second at some moment, on GPUs of types S, at the stretch s. On each of
its GPUs, of type t say, x_j a_jt s xi_j <= 1 with xi_j = 1 alone, else xi_{j | its partner there}. Let j pay
omega_t c_jt a_jt x_j a second for that GPU. A GPU with one job is paid at most omega_t c_jt <= omega_t, one with the jobs
a and b at most omega_t (c_at / (xi_{a|b} s_a) + c_bt / (xi_{b|a} s_b)) <= omega_t. So all jobs together pay at most U a
second, and j pays at least (v_j / work_j) x_j. The machine that serves j with the share (what it pays) / U is never
over-committed and has served it for p_j seconds, at least, when its work is done. Preemption and migration are not excluded.

c = 1 / S for all, S = max {1, max over pairs of 1 / xi_{a|b} + 1 / xi_{b|a}}, is the bound of the sheet below; xi >= 2
everywhere gives S = 1 and the machine of `typed_machine`; xi = 1 doubles the GPUs. Other charges are better where kinds
differ: of a pair that goes well together one may pay in full if the other hardly pays, and jobs that share with nobody pay
in full. As long as jobs are few every one is a class of its own, else those are one that nothing tells apart but gang,
work and release; many kinds of memory are taken together by kind, at the smallest needs.

Charges are multiples of ``2**-CHARGE_BITS``; floats of the physics (ratios, stretches, seconds) are taken as exact
rationals. Memory counts as enough up to a part of 2**-30: what rounding lets pass must not refute a bound.

**Reference**: section 4.3 of this project's reference sheet on SJF-BSBF (c = 1 / S, one type); the charges are LP duality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.shared_pairs import FEW, SharedPairs, shared_pairs
from optsched.bounds.typed_machine import TypedJobs, TypePrices, best_prices, typed_jobs
from optsched.problem.instance import Instance
from optsched.speeds.gpu_sharing import sharing_rates

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHARGE_BITS = 30
UNIT = 1 << CHARGE_BITS
ROUNDS = 3  # of a search for charges
_STEPS = (1.0, 0.5, 0.2, 0.05)  # of the way to a corner
_EVALUATIONS, _EVALUATED_WORK = 150, 1_000_000  # of a search: at most the first, fewer for many jobs


Value = Callable[["SharedMachineJobs", TypePrices], float]


@dataclass(frozen=True, eq=False)
class SharedMachineJobs(TypedJobs):
    """`TypedJobs` in C classes: ``class_of`` i64[n], ``kind_class`` i64[K], ``charge`` f64[C, T]."""

    class_of: Ints
    kind_class: Ints
    pairs: SharedPairs
    charge: Floats

    @property
    def width(self) -> Floats:
        """``g c_t`` of every kind on every type, f64[K, T]."""
        return self.gang[:, None] * self.charge[self.kind_class]

    def unit_cost(self, kind: int, prices: TypePrices, own: int = 0) -> Fraction:
        """``min_t a_t (own + g c_t omega_t)`` of a kind, exactly."""
        gang, charge = int(self.gang[kind]), self.whole_charges[self.kind_class[kind]]
        row = self.exact_pace[kind].items()
        return min(seconds * (own + Fraction(gang * charge[t] * prices[t], UNIT)) for t, seconds in row)

    @cached_property
    def whole_charges(self) -> list[list[int]]:
        """The charges in units of 1 / UNIT, [C][T]."""
        return [[int(part * UNIT) for part in row] for row in self.charge.tolist()]

    @cached_property
    def load(self) -> Floats:
        """GPU-seconds of every class at best, f64[C]."""
        seconds = self.work * (self.gang * self.pace.min(axis=1, initial=np.inf))[self.kind]
        return np.bincount(self.class_of, weights=seconds, minlength=self.charge.shape[0]).astype(np.float64)

    @cached_property
    def may(self) -> npt.NDArray[np.bool_]:
        """Which classes run on which types, bool[C, T]."""
        found = np.zeros(self.charge.shape, dtype=bool)
        np.logical_or.at(found, self.kind_class, np.isfinite(self.pace))
        return found

    def with_charge(self, charge: Floats) -> SharedMachineJobs:
        """The same jobs at other charges."""
        return replace(self, charge=charge)

    def rounded(self) -> SharedMachineJobs:
        """The same jobs at charges that are multiples of 1 / UNIT and keep the inequalities exactly."""
        return self.with_charge(self.pairs.rounded(self.charge, UNIT) / UNIT)

    def data(self) -> dict[str, Any]:
        """What a certificate says of classes and charges."""
        charges = {name: [row[t] for row in self.whole_charges] for t, name in enumerate(self.types)}
        return {"classes": self.class_of.tolist(), "charges": charges}


def shared_jobs(instance: Instance) -> SharedMachineJobs | None:
    """The jobs at equal charges 1 / S; None where jobs share no GPUs by interference.

    O(n log n + C^2 T O) for O sub-batches; `InputError` where a profile or a bandwidth is missing.
    """
    if instance.interference is None:
        return None
    typed, rates = typed_jobs(instance), sharing_rates(instance)
    pairs = shared_pairs(instance, rates)
    # kinds once more: gang, paces, class
    rows = np.column_stack([typed.kind, pairs.class_of])
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    equal = np.repeat(1.0 / pairs.most_work()[None, :], pairs.classes, axis=0)
    return SharedMachineJobs(
        typed.types,
        typed.capacity,
        typed.pace[kinds[:, 0]],
        typed.gang[kinds[:, 0]],
        kind.reshape(-1).astype(np.int64),
        typed.work,
        typed.release,
        pairs.class_of,
        kinds[:, 1],
        pairs,
        equal,
    )


def charged_by_load(jobs: SharedMachineJobs, load: Floats) -> SharedMachineJobs:
    """Charges with the largest ``sum load_k c_kt`` on every type, ``load`` f64[C] >= 0."""
    return jobs.with_charge(jobs.pairs.best_charges(np.where(jobs.may, load[:, None], 0.0)))


def best_start(jobs: SharedMachineJobs, value: Value) -> tuple[SharedMachineJobs, TypePrices]:
    """(charges, prices) with a large ``value``: equal charges or those that make the load largest; prices by a search."""
    starts = [jobs] if jobs.pairs.plain else [jobs, charged_by_load(jobs, jobs.load)]
    plain = (1,) * len(jobs.types)
    best = max(starts, key=lambda each: value(each, plain))
    return best.rounded(), best_prices(best, lambda some: value(best, some))


def better_charges(jobs: SharedMachineJobs, prices: TypePrices, value: Value) -> SharedMachineJobs:
    """Charges with a larger ``value``: some steps towards the corner to which it rises fastest (Frank and Wolfe).

    Any charges give a bound, the search only decides how good it is. Deterministic.
    """
    left = max(2 * FEW, min(_EVALUATIONS, _EVALUATED_WORK // max(1, jobs.work.size)))
    best, reached = jobs, value(jobs, prices)
    for _ in range(0 if jobs.pairs.plain else ROUNDS):
        if left < jobs.pairs.classes:
            break
        left -= jobs.pairs.classes + len(_STEPS)
        slopes = _slopes(best, reached, lambda each: value(each, prices))
        corner = charged_by_load(best, slopes).charge
        found = [best.with_charge(best.charge + step * (corner - best.charge)) for step in _STEPS]
        values = [value(each, prices) for each in found]
        if max(values) <= reached * (1 + 1e-9):
            break
        reached = max(values)
        best = found[values.index(reached)]
    return best.rounded()


def _slopes(jobs: SharedMachineJobs, reached: float, value: Callable[[SharedMachineJobs], float]) -> Floats:
    # by how much the value rises with the charges of one class, f64[C]
    slopes = np.zeros(jobs.pairs.classes)
    for k in range(slopes.size):
        less = jobs.charge.copy()
        less[k] *= 1 - 1e-3
        fallen = (reached - value(jobs.with_charge(less))) / 1e-3
        level = float(jobs.charge[k].max())
        slopes[k] = max(fallen, 0.0) / level if level > 0 and math.isfinite(fallen) else 0.0
    return slopes
