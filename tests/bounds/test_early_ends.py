"""Searches for bounds that end early find what they would find in all their steps."""

from __future__ import annotations

import numpy as np
import pytest

import optsched as osd
from optsched.bounds import mean_busy_time
from optsched.bounds.mean_busy_time import PHASES, STEPS, Gain, onto_simplex
from optsched.bounds.modes import modes_for
from optsched.bounds.priced_time_search import PricedTime, best_priced_time, equal_cells, responses
from optsched.bounds.sum_costs import sum_costs
from optsched.problem.arrays import Bools, Floats

OBJECTIVES = ("total_flow_time", "total_weighted_completion_time")


def all_steps(gain: Gain, able: Bools) -> Floats:
    """Return the best shares of an ascent that takes all its steps."""
    share = np.where(able, 1.0 / np.maximum(able.sum(axis=0), 1), 0.0)
    best, most, squares = np.zeros(able.shape), 0.0, np.zeros(able.shape)
    with np.errstate(all="ignore"):
        for phase, (part, move) in enumerate(PHASES):
            for step in range(round(part * STEPS)):
                value, slope = gain(share)
                if value > most:
                    best, most = share, value
                squares += slope**2
                scale = np.sqrt((step + 1) * np.mean(slope**2) if phase else squares)
                share = onto_simplex(share + np.nan_to_num(move * slope / scale)) * able
            share = best
    return best


@pytest.mark.parametrize(
    ("recipe", "sizes"), [("poisson", {"jobs": 12}), ("philly-like", {"jobs": 25}), ("rigid", {"jobs": 6})]
)
def test_shares_are_those_of_all_steps(recipe: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Floats, Floats, int]] = []
    search = mean_busy_time.best_shares

    def both(gain: Gain, able: Bools) -> Floats:
        calls = 0

        def counted(share: Floats) -> tuple[float, Floats]:
            nonlocal calls
            calls += 1
            return gain(share)

        found.append((search(counted, able), all_steps(gain, able), calls))
        return found[-1][0]

    monkeypatch.setattr(mean_busy_time, "best_shares", both)
    for seed, objective in enumerate(OBJECTIVES):
        osd.bound(osd.generate(recipe, seed=seed, **sizes), objective)
    assert found
    assert all(early.tobytes() == late.tobytes() for early, late, _ in found)
    if recipe != "rigid":
        assert min(calls for _, _, calls in found) < STEPS


def test_prices_gain_nothing_where_no_job_waits_at_price_zero() -> None:
    instance = osd.generate("poisson", seed=1, jobs=20).relative
    costs, modes = sum_costs(instance, "total_flow_time"), modes_for(instance, "gang")[0][0]
    moments, rng = equal_cells(costs, modes), np.random.default_rng(1)
    assert moments is not None
    assert best_priced_time(costs, modes) is None
    room = np.diff(moments)[:, None] * modes.capacity
    free = responses(costs, modes, PricedTime(moments, np.zeros(room.shape)))[0].sum()
    for scale in (1e-6, 1e-3, 1.0):
        price = scale * rng.random(room.shape) * (rng.random(room.shape) < 0.3)
        paid = responses(costs, modes, PricedTime(moments, price))[0].sum() - (price * room).sum()
        assert paid <= free * (1 + 1e-12)
