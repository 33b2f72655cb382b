"""Proof by a pair of solutions of a covering program and of its dual, a packing program, in fractions.

**Problem** (covering) min sum_i c_i x_i, sum_i a_ij x_i >= b_j for every j, x >= 0; (packing) max sum_j b_j y_j,
sum_j a_ij y_j <= c_i for every i, y >= 0; all a, b, c >= 0.
**Theorem** (weak duality) The value of any feasible x is at least that of any feasible y. So both lie on different sides of
the one optimum that the two programs have, and value / value is a ratio that this very run keeps, whatever its algorithm.
**Stretching** Where every packing constraint has room, y times the least c_i / sum_j a_ij y_j is feasible, too, and proves
more; so is x times the largest b_j / sum_i a_ij x_i. Where y breaks its constraints, that factor is below 1 and repairs it.

Nothing here knows how x and y were found. **Complexity** O(nonzeros) operations on fractions.
**Reference** Buchbinder and Naor, The design of competitive online algorithms via a primal-dual approach, Foundations and
Trends in Theoretical Computer Science 3 (2009), 93-263, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from optsched.errors import InputError

Row = tuple[Mapping[int, Fraction], Fraction]  # what is not 0 of a_ij, by i; b_j


@dataclass(frozen=True)
class ProgramProof:
    """Values of a feasible covering and a feasible packing, with bounds on their distance from the common optimum.

    ``covering`` = sum c_i x_i, ``packing`` = sum b_j y_j; ``stretch`` of y and ``shrink`` of x: the factors that keep them
    feasible. ``lower`` <= the optimum <= ``upper``.
    """

    covering: Fraction
    packing: Fraction
    stretch: Fraction
    shrink: Fraction

    @property
    def lower(self) -> Fraction:
        """Value of the stretched packing: no covering costs less."""
        return self.packing * self.stretch

    @property
    def upper(self) -> Fraction:
        """Value of the shrunk covering: no packing has a larger value."""
        return self.covering * self.shrink

    @property
    def covering_ratio(self) -> Fraction:
        """Upper bound on covering / optimum of this run; 1 if the covering costs nothing."""
        return self.covering / self.lower if self.covering else Fraction(1)

    @property
    def packing_ratio(self) -> Fraction:
        """Upper bound on optimum / packing of this run; 1 if the optimum is 0."""
        return self.upper / self.packing if self.packing else Fraction(1)


def prove(cost: Sequence[Fraction], rows: Sequence[Row], x: Sequence[Fraction], y: Sequence[Fraction]) -> ProgramProof:
    """Return the proof of a covering and a packing.

    Parameters
    ----------
    cost
        Costs c [I].
    rows
        Row and demand for every j.
    x
        Covering, [I].
    y
        Packing, [J].

    Raises
    ------
    InputError
        If a solution is not feasible; it names the first violated constraint.
    """
    if len(x) != len(cost) or len(y) != len(rows):
        raise InputError("not one x for every cost and one y for every row")
    if min((*x, *y), default=0) < 0:
        raise InputError("a variable is negative")
    used, shrink = [Fraction(0)] * len(cost), Fraction(0)
    for j, (row, demand) in enumerate(rows):
        covered = sum((a * x[i] for i, a in row.items()), Fraction(0))
        if covered < demand:
            raise InputError(f"row {j} is covered by {float(covered):.17g}, less than {float(demand):.17g}")
        shrink = max(shrink, demand / covered if demand else Fraction(0))
        for i, a in row.items():
            used[i] += a * y[j]
    for i, (amount, capacity) in enumerate(zip(used, cost, strict=True)):
        if amount > capacity:
            raise InputError(f"constraint {i} holds {float(amount):.17g}, more than {float(capacity):.17g}")
    covering = sum((c * value for c, value in zip(cost, x, strict=True)), Fraction(0))
    packing = sum((demand * value for (_, demand), value in zip(rows, y, strict=True)), Fraction(0))
    room = [capacity / amount for amount, capacity in zip(used, cost, strict=True) if amount]
    return ProgramProof(covering, packing, min(room, default=Fraction(1)), shrink)
