"""The fast machine of a cluster whose GPUs two jobs may share: a charge for every class of jobs, whoever its partners are.

**Model** (`optsched.problem.interference`, `optsched.speeds.partner_rates`; class ``gpu-sharing``): job j has work_j units
to do on gangs of n_j GPUs and takes at least a_jt seconds a unit with a whole gang on GPUs of type t (infinite where it
may not run), times s >= 1 with a sub-batch that needs less memory, times xi_{j | partner} >= 1 on every GPU that it
shares; the slowest GPU rules. At most two jobs are on a GPU; their memory, at the sub-batches they run with, fits
there.

**Charges**: jobs are put into classes of one kind each, with 0 <= c_kt <= 1 for class k on type t such that

    c_at / (xi_{a|b} s_a) + c_bt / (xi_{b|a} s_b) <= 1

for all a, b of which two different jobs can be on a GPU of type t together, with any sub-batches (stretches s_a, s_b) that
fit there. With prices omega_t >= 0 of the G_t GPUs of type t,

    v_j = work_j n_j min_t omega_t c_jt a_jt,     U = sum_t G_t omega_t,     p_j = v_j / U:

the machine of `priced_machine` for jobs with the modes a_jt for n_j c_jt GPUs of type t.
**Theorem.** Completion times of a schedule of the class are those of a preemptive schedule on one unit-speed machine with
works p_j.
**Proof.** Let x_j be the units of work that j does a second at some moment, on GPUs of types S, at the stretch s. On each of
its GPUs, of type t say, x_j a_jt s xi_j <= 1 with xi_j = 1 alone, else xi_{j | its partner there}. Let j pay
omega_t c_jt a_jt x_j a second for that GPU. A GPU with one job is paid at most omega_t c_jt <= omega_t, one with the jobs
a and b at most omega_t (c_at / (xi_{a|b} s_a) + c_bt / (xi_{b|a} s_b)) <= omega_t. So all jobs together pay at most U a
second, and j pays at least (v_j / work_j) x_j. The machine that serves j with the share (what it pays) / U is never
over-committed and has served it for p_j seconds, at least, when its work is done. Preemption and migration are not excluded.

c = 1 / S for all, S = max {1, max over pairs of 1 / xi_{a|b} + 1 / xi_{b|a}}, is the simplest choice; xi >= 2
everywhere gives S = 1 and the machine of gangs; xi = 1 doubles the GPUs. Other charges are better where kinds
differ: of a pair that goes well together one may pay in full if the other hardly pays, and jobs that share with nobody pay
in full. As long as jobs are few every one is a class of its own, else those are one that differ in nothing but gang,
work and release; many kinds of memory are taken together by kind, at the smallest needs.

**Prices over time** (`optsched.bounds.priced_time`) may also let a job pay n_j GPUs in full for its full speed: let x_jt
be the largest speed (alone at its best: 1) at which j runs beside anybody on a GPU of type t. Options are then 1 / a_jt
for n_j GPUs, and x_jt / a_jt for n_j c_jt x_jt of them. A GPU with one job is paid by nobody else, in full at most. Where
it has two, each runs at a speed y <= x_jt and pays c_jt y, together at most 1: that is what charges are. What j pays
rises with its speed and is convex, so that one that is slowed down on some GPUs pays, where it is alone, for no more than
it holds; and parts of the two modes do its work. The machine, which charges c_jt for every unit of work, cannot say so.

Charges are multiples of ``2**-CHARGE_BITS``; floats of the physics (ratios, stretches, seconds) are taken as exact
rationals. Memory counts as enough up to a part of 2**-30: what rounding lets pass must not refute a bound.

**Reference**: derived here; the charges are LP duality. Jobs that share in pairs: Luo et al., IWQoS 2024, arXiv 2407.13088.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optsched.bounds.modes import MODES, Modes, TypeMode, modes_of_gangs
from optsched.bounds.priced_machine import Priced, TypePrices, best_prices, machine_at
from optsched.bounds.relaxation import Machines, Relaxation, Value, relaxation
from optsched.classes.gpu_sharing.bounds.shared_pairs import FEW, SharedPairs, shared_pairs
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.speeds.partner_rates import sharing_rates

CHARGE_BITS = 30
UNIT = 1 << CHARGE_BITS
ROUNDS = 3  # of a search for charges
_STEPS = (1.0, 0.5, 0.2, 0.05)  # of the way to a corner
_EVALUATIONS, _EVALUATED_WORK = 150, 1_000_000  # of a search: at most the first, fewer for many jobs


@dataclass(frozen=True, eq=False)
class SharedModes(Modes):
    """Gangs in C classes: ``class_of`` i64[n], ``kind_class`` i64[K], ``charge`` f64[C, T]; ``by_kind``: no charges."""

    class_of: Ints
    kind_class: Ints
    pairs: SharedPairs
    charge: Floats

    @cached_property
    def gpus(self) -> Floats:
        """GPUs that every mode pays for at these charges, f64[O]."""
        kind = np.repeat(np.arange(self.gang.size), np.diff(self.start))
        return np.asarray(self.gang[kind] * self.charge[self.kind_class[kind], self.gpu_type], dtype=np.float64)

    @cached_property
    def gpu_seconds(self) -> Floats:
        """GPU-seconds a unit of work of every mode at these charges, f64[O]."""
        seconds: Floats = self.pace * self.gpus
        return seconds

    @cached_property
    def whole_charges(self) -> list[list[int]]:
        """The charges in units of 1 / UNIT, [C][T]."""
        return [[int(part * UNIT) for part in row] for row in self.charge.tolist()]

    @cached_property
    def load(self) -> Floats:
        """GPU-seconds of every class at best, f64[C]."""
        seconds = self.work * (self.gang * self.least(self.pace))[self.kind]
        return np.bincount(self.class_of, weights=seconds, minlength=self.charge.shape[0]).astype(np.float64)

    @cached_property
    def may(self) -> Bools:
        """Mask of the types on which each class runs, bool[C, T]."""
        found = np.zeros(self.charge.shape, dtype=bool)
        found[np.repeat(self.kind_class, np.diff(self.start)), self.gpu_type] = True
        return found

    def with_charge(self, charge: Floats) -> SharedModes:
        """Return the same jobs at other charges.

        Parameters
        ----------
        charge
            Charges, f64[C, T].
        """
        other = replace(self, charge=charge)
        kept = {name: value for name, value in self.__dict__.items() if name in ("start", "gpu_type", "pace", "may")}
        other.__dict__.update(kept)  # cached: searches ask for many charges
        return other

    def rounded(self) -> SharedModes:
        """The same jobs at charges that are multiples of 1 / UNIT and keep the inequalities exactly."""
        return self.with_charge(self.pairs.rounded(self.charge, UNIT) / UNIT)

    def starts(self) -> list[SharedModes]:
        """Equal charges, and those that make the load largest."""
        return [self] if self.pairs.plain else [self, charged_by_load(self, self.load)]

    def charged(self) -> Modes:
        """The modes at these charges, which were rounded, exactly."""
        rows = zip(self.by_kind, self.kind_class.tolist(), strict=True)
        charge = self.whole_charges
        return self._plain([tuple((t, a, g * Fraction(charge[c][t], UNIT)) for t, a, g in row) for row, c in rows])

    def beside(self) -> Modes:
        """Return the modes by which jobs pay over time, at their full speed and next to a partner (see the module)."""
        found = []
        for modes, c in zip(self.by_kind, self.kind_class.tolist(), strict=True):
            row: list[TypeMode] = []
            for t, a, g in modes:
                part = Fraction(float(self.pairs.fastest_beside[c, t]))
                row += [(t, a / part, g * part * Fraction(self.whole_charges[c][t], UNIT))] if part > 0 else []
                row += [(t, a, g)] if part < 1 else []
            found.append(tuple(row))
        return self._plain(found)

    def _plain(self, by_kind: list[tuple[TypeMode, ...]]) -> Modes:
        return Modes(self.types, self.capacity, self.gang, self.kind, self.work, self.release, by_kind, adds=False)

    def data(self) -> dict[str, Any]:
        """Return the classes and charges as a certificate states them."""
        charges = {name: [row[t] for row in self.whole_charges] for t, name in enumerate(self.types)}
        return {"classes": self.class_of.tolist(), "charges": charges}


Judge = Callable[[SharedModes, TypePrices], float]


def modes_of_shared(instance: Instance) -> SharedModes:
    """Return the jobs at equal charges 1 / S, where GPUs are shared by interference.

    Parameters
    ----------
    instance
        The instance, which has an interference model.

    Raises
    ------
    InputError
        If a profile or a bandwidth is missing.

    Notes
    -----
    Complexity: O(n log n + C^2 T O) for O sub-batches.
    """
    gangs, pairs = modes_of_gangs(instance), shared_pairs(instance, sharing_rates(instance))
    # kinds once more: gang, paces, class
    kinds, kind = np.unique(np.column_stack([gangs.kind, pairs.class_of]), axis=0, return_inverse=True)
    return SharedModes(
        gangs.types,
        gangs.capacity,
        gangs.gang[kinds[:, 0]],
        kind.reshape(-1),
        gangs.work,
        gangs.release,
        [gangs.by_kind[k] for k in kinds[:, 0].tolist()],
        adds=False,
        class_of=pairs.class_of,
        kind_class=kinds[:, 1],
        pairs=pairs,
        charge=np.repeat(1.0 / pairs.most_work()[None, :], pairs.classes, axis=0),
    )


@dataclass(frozen=True, eq=False)
class RelaxedSharing(Priced):
    """Jobs that share GPUs, on machines by charges and prices."""

    modes: SharedModes

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield the machine at the best charges and prices found, then those at better charges.

        Parameters
        ----------
        value
            Function from a machine to the bound that it gives, roughly.
        rounds
            Largest number of machines; each one after the first follows a search for better charges.
        """

        def judged(modes: SharedModes, prices: TypePrices) -> float:
            return value(machine_at(modes, prices, self.alone, dict))

        modes, prices = best_start(self.modes, judged)
        for more in reversed(range(rounds)):
            yield (machine_at(modes.charged(), prices, self.alone, modes.data),)
            better = better_charges(modes, prices, judged) if more else modes
            if np.array_equal(better.charge, modes.charge):
                return
            modes = better

    def ways(self) -> list[tuple[Modes, dict[str, Any]]]:
        """The modes at a few charges."""
        return [(each.charged(), each.data()) for each in (some.rounded() for some in self.modes.starts())]


