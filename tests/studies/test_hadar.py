"""The study of Hadar in its small size, its measures read again from schedules, and its workloads from the real trace."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simulation.fork_lp import makespan_lp

from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.speeds.type_speeds import type_speeds
from optsched.studies.philly_hours import philly_file, philly_hours
from optsched.studies.study_file import STUDIES
from optsched.sweeps.measures.typed_gangs import MEASURES, MIX_MEASURES, measure, measure_mix
from studies.documents import cells

pytestmark = pytest.mark.release

STUDY = "hadar"


def test_every_policy_finishes_and_none_is_better_than_proven(document: Any) -> None:
    found = cells(document, "policies")
    policies = {row for _, row, _ in found}
    assert {
        "makespan-rounds",
        "auction-rounds",
        "hadar",
        "gavel max-min",
        "gavel makespan",
        "tiresias",
        "yarn-cs",
        "fifo",
    } < policies
    for where, m in found.items():
        assert set(m) == set(MEASURES), where
        assert m["total_time_ratio"] >= 1
        assert m["jct_ratio"] >= 1
        assert 1 + 1e-9 >= m["occupied"] >= m["productive"] > 0
        assert m["first_wait"] <= m["mean_queueing"] * (1 + 1e-9) + 1e-6
        assert m["max_ftf"] >= m["mean_ftf"] > 0
    for row in ("yarn-cs", "fifo"):
        assert all(m["preemptions"] == 0 for (_, name, _), m in found.items() if name == row)
    for row in policies:
        if row.startswith("gavel") or row == "yarn-cs":
            assert all(m["mixed"] == 0 for (_, name, _), m in found.items() if name == row), row


def test_mixes_keep_to_both_bounds_and_the_limit_of_forking_is_the_workloads(document: Any) -> None:
    found = cells(document, "mixes")
    assert {name for name, _, _ in found} == {"mixes-lab", "mixes-aws"}
    most: dict[tuple[str, str], set[float]] = {}
    for (name, row, column), m in found.items():
        assert set(m) == set(MIX_MEASURES), (name, row)
        assert m["fork_ratio"] >= 1
        assert m["total_time_ratio"] >= 1
        most.setdefault((name, column), set()).add(m["most"])
        if row == "makespan-rounds":
            assert m["fork_ratio"] >= m["most"] * (1 - 1e-9)  # what does not fork cannot beat the bound without
    assert all(len(each) == 1 for each in most.values())
    slots = {f"hadar-e, rounds of {s} s" for s in (90, 180, 720)}
    assert {"hadar-e", "hadar-e, by work", "hadar-e, 1 copy", "makespan-rounds", "gavel makespan"} | slots < {
        row for _, row, _ in found
    }
    assert found["mixes-lab", "hadar-e", "M-1"]["occupied"] == pytest.approx(1)
    assert found["mixes-lab", "makespan-rounds", "M-1"]["occupied"] == pytest.approx(0.2)
    alone = (
        found["mixes-lab", "makespan-rounds", "M-1"]["total_time"] / found["mixes-lab", "hadar-e", "M-1"]["total_time"]
    )
    assert 1.5 < alone <= found["mixes-lab", "makespan-rounds", "M-1"]["most"]


def test_published_results_stand_beside_what_is_measured(document: Any) -> None:
    said = {each["name"]: each["findings"] for each in document["experiments"]}
    for text in (
        "published total time (of Hadar): gavel max-min / makespan-rounds = 1.2; here ",
        "published mean JCT (of Hadar): gavel fairness / makespan-rounds = 2.5; here ",
        "published mean JCT (of Hadar): yarn-cs / makespan-rounds = 3; here ",
        "published queueing delay, -13 % (of Hadar; read as until the first start): "
        "gavel max-min / makespan-rounds = 1.149; here ",
        "published queueing delay, -13 % (of Hadar; read as all time waiting): "
        "gavel max-min / makespan-rounds = 1.149; here ",
        "published finish-time fairness, +1.5 % (of Hadar; its definition is not known): "
        "gavel makespan / makespan-rounds = 1.015; here ",
    ):
        assert sum(sentence.startswith(text) for sentence in said["policies"]) == 1, text
    for name, ratio in (("mixes-lab", "5"), ("mixes-aws", "2")):
        (sentence,) = (s for s in said[name] if " makespan-rounds / hadar-e = " in s)
        assert f"(baseline not named): makespan-rounds / hadar-e = {ratio}; here " in sentence
        assert sentence.count("forking itself at most x") == 2
        assert any("hadar-e / gavel max-min = 1.45" in s for s in said[name])
    assert any(s.startswith("guarantee kept in 1 of 1 runs") for s in said["policies"])
    assert document["settings"]["method"].endswith("do not know the work that is left")
    assert set(document["measures"]) == set(MEASURES) | set(MIX_MEASURES)


def test_tables_name_what_rows_are_compared_by_and_what_belongs_to_the_workload_once(shown: str) -> None:
    assert shown.count("mean JCT against makespan-rounds") == 1
    assert shown.count("total time against hadar-e") == 2
    assert shown.count("bound without / with forking") == shown.count("  any row ") == 3
    assert "lowest total time at M-1, M-5: hadar-e, rounds of 720 s" in " ".join(shown.split())


def test_measures_of_a_run_read_segment_by_segment() -> None:
    instance = generate("hadar-60", 2, jobs=15, cluster="1x4:V100+1x4:P100", classes="even", hours=0.2)
    for policy in ("makespan-rounds", "fifo"):
        found = measure(policy, OptimumBounds(instance))
        schedule = simulate(instance, policy).schedule
        segments = list(schedule.segments())
        first = {job: min(s.start for s in segments if s.job == job) for job in range(instance.n)}
        span = max(s.end for s in segments) - instance.arrival.min()
        held = [sum(1 for _ in s.gpus) * (s.end - s.start) for s in segments]
        kinds = [{int(instance.cluster.node_type[node]) for node, _ in s.gpus} for s in segments]
        assert found["total_time"] == pytest.approx(span)
        assert found["first_wait"] == pytest.approx(np.mean([first[j] - instance.arrival[j] for j in first]))
        assert found["occupied"] == pytest.approx(sum(held) / (8 * span))
        assert found["preemptions"] == pytest.approx(len(segments) / 15 - 1)
        mixed = sum(h for h, k in zip(held, kinds, strict=True) if len(k) > 1)
        assert found["mixed"] == pytest.approx(mixed / sum(held))
        assert found["mean_jct"] == pytest.approx((schedule.completion - instance.arrival).mean())
    assert found["mixed"] > 0  # FIFO takes any free GPUs


def test_the_limit_of_forking_is_the_ratio_of_the_makespan_programs() -> None:
    for seed, jobs in ((1, 1), (2, 3), (3, 6)):
        instance = generate("hadar-mix", seed, jobs=jobs)
        rates = type_speeds(instance).together[:, instance.cluster.node_type]
        fork, alone = (makespan_lp(rates, instance.work, fork=f) for f in (True, False))
        found = measure_mix("hadar-e:copies=2", OptimumBounds(instance))
        assert found["most"] == pytest.approx(alone / fork, rel=1e-6)
        assert found["total_time"] / found["fork_ratio"] == pytest.approx(fork, rel=1e-6)


def test_a_run_that_does_not_finish_has_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    proven = OptimumBounds(generate("hadar-mix", 1, jobs=1))
    monkeypatch.setattr("optsched.sweeps.measures.typed_gangs.refereed", lambda *_: SimpleNamespace(unfinished=["1"]))
    for take, names in ((measure, MEASURES), (measure_mix, MIX_MEASURES)):
        found = take("fifo", proven)
        assert set(found) == {*names, "kept"}
        assert all(math.isnan(value) for value in found.values())


def test_the_default_size_covers_what_was_promised() -> None:
    experiments = {each.name: each for each in STUDIES.get("hadar").declare(False)}
    (first, *_) = experiments["policies"].columns.values()
    assert dict(first.parameters)["jobs"] == 480
    assert set(experiments["mixes-lab"].columns) == {f"M-{j}" for j in (1, 3, 4, 5, 8, 10, 12)}
    assert {"utilities", "rounds", "mixes-aws"} <= set(experiments)
    assert first.make(1).cluster.spec == "5x4:V100+5x4:P100+5x4:K80"


def test_the_stand_in_serves_where_there_is_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPTSCHED_DATA", str(tmp_path))
    assert philly_file() is None
    (experiment, *_) = STUDIES.get("hadar").declare(False)
    assert {each.recipe for each in experiment.columns.values()} == {"hadar-60"}
    assert "generated stand-in" in experiment.question
    with pytest.raises(InputError, match="OPTSCHED_DATA"):
        philly_hours(1, jobs=480, classes="philly")


def test_the_busiest_hours_of_the_trace(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTSCHED_DATA", str(data_dir))
    (experiment, *_) = STUDIES.get("hadar").declare(False)
    assert {each.recipe for each in experiment.columns.values()} == {"optsched.studies.philly_hours:philly_hours"}
    made = philly_hours(1, jobs=100, classes="philly")
    again, other = (philly_hours(seed, jobs=100, classes="philly").digest for seed in (1, 2))
    assert again == made.digest != other
    assert made.arrival[0] == 0
    assert made.arrival[-1] <= 8 * 3600
    assert set(made.gpus.tolist()) <= {1, 2, 4, 8}
    even = philly_hours(1, jobs=102, classes="even")
    assert Counter(even.table["group"].to_list()) == {"S": 27, "M": 25, "L": 25, "XL": 25}
    with pytest.raises(InputError, match="no such block"):
        philly_hours(10_000, jobs=480, classes="philly")


@pytest.mark.study
def test_the_default_size_runs_and_says_what_holds() -> None:
    said = [s for each in STUDIES.get("hadar").run(1).to_json()["experiments"] for s in each["findings"]]
    assert not any("VIOLATED" in sentence for sentence in said)
    assert any("published" in sentence for sentence in said)
