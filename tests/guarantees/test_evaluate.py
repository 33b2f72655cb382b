"""Ratios over a suite: what they are ratios to, worst and mean, and what became of the theorems."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantees.theorems import false_theorem, filed
from optsched.errors import InputError
from optsched.guarantees.evaluate import ratios
from optsched.guarantees.list_scheduling import blocked_long_job
from optsched.guarantees.suites import suites
from optsched.io.sources import load
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job


def test_worst_and_mean_by_hand() -> None:
    table = ratios("single", ["fifo", "srtf"])
    assert table.objective == "total_completion_time"
    by_hand = {}
    for name in suites()["single"].members:
        instance = load(name)
        assert instance.optimum is not None
        by_hand[name] = simulate(instance, "fifo").value("total_completion_time") / float(instance.optimum["value"])
    fifo, srtf = table.policies
    assert {each.instance: each.ratio for each in fifo.measured} == pytest.approx(by_hand)
    assert fifo.worst == pytest.approx(max(by_hand.values()))
    assert fifo.worst_instance == max(by_hand, key=by_hand.__getitem__)
    assert fifo.mean == pytest.approx(sum(by_hand.values()) / len(by_hand))
    assert {each.to_json()["ratio_to"] for each in fifo.measured} == {"optimum"}
    of_fifo = fifo.guarantee()
    assert of_fifo is not None  # on another objective than its ratios
    assert (of_fifo["id"], of_fifo["objective"], of_fifo["kept"]) == ("fifo-flow", "max_flow_time", 7)
    assert srtf.guarantee() == {
        "id": "srpt-one-machine",
        "objective": "total_completion_time",
        "applies": 7,
        "kept": 7,
        "open": 0,
        "violated": [],
        "holds": True,
    }


def test_runs_that_preempt_are_not_measured_by_an_optimum_without() -> None:
    table = ratios("rigid", ["srtf", "sjf"])
    for policy in table.policies:
        for each in policy.measured:
            assert each.bound is not None
            assert each.bound.schedule_class == ("gang" if policy.policy == "srtf" else "gang-nonpreemptive")
            assert each.ratio is not None
            assert each.ratio >= 1


def test_another_objective_is_another_ratio() -> None:
    own, makespan = ratios("wide-gangs", "sjf"), ratios("wide-gangs", "sjf", "makespan")
    assert (own.objective, makespan.objective) == ("total_completion_time", "makespan")
    assert own.policies[0].worst != makespan.policies[0].worst
    assert makespan.policies[0].measured[0].value == simulate(load("wide-gangs-08-1"), "sjf").metrics["makespan"]


def test_an_instance_without_a_ratio_is_left_out_and_named(tmp_path: Path) -> None:
    easy = {
        "objective": "total_weighted_tardiness",
        "class": "gang-nonpreemptive",
        "value": 0,
        "proved_by": ["by hand"],
    }
    jobs = [Job("a", duration=5, due=20), Job("b", duration=1, due=1)]
    files = {
        "ok": {"optimum": None, "objective": "makespan"},
        "zero": {"optimum": easy, "objective": easy["objective"]},
    }
    for name, parts in files.items():
        Instance(jobs, "1x1", name=name, **parts).save(tmp_path / f"{name}.json")  # type: ignore[arg-type]
    (fifo,) = ratios(str(tmp_path), specify("fifo")).policies
    assert [Path(name).name for name in fifo.without] == ["zero.json"]  # b is late under fifo, and need not be
    assert fifo.worst == fifo.mean == 1
    assert ratios(str(tmp_path), ["fifo", "sjf"]).objective is None  # two objectives, no common name


def test_a_violation_is_found_and_named(tmp_path: Path) -> None:
    blocked_long_job(4).save(tmp_path / "hard.json")
    Instance([Job("a", duration=1)], "1x2", objective="makespan").save(tmp_path / "easy.json")
    with filed(false_theorem()):
        table = ratios(str(tmp_path), "list")
    ((where, judgement),) = table.violations
    assert Path(where).name == "hard.json"
    assert (judgement.id, judgement.policy) == ("false", "list")
    summary = table.policies[0].guarantee()
    assert summary is not None
    assert (summary["holds"], summary["violated"]) == (False, [where])


def test_a_stated_optimum_that_a_run_refutes_is_an_error(tmp_path: Path) -> None:
    wrong = {"objective": "makespan", "class": "gang-nonpreemptive", "value": 9, "proved_by": ["a guess"]}
    Instance([Job("a", duration=4)], "1x1", objective="makespan", optimum=wrong).save(tmp_path / "wrong.json")
    with pytest.raises(InputError, match="refuted"):
        ratios(str(tmp_path), "fifo")


def test_a_table_of_ratios_is_a_frame_and_says_the_worst() -> None:
    table = ratios("rigid-small", ["fifo", "srtf"])
    frame = table.frame()
    assert frame.height == 10
    assert frame.columns == ["policy", "instance", "objective", "value", "bound", "ratio", "ratio_to"]
    for policy in table.policies:
        mine = frame.filter(frame["policy"] == policy.policy)
        assert mine["ratio"].to_list() == [value / bound for value, bound in mine.select("value", "bound").iter_rows()]
        assert f"{policy.policy} {mine['ratio'].max():.3f}" in repr(table)