def sharing(instance: Instance, schedule_class: str) -> RelaxedSharing | None:
    """Return the relaxation of an instance, or None if jobs share no GPUs by interference.

    Parameters
    ----------
    instance
        The instance.
    schedule_class
        Not used: the relaxation is registered for one class.
    """
    if instance.interference is None:
        return None
    return RelaxedSharing(instance, seconds_alone(instance), modes_of_shared(instance))


def charged_by_load(jobs: SharedModes, load: Floats) -> SharedModes:
    """Return the jobs at the charges with the largest ``sum load_k c_kt`` on every type.

    Parameters
    ----------
    jobs
        The jobs at any charges.
    load
        Load of every class, f64[C], at least 0.
    """
    return jobs.with_charge(jobs.pairs.best_charges(np.where(jobs.may, load[:, None], 0.0)))


def best_start(jobs: SharedModes, value: Judge) -> tuple[SharedModes, TypePrices]:
    """Return charges and prices with a large ``value``.

    The charges are equal or those that make the load largest. A search finds the prices.

    Parameters
    ----------
    jobs
        The jobs at equal charges.
    value
        Function from charges and prices to the bound that they give, roughly.

    Returns
    -------
    tuple
        The jobs at the charges, and the prices of the GPU types.
    """
    plain = (1,) * len(jobs.types)
    best = max(jobs.starts(), key=lambda each: value(each, plain)).rounded()
    return best, best_prices(best, lambda some: value(best, some))


