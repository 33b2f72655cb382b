"""SJF, SJF-FFS and SJF-BSBF against the best schedule that starts jobs at events, on random instances of a few jobs."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.solvers.sharing_search import sharing_optimum

POLICIES = ("sjf", "sjf-ffs", "sjf-bsbf")
# an independent model, sum of flow times: (xi, jobs): instances there, mean ratios of the policies on one GPU
MODEL = {
    ("1.1", 3): (200, 1.370, 1.003, 1.003),
    ("1.1", 4): (100, 1.525, 1.014, 1.014),
    ("1.1", 5): (40, 1.517, 1.007, 1.007),
    ("1.3", 3): (200, 1.267, 1.005, 1.005),
    ("1.3", 4): (100, 1.381, 1.029, 1.029),
    ("1.3", 5): (40, 1.373, 1.023, 1.023),
    ("1.5", 3): (200, 1.181, 1.020, 1.014),
    ("1.5", 4): (100, 1.247, 1.040, 1.026),
    ("1.5", 5): (40, 1.265, 1.056, 1.044),
    ("1.8", 3): (200, 1.131, 1.080, 1.009),
    ("1.8", 4): (100, 1.205, 1.113, 1.014),
    ("1.8", 5): (40, 1.191, 1.144, 1.006),
    ("exp", 3): (200, 1.255, 1.046, 1.010),
    ("exp", 4): (100, 1.308, 1.057, 1.031),
    ("exp", 5): (40, 1.323, 1.069, 1.025),
}
SAMPLING = 4.0  # standard errors


def ratios(xi: str, jobs: int, count: int) -> np.ndarray:
    """f64[count, policies]."""
    rows = []
    for seed in range(count):
        instance = generate("sharing-small", seed, jobs=jobs, xi=xi)
        best = sharing_optimum(instance)
        assert best.complete
        values = [simulate(instance, policy).value("total_flow_time") for policy in POLICIES]
        assert min(values) >= best.flow_time * (1 - 1e-9)  # they start jobs at events, too
        rows.append([value / best.flow_time for value in values])
    return np.array(rows)


def test_sharing_helps_where_it_costs_little_and_the_test_helps_where_it_costs_much() -> None:
    little, much = (ratios(xi, 4, 15).mean(axis=0) for xi in ("1.1", "1.8"))
    assert little[0] > much[0] > 1.02
    assert little[1:] == pytest.approx(1.01, abs=0.02)
    assert much[1] > 1.05 > much[2]


@pytest.mark.study
@pytest.mark.parametrize(("xi", "jobs"), MODEL)
def test_the_sheets_table_within_sampling_error(xi: str, jobs: int) -> None:
    count, *means = MODEL[xi, jobs]
    found = ratios(xi, jobs, 300)
    error = found.std(axis=0) * np.sqrt(1 / count + 1 / 300)
    assert (np.abs(found.mean(axis=0) - means) <= SAMPLING * error).all()
