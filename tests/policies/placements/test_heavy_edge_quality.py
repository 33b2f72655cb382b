"""How far every variant is from the best mapping, on random jobs."""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np
import numpy.typing as npt
import pytest
from examples import explored

from optsched.policies.placements.heavy_edge import map_job
from policies.placements.mapped_jobs import random_cases

JOBS = 600 if explored() else 200
# mean alpha over that of the best mapping, in an independent model
PRINTED = {"plain": 1.20, "multi-seed": 1.08, "local-search": 1.07, "multi-seed-local-search": 1.03}


@cache
def ratios(variant: str) -> npt.NDArray[np.float64]:
    """alpha of ``variant`` over the best alpha, job by job."""
    found = []
    for seed, case in enumerate(islice(random_cases(1), JOBS)):
        _, best = map_job(case.profile, case.network, case.free, "exact")
        found.append(map_job(case.profile, case.network, case.free, variant, seed)[1] / best)
    return np.array(found)


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
    mean = {v: ratios(v).mean() for v in ("random", *PRINTED, "stage-moves")}
    assert mean["random"] > 2
    assert mean["random"] > mean["plain"] > mean["multi-seed"] > mean["multi-seed-local-search"] > mean["stage-moves"]
    assert mean["plain"] > mean["local-search"] > mean["multi-seed-local-search"]
    assert (ratios("stage-moves") < 1 + 1e-9).mean() > 0.97
    assert interval(ratios("stage-moves"))[1] < 1.03  # better than all that is printed
