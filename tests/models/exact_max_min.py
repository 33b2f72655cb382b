"""Max-min by exact fractions: every basis of the linear program, for two jobs on two types."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

Row = tuple[list[Fraction], Fraction]  # a . x <= b


def best_level(rates: list[list[int]], scale: list[int], capacity: list[int], weights: list[int]) -> Fraction:
    """The optimum t over x = (X_11, X_12, X_21, X_22, t): the best feasible point where 5 rows are tight."""
    total = Fraction(sum(capacity))
    rows: list[Row] = []
    for m in (0, 1):
        equal = sum(rates[m][r] * capacity[r] / total for r in (0, 1))
        level = [Fraction(0)] * 5
        level[4] = Fraction(1)
        for r in (0, 1):
            level[2 * m + r] = -Fraction(scale[m] * rates[m][r], weights[m]) / equal
        rows.append((level, Fraction(0)))
        rows.append(([Fraction(int(k // 2 == m and k < 4)) for k in range(5)], Fraction(1)))
    for r in (0, 1):
        rows.append(([Fraction(scale[k // 2] if k < 4 and k % 2 == r else 0) for k in range(5)], Fraction(capacity[r])))
    for k in range(4):
        rows.append(([Fraction(-int(i == k)) for i in range(5)], Fraction(0)))

    best = Fraction(0)
    for tight in combinations(rows, 5):
        x = solution(tight)
        if x is not None and all(sum(a * v for a, v in zip(row, x, strict=True)) <= b for row, b in rows):
            best = max(best, x[4])
    return best


def solution(tight: tuple[Row, ...]) -> list[Fraction] | None:
    """The one point where these rows are tight, or None."""
    table = [[*row, b] for row, b in tight]
    n = len(table)
    for k in range(n):
        pivot = next((i for i in range(k, n) if table[i][k] != 0), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [a / table[k][k] for a in table[k]]
        for i, j in product(range(n), [k]):
            if i != k and table[i][j] != 0:
                factor = table[i][j]
                table[i] = [a - factor * p for a, p in zip(table[i], table[k], strict=True)]
    return [row[n] for row in table]
