"""A-SRPT compiled, interpreted and in its readable form: the same schedules, notes and events, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import studied
from frozen.runs import digest_of

from optsched.compiled import without_interpreting, without_machine_code
from optsched.io.traces.generate import generate
from optsched.policies.a_srpt import ASrpt
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

PARAMETERS: list[dict[str, Any]] = [
    {},
    {"beta": 0.5},
    {"overtake": 0.0},
    {"tau": 0.5, "overtake": 0.3},
    {"virtual_alpha": "heavy-edge", "tau": 8.0},
    {"virtual_alpha": "max", "overtake": float("inf")},
    {"predictor": "noisy/error=1"},
]
PLACEMENTS = ("heavy-edge", "random", "lwf", "consolidated")
RECIPES: list[tuple[str, dict[str, Any]]] = [
    ("ddl-cluster", {}),
    ("philly-like", {"cluster": "4x8"}),
    ("poisson", {}),
    ("hetero-small", {}),
    ("gavel-static", {}),
    ("recurring", {}),
]


class Readable(ASrpt):
    """The readable form."""

    def accelerator(self, jobs: Any) -> Any:
        return None


def random_instance(seed: int, jobs: int) -> Instance:
    """Stage graphs, GPU types, durations; every other time whole seconds, on which events fall together."""
    recipe, values = RECIPES[seed % len(RECIPES)]
    instance = generate(recipe, seed, jobs=jobs, **values)
    if recipe not in ("philly-like", "poisson") or seed % 4:
        return instance
    rng = np.random.default_rng([seed, 57])
    rows = zip(rng.integers(0, 3, jobs).cumsum().tolist(), rng.choice([1, 1, 2, 4, 8], jobs).tolist(), strict=True)
    return Instance([Job(f"j{k}", t, g, float(rng.integers(1, 9))) for k, (t, g) in enumerate(rows)], "3x4")


def same(one: Run, two: Run) -> None:
    assert digest_of(one.schedule) == digest_of(two.schedule)
    assert one.events == two.events
    assert one.notes.keys() == two.notes.keys()
    for name, values in one.notes.items():
        assert np.array_equal(values, two.notes[name], equal_nan=True)


@pytest.mark.parametrize(
    ("seed", "jobs"), [*((k, 16) for k in range(14)), *(studied(k, 60 + k % 90) for k in range(100, 1100))]
)
def test_the_loop_decides_as_the_readable_form(seed: int, jobs: int) -> None:
    instance, parameters = random_instance(seed, jobs), PARAMETERS[seed % len(PARAMETERS)]
    place = PLACEMENTS[seed // 2 % len(PLACEMENTS)]
    same(simulate(instance, ASrpt(**parameters), place), simulate(instance, Readable(**parameters), place))


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [*range(20), *(studied(k) for k in range(20, 1000))])
def test_compiled_and_interpreted_decide_the_same(seed: int) -> None:
    instance, parameters = random_instance(seed, 24), PARAMETERS[seed % len(PARAMETERS)]
    place = PLACEMENTS[seed // 2 % len(PLACEMENTS)]
    with without_machine_code():
        interpreted = simulate(instance, ASrpt(**parameters), place)
    with without_interpreting():
        same(simulate(instance, ASrpt(**parameters), place), interpreted)


def test_a_predictor_that_learns_takes_the_readable_form() -> None:
    policy = ASrpt(predictor="global-mean")
    run = simulate(random_instance(1, 20), policy)
    assert policy._turns is None
    assert run.unfinished == []
