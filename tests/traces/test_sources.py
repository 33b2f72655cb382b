"""SOURCE: instance files, shipped names and traces, and every way to misname one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line

from optsched.errors import InputError, RowErrors
from optsched.io import index, sources
from optsched.io.index import COLUMNS, LibraryEntry, shipped
from optsched.io.sources import Loaded, LoadRequest, load, load_counted
from optsched.problem.instance import Instance, Job

PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:00:10,66.0,1,66.0,a\n"
    "2017-10-09 07:00:00,66.0,2,66.0,b\n"
    "2017-10-09 07:00:20,0,1,66.0,a\n"
)
HEAD = ",".join(COLUMNS)
SOLVED = (
    "single-08-0,single,1|r_j|sumC,3,1,total_completion_time,gang-nonpreemptive,8,8,true,one; two,one,two,7.5,srpt,0.25,"
    "machines,3,jobs=3; machines=1,single-08-0.json,abc"
)
OPEN = (
    "open-1,open,P|r_j|sumC,3,1,total_completion_time,gang,9.5,7,false,,,srpt,7,srpt,,machines,1,,single-08-0.json,def"
)
INDEX = f"{HEAD}\n{SOLVED}\n{OPEN}\n"


def small(**parts: object) -> Instance:
    jobs = [Job("a", arrival=2, duration=3), Job("b", arrival=0, duration=1), Job("c", arrival=1, duration=2)]
    return Instance(jobs, "1x1", "small", **parts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of shipped instances with an index, in the place of the real one."""
    (tmp_path / "shipped").mkdir()
    small().save(tmp_path / "shipped/single-08-0.json")
    (tmp_path / "shipped/index.csv").write_text(INDEX)
    for module in (index, sources):
        monkeypatch.setattr(module, "instances_folder", lambda: tmp_path / "shipped")
    return tmp_path


@pytest.mark.parametrize("suffix", [".json", ".parquet", ".JSON"])
def test_an_instance_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"small{suffix}"
    small().save(path)
    assert load(path).digest == small().digest
    assert load(str(path)).digest == small().digest
    assert load_counted(path).skipped_rows == 0


