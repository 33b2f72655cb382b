"""Classes of jobs that can be on a GPU together, and the charges that this allows: inequalities, an LP, rounding.

For every GPU type t and all classes a, b of which two different jobs can share a GPU of that type

    f_ab c_at + f_ba c_bt <= 1,   f_ab = 1 / (xi_{a|b} s_a),

with one inequality for every choice of sub-batches of which neither could be larger. `shared_machine` proves
the bound that uses them. A pair has no inequality if no two of its sub-batches fit together, or if the table
says that it does not run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.partner_rates import SharingRates

Options = tuple[tuple[float, float], ...]

FEW = 16  # jobs that are each a class of its own
MOST_CLASSES = 40  # beyond it a class is all jobs of a kind
ENOUGH = 1 + 2.0**-28  # memory that counts as enough: more than the verifier allows


@dataclass(frozen=True)
class JobClass:
    """Jobs of one kind: how many, the node groups that suit some of them, and (memory, stretch) of their sub-batches.

    ``options`` rise in memory and fall in stretch: what needs more and is not faster is left out.
    """

    kind: int
    count: int
    groups: tuple[bool, ...]
    options: Options


@dataclass(frozen=True, eq=False)
class PairRows:
    """The inequalities of one GPU type: ``f_a c[a] + f_b c[b] <= 1``, arrays [m]; ``exact``: (xi, s) of both sides."""

    a: Ints
    b: Ints
    f_a: Floats
    f_b: Floats
    exact: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, eq=False)
class SharedPairs:
    """``class_of`` i64[n]; C classes; inequalities of T types."""

    class_of: Ints
    classes: int
    rows: tuple[PairRows, ...]

    def most_work(self) -> Floats:
        """S: seconds of work that a GPU of every type does at most a second, f64[T] >= 1."""
        return np.array([max(1.0, float((row.f_a + row.f_b).max(initial=0.0))) for row in self.rows])

    @cached_property
    def plain(self) -> bool:
        """True if equal charges are the best charges."""
        return self.classes <= 1 or bool((self.most_work() <= 1).all())

    @cached_property
    def fastest_beside(self) -> Floats:
        """The largest speed (alone: 1) of every class beside another job on a GPU of a type, f64[C, T]; 0: never beside."""
        found = np.zeros((self.classes, len(self.rows)))
        for t, row in enumerate(self.rows):
            np.maximum.at(found[:, t], row.a, row.f_a)
            np.maximum.at(found[:, t], row.b, row.f_b)
        return found

    def best_charges(self, load: Floats) -> Floats:
        """Return the charges with the largest ``sum_k load_kt c_kt`` on every type, up to the solver's tolerance.

        Parameters
        ----------
        load
            Load of every class on every type, f64[C, T].

        Returns
        -------
        Floats
            Charges, f64[C, T].
        """
        return np.column_stack([self._best(row, load[:, t]) for t, row in enumerate(self.rows)])

    def _best(self, row: PairRows, load: Floats) -> Floats:
        from scipy.optimize import linprog  # takes a while to import

        most = float((row.f_a + row.f_b).max(initial=0.0))
        largest = float(load.max(initial=0.0))
        if most <= 1 or not 0 < largest < math.inf:
            return np.full(self.classes, 1.0 / max(most, 1.0))
        matrix = np.zeros((row.a.size, self.classes))
        line = np.arange(row.a.size)
        matrix[line, row.a] += row.f_a
        matrix[line, row.b] += row.f_b  # a class beside itself: both sides add up
        found = linprog(-load / largest, A_ub=matrix, b_ub=np.ones(row.a.size), bounds=(0, 1), method="highs")
        return np.full(self.classes, 1.0 / most) if found.x is None else np.clip(found.x, 0.0, 1.0)

    def rounded(self, charge: Floats, unit: int) -> Ints:
        """Round ``charge * unit`` to integers that satisfy every inequality exactly.

        Parameters
        ----------
        charge
            Charges, f64[C, T].
        unit
            Integer that stands for the charge 1.

        Returns
        -------
        Ints
            Integers near ``charge * unit``, at most ``unit``, i64[C, T].
        """
        # a hair up before the floor: the exact 1/2 of an even pair must not become the multiple below
        whole = np.minimum(np.floor(charge * unit + 2.0**-10).astype(np.int64), unit)
        for t, row in enumerate(self.rows):
            column = whole[:, t]
            near = row.f_a * column[row.a] + row.f_b * column[row.b] > unit - 4
            for k in np.flatnonzero(near).tolist():
                _lower(column, int(row.a[k]), int(row.b[k]), row.exact[k], unit)
        return whole


def _lower(column: Ints, a: int, b: int, exact: tuple[float, float, float, float], unit: int) -> None:
    # Lowered charges break no inequality that held before.
    xi_a, s_a, xi_b, s_b = (Fraction(x) for x in exact)
    while True:
        excess = int(column[a]) / (xi_a * s_a) + int(column[b]) / (xi_b * s_b) - unit
        if excess <= 0:
            return
        less = max(1, math.ceil(excess / 2))
        column[a] = max(0, int(column[a]) - less)
        column[b] = max(0, int(column[b]) - (less if b != a else 0))


def shared_pairs(instance: Instance, rates: SharingRates) -> SharedPairs:
    """Return the classes of an instance and their inequalities.

    Parameters
    ----------
    instance
        The instance.
    rates
        Slow-downs, memory and sub-batches of its jobs.

    Notes
    -----
    Complexity: O(n log n + C^2 T O) for O sub-batches.
    """
    class_of, classes = _classes(instance, rates)
    cluster = instance.cluster
    first = np.unique(cluster.node_group, return_index=True)[1]
    memory, kind_of_group = cluster.node_memory[first].tolist(), cluster.node_type[first].tolist()
    rows = []
    for t in range(len(cluster.gpu_types)):
        capacity = {g: memory[g] for g, its in enumerate(kind_of_group) if its == t}
        rows.append(_rows(classes, capacity, rates.xi))
    return SharedPairs(class_of, len(classes), tuple(rows))


def _classes(instance: Instance, rates: SharingRates) -> tuple[Ints, list[JobClass]]:
    if not instance.n:
        return np.zeros(0, dtype=np.int64), []
    first = np.unique(instance.cluster.node_group, return_index=True)[1]
    patterns, pattern = np.unique(instance.class_eligible[:, first], axis=0, return_inverse=True)
    suits = pattern.reshape(-1)[instance.job_class]
    beyond = np.arange(rates.memory.shape[1])[None, :] >= rates.options[:, None]
    memory = np.where(beyond, np.inf, rates.memory)  # no option
    if np.isinf(instance.cluster.node_memory).all():
        memory = np.where(beyond, np.inf, 0.0)
    stretch = rates.stretch.min(axis=2)
    columns = [rates.kind, suits, *memory.T, *stretch.T]
    if instance.n <= FEW:
        columns.append(np.arange(instance.n))
    class_of = _distinct(np.column_stack(columns).astype(np.float64))[1]
    if class_of.max() >= MOST_CLASSES:
        class_of = _distinct(rates.kind[:, None].astype(np.float64))[1]
    count = np.bincount(class_of)
    jobs_of: list[list[int]] = [[] for _ in count]  # one of all that are alike
    for j in _distinct(np.column_stack([class_of, suits, memory, stretch]))[0].tolist():
        jobs_of[class_of[j]].append(j)
    found = []
    for c, members in enumerate(jobs_of):
        groups = (patterns[suits[members]].sum(axis=0) > 0).tolist()
        options = {(m, s) for j in members for m, s in zip(memory[j], stretch[j], strict=True) if m < math.inf}
        found.append(JobClass(int(rates.kind[members[0]]), int(count[c]), tuple(groups), _useful(options)))
    return class_of, found


def _distinct(rows: Floats) -> tuple[Ints, Ints]:
    # (the first of each, which one each row is), in order of first appearance
    _, example, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(example)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return example[order], place[of.reshape(-1)]


def _useful(options: set[tuple[float, float]]) -> Options:
    kept: list[tuple[float, float]] = []
    for memory, stretch in sorted(options):
        if not kept or stretch < kept[-1][1]:
            kept.append((float(memory), float(stretch)))
    return tuple(kept)


def _rows(classes: list[JobClass], capacity: dict[int, float], xi: Floats) -> PairRows:
    found: list[tuple[int, int, float, float, float, float]] = []
    for a, one in enumerate(classes):
        for b, other in enumerate(classes[a:], start=a):
            x_a, x_b = float(xi[one.kind, other.kind]), float(xi[other.kind, one.kind])
            shared = [held for g, held in capacity.items() if one.groups[g] and other.groups[g]]
            if shared and x_a < math.inf and not (a == b and one.count < 2):
                found += [(a, b, x_a, s_a, x_b, s_b) for s_a, s_b in _fitting(one.options, other.options, max(shared))]
    sides = np.array([row[2:] for row in found], dtype=np.float64).reshape(len(found), 4)
    place = np.array([row[:2] for row in found], dtype=np.int64).reshape(len(found), 2)
    exact = tuple(row[2:] for row in found)
    return PairRows(place[:, 0], place[:, 1], 1 / (sides[:, 0] * sides[:, 1]), 1 / (sides[:, 2] * sides[:, 3]), exact)


def _fitting(one: Options, other: Options, capacity: float) -> Iterator[tuple[float, float]]:
    """(s_a, s_b) of the sub-batches that fit together and of which neither could be larger."""
    last = math.inf
    for memory, s_a in reversed(one):
        s_b = min((s for m, s in other if memory + m <= capacity * ENOUGH), default=math.inf)
        if s_b < last:
            yield s_a, s_b
            last = s_b
