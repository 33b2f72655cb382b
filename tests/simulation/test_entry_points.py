"""The engine's compiled functions called without numba's dispatcher do what they do with it, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.policies.placements import PLACEMENTS
from optsched.policies.specification import specify
from optsched.simulation import entry_points, kernel
from optsched.simulation.policy import Order
from optsched.simulation.state import FREE, NOW, RUNNING, WAITING, State, new_state
from optsched.speeds import speed_tables
from simulation.instances import MIXED, random_instance

CASES = [
    max((random_instance(seed, "2x4", jobs=20) for seed in range(6)), key=len),
    random_instance(800, MIXED, jobs=30),
    generate("ddl-small", 2, jobs=6),
]


def copied(state: State) -> State:
    tables = type(state.tables)(*(np.array(a) for a in state.tables))
    return State(*(tables if field is state.tables else field.copy() for field in state))


def same(one: State, other: State) -> bool:
    flat = [(*(f for f in s if f is not s.tables), *s.tables) for s in (one, other)]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*flat, strict=True))


@pytest.mark.parametrize("name", PLACEMENTS.names())
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_random_walk_through_all_entry_points(case: int, name: str) -> None:
    instance, rule = CASES[case], specify(f"fifo+{name}").placement
    direct = new_state(instance, Order(key=instance.arrival, restart=1.0), rule)
    usual = copied(direct)
    rng, seen, alphas = random.Random(case), set(), 0
    while True:
        t = entry_points.next_time(direct)
        assert t == kernel.next_time(usual)
        if t == np.inf:
            break
        entry_points.apply_events(direct, t)
        kernel.apply_events(usual, t)
        assert direct.clock[NOW] == t
        for j in np.flatnonzero(direct.status == RUNNING).tolist():
            if rng.random() < 0.4 and len(seen) < 60:
                entry_points.stop(direct, j)
                kernel.stop(usual, j)
                seen.add(("stop", j, t))
        for j in np.flatnonzero(direct.status == WAITING).tolist():
            if direct.gpus[j] > direct.counters[FREE]:
                continue
            entries = entry_points.place(rule.place, direct, j, direct.free)
            s: Any = usual
            kind = s.kind[j]
            found = rule.place(
                j, s.gpus[j], s.free, s.size, s.eligible[kind], s.random, s.tables, s.out_pool, s.out_count
            )
            assert entries == found
            assert same(direct, usual)
            if entries == 0:
                continue
            assert direct.out_count[:entries].sum() == direct.gpus[j]
            pace = entry_points.pace(direct, j)
            if direct.tables.profile[j] < 0:
                assert pace == 1
            else:
                assert pace == speed_tables.pace(s.tables, j, s.gpus[j], s.out_pool, s.out_count)
                alphas += 1
            entry_points.start(direct, j, entries)
            kernel.start(usual, j, entries)
        assert same(direct, usual)
    assert (direct.remaining == 0).all()
    assert seen
    assert (alphas > 0) == bool(instance.profiled.any())


def test_an_entry_point_is_looked_up_once() -> None:
    assert entry_points._entry(kernel.stop) is entry_points._entry(kernel.stop)
    assert entry_points._entry(kernel.stop) is not entry_points._entry(kernel.start)
