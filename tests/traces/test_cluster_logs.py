"""Logs of GPU clusters: every right reading is reproduced, odd rows are counted by reason, spoiled files are refused."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzed_files import Base
from right_readings import assert_read_rightly, right_reading
from test_fuzzed_files import read_all

import optsched as osd
from optsched.errors import InputError, NotInstalledError, RowErrors
from optsched.io.cluster_files import cluster_of
from optsched.io.sources import LoadRequest, load_counted
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.io.traces.kubernetes import OddObject, quantity
from optsched.problem.cluster import Cluster
from traces.cluster_log_samples import KUEUE, PAI, PHILLY, SUFFIXES, TEXTS, VOLCANO, attempt, job, workload, write_pai

WIDE = Cluster.parse("1x1000")
NO_START = ("spot", "kai", "volcano")  # nothing says when a job ran


def left_out(read: TraceRead) -> Counter[str]:
    return Counter(read.recipe["parameters"].get("left_out", {}))


def said(read: TraceRead) -> str:
    return "; ".join(read.recipe["parameters"].get("said", []))


# --- right readings ------------------------------------------------------------------------------------------------------

READINGS = {
    "philly": "philly/cluster_job_log",
    "helios": "helios/cluster_log.csv",
    "acme": "acme/trace_kalos.csv",
    "acme:seren": "acme/trace_seren.csv",
    "pai": "pai",
    "openb": "openb/openb_pod_list_gpuspec33.csv",
    "dlrm": "dlrm2025/disaggregated_DLRM_trace.csv",
    "spot": "spot2026/job_info_df.csv",
    "kueue": "kueue/workloads.json",
    "volcano": "volcano/jobs.yaml",
    "kai": "kai/pods.yaml",
}
SHARE = "a share of a GPU"


def whole(reading: dict[str, Any]) -> dict[str, Any]:
    """The reading for gangs of whole GPUs: jobs with a share of a GPU are left out by that reason."""
    jobs, reasons = [], dict(reading["left_out"])
    for right in reading["jobs"]:
        gpus = right["gpus_per_cent"] / 100 if "gpus_per_cent" in right else right["gpus"]
        if gpus == int(gpus):
            jobs.append(right | {"gpus": int(gpus)})
        else:
            reasons[right["id"]] = SHARE
    return reading | {"jobs": jobs, "left_out": reasons}


def _plain(reason: str) -> str:
    # a reading says more of some objects than their reason can: which parts of a GPU, or what must start
    return re.split(r"[:,] | \(", reason)[0]


@pytest.mark.parametrize("name", READINGS)
def test_the_right_readings_are_reproduced(name: str, data_dir: Path) -> None:
    path = data_dir / "formats" / READINGS[name]
    dialect = name.partition(":")[0]
    reading = right_reading(path / "pai" if path.is_dir() else path)
    if dialect == "volcano":  # "minAvailable is the gang, replicas the wish"
        reading["jobs"] = [right | {"gpus": right["gpus_least"]} for right in reading["jobs"]]
    reading = whole(reading)
    read = DIALECTS.get(dialect).read(path, cluster=WIDE if dialect == "spot" else None)
    assert_read_rightly(read, reading)
    assert Counter(map(_plain, left_out(read).elements())) == Counter(map(_plain, reading["left_out"].values()))
    if dialect not in NO_START:
        assert read.instance().n == len(reading["jobs"])
    pieces = {str(right["id"]): right["gpus_of_pieces"] for right in reading["jobs"] if "gpus_of_pieces" in right}
    for row in read.table.iter_rows(named=True):
        if row["id"] in pieces:
            assert [(*piece, row["gpus"])[2] for piece in row["ran"]] == pieces[row["id"]]


def test_published_rows(data_dir: Path) -> None:
    """The rows that the publishers show in their READMEs are read."""
    folder = data_dir / "formats" / "published"
    kalos = DIALECTS.get("acme").read(folder / "acme_trace_kalos.csv")
    assert kalos.table["duration"].to_list() == [8, 70]  # 18 and 82 are stated
    assert "2 of 2 rows state another duration than end - start, the first in row 2: 18 s, not 8 s" in said(kalos)
    seren = DIALECTS.get("acme").read(folder / "acme_trace_seren.csv")
    assert (seren.table["duration"].to_list(), seren.table["arrival"].to_list()) == ([117, 2693], [0, 336])
    helios = DIALECTS.get("helios").read(folder / "helios_cluster_log.csv")
    assert helios.table["duration"].to_list() == [36848, 249, 675233]
    assert "state another" not in said(helios) + said(seren)
    philly = DIALECTS.get("philly").read(folder / "philly_cluster_job_log.json")
    assert philly.table.select("gpus", "duration", "user", "group", "status").rows() == [
        (8, 74 + 193182, "u1", "vc1", "Pass")
    ]


def test_the_whole_openb_log_on_its_own_nodes(data_dir: Path) -> None:
    folder = data_dir / "openb"
    nodes = f"openb-nodes:{folder / 'openb_node_list_gpu_node.csv'}"
    read = load_counted(f"openb:{folder / 'openb_pod_list_default.csv'}", LoadRequest(cluster=nodes))
    assert (read.skipped_rows, read.instance.cluster.gpus) == (0, 6212)
    reasons = read.instance.recipe["parameters"]["left_out"]
    assert read.instance.n + sum(reasons.values()) == 8152


# --- small files of every form -------------------------------------------------------------------------------------------

RIGHT: dict[str, tuple[list[tuple[Any, ...]], dict[str, int]]] = {  # (id, arrival, gpus, duration), what is left out
    "helios": ([("7", 60, 8, 600), ("10", 0, 4, 30)], {"no GPUs": 1, "not ended": 1}),
    "acme": ([("a", 0, 64, 8), ("c", 2, 8, 60)], {"no start time": 1}),
    "openb": ([("p0", 100, 2, 250), ("p4", 50, 8, 12902900)], {"no GPUs": 1, "never scheduled": 1, SHARE: 1}),
    "dlrm": (
        [("a", 50.0000002, 1, 60), ("b", 0, 2, 60.5)],
        {
            "no GPUs": 1,
            "existed before the trace": 1,
            "existed after the trace": 1,
            "existed before the trace and after it": 1,
        },
    ),
    "spot": ([("239255", 500, 8, 59), ("239256", 599, 1, 15897000)], {}),
    "philly": (
        [("late", 10, 16, 150), ("early", 0, 2, 20)],
        {"no attempt": 1, "still running": 1, "no start time": 1, "no GPUs": 1, "run time 0": 1},
    ),
    "pai": (
        [("j0", 0, 2, 290)],
        {"no GPUs": 1, "never started": 1, "still running": 1, SHARE: 1, "GPUs that are not a whole number": 1},
    ),
    "kueue": (
        [("team/spec", 0, 16, 3600), ("team/total", 0, 12, 3600)],
        {"still waiting": 1, "still running": 1, "deactivated": 1, "no GPUs": 1},
    ),
    "kai": ([("whole", 0, 4, 120)], {SHARE: 1, "a part of a GPU in MiB": 1, "not ended": 1}),
    "volcano": ([("gang", 0, 4)], {"shared GPUs (volcano.sh/vgpu-number)": 1}),
}
SAID = {
    "acme": "1 of 2 rows state another duration than end - start, the first in row 2: 18 s, not 8 s",
    "openb": "1 of the pods ran on when the trace ended",
    "dlrm": "1 of the instances limit how many of their application",
    "spot": "1 of the jobs ran on when the trace ended",
    "philly": "1 of the jobs ran attempts on other numbers of GPUs; an instance",
    "helios": "have no zone",
    "pai": "1 of the jobs have instances with a share of a GPU each",
    "kueue": "1 of the workloads also ran before",
    "volcano": "1 of the jobs ask for more, first in row 1: 4 to 8 GPUs",
}
Files = Callable[[str], Path]


@pytest.fixture
def sample(tmp_path: Path) -> Files:
    """The sample of a dialect as a file."""

    def write(dialect: str) -> Path:
        if dialect == "pai":
            return write_pai(tmp_path / "pai")
        path = tmp_path / f"log{SUFFIXES.get(dialect, '.csv')}"
        path.write_text(TEXTS[dialect])
        return path

    return write


@pytest.mark.parametrize("dialect", RIGHT)
def test_a_small_log(dialect: str, sample: Files) -> None:
    read = DIALECTS.get(dialect).read(sample(dialect), cluster=WIDE if dialect == "spot" else None)
    jobs, reasons = RIGHT[dialect]
    columns = ["id", "arrival", "gpus", "duration"][: len(jobs[0])]
    assert read.table.select(columns).rows() == jobs
    assert left_out(read) == reasons
    assert SAID.get(dialect, "") in said(read)
    if dialect not in ("spot", "volcano"):
        assert "the cluster is guessed" in said(read)
        ran = [sum(piece[1] - piece[0] for piece in pieces) for pieces in read.table["ran"].to_list()]
        assert ran == read.table["duration"].to_list()
        assert read.instance().n == len(jobs)


@pytest.mark.parametrize("dialect", [name for name in RIGHT if name not in ("pai", "volcano")])
def test_a_file_without_its_dialect_says_what_to_type(dialect: str, sample: Files) -> None:
    log = sample(dialect)
    log.write_text(log.read_text().replace('"kind": "List"', '"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "List"'))
    with pytest.raises(InputError) as caught:
        osd.load(log)
    assert f"{dialect}:{log}" in str(caught.value)
    assert "--cluster" not in str(caught.value)


def test_attempts_state_their_own_gpus_and_begin_after_the_submission(sample: Files) -> None:
    read = DIALECTS.get("philly").read(sample("philly"))
    assert read.table["ran"].to_list() == [[[60, 120], [600, 690, 1]], [[10, 30]]]
    assert read.table["status"].to_list() == ["Killed", "Pass"]
    assert read.cluster == Cluster.parse("1x16")


def test_attempts_that_cannot_be_are_bad_rows(tmp_path: Path) -> None:
    log = [*PHILLY, job("back", attempt("00:02:00", "00:01:00", 1)), job("odd") | {"attempts": {}}, 7]
    path = tmp_path / "log"
    path.write_text(json.dumps(log))
    with pytest.raises(RowErrors) as caught:
        DIALECTS.get("philly").read(path)
    assert [(bad.row, bad.field) for bad in caught.value.problems] == [(8, "attempts"), (9, "attempts"), (10, "job")]
    assert DIALECTS.get("philly").read(path, skip_bad=True).table.height == 2


def test_attempts_without_gpus_and_attempts_that_overlap(tmp_path: Path) -> None:
    log = [
        job("later", attempt("01:00:00", "02:00:00", 0), attempt("02:30:00", "03:30:00", 1)),
        job("twice", attempt("01:00:00", "02:00:00", 2), attempt("01:30:00", "02:30:00", 1)),
    ]
    path = tmp_path / "log"
    path.write_text(json.dumps(log))
    read = DIALECTS.get("philly").read(path)
    assert read.table.select("id", "gpus", "duration").rows() == [("later", 1, 7200), ("twice", 2, 7200)]
    assert "1 of the jobs have attempts that overlap: the duration is the sum" in said(read)


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_task_on_gpus_without_a_number_of_instances_is_left_out(tmp_path: Path, skip_bad: bool) -> None:
    tasks = (PAI["task"] + "j5,more,,Terminated,1.0,160.0,600.0,29.3,100.0,T4\n").encode()
    runs = (PAI["instance"] + "j5,more,m,n,i5,Terminated,151.0,160.0,m0\n").encode()
    read = DIALECTS.get("pai").read(write_pai(tmp_path / "pai", task=tasks, instance=runs), skip_bad=skip_bad)
    assert read.table["id"].to_list() == ["j0"]
    assert left_out(read)["no number of instances"] == 1


@pytest.mark.parametrize(
    ("first", "gpus"),
    [
        ([("Always", 1)], 6),  # a sidecar runs as long as the containers
        ([(None, 1)], 4),
        ([(None, 5), ("Always", 1)], 10),
        ([("Always", 2), (None, 3), ("Always", 1)], 10),
    ],
)
def test_init_containers_and_sidecars(tmp_path: Path, first: list[tuple[str | None, int]], gpus: int) -> None:
    item = workload("a", ("Admitted", "True", "01:00:10"), ("Finished", "True", "02:00:10"), gpus="2")
    item["spec"]["podSets"][0]["template"]["spec"]["initContainers"] = [
        {"restartPolicy": policy, "resources": {"limits": {"nvidia.com/gpu": count}}} for policy, count in first
    ]
    path = tmp_path / "workloads.json"
    path.write_text(json.dumps({"kind": "List", "items": [item]}))
    assert DIALECTS.get("kueue").read(path).table["gpus"].to_list() == [gpus]


def test_tables_of_tasks_and_instances_with_bad_rows(tmp_path: Path) -> None:
    folder = write_pai(tmp_path / "pai", task=PAI["task"].replace("j0,ps,1.0", "j0,ps,x").encode())
    with pytest.raises(RowErrors, match=r"pai_task_table.csv, row 1, inst_num = 'x'"):
        DIALECTS.get("pai").read(folder)
    with pytest.raises(InputError, match="no job") as caught:  # the only one that is whole
        DIALECTS.get("pai").read(folder, skip_bad=True)
    assert "share" in str(caught.value)
    with pytest.raises(InputError, match=r"not a folder .expected: the folder with pai_job_table.csv"):
        DIALECTS.get("pai").read(folder / "pai_job_table.csv")


def test_cpus_and_nodes_as_the_unit(sample: Files) -> None:
    log = sample("helios")
    assert DIALECTS.get("helios").read(log, unit="cpu").table["gpus"].to_list() == [32, 4, 16]
    assert DIALECTS.get("helios").read(log, unit="node").table["gpus"].to_list() == [1, 1, 2]


def test_types_of_gpus_count_where_the_cluster_names_them(sample: Files) -> None:
    log = sample("openb")
    typed = DIALECTS.get("openb").read(log, cluster=Cluster.parse("1x8:G2+1x2:t4"))
    assert typed.table["gpu_types"].to_list() == [["V100M16", "T4"], None]
    assert typed.instance().n == 2
    with pytest.raises(RowErrors, match=r"row 2, num_gpu = '2': the gang is larger .* with its types"):
        DIALECTS.get("openb").read(log, cluster=Cluster.parse("1x8:G2+1x1:T4"))
    plain = DIALECTS.get("openb").read(log, cluster=Cluster.parse("1x8"))
    assert "gpu_types" not in plain.table.columns
    assert "types that 1 of the jobs name are dropped" in said(plain)


def test_pods_without_times_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "openb_pod_list_multigpu50.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,16000,49152,1,1000\n")
    with pytest.raises(InputError, match="a set of pods to pack, without times: it is not a log"):
        DIALECTS.get("openb").read(path)


def test_lists_of_nodes(tmp_path: Path) -> None:
    texts = {
        "philly-machines": "machineId, number of GPUs, single GPU mem\nm1,8,24GB\nm2,2,12GB\nm3,8,24GB\n",
        "openb-nodes": "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,1,1,8,G2\nn2,1,1,8,G2\nn3,1,1,2,T4\n",
        "spot-nodes": "gpu_model,gpu_capacity_num,cpu_num,node_name\nH800,8,192,0\nA10,1,128,1\nH800,4,192,2\n",
    }
    specs = ["2x8+1x2", "2x8:G2+1x2:T4", "1x8:H800+1x1:A10+1x4:H800"]
    for (name, text), spec in zip(texts.items(), specs, strict=True):
        (tmp_path / "nodes.csv").write_text(text)
        assert cluster_of(f"{name}:{tmp_path / 'nodes.csv'}").spec == spec
        (tmp_path / "nodes.csv").write_text(re.sub(r",8,", ",-8,", text))
        with pytest.raises(RowErrors, match="= '-8'"):
            cluster_of(f"{name}:{tmp_path / 'nodes.csv'}")
    philly = tmp_path / "cluster_machine_list"
    philly.write_text(texts["philly-machines"])
    assert [group.gpu_memory for group in cluster_of(f"philly-machines:{philly}").nodes] == [24e9, 12e9]


def test_the_nodes_of_the_spot_trace_are_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "job_info_df.csv").write_text(TEXTS["spot"])
    with pytest.raises(InputError, match="needs a cluster"):
        osd.load(f"spot:{tmp_path}")
    nodes = "gpu_model,gpu_capacity_num,cpu_num,node_name\nH800,8,192,0\nA10,1,128,1\n"
    (tmp_path / "node_info_df.csv").write_text(nodes)
    instance = osd.load(f"spot:{tmp_path}")
    assert (instance.cluster.spec, instance.job(0).gpu_types) == ("1x8:H800+1x1:A10", ("H800",))
    assert osd.load(f"spot:{tmp_path}", cluster="2x8").cluster.spec == "2x8"
    with pytest.raises(
        RowErrors, match=r"row 2, gpu_request x worker_num = '2 x 4': the gang is larger than the cluster"
    ):
        osd.load(f"spot:{tmp_path}", cluster="1x4")


# --- objects of Kubernetes -----------------------------------------------------------------------------------------------


def test_quantities() -> None:
    numbers = [8, "8", "1500m", "200Mi", "1e3", "2k", 0.5, "1Ki"]
    assert [float(quantity(number, "q")) for number in numbers] == [8, 8, 1.5, 200 * 2**20, 1000, 2000, 0.5, 1024]
    for odd in (None, "", "-1", "8 GPUs", "1e999", float("nan"), [], "9" * 400):
        with pytest.raises(OddObject):
            quantity(odd, "q")


@pytest.mark.parametrize("dialect", ["kai", "volcano"])
def test_what_users_ask_for_has_no_durations(dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "asked.yaml"
    path.write_text(re.sub(r"(?m)^status:\n(  .*\n)*", "", TEXTS[dialect]))
    assert DIALECTS.get(dialect).read(path).table.height > 0
    with pytest.raises(InputError, match=r"no job of asked says how long it runs .*kueue:FILE, or csv:FILE"):
        osd.load(f"{dialect}:{path}", cluster="1x8")


def test_the_fewest_gpus_of_a_volcano_job(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    gangs = []
    for spec in ("minAvailable: 5", "minAvailable: 2", "queue: q"):  # all, the master and a worker, absent
        path.write_text(VOLCANO.replace("minAvailable: 3", spec))
        gangs.append(DIALECTS.get("volcano").read(path).table["gpus"].item())
    path.write_text(VOLCANO.replace("replicas: 4", "replicas: 4, minAvailable: 3"))
    gangs.append(DIALECTS.get("volcano").read(path).table["gpus"].item())
    assert gangs == [8, 2, 8, 6]


def test_objects_that_are_odd_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    odd = [workload("odd", gpus="many"), {**workload("flat"), "status": 7}, {"kind": "Workload", "metadata": []}]
    path.write_text(json.dumps({"kind": "List", "items": [*KUEUE["items"], *odd]}))
    with pytest.raises(RowErrors) as caught:
        DIALECTS.get("kueue").read(path)
    assert [(bad.row, bad.field) for bad in caught.value.problems] == [(7, "resources"), (8, "status"), (9, "metadata")]
    read = DIALECTS.get("kueue").read(path, skip_bad=True)
    assert (read.table.height, read.skipped_rows) == (2, 3)


def test_yaml_that_is_longer_than_it_looks(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("spec: &a {x: 1}\nothers: [*a, *a]\n")
    with pytest.raises(InputError, match="YAML with aliases"):
        DIALECTS.get("volcano").read(path)
    path.write_text("kind: [" * 3000)
    with pytest.raises(InputError, match="neither YAML nor JSON"):
        DIALECTS.get("volcano").read(path)


def test_yaml_is_an_extra_and_json_needs_none(sample: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    log, find = sample("kai"), importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "yaml" else find(name))
    with pytest.raises(NotInstalledError, match=r"optsched\[yaml\]"):
        DIALECTS.get("kai").read(log)
    assert DIALECTS.get("kueue").read(sample("kueue")).table.height == 2


# --- spoiled files -------------------------------------------------------------------------------------------------------


def spoiled_bases(folder: Path) -> list[Base]:
    """A file of every dialect, and each table of PAI."""

    def reader(dialect: str) -> Callable[[Path], int]:
        def read(path: Path) -> int:
            return DIALECTS.get(dialect).read(path, cluster=WIDE).table.height

        return read

    def table_of(name: str) -> Callable[[Path], int]:
        def read(path: Path) -> int:
            return reader("pai")(write_pai(folder / "pai", **{name: path.read_bytes()}))

        return read

    found = [Base(name, SUFFIXES.get(name, ".csv"), text.encode(), reader(name)) for name, text in TEXTS.items()]
    found += [Base(f"pai-{name}", ".csv", text.encode(), table_of(name)) for name, text in PAI.items()]
    nodes = b"machineId,number of GPUs,single GPU mem\nm1,8,24GB\nm2,2,12GB\n"
    return [*found, Base("machines", ".csv", nodes, lambda path: cluster_of(f"philly-machines:{path}").gpus)]


KINDS = [*TEXTS, *(f"pai-{name}" for name in PAI), "machines"]


def spoil(kind: str, seed: int, count: int, folder: Path) -> None:
    (base,) = (base for base in spoiled_bases(folder) if base.kind == kind)
    tally = read_all([base], seed, count, folder)
    assert sum(tally.values()) == count


@pytest.mark.parametrize("kind", KINDS)
def test_spoiled_files(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spoil(kind, 1, 40 if kind in TEXTS else 13, tmp_path)  # PAI has three tables
    assert capfd.readouterr().err == ""


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_many_spoiled_files(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spoil(kind, 2, 10_000, tmp_path)
    assert capfd.readouterr().err == ""
