"""``optsched reproduce`` and the study of A-SRPT in its small size."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from optsched.cli.study_tables import summary_view
from optsched.errors import InputError
from optsched.studies.experiment import Experiment, Workload
from optsched.studies.study_file import STUDIES, Reproduction, cells as asked, outcomes, run_all
from optsched.sweeps.measures.placed_gangs import MEASURES
from studies.documents import cells

pytestmark = [pytest.mark.release, pytest.mark.xdist_group("a-srpt")]  # one process runs the small study

STUDY = "a-srpt"
Watched = tuple[Reproduction, list[int], Reproduction]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """The study as it runs, how many tables are finished at every 20th cell, and what its store says at the end."""
    study, store, sizes = STUDIES.get(STUDY), tmp_path_factory.mktemp("a-srpt") / "runs.sqlite", list[int]()

    def heard(_: object, settled: int, every: int) -> None:
        if settled % 20 == 0:
            sizes.append(len(study.so_far(store, 1, small=True).outcomes))

    whole = study.run(1, small=True, workers=1, store=store, heard=heard)
    return whole, sizes, study.so_far(store, 1, small=True)


@pytest.fixture(scope="module")
def done(watched: Watched) -> Reproduction:
    return watched[0]


def test_an_interrupted_run_can_tell_the_tables_that_are_finished(watched: Watched) -> None:
    whole, sizes, at_the_end = watched
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] < len(whole.outcomes)
    assert at_the_end.to_json() == whole.to_json()


def test_every_cell_has_finite_numbers_and_a_ratio_of_at_least_one(document: Any) -> None:
    found = cells(document)
    assert len(found) > 50
    for where, measures in found.items():
        for name in ("mean_jct", "ratio", "jct_ratio", "utilization", "slowdown", "communication"):
            assert name in measures, (where, name)
        assert measures["ratio"] >= 1
        assert measures["slowdown"] >= 1
        assert 0 <= measures["utilization"] <= 1
        assert 0 <= measures["communication"] < 1
        assert measures.get("guarantee", math.inf) >= measures["ratio"], where


def test_the_guarantee_stands_beside_a_srpt_and_not_beside_what_has_none(document: Any) -> None:
    found = cells(document)
    guaranteed = {row for (name, row, _), m in found.items() if name == "policies-16" and "guarantee" in m}
    assert guaranteed == {"a-srpt", "a-srpt:overtake=0"}


def test_errors_of_predictions_stay_within_what_was_asked_for(document: Any) -> None:
    found = cells(document)
    for error in (1.0, 1.25, 1.5, 2.0, 4.0):
        measures = found["prediction-error", f"error {error:g}", "load 0.9"]
        assert 1 <= measures["lam_o"] <= error * (1 + 1e-9)
        assert 1 <= measures["lam_u"] <= error * (1 + 1e-9)
    assert found["predictors", "perfect", "load 0.9"]["error_worst"] == 1
    assert found["predictors", "global-mean", "load 0.9"]["error_worst"] > 2


def test_settings_are_stated(document: Any) -> None:
    assert document["study"] == "a-srpt"
    assert document["settings"]["seeds"] == [1]
    assert document["settings"]["size"] == "small"
    for each in document["experiments"]:
        assert each["findings"]
        assert {row["label"] for row in each["rows"]} >= {each["reference"]}
        for column in each["columns"]:
            assert column["recipe"] == "recurring"
            assert {"jobs", "cluster", "load", "nic_bandwidth", "intra_bandwidth"} <= set(column["parameters"])


def quick() -> list[Experiment]:
    at = {f"load {load}": Workload.of("recurring", jobs=20, cluster="2x4", load=load) for load in (0.8, 1.2)}
    return [Experiment("quick", "?", "load", at, {"A": "a-srpt", "B": "spjf"}, "A", ("mean_jct",))]


def test_the_same_numbers_twice_and_on_two_processes_and_a_cell_of_two_experiments_is_run_once() -> None:
    twice, calls = quick() + quick(), list[tuple[int, int]]()
    assert asked(twice, (1, 2)) == asked(quick(), (1, 2))
    once = run_all(quick(), (1, 2), workers=1)
    again = run_all(twice, (1, 2), workers=1, heard=lambda _, done, total: calls.append((done, total)))
    assert calls == [(k, 8) for k in range(1, 9)]
    assert len(once) == 8
    # repr, because nan is not equal to itself
    for others in (again, run_all(quick(), (1, 2), workers=2)):
        assert repr(sorted(once.items(), key=repr)) == repr(sorted(others.items(), key=repr))


def test_the_default_size_covers_what_was_promised() -> None:
    experiments = {each.name: each for each in STUDIES.get("a-srpt").declare(False)}
    assert {f"policies-{gpus}" for gpus in (32, 64, 128, 256)} <= set(experiments)
    assert set(experiments["predictors"].columns) >= {"load 0.5", "load 1.1"}
    assert set(experiments["prediction-error"].rows) == {f"error {e}" for e in ("1", "1.25", "1.5", "2", "4")}
    assert len(experiments["nic"].columns) == 3
    assert {"mapper", "tau", "beta", "overtake", "virtual-alpha"} <= set(experiments)


@pytest.mark.parametrize(("seeds", "workers", "named"), [(0, 1, "seeds"), (1, 0, "workers")])
def test_illegal_settings_are_named(seeds: int, workers: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        STUDIES.get("a-srpt").run(seeds, small=True, workers=workers)


def test_an_unknown_study_is_one_line_with_near_matches(command: Any) -> None:
    line = command("reproduce", "a-srtp").mistake
    assert "a-srtp" in line
    assert "did you mean a-srpt" in line


def test_zero_seeds_are_one_line(command: Any) -> None:
    assert "seeds" in command("reproduce", "a-srpt", "--seeds", "0").mistake


def test_studies_are_listed(command: Any) -> None:
    assert "a-srpt" in {each["name"] for each in command("list", "studies", "--json").document["studies"]}


def test_the_command_prints_one_document_or_a_screen_and_writes_every_table(
    command: Any, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optsched.studies.study_file.run_all", _numbers_of(document))
    code, out, err = command("reproduce", "a-srpt", "--small", "--seeds", "1", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["experiments"] == document["experiments"]
    code, out, err = command("reproduce", "a-srpt", "--small", "--seeds", "1")
    assert (code, err.count("\n")) == (0, 2)
    assert "70 runs, 70 to do; about 7 s of CPU time" in err
    assert (out + err).count("\n") <= 25
    for text in ("a competitive ratio", "kept", "mean JCT, others"):
        assert text in out
    file = Path(re.search(r"all tables: (\S+)", err)[1])  # type: ignore[index]
    out = file.read_text()
    file.unlink()
    for text in (
        "seeds 1",
        "policies-16",
        "mean JCT [h]",
        "utilisation [%]",
        "wcs-duration",
        "guarantee kept",
        "cluster=2x8",
    ):
        assert text in out


@pytest.mark.parametrize("study", STUDIES.names())
def test_the_summary_of_every_study_is_a_screen(study: str) -> None:
    """Of 25 lines and 80 columns, with what is said on stderr; its numbers do not matter for that."""
    chosen = STUDIES.get(study)
    experiments, seeds = chosen.declare(True), chosen.seeds_named(1, True)
    numbers = {}
    for each in experiments:
        for row in each.rows:
            for column, workload in each.columns.items():
                for seed in each.seeds_of(seeds):
                    measured = dict.fromkeys([*each.measurement.measures, "kept"], 1.0 + 0.37 * len(row))
                    numbers[workload, seed, each.policy(row, column)] = measured
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary_view(Reproduction(chosen, True, seeds, outcomes(experiments, seeds, numbers))))
    lines = console.export_text().splitlines()
    assert len(lines) <= 22, "\n".join(lines)
    assert max(map(len, lines)) <= 80
    done = Reproduction(chosen, True, seeds, outcomes(experiments, seeds, numbers))
    for claim in done.claims:
        assert any(claim.label in line for line in lines), claim.label


def _numbers_of(document: Any) -> Any:
    """What `run_all` gave when the document was made: the command is tested without running everything again."""
    known = cells(document)

    def numbers(experiments: Any, seeds: Any, **_: Any) -> Any:
        found = {}
        for each in experiments:
            for row, policy in each.rows.items():
                for column, workload in each.columns.items():
                    measured = known[each.name, row, column]
                    values = dict.fromkeys(MEASURES, math.nan) | measured
                    kept = 1.0 if "guarantee" in measured else math.nan
                    found[workload, seeds[0], policy] = values | {"kept": kept}
        return found

    return numbers


@pytest.mark.study
def test_the_guarantee_is_kept_everywhere_in_the_default_size() -> None:
    document = STUDIES.get("a-srpt").run(2).to_json()
    said = [sentence for each in document["experiments"] for sentence in each["findings"]]
    assert any("guarantee kept" in sentence for sentence in said)
    assert not any("VIOLATED" in sentence for sentence in said)
