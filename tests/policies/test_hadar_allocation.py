"""FIND_ALLOC against all subsets of the free devices: spread cost, rounds, single machines, measured spread rates."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from optsched.policies.hadar_allocation import NONE, Lots, find_allocation


def worth(case: dict[str, Any], rate: float, cost: float) -> float:
    """Payoff of an allocation, written apart from the compiled one."""
    rounds = (case["left"] / rate + case["restart"]) / case["length"]
    if case["whole"]:
        rounds = max(1, math.ceil(rounds - 1e-9))
    x = case["age"] + rounds * case["length"]
    value = case["scale"] * max(0.0, 1 - x / case["span"]) if case["span"] > 0 else case["scale"] / x
    return value - cost * rounds


def brute_force(case: dict[str, Any]) -> float | None:
    """The best payoff over every set of ``gang`` devices; None when there is no set."""
    devices = [h for h, free in enumerate(case["free"]) for _ in range(free)]
    best = None
    for chosen in itertools.combinations(devices, case["gang"]):
        machines = sorted(set(chosen))
        table = case["together"] if len(machines) == 1 else case["spread"]
        rate = min(table[case["pool"][h]] for h in machines)
        if rate > 0:
            value = worth(case, rate, sum(case["price"][h] for h in chosen))
            best = value if best is None else max(best, value)
    return best


def random_case(rng: np.random.Generator, *, by_pool: bool) -> dict[str, Any]:
    pools, machines = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    pool = rng.integers(0, pools, machines)
    free = rng.integers(0, 4, machines)
    while free.sum() > 9:
        free[rng.integers(machines)] = 0
    values = rng.choice([0.5, 1.0, 1.0, 2.0, float(rng.random() * 3)], pools if by_pool else machines)
    together = np.round(rng.random(pools) * 8, int(rng.integers(0, 3)))
    spread = together.copy() if rng.random() < 0.3 else np.round(rng.random(pools) * 8, int(rng.integers(0, 3)))
    return {
        "gang": int(rng.integers(1, 6)),
        "pool": pool.astype(np.int64),
        "free": free.astype(np.int64),
        "together": together,
        "spread": np.where(together > 0, spread, 0.0) if rng.random() < 0.5 else spread,
        "price": (values[pool] if by_pool else values) * float(rng.choice([0.01, 0.3])),
        "pool_price": values,
        "left": float(rng.random() * 60 + 0.1),
        "restart": float(rng.choice([0.0, 3.0])),
        "length": float(rng.choice([1.0, 4.0])),
        "age": float(rng.random() * 10),
        "scale": float(rng.random() * 60),
        "span": float(rng.choice([0.0, 40.0])),
        "whole": bool(rng.random() < 0.7),
    }


def terms(case: dict[str, Any]) -> np.ndarray:
    names = ("left", "age", "scale", "span", "restart", "length")
    return np.array([case[name] for name in names])


def found_in(case: dict[str, Any], lot: np.ndarray, pool: np.ndarray, price: np.ndarray) -> tuple[float, float, bool]:
    """What is found, and checked, where machine h is in ``lot[h]``, lot q in ``pool[q]``."""
    each = [[int(free) for free, of in zip(case["free"], lot, strict=True) if of == q] for q in range(pool.size)]
    counts = np.array([(sum(free), max(free, default=0), np.count_nonzero(free)) for free in each], dtype=np.int64)
    order = np.argsort(price, kind="stable").astype(np.int64)
    lots = Lots(pool, *np.ascontiguousarray(counts.T), price, order)
    take, trial = np.zeros((2, pool.size), dtype=np.int64)
    rates = case["together"], case["spread"]
    value, rate, several = find_allocation(case["gang"], *rates, terms(case), lots, case["whole"], take, trial)
    expected = brute_force(case)
    if expected is None:
        assert rate == NONE
    else:
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert take.sum() == case["gang"]
        assert (take <= lots.free).all()
        # What it names is worth what it says.
        assert rate == min(rates[several][pool[q]] for q in np.flatnonzero(take))
        assert worth(case, rate, float(take @ price)) == pytest.approx(value, rel=1e-12, abs=1e-12)
    return value, rate, several


def test_the_thresholds_find_what_all_subsets_find() -> None:
    rng = np.random.default_rng(1)
    several = 0
    for _ in range(600):
        case = random_case(rng, by_pool=False)
        several += found_in(case, np.arange(case["free"].size), case["pool"], case["price"])[2]
    assert several > 50


def test_the_counts_of_a_pool_are_enough_at_prices_by_type() -> None:
    rng = np.random.default_rng(2)
    several = 0
    for _ in range(600):
        case = random_case(rng, by_pool=True)
        price = np.zeros(case["together"].size)
        price[case["pool"]] = case["price"]
        several += found_in(case, case["pool"], np.arange(price.size), price)[2]
    assert several > 50
