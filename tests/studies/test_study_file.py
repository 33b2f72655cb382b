"""A study of one's own: a TOML file with a measure of its own, run, gone on with, drawn, and set beside its claims."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.studies.record import read_record, write_record
from optsched.studies.study_file import Study
from optsched.sweeps.grid import Grid
from optsched.sweeps.measurement import MEASUREMENTS, measurement_of

STUDY = """
summary = "two orders"
seeds = 2
[words]
jobs = "40"
[lists]
rows = ["srpt", "fifo", "by prediction"]
[policies]
srpt = "srtf"
"by prediction" = "a-srpt:predictor=noisy/error=2"
[workloads.usual]
recipe = "recurring"
jobs = 40
cluster = "2x4"
[every]
measure = "placed-gangs"
workload = "usual"
[experiment.load]
question = "Which order? $jobs jobs"
across = "offered load"
axis = { parameter = "load", values = [0.5, 1.0], label = "load {:g}" }
rows = "rows"
reference = "srpt"
shown = ["mean_jct"]
[experiment.nic]
like = "load"
only = "full"
columns.slow = { nic_bandwidth = 1e9 }
columns.placed = { policy = "{}" }
keep = ["slow"]
run = "{}+consolidated"
[[claim]]
claim = "FIFO is ten times worse"
source = "nobody"
experiments = ["load"]
what = "mean JCT"
measure = "mean_jct"
row = "srpt"
against = ["fifo"]
ratio = 10.0
why = "nobody is that bad"
[[figure]]
kind = "lines"
file = "load.png"
title = "load"
experiments = ["load"]
x = "load"
y = "mean_jct"
[[figure]]
kind = "bars"
file = "bars.png"
title = "bars"
experiments = ["load"]
y = "change"
[[figure]]
kind = "jct-cdf"
file = "cdf.png"
title = "cdf"
experiments = ["load"]
[[figure]]
kind = "over-time"
file = "time.png"
title = "time"
experiments = ["load"]
[[figure]]
kind = "error-histogram"
file = "errors.png"
title = "errors"
experiments = ["load"]
rows = ["by prediction"]
[[figure]]
kind = "lines"
file = "none.png"
title = "an experiment that is not of this size"
experiments = ["nic"]
x = "nic_bandwidth"
y = "mean_jct"
[cost]
load = 1.5
[small]
seeds = 1
cost.usual = 0.5
words.jobs = "12"
workloads.usual.jobs = 12
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY)
    return path


def test_sizes_words_and_what_is_taken_over(file: Path) -> None:
    load, nic = Study.read(file).declare()
    assert load.question == nic.question == "Which order? 40 jobs"
    assert {c: dict(w.parameters)["load"] for c, w in load.columns.items()} == {"load 0.5": 0.5, "load 1": 1.0}
    assert list(nic.columns) == ["slow"]
    assert nic.policy("srpt", "slow") == "srtf+consolidated"
    (small,) = Study.read(file).declare(small=True)
    assert small.question.endswith("12 jobs")
    assert small.columns["load 1"].make(1).digest == generate("recurring", 1, jobs=12, cluster="2x4", load=1.0).digest


def test_a_folder_is_gone_on_from_and_holds_figures_and_claims(file: Path, tmp_path: Path, command: Any) -> None:
    out = tmp_path / "out"
    call = ("reproduce", str(file), "--small", "-o", str(out), "--workers", "1")
    assert json.loads(command(*call, "--dry-run", "--json")[1]) == {"cells": 6, "left": 6, "cpu_seconds": 3.0}
    code, text, err = command(*call)
    assert (code, err.splitlines()[0]) == (0, "optsched: 6 runs, 6 to do; about 3 s of CPU time")
    pictures = ("load.png", "bars.png", "cdf.png", "time.png", "errors.png")
    for name in pictures:
        width, height = struct.unpack(">II", (out / name).read_bytes()[16:24])
        assert width > 500
        assert height > 200
    assert not (out / "none.png").exists()
    (row,) = Study.read(file).so_far(out / "runs.sqlite", small=True).to_json()["claims"]
    jct = [
        osd.simulate(generate("recurring", 1, jobs=12, cluster="2x4", load=load), policy).metrics["mean_jct"]
        for load in (0.5, 1.0)
        for policy in ("fifo", "srtf")
    ]
    assert row["measured"].startswith("fifo / srpt: ")
    for ratio in (jct[0] / jct[1], jct[2] / jct[3]):
        assert f"{ratio:.3g}" in row["measured"]
    assert row["why"] in (out / "claims.md").read_text()
    assert "nobody is that bad" in " ".join((out / "tables.txt").read_text().split())
    assert "all tables: " + str(out / "tables.txt") in err
    for part in ("FIFO is ten times worse", "10 x", "same direction, smaller"):
        assert part in text, part
    assert "nobody is that bad" not in text
    kept = read_record(out / "record.json", Study.read(file)).reproduction
    assert kept.claims == Study.read(file).so_far(out / "runs.sqlite", small=True).claims
    assert "6 runs, 0 to do" in command(*call, "--dry-run")[1]


