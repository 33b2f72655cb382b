"""Recipe ``ddl-small``: every placement takes a whole number of seconds, exactly; who is heavy and who is not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import few
from speeds.random_profiles import exact_alpha, placements

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.ddl import LIGHT, ROUNDS, STEP
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time


@pytest.mark.parametrize("seed", few(range(12), 4))
@pytest.mark.parametrize(("nodes", "gpus"), [(2, 3), (3, 2)])
def test_iteration_times_are_steps_on_every_placement(seed: int, nodes: int, gpus: int) -> None:
    instance = generate("ddl-small", seed, jobs=4, nodes=nodes, gpus=gpus, widest=5)
    network = Network.of(instance.cluster)
    for profile in instance.profiles.values():
        for placed in placements(profile, instance.cluster):
            exact = exact_alpha(profile, network, placed)
            assert (exact / Fraction(STEP)).denominator == 1
            assert Fraction(iteration_time(profile, network, placed)) == exact
    assert np.all(instance.iterations % ROUNDS == 0)
    assert np.all(instance.arrival == np.floor(instance.arrival))


def test_heavy_and_light_jobs() -> None:
    def ratios(heavy: float) -> np.ndarray:
        drawn = generate("ddl-small", 7, jobs=300, nodes=3, gpus=4, heavy=heavy)
        fastest, slowest = paces(drawn)
        # alpha_min of a gang that must spread is a bound a rounding below what it is
        return np.asarray(slowest / fastest)[drawn.gpus > 1]

    light, heavy = ratios(0.0), ratios(1.0)
    assert light.max() <= LIGHT + 1e-9
    assert heavy.max() <= 3.0 + 1e-9
    assert (heavy > LIGHT).mean() > 0.5 > (light > LIGHT + 1e-9).mean()
    mixed = ratios(0.5)
    assert 0.2 < (mixed > LIGHT + 1e-9).mean() < 0.8


def test_kinds_and_gangs() -> None:
    instance = generate("ddl-small", 3, jobs=200, nodes=3, gpus=4)
    assert set(instance.gpus.tolist()) == set(range(1, 7))
    assert instance.objective == "total_completion_time"
    kinds = {name.split("-")[0] for name in instance.table["profile"].to_list()}
    assert kinds == {"data", "pipeline", "mixed"}
    for name, profile in instance.profiles.items():
        replicas = [stage.replicas for stage in profile.stages]
        if name.startswith("data"):
            assert len(replicas) == 1
        if name.startswith("pipeline"):
            assert set(replicas) == {1}
    small = generate("ddl-small", 3, jobs=50, nodes=2, gpus=2)
    assert small.gpus.max() == 4
    assert generate("ddl-small", 3, jobs=5, span=0).arrival.max() == 0
    with pytest.raises(InputError, match="widest"):
        generate("ddl-small", widest=17)


def test_ddl_cluster_offers_the_load_asked_for() -> None:
    instance: Instance = generate("ddl-cluster", 4, jobs=500, load=0.8)
    fastest, slowest = paces(instance)
    work = float(np.sum(instance.gpus * instance.iterations * fastest))
    gap = instance.recipe["derived"]["gap"] if instance.recipe else np.nan
    assert work / (64 * 500 * gap) == pytest.approx(0.8)
    assert instance.arrival[-1] == pytest.approx(500 * gap, rel=0.2)
    assert np.all(instance.iterations == np.floor(instance.iterations))
    assert instance.iterations.min() >= 1
    assert np.all(np.diff(instance.arrival) >= 0)
    assert set(instance.gpus.tolist()) == {1, 2, 4, 8, 16}
    assert set(instance.profiles) == set(instance.table["profile"].to_list())
    assert (slowest > 1.5 * fastest).mean() > 0.3
    named = {name.rsplit("-", 2)[1] for name in instance.profiles if not name.endswith("-1")}
    assert named >= {"data", "pipeline", "mixed"}
