"""Dialect ``slurm`` and cluster file ``slurm-nodes`` on a made-up export; real exports are in `test_slurm_truth`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzed_files import Base, read_spoiled, spoiled

from optsched.errors import InputError, RowErrors
from optsched.io.cluster_files import cluster_of
from optsched.io.recognised import source_to_type
from optsched.io.sources import load_counted
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.io.traces.slurm_tres import elements_of, elements_of_mask, nodes_of
from optsched.problem.cluster import Cluster
from traces.slurm_export import FIELDS, ROWS, T0, document, line, text, tres, waiting

Read = Callable[..., TraceRead]
SMALL = Cluster.parse("4x4")
LEFT_OUT = {
    "cancelled before it started": 1,
    "held its resources for less than a second": 1,
    "never allocated": 1,
    "never eligible": 1,
    "no GPUs": 1,
    "refused at submission": 1,
    "still running at the export": 1,
    "still waiting": 5,
    "waiting again after a requeue": 1,
    "waiting, fits no partition": 1,
}


@pytest.fixture
def slurm(tmp_path: Path) -> Read:
    def read(content: str, **options: Any) -> TraceRead:
        path = tmp_path / "export"
        path.write_text(content, encoding="utf-8")
        return DIALECTS.get("slurm").read(path, **options)

    return read


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> TraceRead:
    """The made-up export as it must be read."""
    path = tmp_path_factory.mktemp("right") / "export"
    path.write_text(text(), encoding="utf-8")
    return DIALECTS.get("slurm").read(path)


def jobs_of(read: TraceRead) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read.table.iter_rows(named=True)}


def said(read: TraceRead) -> str:
    return "\n".join(read.recipe["parameters"]["said"])


def test_every_oddity(right: TraceRead) -> None:
    read = right
    jobs = jobs_of(read)
    ran = {name: job["ran"] for name, job in jobs.items()}
    assert ran == {
        "1": [[10, 110]],
        "2": [[20, 110]],  # until its step has ended
        "9_0": [[30, 40]],
        "9_1": [[40, 140]],
        "20": [[50, 60], [60, 70, 2]],  # components that start together; one ends earlier
        "30": [[100, 150], [300, 350]],
        "31": [[200, 220], [220, 260, 2]],  # resized
        "32": [[200, 300]],  # GPUs are held while it is suspended
        "33": [[200, 300]],
    }
    assert {name: job["gpus"] for name, job in jobs.items()} == dict(zip(ran, (2, 2, 1, 1, 3, 2, 4, 1, 1), strict=True))
    durations = (100, 90, 10, 100, (10 * 3 + 10 * 2) / 3, 100, (20 * 4 + 40 * 2) / 4, 100, 100)
    assert [job["duration"] for job in jobs.values()] == pytest.approx(durations)
    assert [job["arrival"] for job in jobs.values()] == [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert [job["walltime"] for job in jobs.values()] == [3600, 60, 3600, 60, 3600, None, 3600, 3600, 3600]
    assert [jobs[name]["status"] for name in ("2", "9_1", "30")] == ["CANCELLED", "TIMEOUT", "COMPLETED"]
    assert (jobs["20"]["user"], jobs["20"]["group"]) == ("bob", "lab")  # of the component with most GPUs
    assert read.recipe["parameters"]["left_out"] == LEFT_OUT
    assert "33 (90 s, not 100 s)" in said(read)
    assert "jobs of several rows: 1 requeued, 1 resized, 1 heterogeneous" in said(read)
    assert "guessed" in said(read)
    assert "-D" not in said(read)


def test_eligible_cpus_and_nodes(slurm: Read) -> None:
    assert jobs_of(slurm(text(), release="eligible"))["9_1"]["arrival"] == 40
    cpus = jobs_of(slurm(text(), unit="cpu"))
    assert cpus["32"]["duration"] == 70  # CPUs are free while it is suspended
    assert cpus["32"]["ran"] == [[200, 300]]
    assert (cpus["35"]["gpus"], cpus["31"]["gpus"], cpus["20"]["gpus"]) == (4, 4, 8)
    with pytest.raises(InputError, match="lacks Eligible"):
        slurm(text(fields=[name for name in FIELDS if name != "Eligible"]), release="eligible")
    without = tuple(name for name in FIELDS if name != "Suspended")
    assert jobs_of(slurm(text(fields=without), unit="cpu"))["32"]["duration"] == 70  # by Elapsed
    nodes = slurm(text(), unit="node")
    assert jobs_of(nodes)["20"]["gpus"] == 2
    assert "nodes were in use at once" in said(nodes)


def test_partitions_and_later_eligibility_are_named(slurm: Read) -> None:
    fields = (*FIELDS[:-1], "Partition", "JobName")
    rows = [row | {"Partition": "high" if row["JobID"] in ("1", "2") else "gpu"} for row in ROWS]
    assert "every job may use all nodes: 7 in gpu, 2 in high" in said(slurm(text(rows, fields)))
    late = "2 jobs could not start when submitted (dependencies, holds, begin times, limits), but up to 38 s later"
    assert late in said(slurm(text()))
    assert "partitions" not in said(slurm(text()))
    assert "could not start" not in said(slurm(text(), release="eligible"))
    many = [row | {"Partition": f"p{k}"} for k, row in enumerate(ROWS)]
    assert ", and 1 more partitions" in said(slurm(text(many, fields)))


@pytest.mark.parametrize("form", [text, document])
def test_jobs_that_wait_have_their_limits_as_durations(tmp_path: Path, form: Any) -> None:
    file = tmp_path / "export"
    file.write_text(form([*ROWS, waiting(43, 43, reason="JobHeldUser")]))
    read = DIALECTS.get("slurm-pending").read(file, cluster=SMALL)
    jobs = {name: (job["arrival"], job["gpus"], job["duration"]) for name, job in jobs_of(read).items()}
    assert list(jobs.values()) == [(0, 1, 3600), (0, 1, 3600)]
    assert [name.partition("_")[0] for name in jobs] == ["9", "42"]
    left_out = read.recipe["parameters"]["left_out"]
    assert (left_out["held"], left_out["no time limit"]) == (1, 1)
    file.write_text(text(ROWS[:2]))
    with pytest.raises(InputError, match=r"no job; left out: 1 .not waiting at the end of the export"):
        DIALECTS.get("slurm-pending").read(file, cluster=SMALL)


@pytest.mark.parametrize(
    "form", ["later", "22.05", "comma", "no billing", "tab", "two signs", "trailing", "quoted", "moved", "twice"]
)
def test_the_same_jobs_in_every_form(slurm: Read, right: TraceRead, form: str) -> None:
    header = dict(zip(FIELDS, FIELDS, strict=True))
    forms = {
        "later": lambda: document(),
        "22.05": lambda: document(plain=True),
        "comma": lambda: text(delimiter=","),
        "no billing": lambda: text(delimiter=",").replace("billing=4,", ""),
        "tab": lambda: text(delimiter="\t"),
        "two signs": lambda: text(delimiter="^^"),
        "trailing": lambda: text().replace("one\ntwo", "one").replace("\n", "|\n"),
        "quoted": lambda: "".join(f'"{line}"\n' for line in ('";"'.join(row.values()) for row in (header, *ROWS))),
        "moved": lambda: text(
            fields=("JobIDRaw", "JobName", *FIELDS[1:-1], "Flags"), rows=[row | {"Flags": "A,B"} for row in ROWS]
        ),
        "twice": lambda: text() + text(ROWS[:9]),  # two exports, one behind the other
    }
    found = slurm(forms[form]())
    assert found.instance().digest == right.instance().digest
    same = [name for name in right.table.columns if name != "user"]
    assert found.table.select(same).equals(right.table.select(same))
    assert found.recipe["parameters"]["left_out"] == LEFT_OUT


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d.%m.%y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S%z"],
)
def test_forms_of_time(slurm: Read, right: TraceRead, form: str) -> None:
    def shown(value: str) -> str:
        return datetime.fromtimestamp(int(value), UTC).strftime(form) if value.startswith("18000") else value

    rows = [{name: shown(value) for name, value in row.items()} for row in ROWS]
    assert slurm(text(rows)).table.equals(right.table)


def test_durations_and_limits_as_clocks(slurm: Read, right: TraceRead) -> None:
    limits = {"60": "01:00:00", "1": "00:01:00", "2": "00:02:00", "525600": "365-00:00:00"}
    rows = []
    for row in ROWS:
        minutes, seconds = divmod(int(row["ElapsedRaw"]), 60)
        limit = limits.get(row["TimelimitRaw"], row["TimelimitRaw"])
        rows.append(row | {"Elapsed": f"0-00:{minutes:02d}:{seconds:02d}", "Timelimit": limit})
    fields = [name.removesuffix("Raw") if name != "JobIDRaw" else name for name in FIELDS]
    assert slurm(text(rows, fields=fields)).table.equals(right.table)


def test_types_limit_a_job_only_if_the_cluster_has_them(slurm: Read) -> None:
    typed = slurm(text(), cluster=Cluster.parse("4x4:A100+1x4:V100"))
    types = {name: job["gpu_types"] for name, job in jobs_of(typed).items()}
    assert types == dict.fromkeys(types) | {"1": ["a100"], "9_0": ["v100"], "9_1": ["v100"], "20": ["a100"]}
    assert "Elapsed is not End - Start - Suspended in 1 run: job 33 (90 s, not 100 s)" in said(typed)
    assert "1 job ran on GPUs of several types" in said(typed)
    typed.instance()
    assert "gpu_types" not in slurm(text(), cluster=Cluster.parse("4x8")).table.columns


def test_what_is_missing_without_duplicates_and_without_steps(slurm: Read) -> None:
    last = [row for row in ROWS if row["State"] not in ("REQUEUED", "RESIZING") and "." not in row["JobID"]]
    read = slurm(text(last))
    assert "1 job was requeued and the export lacks -D" in said(read)
    assert "no steps in the export (-X)" in said(read)
    job = jobs_of(read)["30"]
    assert (job["ran"], job["arrival"]) == ([[300, 350]], 150)
    counted = slurm(
        text([row | {"Restarts": "2"} for row in ROWS if row["JobIDRaw"] == "30"], fields=(*FIELDS, "Restarts"))
    )
    assert "1 job was requeued" in said(counted)


def test_a_clock_that_goes_back(slurm: Read) -> None:
    hour = 3600
    rows = [
        line(1, 1, "COMPLETED", 0, 10, 50 - hour, gpus="gres/gpu=1,", elapsed=40),
        line(2, 2, "COMPLETED", 5, 50 - hour, 60 - hour, gpus="gres/gpu=1,"),
    ]
    read = slurm(text(rows))
    assert read.table["ran"].to_list() == [[[10, 50]], [[50, 60]]]
    assert "the clock went back during 1 run" in said(read)
    with pytest.raises(InputError, match=r"row 2, End = '1799996450'.*-T, --truncate.*sacct without -T"):
        slurm(text([rows[0] | {"ElapsedRaw": "0"}, rows[1]]))
    with pytest.raises(InputError, match=r"row 28, End.*-T"):
        slurm(text([*ROWS, waiting(50, 50, start=90, end=90)]))
    without = [name for name in FIELDS if name != "ElapsedRaw"]
    with pytest.raises(RowErrors, match=r"before Start.*TZ=UTC"):
        slurm(text(rows, fields=without))


ONE = {"gpus": "gres/gpu=2,"}


def test_a_limit_counts_for_each_run_and_not_while_suspended(slurm: Read) -> None:
    rows = [
        line(1, 1, "PREEMPTED", 0, 0, 3000, **ONE),
        line(1, 1, "COMPLETED", 3000, 4000, 7000, eligible=3121, **ONE),
        line(2, 2, "COMPLETED", 0, 0, 5000, suspended=2000, **ONE),
        line(3, 3, "RESIZING", 0, 0, 3000, gpus="gres/gpu=4,", limit=120),
        line(3, 3, "COMPLETED", 3000, 3000, 6000, limit=120, **ONE),
    ]
    assert "walltime" not in said(slurm(text(rows)))
    assert slurm(text(rows), walltimes="cut").table.equals(slurm(text(rows)).table)
    limits = {"1": 3540, "2": 2940, "3": 4980}
    short = [row | {"TimelimitRaw": str(limits[row["JobID"]] // 60)} for row in rows]
    short.append(line(1, 1, "TIMEOUT", 8000, 8000, 11650, eligible=8121, limit=59, **ONE))
    cut = slurm(text(short), walltimes="cut")
    assert "3 of 3 jobs ran longer than their walltime, by up to 1,020 s: they are cut there" in said(cut)
    jobs = jobs_of(cut)
    assert jobs["1"]["ran"] == [[0, 3000], [4000, 7000], [8000, 11540]]
    assert jobs["2"]["ran"] == [[0, 4940]]
    assert jobs["3"]["ran"] == [[0, 3000], [3000, 4980, 2]]  # a change of size begins no run
    assert [jobs[name]["duration"] for name in "123"] == [9540, 4940, 3000 + 1980 / 2]
    cpus = jobs_of(slurm(text(short), walltimes="cut", unit="cpu"))  # free while the job is suspended
    assert (cpus["2"]["ran"], cpus["2"]["duration"]) == ([[0, 4940]], 2940)


@pytest.mark.parametrize(
    ("first", "second", "jobs"),
    [
        ({"user": "ada"}, {"user": "bob"}, ["1", "1#2"]),
        ({"state": "REQUEUED", "user": "ada"}, {"user": "bob"}, ["1", "1#2"]),
        ({"state": "TIMEOUT"}, {}, ["1", "1#2"]),
        ({"state": "FAILED"}, {"eligible": 10121}, ["1"]),  # requeued
        ({"state": "NODE_FAIL"}, {}, ["1"]),
        ({"state": "COMPLETED"}, {"submit": 0, "start": 5}, ["1"]),  # the row is in the file twice
    ],
)
def test_an_id_that_is_used_again_is_another_job(
    slurm: Read, first: dict[str, Any], second: dict[str, Any], jobs: list[str]
) -> None:
    def row(submit: int, start: int, state: str = "COMPLETED", **more: Any) -> dict[str, Any]:
        return line(1, 1, state, submit, start, start + 60, **ONE, **more)

    read = slurm(text([row(0, 5, **first), row(**{"submit": 10000, "start": 20000, **second})]))
    assert list(jobs_of(read)) == jobs
    assert ("used the id of an ended job again for 1 jobs, which are named 1#2" in said(read)) == (len(jobs) == 2)


def test_restarts_join_the_runs_of_a_job_that_ended(slurm: Read) -> None:
    rows = [line(1, 1, "COMPLETED", t, t, t + 60, **ONE) | {"Restarts": str(t // 1000)} for t in (0, 1000)]
    assert list(jobs_of(slurm(text(rows, fields=(*FIELDS, "Restarts"))))) == ["1"]


@pytest.mark.parametrize(
    ("change", "field"),
    [({"Submit": "yesterday"}, "Submit"), ({"Submit": "Unknown"}, "Submit"), ({"End": "x"}, "End"), ({"State": ""}, "State"),
     ({"End": "Unknown", "ElapsedRaw": "0"}, "End"), ({"AllocTRES": "gres/gpu=x"}, "AllocTRES"), ({"JobID": "a"}, "JobID"),
     ({"TimelimitRaw": "long"}, "TimelimitRaw"), ({"ElapsedRaw": "-1"}, "ElapsedRaw")],
)  # fmt: skip
def test_a_bad_row_is_named_or_skipped_with_its_job(
    slurm: Read, right: TraceRead, change: dict[str, str], field: str
) -> None:
    rows = [row | change if row["State"] == "REQUEUED" else row for row in ROWS]
    with pytest.raises(RowErrors) as caught:
        slurm(text(rows))
    (problem,) = caught.value.problems
    assert (problem.row, problem.field) == (11, field)
    read = slurm(text(rows), skip_bad=True)
    lost = {"30"} if field != "JobID" else set()
    assert set(jobs_of(read)) == set(jobs_of(right)) - lost
    assert read.skipped_rows == 1


def test_rows_that_do_not_fit(slurm: Read, right: TraceRead) -> None:
    cut = text().replace(f"|{T0 + 140}|100|0|1|", "|")  # a row that lost fields
    with pytest.raises(RowErrors, match=r"row 7, columns.*17 fields"):
        slurm(cut)
    assert set(jobs_of(slurm(cut, skip_bad=True))) == set(jobs_of(right)) - {"9_1"}
    unclear = ("JobName", "Comment", *FIELDS[:-1])
    rows = [row | {"Comment": "", "JobName": "a|1"} for row in ROWS[:2]]
    assert set(jobs_of(slurm(text(rows, fields=unclear)))) == {"1"}  # two readings, which differ in the names only


def test_what_is_no_such_export(slurm: Read) -> None:
    for content, match in (
        ("JobID|State\n1|COMPLETED\n", r"lacks Submit, Start, End, AllocTRES.*sacct -a -D -P"),
        ("1|2\n", "no header"),
        ("a,b\n", "no export of sacct"),
        ("JobID  JobName\n-----  -----\n", "fixed width"),
        ("{}", "no document of sacct"),
        ('{"jobs": [{"job_id": 1}]}', "not of squeue"),
        ('{"jobs": []}', "no rows"),
        (
            text([ROWS[0] | {"Cluster": "a"}, ROWS[2] | {"Cluster": "b"}], fields=(*FIELDS, "Cluster")),
            "several clusters",
        ),
        (text([row | {"AllocTRES": tres(), "ReqTRES": tres()} for row in ROWS]), "AccountingStorageTRES"),
    ):
        with pytest.raises(InputError, match=match) as caught:
            slurm(content)
        assert "\n" not in str(caught.value)


def test_a_file_without_a_dialect_is_recognised(tmp_path: Path) -> None:
    later = json.dumps({"jobs": [{"account": "lab", "allocation_nodes": 1}]}, indent=1)
    for content in (text(), "JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode\n", later):
        path = tmp_path / "export.txt"
        path.write_text(content)
        assert source_to_type(path) == f"slurm:{path}"


def test_a_log_runs_without_naming_a_cluster(tmp_path: Path, command: Any) -> None:
    (tmp_path / "sacct.txt").write_text(text())
    outcome = command("run", f"slurm:{tmp_path / 'sacct.txt'}", "-p", "fifo")
    assert outcome.code == 0
    assert "the cluster is guessed" in outcome.out + outcome.err


NODES = (
    "NodeName=n-1 Arch=x86_64\n   Gres=gpu:a100:4(S:0-1),shard:8\n   State=IDLE\n\n"
    "NodeName=n-2 Arch=x86_64\n   Gres=gpu:a100:4\n   State=DOWN\n\nNodeName=n-3 Arch=x86_64\n   Gres=(null)\n\n"
    "NodeName=n-4 Gres=gpu:2,gpu:v100:no_consume:1\nNodeName=m[01-03] Gres=gpu\n"
)
SINFO = (
    "NODELIST|PARTITION|GRES\n"
    + "".join(f"n-{k}|{p}|gpu:h100:8\n" for k in (1, 2) for p in ("a*", "b"))
    + "c|a|(null)\n"
)


def test_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    for content, spec in (
        (NODES, "2x4:a100+1x2+1x1:v100+3x1"),
        (SINFO, "2x8:h100"),
        (SINFO.replace("|", " "), "2x8:h100"),
    ):
        path.write_text(content)
        assert cluster_of(f"slurm-nodes:{path}") == Cluster.parse(spec)
    for content, match in (
        ("NODELIST NODES PARTITION STATE\nn-1 1 a idle\n", "sinfo -N -o '%N|%G'"),
        ("NodeName=n-3 Gres=(null)\n", "no node has a GPU"),
        ("NodeName=n[1-9000] Gres=gpu:9000\n", "too large"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=match):
            cluster_of(f"slurm-nodes:{path}")


def test_lists() -> None:
    assert nodes_of("a-[1,03-04]x[1-2],b") == ("a-1x1", "a-1x2", "a-03x1", "a-03x2", "a-04x1", "a-04x2", "b")
    assert nodes_of("a[1-999999]") == nodes_of("a[1-]") == ()
    assert elements_of_mask("0x5400") == "10,12,14"
    assert [elements_of(f"9_[{each}]") for each in ("1,3,7-9%2", "0-6:2", "5", "1-3,...")] == [5, 4, 1, 3]
    assert elements_of("9_4") == 1


def spoil(count: int, seed: int, folder: Path) -> set[str]:
    """Read that number of spoiled files of each kind; each must be read, or refused in clear lines."""

    def read(path: Path) -> int:
        return load_counted(f"slurm:{path}").instance.n

    def read_nodes(path: Path) -> int:
        return cluster_of(f"slurm-nodes:{path}").gpus

    kinds = [
        ("text", ".txt", text(), read),
        ("comma", ".csv", text(delimiter=","), read),
        ("nodes", ".txt", NODES, read_nodes),
        ("pending", ".txt", text(), lambda path: DIALECTS.get("slurm-pending").read(path, cluster=SMALL)),
    ]
    kinds += [(f"document {plain}", ".json", document(plain=plain), read) for plain in (False, True)]
    outcomes = set()
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        kind, suffix, content, reader = kinds[k % len(kinds)]
        jobs = read_spoiled(Base(kind, suffix, b"", reader), spoiled(rng, content.encode(), suffix), folder)
        outcomes.add(f"{kind} {'refused' if jobs is None else 'read'}")
    return outcomes


def test_spoiled_exports_are_read_or_refused(tmp_path: Path) -> None:
    assert len(spoil(60, 1, tmp_path)) >= 8


@pytest.mark.study
def test_many_spoiled_exports_are_read_or_refused(tmp_path: Path) -> None:
    assert len(spoil(10_000, 2, tmp_path)) == 12
