"""Recipes of learning jobs that communicate or recur: ``ada-srsf``, ``ddl-small``, ``recurring``, and random transfers."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from examples import few
from random_transfers import random_transfers
from speeds.random_profiles import exact_alpha, placements

from optsched.classes.task_sharing.evaluation import transfer_suite
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.ada_srsf import TASK_MODELS, gangs
from optsched.io.traces.recipes.ddl import LIGHT, ROUNDS, STEP
from optsched.io.traces.recipes.recurring import DRIFT, MODELS, WITHIN
from optsched.problem.contention import ETHERNET_1G, ETHERNET_10G
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces, seconds_alone
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_min, iteration_time

# -- Recipe ``ada-srsf``: counts and ranges of the published generator, other numbers of jobs, other networks, refusals.


PUBLISHED = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}


def test_the_published_workload() -> None:
    instance = generate("ada-srsf", 3)
    assert Counter(instance.gpus.tolist()) == PUBLISHED
    assert instance.gpus.tolist() != sorted(instance.gpus.tolist())
    assert (instance.cluster.spec, instance.cluster.gpus) == ("16x4", 64)
    assert set(instance.cluster.node_memory.tolist()) == {32768e6}
    assert instance.contention == ETHERNET_10G
    assert instance.objective == "total_flow_time"
    assert instance.at_task_level
    milliseconds = instance.arrival * 1000
    assert np.abs(milliseconds - np.round(milliseconds)).max() < 1e-9
    assert np.all(np.diff(instance.arrival) >= 0)
    assert set(instance.table["profile"]) == {"VGG-16", "ResNet-50", "Inception-V3", "LSTM-PTB"}
    lstm = instance.table["profile"].to_list().index("LSTM-PTB")
    found = [float(a[lstm]) for a in (instance.forward, instance.backward, instance.message, instance.gpu_memory)]
    assert found == [0.032, 0.047, 251.8e6, 2751e6]


def test_laws_of_iterations_arrivals_and_models() -> None:
    instance = generate("ada-srsf", 1, jobs=20_000, scale=100)
    assert (instance.iterations.min(), instance.iterations.max()) == (100, 600)
    assert instance.iterations.mean() == pytest.approx(350, abs=4)  # sd of the mean: 1.02
    assert 0 <= instance.arrival.min() < 0.1
    assert 119.9 < instance.arrival.max() < 120
    assert instance.arrival.mean() == pytest.approx(60, abs=1)  # sd of the mean: 0.245
    counts = Counter(instance.table["profile"].to_list())
    assert all(abs(count - 5000) < 250 for count in counts.values())  # sd: 61
    of_wide = Counter(instance.table.filter(instance.gpus > 4)["profile"].to_list())
    assert all(count / 5000 == pytest.approx(0.25, abs=0.03) for count in of_wide.values())
    # work and window grow together
    assert generate("ada-srsf", 1, scale=1000).arrival.max() == pytest.approx(
        100 * generate("ada-srsf", 1).arrival.max(), abs=0.1
    )


@pytest.mark.parametrize("jobs", [1, 2, 7, 8, 40, 79, 80, 160, 161, 1000])
def test_gangs_of_other_numbers_of_jobs_keep_the_shares(jobs: int) -> None:
    sizes = gangs(jobs).tolist()
    assert sizes == sorted(sizes)
    assert len(sizes) == jobs
    for size, count in PUBLISHED.items():
        assert abs(Fraction(sizes.count(size)) - Fraction(jobs * count, 160)) <= 1
    of_published = [size for size, count in PUBLISHED.items() for _ in range(count)]
    place = [Fraction(2 * k + 1, 2 * jobs) * 160 for k in range(jobs)]
    assert sizes == [of_published[int(each)] for each in place]


def test_small_clusters_other_networks_and_other_contention() -> None:
    small = generate("ada-srsf", 1, jobs=30, scale=1, cluster="2x3", memory=6e9)
    assert small.gpus.max() == 6
    assert set(small.cluster.node_memory.tolist()) == {6e9}
    older = generate("ada-srsf", 1, network="1g")
    assert older.contention == ETHERNET_1G
    assert set(older.table["profile"]) == set(TASK_MODELS["1g"].models)
    assert not older.gpu_memory.any()
    made = generate("ada-srsf", 1, seconds_per_byte=1e-9, penalty=0, latency=6.69e-4)
    assert made.contention.to_json() == {"seconds_per_byte": 1e-9, "latency": 6.69e-4}
    assert made.table.equals(generate("ada-srsf", 1).table)  # contention does not change the jobs


# -- Recipe ``ddl-small``: every placement takes a whole number of seconds, exactly; who is heavy and who is not ----------


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


# -- Recipe ``recurring``: its laws, its load, and that profiles change nothing but the unit of the lengths ---------------


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
    instance = generate("recurring", seed=3, jobs=600, nic_bandwidth=1.25e9)
    assert (instance.objective, instance.cluster.spec) == ("total_completion_time", "8x8")
    assert instance.cluster.nodes[0].nic_bandwidth == 1.25e9
    assert instance.cluster.nodes[0].intra_bandwidth == 150e9
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


# -- The law of random transfers: what it says of sizes, releases and links -----------------------------------------------


def test_tests_draw_by_the_law_of_the_suite() -> None:
    ours, suite = random_transfers(5, 4, 1.0), transfer_suite.random_transfers(5, 4, 1.0)
    assert (ours.size.tolist(), ours.release.tolist()) == (suite.size.tolist(), suite.release.tolist())
    assert (ours.contention, ours.links) == (suite.contention, suite.links)


def test_sizes_are_log_uniform_and_releases_follow_the_work() -> None:
    problem = transfer_suite.random_transfers(20_000, 1, 0.2745)
    log = (np.log(problem.size) - np.log(0.01)) / np.log(1000)
    assert log.min() >= 0
    assert log.max() <= 1
    # uniform: mean 1/2, variance 1/12; five standard errors
    assert abs(log.mean() - 0.5) < 5 * np.sqrt(1 / 12 / problem.n)
    assert abs(np.mean(log < 0.25) - 0.25) < 5 * np.sqrt(0.25 * 0.75 / problem.n)
    late = problem.release[problem.release > 0]
    assert abs(late.size / problem.n - 0.7) < 5 * np.sqrt(0.21 / problem.n)
    share = late / (0.7 * problem.size.sum())
    assert share.max() <= 1
    assert abs(share.mean() - 0.5) < 5 * np.sqrt(1 / 12 / late.size)


def test_every_set_of_links_occurs() -> None:
    problem = random_transfers(2_000, 3, links=2)
    assert set(problem.links) == {(0,), (1,), (0, 1)}
    assert abs(problem.links.count((0, 1)) / problem.n - 1 / 3) < 5 * np.sqrt(2 / 9 / problem.n)
