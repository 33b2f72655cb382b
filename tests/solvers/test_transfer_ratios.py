"""How far rules are from the exact optimum: never below it, and on average as an independent model says.

A ratio is one of sums of **flow** times C_j - r_j: with completion times the table does not come out.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulation.transfer_reference import RULES, completions

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.io.traces.random_transfers import random_transfers
from optsched.problem.transfers import TransferProblem
from optsched.solvers.transfer_search import transfer_optimum

# mean ratio to the optimum of SRSF(1), SRSF(2), SRSF(3), AdaDUAL, the k-way rule, and optimum / SRPT; so many problems each
MODEL = {
    2: (300, (1.144, 1.097, 1.097, 1.012, 1.012, 1.025)),
    3: (200, (1.279, 1.172, 1.159, 1.024, 1.023, 1.040)),
    4: (100, (1.404, 1.260, 1.239, 1.029, 1.024, 1.054)),
    5: (60, (1.408, 1.357, 1.298, 1.041, 1.029, 1.059)),
    6: (30, (1.423, 1.526, 1.429, 1.091, 1.058, 1.073)),
}
DEVIATIONS = 3.5  # of the difference of two means; 30 means are compared, so a false alarm has a chance of 1.4 %
Values = tuple[list[float], float, float]  # of the rules, the optimum, SRPT


def values_of(problem: TransferProblem) -> Values:
    """sum C_j of all rules, the optimum and the bound; asserts that they stand in this order."""
    b, eta = problem.contention.seconds_per_byte, problem.contention.penalty
    ends = [completions(problem.release.tolist(), problem.size.tolist(), problem.links, b, eta, rule) for rule in RULES]
    values, found, bound = [sum(each) for each in ends], transfer_optimum(problem), srpt_per_link(problem)
    assert found.proved
    assert bound.exact_float <= found.value * (1 + 1e-12)
    assert found.value <= min(values) * (1 + 1e-9)
    return values, found.value, bound.exact_float


def ratios(n: int, count: int) -> np.ndarray:
    """f64[count, 6]: one problem a row, the columns of `MODEL`."""
    rows = []
    for seed in range(count):
        problem = random_transfers(n, seed)
        values, optimum, bound = values_of(problem)
        off = float(problem.release.sum())
        rows.append([(value - off) / (optimum - off) for value in values] + [(optimum - off) / (bound - off)])
    return np.array(rows)


def deviations(n: int, found: np.ndarray) -> np.ndarray:
    """Measured mean minus the model's, in standard errors of that difference; both samples have the same spread."""
    count, means = MODEL[n]
    error = found.std(axis=0, ddof=1) * np.sqrt(1 / count + 1 / len(found))
    return (found.mean(axis=0) - np.array(means)) / error


@pytest.mark.parametrize(("n", "count"), [(2, 300), (3, 200), (4, 100), (5, 60), (6, 30)])
def test_mean_ratios_are_those_of_the_sheet(n: int, count: int) -> None:
    assert np.abs(deviations(n, ratios(n, count))).max() < DEVIATIONS


@pytest.mark.parametrize("eta_ratio", [0.0, 1.0])
@pytest.mark.parametrize("links", [1, 3])
def test_the_order_holds_for_other_penalties_and_on_several_links(eta_ratio: float, links: int) -> None:
    for seed in range(20):
        values_of(random_transfers(5, 900 + seed, eta_ratio, links=links))