def waited(policy: str, proven: OptimumBounds) -> dict[str, float]:
    """A measure of one's own."""
    return {"waited": float(osd.simulate(proven.instance, policy).metrics["mean_queueing"]), "unknown": float("nan")}


def five(seed: int, *, longest: int) -> Instance:
    """A recipe of one's own."""
    return generate("rigid", seed, jobs=5, longest=longest)


def test_a_sweep_with_a_measure_and_a_recipe_of_ones_own(tmp_path: Path) -> None:
    here = "studies.test_study_file"
    grid = {
        "measure": f"{here}:waited",
        "policies": ["fifo", "srtf"],
        "seeds": [1, 2],
        "instances": [{"recipe": f"{here}:five", "longest": [4, 8]}],
    }
    table = osd.sweep(grid, tmp_path / "s.sqlite", workers=1)
    assert table["state"].to_list() == ["done"] * 8
    assert "unknown" not in table.columns
    for row in table.iter_rows(named=True):
        run = osd.simulate(generate("rigid", row["seed"], jobs=5, longest=row["longest"]), row["policy"])
        assert row["waited"] == run.metrics["mean_queueing"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"measure": "sharingg"}, "sharing"),
        ({"measure": "nowhere:at_all"}, "no such module"),
        ({"measure": "optsched.sweeps.grid:KEYS"}, "not a function"),
        ({"measure": "sharing", "objectives": ["makespan"]}, "beside a measure"),
        ({"instances": [{"recipe": "optsched.sweeps.grid:read_tom"}]}, "read_toml"),
    ],
)
def test_measures_and_recipes_that_are_none(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Grid.read({"policies": ["fifo"], "instances": [{"recipe": "rigid", "jobs": 4}], **changed})


def test_measures_are_known_by_name() -> None:
    assert measurement_of("fork-mixes").compared == "total_time"
    assert {"placed-gangs", "typed-gangs", "iterations", "sharing", "sharing-optimum"} <= set(MEASUREMENTS.names())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('rows = "rows"', 'rows = "others"', "others"),
        ('reference = "srpt"', 'reference = "sjf"', "no row 'sjf'"),
        ('shown = ["mean_jct"]', 'shown = ["speed"]', "no measures"),
        ('measure = "placed-gangs"', 'measure = "placed"', "placed-gangs"),
        ('like = "load"', 'lik = "load"', "lik"),
        ('across = "offered load"', "", "across"),
        ('summary = "two orders"', "", "summary"),
        ("[words]", "[words", "not TOML"),
        ("$jobs jobs", "$job jobs", "job"),
    ],
)
def test_a_study_that_is_wrong_is_one_line(file: Path, command: Any, old: str, new: str, said: str) -> None:
    file.write_text(STUDY.replace(old, new, 1))
    assert said in command("reproduce", file).mistake


def test_a_record_says_the_same_and_no_less_than_the_study_asks_for(file: Path, tmp_path: Path) -> None:
    study, record = Study.read(file), tmp_path / "record.json"
    done = study.run(2, small=True, workers=1)
    write_record(done, 2, record)
    read = read_record(record, study)
    assert read.version == osd.__version__
    assert read.runs == 12
    assert (read.reproduction.small, read.reproduction.seeds) == (True, (1, 2))
    for each, again in zip(done.to_json()["experiments"], read.reproduction.to_json()["experiments"], strict=True):
        assert again["findings"] == each["findings"]
        for cell, same in zip(each["cells"], again["cells"], strict=True):
            assert same["measures"]["mean_jct"]["values"] == pytest.approx(
                cell["measures"]["mean_jct"]["values"], rel=1e-8
            )
    assert read.reproduction.claims == done.claims
    file.write_text(STUDY.replace("values = [0.5, 1.0]", "values = [0.5, 1.1]"))
    with pytest.raises(InputError, match=r"experiment\.load.*not in the record|not in the record.*experiment\.load"):
        read_record(record, Study.read(file))


@pytest.mark.parametrize("text", ["", "[]", '{"format": "optsched-instance/1"}', None])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=r"r\.json"):
        read_record(tmp_path / "r.json")
