"""Ratios over suites, folders and seeds of a recipe: what they are ratios to, worst, mean and percentiles, what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guarantees.theorems import false_theorem, filed

from optsched.errors import InputError
from optsched.evaluation.measured_ratio import BoundShown, MeasuredRatio
from optsched.evaluation.suite_ratios import PolicyRatios, ratios
from optsched.evaluation.suites import drawn, suite, suites
from optsched.guarantees.list_scheduling import blocked_long_job
from optsched.io.index import shipped
from optsched.io.sources import load
from optsched.io.traces.generate import generate
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
    assert frame.columns == ["policy", "knowledge", "instance", "objective", "value", "bound", "ratio", "ratio_to"]
    for policy in table.policies:
        mine = frame.filter(frame["policy"] == policy.policy)
        assert mine["ratio"].to_list() == [value / bound for value, bound in mine.select("value", "bound").iter_rows()]
        assert f"{policy.policy} {mine['ratio'].max():.3f}" in repr(table)


# -- seeds of a recipe, and instances that are kept to be run again -------------------------------------------------------


def test_a_suite_is_drawn_from_a_recipe() -> None:
    suite = drawn("rigid", 3, jobs=4)
    assert [instance.digest for _, instance in suite.instances()] == [
        generate("rigid", seed, jobs=4).digest for seed in (1, 2, 3)
    ]
    with pytest.raises(InputError, match="seeds = 0"):
        drawn("rigid", 0)
    with pytest.raises(InputError, match="jobs"):
        drawn("rigid", 1, jobs=-1)


def test_percentiles_are_ratios_that_were_measured() -> None:
    def measured(value: float) -> MeasuredRatio:
        return MeasuredRatio("i", "makespan", "p", value, BoundShown(1.0, "volume", "gang", exact=True))

    row = PolicyRatios("p", tuple(measured(value) for value in (4.0, 1.0, 3.0, 2.0)))
    assert [row.percentile(share) for share in (0, 25, 50, 51, 75, 90, 100)] == [1, 1, 2, 3, 3, 4, 4]
    assert PolicyRatios("p", ()).percentile(50) is None


def test_the_worst_instance_of_every_policy_is_kept(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(
        "ratio", "rigid", "--set", "jobs=5", "--seeds", "6", "-p", "fifo", "-p", "srtf", "-o", "kept", "--json"
    )
    rows = done.json["policies"]
    assert json.loads(Path("kept/ratios.json").read_text()) == done.json
    for row in rows:
        kept = Path(f"kept/worst-{row['policy']}.json")
        assert f"to repeat: optsched ratio {kept} -p {row['policy']}" in done.err
        assert row["percentiles"]["p50"] <= row["percentiles"]["p90"] <= row["percentiles"]["p99"] == row["worst"]
        (again,) = ratios(str(kept), row["policy"]).policies
        assert again.worst == row["worst"]
        assert load(str(kept)).digest == generate("rigid", int(row["worst_instance"][-1]), jobs=5).digest


def test_settings_need_seeds(command: Any) -> None:
    done = command("ratio", "rigid", "--set", "jobs=5", "-p", "fifo").mistake
    assert "--set: goes with a recipe and --seeds N" in done


# -- suites ---------------------------------------------------------------------------------------------------------------


def test_every_shipped_instance_is_in_its_family_and_in_all() -> None:
    found = suites()
    names = [each.name for each in shipped()]
    families = [name for name in found if name not in ("all", "small")]
    assert sorted(member for name in families for member in found[name].members) == sorted(names)
    assert list(found["all"].members) == names
    assert set(found["small"].members) == {each.name for each in shipped() if each.optimum is not None}
    assert {"single", "rigid", "rigid-makespan", "wide-gangs", "machines", "tardiness"} <= set(families)
    assert all(each.summary for each in found.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("machines-2-06-1", "machines"), ("rigid-weighted-08-2", "rigid-weighted"), ("cluster-week", "cluster-week")],
)
def test_an_instance_is_in_the_suite_that_the_index_names(name: str, expected: str) -> None:
    assert name in suites()[expected].members


def test_suites_of_the_library_that_are_no_files_are_suites_too_and_in_no_other() -> None:
    every = suites()["all"].members
    found = suite("graphs")
    assert found.members
    assert not set(found.members) & set(every)
    name, instance = found.instances()[0]
    assert (instance.name, instance.objective) == (name, "total_completion_time")


def test_members_come_with_the_objective_of_the_index() -> None:
    stated = {each.name: each.objective for each in shipped()}
    for name, instance in suites()["small"].instances():
        assert instance.objective == stated[name]


def test_a_folder_a_file_and_a_name_are_suites(tmp_path: Path) -> None:
    for name in ("b", "a"):
        Instance([Job("x", duration=3)], "1x1", name=name).save(tmp_path / f"{name}.json")
    (tmp_path / "notes.txt").write_text("no instance")
    folder = suite(str(tmp_path))
    assert [Path(member).name for member in folder.members] == ["a.json", "b.json"]
    assert [instance.name for _, instance in folder.instances()] == ["a", "b"]
    assert suite(str(tmp_path / "a.json")).members == (str(tmp_path / "a.json"),)
    assert suite("single-06-1").members == ("single-06-1",)


def test_what_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rigid"):
        suite("rigd")
    with pytest.raises(InputError, match="no instances in this folder"):
        suite(str(tmp_path))
    with pytest.raises(InputError, match=r"none\.json"):
        suite(str(tmp_path / "none.json")).instances()
