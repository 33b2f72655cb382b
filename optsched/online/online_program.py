"""A covering program whose constraints arrive, and the packing program whose variables do: one multiplicative update.

**Problem** (covering) min sum_i c_i x_i + sum_j u_j z_j, sum_i a_ij x_i + z_j >= b_j; the costs c are known, rows j arrive,
and no x_i may ever decrease. (packing) max sum_j b_j y_j, sum_j a_ij y_j <= c_i, y_j <= u_j; the capacities c are known,
columns j arrive, and y_j is final. They are each other's duals. A row without a limit u_j has no z_j.

**Knowledge** of the future: ``width`` d >= the entries of any row, ``low`` <= a_ij / b_j <= ``high``. What does not keep to
it is refused.

**Method** While row j is not covered, y_j rises, and with it every x_i of the row, as a function of what its constraint
holds, Y_i = sum_j a_ij y_j:

    x_i = (e^(L Y_i / c_i) - 1) / (d high),    L = ln(1 + d high / low).

If y_j reaches u_j first, z_j covers what is left. The step is found by bisection in floats; x is then rounded up until the
row holds in fractions, and capacities are filled up to a part of `MARGIN` only, so that the packing holds in fractions, too.

**Guarantee** covering <= (2 L + 1) x packing, 2 L without limits: both are so many times from the optimum, at most.
*Packing*: x_i rises while some a_ij x_i < b_j, hence x_i < 1 / low; at Y_i = c_i it would be just that. *Covering*: while
y_j rises by dy, the costs c_i x_i rise by L a_ij (x_i + 1 / (d high)) dy, added up at most L (b_j + b_j) dy: the first since
the row is not covered, the second since its at most d entries are at most ``high`` b_j. And u_j z_j <= u_j b_j = y_j b_j.
The ratio of a run is mostly far smaller, and `OnlineProgram.proof` proves it.

**Tight family** no online algorithm is better than Omega(log d) for covering, nor for packing.
**Complexity** an arrival of k entries: O(k) exponentials a step of the bisection.
**Reference** Buchbinder and Naor, Foundations and Trends in Theoretical Computer Science 3 (2009), 93-263, sections 4.2 and
14; the form for general coefficients with limits is worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from optsched.errors import check_legal
from optsched.online.program_proof import ProgramProof, Row, prove

Number = int | float | Fraction

MARGIN = 2.0**-40  # of a capacity is left, for rounding
STEPS = 80  # of a bisection: beyond the last place of a float


class OnlineProgram:
    """The algorithm on one stream of arrivals.

    ``cost`` c_i > 0 [I], of any number type, used exactly; ``width`` d, ``low``, ``high``: see the module. ``x`` [I] and
    ``y`` [J] are the solutions so far, as fractions; ``z`` [J] is 0 for rows without a limit.
    """

    def __init__(self, cost: Sequence[Number], width: float, *, low: float = 1.0, high: float = 1.0) -> None:
        check_legal(width >= 1, "width", width, "a number >= 1")
        check_legal(0 < low <= high < math.inf, "low, high", (low, high), "0 < low <= high < inf")
        for i, c in enumerate(cost):
            check_legal(0 < c < math.inf, "cost", c, "a finite number > 0", row=i)
        self.cost = [Fraction(c) for c in cost]
        self.width, self.low, self.high = width, low, high
        self.growth = math.log1p(width * high / low) / (1 - MARGIN)
        self.x = [Fraction(0)] * len(cost)
        self.y: list[Fraction] = []
        self.z: list[Fraction] = []
        self._held = [Fraction(0)] * len(cost)
        self._rows: list[tuple[dict[int, Fraction], Fraction, Fraction | None]] = []

    @property
    def guarantee(self) -> float:
        """Largest possible covering / packing, except for rounding: 2 L + 1, or 2 L while no row has a limit."""
        return 2 * self.growth + any(limit is not None for _, _, limit in self._rows)

    def arrive(self, row: Mapping[int, Number], demand: Number = 1, *, limit: Number | None = None) -> Fraction:
        """Cover a row, and return y_j.

        Parameters
        ----------
        row
            Entries a_ij > 0 by i.
        demand
            Right-hand side b_j > 0.
        limit
            Limit u_j > 0; None: no limit.

        Raises
        ------
        InputError
            If entries are invalid, or not within ``width``, ``low`` and ``high``.
        """
        check_legal(0 < demand < math.inf, "demand", demand, "a finite number > 0")
        check_legal(limit is None or 0 < limit < math.inf, "limit", limit, "a finite number > 0, or none")
        check_legal(len(row) <= self.width, "row", len(row), f"at most width = {self.width} entries")
        check_legal(bool(row) or limit is not None, "row", dict(row), "some entry, or a limit")
        for i, a in row.items():
            check_legal(0 <= i < len(self.x), "row", i, f"positions of costs, 0..{len(self.x) - 1}")
            legal = f"{self.low:g} to {self.high:g} times the demand"
            check_legal(self.low * demand <= a <= self.high * demand, "row", a, legal)
        b, bound = Fraction(demand), None if limit is None else Fraction(limit)
        entries = {i: Fraction(a) for i, a in row.items()}
        scaled = {i: float(a / b) for i, a in entries.items()}
        y = Fraction(self._step(scaled, None if bound is None else float(bound * b))) / b
        y = y if bound is None else min(y, bound)
        for i, a in entries.items():
            self._held[i] += a * y
            self.x[i] = max(self.x[i], Fraction(self._level(i, 0.0)))
        rest = self._cover(entries, b, limited=bound is not None)
        self.y.append(y)
        self.z.append(rest)
        self._rows.append((entries, b, bound))
        return y

    def proof(self) -> ProgramProof:
        """Return the proof of the run so far, in fractions: its ratios, and an interval around the optimum."""
        limited = [j for j, (_, _, limit) in enumerate(self._rows) if limit is not None]
        place = {j: len(self.x) + k for k, j in enumerate(limited)}
        cost = [*self.cost, *(self._rows[j][2] or Fraction(0) for j in limited)]
        rows: list[Row] = [
            ({**row, place[j]: Fraction(1)} if j in place else row, demand)
            for j, (row, demand, _) in enumerate(self._rows)
        ]
        return prove(cost, rows, [*self.x, *(self.z[j] for j in limited)], self.y)

    def _level(self, i: int, more: float) -> float:
        """x_i when its constraint holds ``more`` than now."""
        share = (float(self._held[i]) + more) / float(self.cost[i])
        return math.expm1(self.growth * share) / (self.width * self.high)

    def _step(self, scaled: Mapping[int, float], limit: float | None) -> float:
        """Return the rise of b_j y_j until the row is covered, or its limit is reached."""

        def covered(step: float) -> bool:
            return sum(a * max(float(self.x[i]), self._level(i, a * step)) for i, a in scaled.items()) >= 1

        if scaled and covered(0.0):
            return 0.0
        full = [(float(self.cost[i]) - float(self._held[i])) / a for i, a in scaled.items()]
        below, above = 0.0, min([*full, *([] if limit is None else [limit])])
        if not covered(above):  # the limit comes first
            return above
        for _ in range(STEPS):
            middle = (below + above) / 2
            below, above = (below, middle) if covered(middle) else (middle, above)
        return above

    def _cover(self, entries: Mapping[int, Fraction], demand: Fraction, *, limited: bool) -> Fraction:
        """Return the rest for z_j; without a limit, round x up until there is none."""
        covered = sum((a * self.x[i] for i, a in entries.items()), Fraction(0))
        if covered >= demand:
            return Fraction(0)
        if limited:
            return demand - covered
        for i in entries:  # by the rounding of the step
            self.x[i] *= demand / covered
        return Fraction(0)
