"""The engine's compiled functions called without numba's dispatcher do what they do with it, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import specify
from optsched.simulation import entry_points, kernel
from optsched.simulation.policy import Order
from optsched.simulation.records import COUNT, FREE, POOL, RUNNING, SIZE, WAITING
from optsched.simulation.state import RunContext, State, new_state
from optsched.speeds import speed_tables
from simulation.instances import MIXED, random_instance

CASES = [
    max((random_instance(seed, "2x4", jobs=20) for seed in range(6)), key=len),
    random_instance(800, MIXED, jobs=30),
    generate("ddl-small", 2, jobs=6),
]


def copied(state: State, site: RunContext) -> tuple[State, RunContext]:
    tables = type(site.tables)(*(np.array(a) for a in site.tables))
    copy = site._replace(eligible=site.eligible.copy(), random=site.random.copy(), tables=tables)
    return State(*(field.copy() for field in state)), copy


def same(one: State, other: State) -> bool:
    fields = [(a, b) for a, b in zip(one, other, strict=True) if a.dtype.names is None]
    fields += [(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a.dtype.names or ()]
    return all(a.tobytes() == b.tobytes() for a, b in fields)


@pytest.mark.compiled
@pytest.mark.parametrize("name", PLACEMENTS.names())
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_random_walk_through_all_entry_points(case: int, name: str) -> None:
    """The machine code and, beside it, the Python that it was made of."""
    instance, rule = CASES[case], specify(f"fifo+{name}").placement
    direct, site = new_state(instance, Order(key=instance.arrival, restart=1.0), rule)
    usual, at = copied(direct, site)
    points = entry_points.EntryPoints(direct, site)
    rng, seen, alphas = random.Random(case), set(), 0
    while True:
        t = points.next_time()
        assert t == kernel.next_time.py_func(usual)
        if t == np.inf:
            break
        with without_interpreting():
            points.apply_events(t)
        kernel.apply_events.py_func(usual, at, t)
        assert direct.engine[0].now == t
        for j in np.flatnonzero(direct.jobs["status"] == RUNNING).tolist():
            if rng.random() < 0.4 and len(seen) < 60:
                points.stop(j)
                kernel.stop.py_func(usual, at, j)
                seen.add(("stop", j, t))
        for j in np.flatnonzero(direct.jobs["status"] == WAITING).tolist():
            if direct.jobs[j].gpus > direct.engine[0].free:
                continue
            entries = points.place(rule.place, j)
            eligible = at.eligible[usual.jobs[j].kind]
            gang, pools, out = usual.jobs[j].gpus, usual.pools, usual.out
            found = rule.place(j, gang, pools[FREE], pools[SIZE], eligible, at.random, at.tables, out[POOL], out[COUNT])
            assert entries == found
            assert same(direct, usual)
            if entries == 0:
                continue
            assert direct.out[COUNT, :entries].sum() == direct.jobs[j].gpus
            pace = points.pace(j)
            if site.tables.jobs[j].profile < 0:
                assert pace == 1
            else:
                assert pace == speed_tables.pace(at.tables, j, gang, out[POOL], out[COUNT])
                alphas += 1
            points.start(j, entries)
            kernel.start.py_func(usual, at, j, entries, 0)
        assert same(direct, usual)
    assert (direct.jobs["left"] == 0).all()
    assert seen
    assert (alphas > 0) == bool(instance.profiled.any())


@pytest.mark.compiled
def test_an_entry_point_is_looked_up_once() -> None:
    with without_interpreting():
        alone, shared = (entry_points._entry(kernel.stop, context) for context in range(2))
        assert entry_points._entry(kernel.stop, 0) is alone is not shared
