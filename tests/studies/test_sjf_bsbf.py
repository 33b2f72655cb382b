"""The study of SJF-BSBF in its small size; its measures by another method; its sentences; the joint-test limit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optsched.bounds import bound
from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.classes.gpu_sharing.sweeps.measures.sharing_measures import (
    MEASURES,
    SHARING,
    SMALL_MEASURES,
    held_gpus,
    measure,
    measure_small,
)
from optsched.errors import SimulationError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate, specify
from optsched.speeds.duration import seconds_alone
from optsched.studies.experiment import Experiment, RunOutcome, Workload
from optsched.studies.findings import against, by_workload, findings, worst
from optsched.studies.study_file import STUDIES
from optsched.sweeps.measurement import certified_mean
from studies.documents import cells

pytestmark = pytest.mark.release

STUDY = "sjf-bsbf"

SIDE = {"no-wide-gangs", "parts-64-gpus", "parts-16-gpus", "loads-64-gpus", "loads-16-gpus", "restarts", "elastic"}
PAIRS = {"measured", "drawn", "vectors"}
EXACT = {f"optimum-{gpus}-gpus" for gpus in (1, 2, 4)}
GANGS = {"partners", "three-partners"}
SWEEPS = {f"{gpus}-gpus-{half}" for gpus in (16, 64) for half in ("low", "high")}
EXCLUSIVE = ("sjf", "fifo", "tiresias", "srtf")
SWEEP = tuple(1 + k / 10 for k in range(11))
SHARED = ("sjf-bsbf", "sjf-bsbf as published", "sjf-bsbf, nobody to come", "sjf-ffs")


def test_every_run_has_all_numbers_and_none_is_better_than_proven(document: Any) -> None:
    found = cells(document)
    assert {name for name, _, _ in found} == SWEEPS | SIDE | PAIRS | EXACT | GANGS
    for (name, row, column), m in found.items():
        if name in EXACT:
            assert set(m) == set(SMALL_MEASURES)
            assert m["ratio"] >= 1 - 1e-9, (name, row, column)
            assert m["optimum_ratio"] >= 1 - 1e-9
            continue
        assert set(m) == set(MEASURES), (name, row, column)
        assert m["jct_ratio"] >= 1 - 1e-12, (name, row, column)
        assert 0 < m["p50_jct"] <= m["p95_jct"] <= m["makespan"]
        assert 0 < m["utilization"] <= 1
        assert m["queueing"] >= 0
        sharing = row.startswith(("sjf-bsbf", "sjf-ffs"))
        assert sharing or (m["shared"], m["accumulated"]) == (0, 0), (name, row, column)
        assert not sharing or (m["preemptions"] == 0 and m["stretch"] >= 1 - 1e-9)
        assert "sub-batches" not in row or m["accumulated"] <= m["shared"]


def test_exclusive_policies_do_not_feel_interference(document: Any) -> None:
    found = cells(document)
    for cluster in ("16-gpus", "64-gpus"):
        for row in EXCLUSIVE:
            one, two = found[f"{cluster}-low", row, "xi 1"], found[f"{cluster}-high", row, "xi 2"]
            assert one["mean_jct"] == two["mean_jct"]
            assert one["jct_ratio"] >= two["jct_ratio"]  # the class of schedules beside it shrinks


def test_what_was_published_stands_beside_and_the_settings_are_told(document: Any, shown: str) -> None:
    said = {each["name"]: each["findings"] for each in document["experiments"]}
    for name in (*SWEEPS, "measured", "vectors", "loads-64-gpus"):
        for text in (
            "mean JCT -27 % against Tiresias (its interference ratios are not public): "
            "tiresias / sjf-bsbf as published = 1.37; here ",
            "mean JCT -33 % against Tiresias (its interference ratios are not public): "
            "tiresias / sjf-bsbf as published = 1.493; here ",
            "up to -17 % against first-fit sharing (its interference ratios are not public): "
            "sjf-ffs / sjf-bsbf as published = 1.205; ",
        ):
            assert sum(text in sentence for sentence in said[name]) == 1, (name, text)
    assert any(
        text.startswith("sjf-bsbf against sjf-bsbf as published, workload by workload") for text in said["partners"]
    )
    assert any("largest sum of flow times / optimum of 1 workloads" in text for text in said["optimum-2-gpus"])
    assert "mean JCT / bound" in shown
    assert "jobs that shared [%]" in shown
    assert "were verified" in document["settings"]["method"]


def test_the_default_size_covers_what_was_promised() -> None:
    made = STUDIES.get("sjf-bsbf")
    experiments = {each.name: each for each in made.declare(False)}
    assert set(experiments) == SWEEPS | SIDE | PAIRS | EXACT | GANGS | {"64-gpus-heavy"}
    assert made.seeds() == 20
    for gpus in (16, 64):
        halves = [experiments[f"{gpus}-gpus-{half}"] for half in ("low", "high")]
        assert [column for each in halves for column in each.columns] == [f"xi {xi:g}" for xi in SWEEP]
        assert all(each.seeds_of(tuple(range(20))) == tuple(range(20)) for each in halves)
    for name, jobs, gpus in (("64-gpus-low", 240, 64), ("64-gpus-heavy", 480, 64), ("16-gpus-high", 30, 16)):
        instance = next(iter(experiments[name].columns.values())).make(1)
        assert (instance.n, instance.cluster.gpus) == (jobs, gpus)
    rows = set(experiments["64-gpus-low"].rows)
    assert {*EXCLUSIVE, *SHARED} == rows
    assert set(experiments["loads-64-gpus"].rows) - rows == {"tiresias 700"}
    assert {f"{row}, restart {s} s" for row in ("tiresias", "srtf") for s in (0, 10, 30, 60)} <= set(
        experiments["restarts"].rows
    )
    assert set(experiments["measured"].columns) >= {"P100", "V100", "K80"}
    assert "goodput" in experiments["elastic"].rows
    assert dict(experiments["16-gpus-low"].columns["xi 1"].parameters)["memory"] == 11e9


@pytest.mark.parametrize("policy", ["sjf-bsbf", "sjf-ffs:accumulate=true", "srtf:restart=30+consolidated"])
def test_measures_of_a_run_are_those_of_its_schedule(policy: str) -> None:
    instance = generate("sharing-cluster", 3, jobs=24, nodes=4, xi=1.2)
    found = measure(policy, OptimumBounds(instance))
    run = simulate(instance, policy)
    jct = run.schedule.completion - instance.arrival
    assert found["mean_jct"] == pytest.approx(jct.mean())
    sizes = sorted(range(24), key=lambda j: instance.gpus[j] * seconds_alone(instance)[j])
    assert found["small_jct"] == pytest.approx(np.mean([jct[j] for j in sizes[:12]]))
    assert found["large_jct"] == pytest.approx(np.mean([jct[j] for j in sizes[12:]]))
    assert found["jct_ratio"] == pytest.approx(
        jct.sum() / float(bound(instance, "total_flow_time", "gpu-sharing").value)
    )
    # busy seconds and meetings of every GPU on a grid of all event times
    times = np.unique(np.concatenate([run.schedule.start, run.schedule.end]))
    rows = list(run.schedule.segments())
    middle = (times[1:] + times[:-1]) / 2
    held, met, longest = 0.0, set(), 0
    for moment, length in zip(middle.tolist(), np.diff(times).tolist(), strict=True):
        here: dict[tuple[int, int], list[int]] = {}
        for row in rows:
            if row.start < moment < row.end:
                for gpu in row.gpus:
                    here.setdefault(gpu, []).append(row.job)
        held += length * len(here)
        met.update(j for jobs in here.values() if len(jobs) > 1 for j in jobs)
        longest = max(longest, *(len(jobs) for jobs in here.values())) if here else longest
    assert longest <= 2
    assert found["utilization"] == pytest.approx(held / (16 * times[-1]))
    assert found["shared"] == pytest.approx(len(met) / instance.n)
    assert set(np.flatnonzero(held_gpus(run.schedule).shared).tolist()) == met
    alone = seconds_alone(instance)
    assert found["effective"] == pytest.approx(float(instance.gpus @ alone) / (16 * times[-1]))
    first = {j: min(row.start for row in rows if row.job == j) for j in range(instance.n)}
    assert found["queueing"] == pytest.approx(np.mean([first[j] - instance.arrival[j] for j in range(instance.n)]))
    if not policy.startswith("srtf"):
        assert found["accumulated"] == pytest.approx(_more_steps(run.schedule))
        assert len(met) > 0


def _more_steps(schedule: Any) -> float:
    """Share of the jobs that run in more sub-steps than the first of their ways to split the batch has."""
    rows = zip(schedule.job.tolist(), schedule.steps.tolist(), strict=True)
    return float(np.mean([steps > schedule.instance.sub_batches(j)[0].steps for j, steps in rows]))


def test_ratios_to_the_optimum_are_those_of_the_search() -> None:
    for seed in range(1, 6):
        instance = generate("sharing-small", seed, jobs=3, gpus=2, xi=1.4)
        proven, best = OptimumBounds(instance), sharing_optimum(instance, exact=True)
        found = measure_small("sjf-ffs", proven)
        value = (simulate(instance, "sjf-ffs").schedule.completion - instance.arrival).sum()
        assert found["ratio"] == pytest.approx(value / float(best.flow_time))
        assert found["ratio"] >= 1 - 1e-12
        assert found["optimum_ratio"] == pytest.approx(
            float(best.flow_time) / (3 * certified_mean(proven, "gpu-sharing"))
        )


def test_an_incomplete_search_is_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate("sharing-small", 1, jobs=5, gpus=1, xi=1.4)
    cut = sharing_optimum(instance, node_limit=1)
    assert not cut.complete
    monkeypatch.setattr("optsched.classes.gpu_sharing.sweeps.measures.sharing_measures.sharing_optimum", lambda _: cut)
    with pytest.raises(SimulationError, match="not complete"):
        measure_small("sjf-ffs", OptimumBounds(instance))


def told(**values: list[float]) -> RunOutcome:
    """An outcome of three columns with these mean JCTs, those of a column after each other."""
    columns = {name: Workload.of("sharing-cluster", xi=1.0 + k) for k, name in enumerate(("low", "mid", "high"))}
    rows = {row: row for row in values}
    experiment = Experiment("e", "?", "xi", columns, rows, next(iter(rows)), ("mean_jct",), SHARING)
    seeds = tuple(range(1, len(next(iter(values.values()))) // 3 + 1))
    numbers = {
        (workload, seed, row): {"mean_jct": values[row][k * len(seeds) + s], "kept": math.nan}
        for k, workload in enumerate(columns.values())
        for s, seed in enumerate(seeds)
        for row in rows
    }
    return RunOutcome(experiment, seeds, numbers)


def test_remarks_are_computed() -> None:
    one = [100.0] * 9
    two = [80.0, 81, 79, 100, 100, 100, 120, 121, 119]
    outcome = told(one=one, two=two)
    (text,) = against("two", "one")(outcome)
    assert text.startswith("two against one: low: lower (-20.0 % [")
    assert "mid: equal; high: higher (+20.0 % [" in text
    assert by_workload("two", "one")(outcome) == [
        "two against one, workload by workload (3 a column): 3 lower, 0 equal, 0 higher at low; "
        "0 lower, 3 equal, 0 higher at mid; 0 lower, 0 equal, 3 higher at high"
    ]
    assert worst("two")(outcome) == ["largest mean JCT of 3 workloads: two: 81 at low, 100 at mid, 121 at high"]


def test_an_experiment_says_its_remarks_last() -> None:
    plain = told(one=[1.0] * 3, two=[2.0] * 3)
    marked = RunOutcome(replace(plain.experiment, remarks=(lambda _: ["last"],)), plain.seeds, plain.numbers)
    assert findings(marked) == [*findings(plain), "last"]


def test_every_policy_of_the_study_is_known() -> None:
    for rows in (each.rows for each in STUDIES.get("sjf-bsbf").declare(False)):
        for policy in rows.values():
            specify(policy)
