"""FIND_ALLOC against all subsets of the free devices: spread cost, rounds, single machines, measured spread rates."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from optsched.policies.hadar_allocation import ALL_ROUNDS, NONE, THIS_ROUND, find_allocation


def worth(case: dict[str, Any], rate: float, cost: float, spread: bool) -> float:
    """Payoff of an allocation, written apart from the compiled one."""
    rounds = (case["left"] / rate + case["restart"]) / case["length"]
    if case["whole"]:
        rounds = max(1, math.ceil(rounds - 1e-9))
    x = case["age"] + rounds * case["length"]
    value = case["scale"] * max(0.0, 1 - x / case["span"]) if case["span"] > 0 else case["scale"] / x
    return value - cost * (rounds if case["charged"] == ALL_ROUNDS else 1) - (case["comm"] if spread else 0.0)


def brute_force(case: dict[str, Any]) -> float | None:
    """The best payoff over every set of ``gang`` devices; None when there is no set."""
    devices = [h for h, free in enumerate(case["free"]) for _ in range(free)]
    best = None
    for chosen in itertools.combinations(devices, case["gang"]):
        machines = sorted(set(chosen))
        table = case["together"] if len(machines) == 1 else case["spread"]
        rate = min(table[case["pool"][h]] for h in machines)
        if rate > 0:
            value = worth(case, rate, sum(case["price"][h] for h in chosen), len(machines) > 1)
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
        "comm": float(rng.choice([0.0, 0.4])),
        "length": float(rng.choice([1.0, 4.0])),
        "age": float(rng.random() * 10),
        "scale": float(rng.random() * 60),
        "span": float(rng.choice([0.0, 40.0])),
        "charged": int(rng.choice([ALL_ROUNDS, THIS_ROUND])),
        "whole": bool(rng.random() < 0.7),
    }


def terms(case: dict[str, Any]) -> np.ndarray:
    names = ("left", "age", "scale", "span", "restart", "comm", "length")
    return np.array([case[name] for name in names])


def by_machines(case: dict[str, Any]) -> tuple[float, float, bool, np.ndarray]:
    take, trial = np.zeros(case["free"].size, dtype=np.int64), np.zeros(case["free"].size, dtype=np.int64)
    order = np.argsort(case["price"], kind="stable").astype(np.int64)
    found = find_allocation(
        True, case["gang"], case["together"], case["spread"], terms(case), case["pool"], case["price"], order,
        case["free"], case["free"], np.zeros(0, dtype=np.int64), case["charged"], case["whole"], take, trial,
    )  # fmt: skip
    return (*found, take)


def by_pools(case: dict[str, Any]) -> tuple[float, float, bool, np.ndarray]:
    pools = case["together"].size
    sums = [[int(case["free"][h]) for h in range(case["free"].size) if case["pool"][h] == p] for p in range(pools)]
    price = np.zeros(pools)
    price[case["pool"]] = case["price"]
    take, trial = np.zeros(pools, dtype=np.int64), np.zeros(pools, dtype=np.int64)
    found = find_allocation(
        False, case["gang"], case["together"], case["spread"], terms(case), np.arange(pools), price,
        np.argsort(price, kind="stable").astype(np.int64),
        np.array([sum(each) for each in sums], dtype=np.int64),
        np.array([max(each, default=0) for each in sums], dtype=np.int64),
        np.array([sum(f > 0 for f in each) for each in sums], dtype=np.int64),
        case["charged"], case["whole"], take, trial,
    )  # fmt: skip
    return (*found, take)


def check(case: dict[str, Any], found: tuple[float, float, bool, np.ndarray], per_pool: bool) -> None:
    value, rate, several, take = found
    expected = brute_force(case)
    if expected is None:
        assert rate == NONE
        return
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert take.sum() == case["gang"]
    price = case["price"]
    if per_pool:
        pools = np.flatnonzero(take)
        price = np.array([max((p for p, k in zip(case["price"], case["pool"], strict=True) if k == q), default=0)
                          for q in range(take.size)])  # fmt: skip
        table = case["spread"] if several else case["together"]
        real = min(table[p] for p in pools)
    else:
        assert (take <= case["free"]).all()
        assert several == (np.count_nonzero(take) > 1)
        table = case["spread"] if several else case["together"]
        real = min(table[case["pool"][h]] for h in np.flatnonzero(take))
    # What it names is worth what it says.
    assert rate == real
    assert worth(case, rate, float(take @ price), several) == pytest.approx(value, rel=1e-12, abs=1e-12)


def test_the_thresholds_find_what_all_subsets_find_at_prices_by_machine() -> None:
    rng = np.random.default_rng(1)
    several = 0
    for _ in range(600):
        case = random_case(rng, by_pool=False)
        found = by_machines(case)
        check(case, found, per_pool=False)
        several += found[2]
    assert several > 50


def test_the_counts_of_a_pool_are_enough_at_prices_by_type() -> None:
    rng = np.random.default_rng(2)
    several = 0
    for _ in range(600):
        case = random_case(rng, by_pool=True)
        found = by_pools(case)
        check(case, found, per_pool=True)
        assert found[0] == pytest.approx(by_machines(case)[0], rel=1e-12, abs=1e-12) or found[1] == NONE
        several += found[2]
    assert several > 50