def test_limit_and_cluster_of_an_instance_file_drop_its_optimum(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    optimum = {"objective": "total_completion_time", "class": "gang-nonpreemptive", "value": 11, "proved_by": []}
    small(optimum=optimum, recipe={"name": "x", "seed": 1}).save(path)
    assert load(path).optimum == optimum
    assert load(path, limit=3).optimum == optimum
    assert load(path, limit=np.int64(2)) == load(path, limit=2)
    assert load(path, cluster="1x1").optimum == optimum
    first = load(path, limit=2)
    assert first.ids == ("b", "c")
    assert first.optimum is None
    assert first.recipe == {"name": "x", "seed": 1, "limit": 2}
    other = load(path, cluster="2x1")
    assert (other.cluster.spec, other.optimum) == ("2x1", None)
    for limit in (0, -3, True, 1.5):
        with pytest.raises(InputError, match="limit"):
            load(path, limit=limit)


def test_a_trace(written: Any) -> None:
    path = written(PHILLY, "log.csv")
    with pytest.raises(RowErrors, match="row 4, duration = '0'"):
        load(f"philly:{path}", cluster="8x8")
    found = load_counted(f"philly:{path}", LoadRequest(cluster="8x8", skip_bad=True))
    assert isinstance(found, Loaded)
    assert (found.instance.ids, found.skipped_rows) == (("2", "3"), 1)
    assert load(f"philly:{path}", cluster="8x8", skip_bad=True, limit=1).ids == ("3",)
    named = {"arrival": "timestamp", "gpus": "num_gpus", "duration": "gpu_time", "group": "cluster"}
    assert load(f"csv:{path}", cluster="8x8", columns=named).n == 3
    as_text = ",".join(f"{field}={column}" for field, column in named.items())
    assert load(f"csv:{path}", cluster="8x8", columns=as_text) == load(f"csv:{path}", cluster="8x8", columns=named)
    for wrong in (["a"], {"arrival": 1}, {1: "a"}, 7, "arrival"):
        with pytest.raises(InputError, match=r"columns = .*\(expected: (.*the text 'arrival=submitted|key=value)"):
            load(f"csv:{path}", cluster="8x8", columns=wrong)


def test_a_trace_needs_a_cluster(written: Any) -> None:
    path = written(PHILLY, "log.csv")
    with pytest.raises(InputError, match=r"log\.csv, cluster: a philly trace needs a cluster.*--cluster.*8x8"):
        load(f"philly:{path}", skip_bad=True)
    with pytest.raises(InputError, match="8by8"):
        load(f"philly:{path}", cluster="8by8")


def test_a_fragment_is_cut_off_only_where_the_dialect_has_one(written: Any) -> None:
    path = written(PHILLY.replace(",0,1,", ",5,1,"), "log#1.csv")
    assert load(f"philly:{path}", cluster="8x8").n == 3
    path = written("1 2\n3 4\n5 6\n", "wt#1.txt")
    assert load(f"orlib-wt:{path}#1,n=2").cluster.spec == "1x1"


def test_every_way_to_misname_a_source(folder: Path) -> None:
    (folder / "log.csv").write_text(PHILLY)
    (folder / "own.csv").write_text("Submit Time;run_seconds;state\n0;1;ok\n")
    (folder / "notes.txt").write_text("nothing of this is a table\n")
    (folder / "ran.csv").write_text("Submitted At,GPUs,start_time,end_time,Elapsed,State\n0,1,0,9,9,x\n")
    (folder / "a log.csv").write_text("Queued,GPUs,Launch,Finish\n0,1,0,9\n")
    (folder / "log.swf").write_text("; MaxProcs: 8\n" + "1 0 5 9 4 -1 -1 -1 -1 -1 1 7 -1 -1 3 -1 -1 -1\n")
    (folder / "classic.json").write_text('[{"id": "C", "problem": "1|r_j|sumC", "machines": 1, "p": [1]}]')
    (folder / "jobs.trace").write_text("LM\tpython3 main.py\t--steps\t7\t0\t1\n")
    (folder / "wt.txt").write_text(f"{' 12' * 20}\n" * 6)
    cases = [
        ("", "which source"),
        ("single-08-1", r"'single-08-1': neither a file nor the name.*did you mean single-08-0"),
        ("phily:log.csv", r"no dialect named 'phily'.*did you mean philly"),
        ("philly:", "which file"),
        (f"philly:{folder}/none.csv", r"none\.csv: no such file"),
        (f"{folder}/none.json", r"none\.json: no such file"),
        (f"{folder}/none.csv", r"none\.csv: no such file"),
        ("none.parquet", r"none\.parquet: no such file"),
        (f"{folder}/log.csv", r"named with its dialect \(expected: philly:.*log\.csv --cluster NODESxGPUS\)"),
        (
            f"{folder}/own.csv",
            r"csv:.*own\.csv --columns 'arrival=Submit Time,gpus=...,duration=run_seconds' --cluster",
        ),
        (
            f"{folder}/ran.csv",
            r"csv:.*csv --columns 'arrival=Submitted At,gpus=GPUs,start=start_time,end=end_time,status=State'\)",
        ),
        (
            f"{folder}/a log.csv",
            r"expected: 'csv:.*/a log\.csv' --columns arrival=Queued,gpus=GPUs,start=Launch,end=Finish\)",
        ),
        (f"{folder}/log.swf", r"named with its dialect \(expected: swf:.*/log\.swf\)"),
        (f"{folder}/classic.json", r"named with its dialect \(expected: classic:.*/classic\.json#ID\)"),
        (f"{folder}/jobs.trace", r"expected: gavel:.*/jobs\.trace --cluster NODESxGPUS\)"),
        (f"{folder}/wt.txt", r"expected: orlib-wt:.*/wt\.txt#k\[,n=jobs\]\)"),
        (f"{folder}/notes.txt", r"not an instance file.*DIALECT:.*philly"),
        (str(folder), "this is a folder"),
    ]
    for source, message in cases:
        with one_line(match=message):
            load(source)
    with pytest.raises(InputError, match=r"columns.*csv:PATH"):
        load("single-08-0", columns={"arrival": "x"})
    with one_line("walltimes = 'cut': a choice for logs alone"):
        load("single-08-0", walltimes="cut")


def test_a_shipped_instance(folder: Path) -> None:
    assert load("single-08-0").digest == small().digest
    assert load("single-08-0", limit=1).ids == ("b",)
    solved, unsolved = shipped()
    asked = {"problem": "1|r_j|sumC", "objective": "total_completion_time", "schedule_class": "gang-nonpreemptive"}
    known = {"value": 8, "bound": 8, "solved": True, "certified": 7.5, "certificate": "srpt", "seconds": 0.25}
    by = {"proved_by": ("one", "two"), "found_by": "one", "bound_by": "two"}
    made = {"recipe": "machines", "seed": 3, "parameters": "jobs=3; machines=1", "digest": "abc"}
    who = {"name": "single-08-0", "suite": "single", "jobs": 3, "gpus": 1, "file": "single-08-0.json"}
    assert solved == LibraryEntry(**who, **asked, **known, **by, **made)
    assert (solved.optimum, solved.known) == (8, "optimum 8")
    assert (unsolved.optimum, unsolved.seconds, unsolved.proved_by) == (None, None, ())
    assert unsolved.known == "value 9.5, bound 7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "row 1: wrong columns"),
        (INDEX.replace("seed", "sead"), "row 1: wrong columns"),
        (f"{HEAD}\na,b\n", "row 2, problem: missing"),
        (INDEX.replace("machines,3,", "machines,-3,"), "invalid: .*-3"),
        (INDEX.replace(",8,8,true", ",8,eight,true"), "invalid: .*eight"),
        (INDEX.replace(",8,8,true", ",8,8,maybe"), "invalid: .*maybe"),
        (INDEX.replace("open-1", ""), "row 3, name: missing"),
        (INDEX.replace("open-1", "single-08-0"), "name = 'single-08-0': used twice"),
    ],
)
def test_an_index_that_is_not_legal(folder: Path, text: str, message: str) -> None:
    (folder / "shipped/index.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        shipped()


def test_without_an_index_nothing_is_shipped(folder: Path) -> None:
    (folder / "shipped/index.csv").unlink()
    assert shipped() == []
    with pytest.raises(InputError, match="neither a file nor"):
        load("single-08-0")


def test_what_is_really_shipped_loads_as_the_index_says() -> None:
    for each in shipped():
        instance = load(each.name)
        assert instance.objective == each.objective
        if each.optimum is not None:
            assert instance.optimum["value"] == each.optimum


def test_classic_instances_bring_cluster_and_optimum(data_dir: Path) -> None:
    found = load(f"classic:{data_dir}/classic/rigid_and_single_optima.json#C-8-0")
    assert found.cluster.spec == "1x8"
    assert found.optimum["value"] == 337
    other = load(f"classic:{data_dir}/classic/rigid_and_single_optima.json#C-8-0", cluster="2x8")
    assert other.optimum is None