def better_charges(jobs: SharedModes, prices: TypePrices, value: Judge) -> SharedModes:
    """Search for charges with a larger ``value`` by some steps of the method of Frank and Wolfe.

    Each step goes towards the corner to which the value rises fastest. Any charges give a valid bound; the search
    only decides how good it is. The search is deterministic.

    Parameters
    ----------
    jobs
        The jobs at the charges where the search begins.
    prices
        Prices of the GPU types, which stay as they are.
    value
        Function from charges and prices to the bound that they give, roughly.

    Returns
    -------
    SharedModes
        The jobs at the best charges found, rounded.
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


def _slopes(jobs: SharedModes, reached: float, value: Callable[[SharedModes], float]) -> Floats:
    # by how much the value rises with the charges of one class, f64[C]
    slopes = np.zeros(jobs.pairs.classes)
    for k in range(slopes.size):
        less = jobs.charge.copy()
        less[k] *= 1 - 1e-3
        fallen = (reached - value(jobs.with_charge(less))) / 1e-3
        level = float(jobs.charge[k].max())
        slopes[k] = max(fallen, 0.0) / level if level > 0 and math.isfinite(fallen) else 0.0
    return slopes


relaxation(
    Relaxation(
        name="shared",
        classes=("gpu-sharing",),
        find=sharing,
        text="gangs that share GPUs at their best charges",
        names={"mean-busy-time": {}, "volume": {}, "alone": {}},
        modes=True,
    )
)


def _ways(instance: Instance) -> list[tuple[Modes, dict[str, Any]]]:
    if instance.interference is None:
        return []
    return [(each.beside(), each.data()) for each in (way.rounded() for way in modes_of_shared(instance).starts())]


MODES.register("gpu-sharing", _ways)
