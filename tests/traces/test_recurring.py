"""Recipe ``recurring``: its laws, its load, and that profiles change nothing but the unit of the lengths."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.recurring import DRIFT, MODELS, WITHIN
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_min


@pytest.fixture(scope="module")
def long() -> Instance:
    return generate("recurring", seed=5, jobs=40_000, plain=True)


def runs_of(instance: Instance) -> dict[str, list[int]]:
    """Jobs of every group, in order."""
    found = defaultdict(list)
    for job, group in enumerate(instance.table["group"].to_list()):
        found[group].append(job)
    return found


def recurs(group: str) -> bool:
    return int(group[1:]) <= 200


@pytest.mark.parametrize("plain", [True, False])
def test_the_record_makes_the_same_instance_again(plain: bool) -> None:
    first = generate("recurring", seed=7, jobs=120, load=0.6, nic_bandwidth=1.25e9, plain=plain)
    assert first.recipe is not None
    again = generate(first.recipe["name"], first.recipe["seed"], **first.recipe["parameters"])
    assert again.digest == first.digest
    assert again.table.equals(first.table)
    assert generate("recurring", seed=8, jobs=120, load=0.6, plain=plain).digest != first.digest
    assert (first.objective, first.cluster.spec) == ("total_completion_time", "8x8")
    assert first.cluster.nodes[0].nic_bandwidth == 1.25e9
    assert first.cluster.nodes[0].intra_bandwidth == 150e9


def test_profiles_say_the_same_in_iterations() -> None:
    profiled = generate("recurring", seed=3, jobs=400)
    plain = generate("recurring", seed=3, jobs=400, plain=True)
    for column in ("id", "arrival", "gpus", "user", "group", "model"):
        assert profiled.table[column].equals(plain.table[column]), column
    network = Network.of(profiled.cluster)
    alpha = {name: alpha_min(profile, network) for name, profile in profiled.profiles.items()}
    fastest = np.array([alpha[name] for name in profiled.table["profile"]])
    work = profiled.work
    assert (work == np.floor(work)).all()
    assert (work >= 1).all()
    # one iteration fewer would be too short
    assert (work * fastest >= plain.duration * (1 - 1e-12)).all()
    assert ((work - 1) * fastest < plain.duration).all()
    assert seconds_alone(profiled) == pytest.approx(work * fastest)
    assert np.isnan(profiled.duration).all()


def test_a_script_has_one_owner_one_model_one_gang_and_one_profile() -> None:
    instance = generate("recurring", seed=3, jobs=600)
    columns = ["user", "model", "gpus", "profile"]
    rows = instance.table.select("group", *columns).unique()
    assert rows["group"].n_unique() == rows.height
    assert {profile.gpus for profile in instance.profiles.values()} <= {1, 2, 4, 8, 16}
    kinds = {name.rsplit("-", 1)[1] for name in instance.profiles}
    assert kinds == {"data", "pipeline", "mixed"}
    assert set(instance.table["model"]) == set(MODELS)
    assert set(instance.table["profile"]) == set(instance.profiles)  # no profile that nobody uses


def test_a_gang_wider_than_a_model_is_deep_is_no_pipeline() -> None:
    instance = generate("recurring", seed=1, jobs=200, cluster="16x8", gpus="constant:value=64")
    assert all(profile.gpus == 64 for profile in instance.profiles.values())


def test_popularity_is_zipf_and_one_job_in_ten_is_alone(long: Instance) -> None:
    groups = Counter(long.table["group"].to_list())
    once = {group: count for group, count in groups.items() if not recurs(group)}
    assert set(once.values()) == {1}
    assert len(once) / long.n == pytest.approx(0.1, abs=0.006)  # four standard deviations
    weight = np.arange(1, 201) ** -1.1
    expected = 0.9 * long.n * weight / weight.sum()
    for k in (1, 2, 5, 20):
        assert groups[f"g{k}"] == pytest.approx(expected[k - 1], abs=4.5 * expected[k - 1] ** 0.5)
    assert len(set(long.table["user"])) == 40


def test_lengths_of_a_script_are_log_normal_with_a_slow_drift(long: Instance) -> None:
    spread, slow, fast = [], [], []
    for jobs in runs_of(long).values():
        if len(jobs) < 400:
            continue
        y = np.log(long.duration[jobs])
        # differences of neighbours: 2 sigma^2 and a little drift; of far runs: 2 sigma^2 + 2 DRIFT^2
        near, far = ((y[lag:] - y[:-lag]) for lag in (1, 200))
        sigma = (near.var() / 2) ** 0.5
        spread.append(sigma)
        fast.append(near.var())
        slow.append(far.var())
        assert WITHIN[0] * 0.9 < sigma < WITHIN[1] * 1.1
    assert len(spread) > 10
    assert max(spread) > 0.4  # the scripts differ in how regular they are
    assert min(spread) < 0.25
    assert np.mean(slow) - np.mean(fast) == pytest.approx(2 * DRIFT**2, rel=0.5)


def test_load_and_mean_length(long: Instance) -> None:
    assert long.duration.mean() == pytest.approx(3600, rel=0.1)
    offered = (long.duration @ long.gpus) / (long.cluster.gpus * long.arrival[-1])
    assert offered == pytest.approx(0.8, rel=0.1)
    busier = generate("recurring", seed=5, jobs=400, load=1.1, plain=True)
    calmer = generate("recurring", seed=5, jobs=400, load=0.5, plain=True)
    assert calmer.arrival == pytest.approx(busier.arrival * 1.1 / 0.5)
    assert (calmer.duration == busier.duration).all()


def test_seconds_scale_the_lengths_and_nothing_else() -> None:
    one, ten = (generate("recurring", seed=5, jobs=200, seconds=seconds, plain=True) for seconds in (360, 3600))
    assert ten.duration == pytest.approx(10 * one.duration)
    assert ten.table["group"].equals(one.table["group"])


def test_only_one_off_jobs_and_none() -> None:
    alone = generate("recurring", seed=2, jobs=300, one_off=1, plain=True)
    assert alone.table["group"].n_unique() == 300
    never = generate("recurring", seed=2, jobs=300, one_off=0, groups=3, plain=True)
    assert set(never.table["group"]) == {"g1", "g2", "g3"}
    assert set(never.table["user"]) == {"u1"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"one_off": 1.5}, "one_off = 1.5: recipe recurring.*at most 1"),
        ({"load": 0}, "load = 0: invalid"),
        ({"nic_bandwidth": 0}, "nic_bandwidth = 0: invalid"),
        ({"gpus": "constant:value=100"}, "no gang fits"),
        ({"bandwidth": 1}, "bandwidth: recipe recurring has no such parameter.*nic_bandwidth"),
    ],
)
def test_parameters_that_are_not_legal(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate("recurring", **setting)
