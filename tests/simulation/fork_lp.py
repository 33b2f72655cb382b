"""The makespan LPs with and without forking, by dense arrays and scipy's solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog


def makespan_lp(rate: Any, steps: Any, *, fork: bool) -> float:
    """The LPs of 4.4 by another method: dense arrays and scipy's solver."""
    (n, nodes), size = np.shape(rate), np.size(rate)
    A, b = [], []
    for j in range(n):
        row = np.zeros(size + 1)
        row[j * nodes : (j + 1) * nodes] = -np.asarray(rate[j]) / steps[j]
        A.append(row)
        b.append(-1.0)
    for h in range(nodes):
        row = np.zeros(size + 1)
        row[h:size:nodes], row[-1] = 1.0, -1.0
        A.append(row)
        b.append(0.0)
    for j in range(0 if fork else n):
        row = np.zeros(size + 1)
        row[j * nodes : (j + 1) * nodes], row[-1] = 1.0, -1.0
        A.append(row)
        b.append(0.0)
    cost = np.append(np.zeros(size), 1.0)
    found = linprog(cost, A_ub=np.array(A), b_ub=b)
    assert found.success
    return float(found.fun)
