"""How far every variant is from the best mapping, on random jobs."""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np
import numpy.typing as npt
import pytest
from examples import explored

from optsched.policies.placements.heavy_edge import map_job
from policies.placements.mapped_jobs import Case, best_mapping, random_cases

JOBS = 600 if explored() else 120
# mean alpha over that of the best mapping, in an independent model
PRINTED = {"plain": 1.20, "multi-seed": 1.08, "local-search": 1.07, "auto": 1.03}


@cache
def best() -> list[tuple[Case, float]]:
    """Random jobs, and the alpha of the best of all mappings."""
    return [(case, best_mapping(case)[1]) for case in islice(random_cases(1), JOBS)]


@cache
def ratios(variant: str) -> npt.NDArray[np.float64]:
    """alpha of ``variant`` over the best alpha, job by job."""
    return np.array([map_job(case.profile, case.network, case.free, variant)[1] / alpha for case, alpha in best()])


def interval(sample: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Bootstrap interval of the mean, 95 %."""
    rng = np.random.default_rng(0)
    means = sample[rng.integers(0, sample.size, (2000, sample.size))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


@pytest.mark.parametrize("variant", PRINTED)
def test_the_mean_is_as_printed_or_better(variant: str) -> None:
    low, _ = interval(ratios(variant))
    assert low <= PRINTED[variant]
    assert ratios(variant).min() >= 1 - 1e-9


def test_every_step_up_pays() -> None:
    mean = {v: ratios(v).mean() for v in PRINTED}
    assert mean["plain"] > mean["multi-seed"] > mean["auto"]
    assert mean["plain"] > mean["local-search"] > mean["auto"]
