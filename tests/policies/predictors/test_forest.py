"""``forest``: its features by hand, its cold start, its fits, and that it learns something."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from optsched.io.traces.generate import generate
from optsched.policies.predictors import predictor
from optsched.policies.predictors.forest import Forest, mean_of
from optsched.problem.instance import Instance
from optsched.simulation.predictor import JobFacts

from .workloads import errors, replay, workload

DAY = 86400.0


@pytest.fixture(scope="module")
def recurring() -> list[Instance]:
    return [generate("recurring", seed=seed, jobs=1500, plain=True) for seed in (11, 12)]


@pytest.mark.parametrize("leaf", [1, 2, 7])
def test_walking_the_trees_gives_the_bits_of_the_forest(leaf: int) -> None:
    rng = np.random.default_rng(leaf)
    rows = rng.integers(0, 6, (300, 5)).astype(np.float32) + rng.random((300, 5), dtype=np.float32)
    forest = RandomForestRegressor(17, min_samples_leaf=leaf, random_state=3).fit(rows, rows[:, 0] + rng.random(300))
    # rows on the thresholds themselves: where <= and < part
    at = np.concatenate([tree.tree_.threshold for tree in forest.estimators_])[:200].astype(np.float32)
    asked = np.concatenate([rows, np.repeat(at, 5).reshape(-1, 5)])
    assert [mean_of(forest, row) for row in asked] == forest.predict(asked).tolist()


def test_a_forest_of_one_run_is_a_constant() -> None:
    forest = RandomForestRegressor(3, random_state=0).fit(np.zeros((1, 4), dtype=np.float32), [2.5])
    assert mean_of(forest, np.ones(4, dtype=np.float32)) == 2.5


def test_features_by_hand() -> None:
    forest = Forest(prior=math.expm1(7.0))
    forest.begin(JobFacts(workload(*[(0, 1, "a", "x")] * 5, (0, 1, "b", "x"), (0, 1, "c", "y"))))

    def tell(job: int, now: float, y: float) -> None:
        forest.predict(job, 0.0)
        forest.observe(job, now, math.expm1(y))

    cold = forest.features(0, 2 * DAY + 5.5 * 3600)
    assert (cold["hour"], cold["weekday"]) == (5.0, 2.0)
    assert (cold["group_mean"], cold["group_count"], cold["group_since"], cold["user_mean"]) == (7, 0, -1, 7)
    for job, (now, y) in enumerate([(10.0, 1.0), (20.0, 6.0), (30.0, 2.0), (40.0, 3.0)]):
        tell(job, now, y)
    tell(5, 50.0, 8.0)
    warm = forest.features(4, 40.0 + math.expm1(4.0))
    expected = {
        "group_mean": 3,
        "group_count": 4,
        "group_since": 4,
        "group_last_1": 3,
        "group_last_2": 2,
        "group_last_3": 6,
        "group_median": 2.5,
        "group_max": 6,
        "user_mean": 4,
        "user_count": 5,
        "model": -1,
        "gpus": 1,
        "stages": 1,
        "gpu_types": -1,
    }
    assert {key: warm[key] for key in expected} == pytest.approx(expected, rel=1e-6)
    stranger = forest.features(6, 60.0)  # no run of its group, none of its user: the median of everybody
    assert (stranger["group_mean"], stranger["user_mean"], stranger["group_max"]) == pytest.approx((3, 3, 3))


def test_models_and_gpu_types_are_numbered_as_they_appear() -> None:
    instance = workload(*[(k, 1, "a", "x") for k in range(4)])
    table = instance.table.with_columns(model=np.array(["m", "k", None, "k"], dtype=object))
    forest = Forest()
    forest.begin(JobFacts(instance.replace(jobs=table)))
    assert [forest.features(job, 0.0)["model"] for job in (1, 0, 2, 3)] == [0, 1, -1, 0]


def test_cold_start_by_hand() -> None:
    # everything completes before the next arrives; 1 + n are powers of two
    jobs = [
        (0, 7, "a", "x"),
        (10, 1, "b", "x"),
        (20, 3, "c", "y"),
        (30, 3, "a", "y"),
        (40, 1, "a", "z"),
        (50, 7, "a", "z"),
    ]
    asked = [*jobs, (60, 1, "d", "w"), (70, 1, "a", "w")]
    found = replay(workload(*asked), "forest/prior=99").tolist()
    expected = [
        99,  # nothing known
        7,  # group new: mean y of user x
        3,  # user new: the median y of 8, 2 is 4
        3,  # group seen once only: user y
        3,  # group seen twice only, user new: the median of 8, 2, 4, 4
        1,  # group seen three times, no forest yet: mean y of 8, 4, 2 is 4 ... see below
        3,
        2 ** (9 / 4) - 1,
    ]
    expected[5] = 3  # the group's mean, not the mean (1) of user z
    assert found == pytest.approx(expected, rel=1e-12)


def test_when_it_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    fit = RandomForestRegressor.fit

    def noted(self: RandomForestRegressor, rows: np.ndarray, y: np.ndarray) -> RandomForestRegressor:
        sizes.append(len(y))
        return fit(self, rows, y)

    monkeypatch.setattr(RandomForestRegressor, "fit", noted)
    instance = workload(*[(k, 0.5, "a", "x") for k in range(460)])
    for text, expected in {
        "forest/trees=1/refit=150": [100, 250, 400],
        "forest/trees=1/refit=30": list(range(30, 461, 30)),
        "forest/trees=1/refit=150/window=120": [100, 120, 120],
    }.items():
        sizes.clear()
        replay(instance, text)
        assert sizes == expected, text


def test_the_trees_learn_from_rows_as_they_were_at_submission() -> None:
    # Two shapes of groups: constant ones, and ones that double. Last value and count tell them apart; means do not.
    jobs: list[tuple[float, float, str | None, str | None]] = []
    for k in range(40):
        for run in range(8):
            doubles = k % 2 == 0
            jobs.append((100 * run + k, 2.0**run if doubles else 11.0, f"g{k}", None))
    instance = workload(*jobs)
    late = instance.arrival >= 600
    forest = errors(instance.work[late], replay(instance, "forest/trees=20/refit=40/leaf=1")[late])
    mean = errors(instance.work[late], replay(instance, "group-mean")[late])
    assert forest.p95 < 2.1
    assert mean.p95 > 5


def test_it_beats_the_global_mean_on_recurring_jobs(recurring: list[Instance]) -> None:
    for instance in recurring:
        forest = errors(instance.work, replay(instance, "forest/trees=30"))
        ignorant = errors(instance.work, replay(instance, "global-mean"))
        assert forest.r2 > ignorant.r2 + 0.15  # measured: 0.33 and 0.27
        assert forest.p50 < ignorant.p50


def test_the_seed_decides(recurring: list[Instance]) -> None:
    instance = recurring[0].head(300)
    one, same, other = (replay(instance, Forest(trees=5, seed=seed)) for seed in (1, 1, 2))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


def test_its_name_says_what_is_not_default() -> None:
    assert predictor("forest").name == "forest"
    assert predictor("forest/refit=200").name == "forest/refit=200"
