"""Interference through the command line, and ``optsched fit``: where it comes from, what is said once, mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.io.sources import load
from optsched.problem.contention import ETHERNET_10G

# -- Two jobs on one GPU through the command line: where interference comes from, what is said once, every mistake one line.


pytestmark = pytest.mark.release

LM, RESNET = "LM (batch size 5)", "ResNet-50 (batch size 16)"
TWO: dict[str, Any] = {
    "format": "optsched-instance/1",
    "name": "two",
    "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}]},
    "jobs": [
        {"id": "a", "duration": 10, "gpu_memory": 4, "model": "A"},
        {"id": "b", "duration": 10, "gpu_memory": 6, "model": "B"},
    ],
}


@pytest.fixture
def two(written: Callable[..., Path]) -> Path:
    return written(TWO, "two.json")


# --- what it is worth -------------------------------------------------------------------------------------------------


def test_a_ratio_decides_whether_sharing_pays(two: Path, command: Any) -> None:
    for policy, xi, worth in [
        ("sjf-ffs", 1.25, 25),  # both at once: 12.5 each
        ("sjf-bsbf", 1.25, 25),
        ("sjf-ffs", 4, 80),
        ("sjf-bsbf", 4, 30),  # one after the other
        ("fifo", 1.25, 30),  # alone on its GPU
    ]:
        assert command("run", two, "-p", policy, "--interference", xi, "--json").value == worth, (policy, xi)


def test_each_direction_of_a_table_counts(written: Any, two: Path, command: Any) -> None:
    for of_a, worth in (
        (1.5, 15 + 20),  # A ends at 15, by then B has done 5 of its 10 seconds
        (None, 30),  # apart, whatever the other direction says
    ):
        file = written({"kinds": ["A", "B"], "ratios": [[1, of_a], [3, 1]]})
        assert command("run", two, "-p", "sjf-ffs", "--interference", file, "--json").value == worth


def test_an_instance_keeps_its_interference_until_another_is_named(tmp_path: Path, two: Path, command: Any) -> None:
    kept = tmp_path / "kept.parquet"
    assert command("convert", two, "--interference", 1.25, "-o", kept).code == 0
    for more, worth in ((["--interference", 1.5], 30), ([], 25)):
        assert command("run", kept, "-p", "sjf-ffs", "--json", "-o", tmp_path / "out", "--force", *more).value == worth
    schedule = next((tmp_path / "out").glob("schedule-01*"))
    assert command("verify", schedule, "--instance", kept).code == 0
    assert command("verify", schedule, "--instance", two, "--interference", 1.25).code == 0
    refused = command("verify", schedule, "--instance", kept, "--interference", 1.5)
    assert refused.code != 0
    assert "Traceback" not in refused.err


def test_a_gavel_trace_beside_measured_interference(gavel: Any, command: Any) -> None:
    trace = gavel((LM, 7000, 1, 0), (RESNET, 700, 1, 0))
    done = command("run", trace, "--cluster", "1x1:P100", "--interference", "p100", "-p", "sjf-ffs", "--json")
    assert done.err == ""
    speeds = load(trace, cluster="1x1:P100").throughputs
    lm, resnet = (float(speeds.get(name, "P100", 1).together) for name in (LM, RESNET))
    seconds = {LM: 7000 / lm, RESNET: 700 / resnet}
    # both start at 0; who ends first at its slow pace, and what the other has left then
    ends = {LM: seconds[LM] * 3.37, RESNET: seconds[RESNET] * 1.20}
    first, last = sorted(ends, key=ends.__getitem__)
    left = seconds[last] * (1 - ends[first] / ends[last])
    assert done.value == pytest.approx(2 * ends[first] + left)


def test_another_cluster_keeps_the_memory_of_the_gpus(two: Path, written: Any, command: Any) -> None:
    def memory(**options: Any) -> tuple[set[float | None], list[str]]:
        said: list[str] = []
        found = load(two, cluster="2x1", say=said.append, **options)
        return {group.gpu_memory for group in found.cluster.nodes}, said

    assert memory(interference=1.25) == ({10.0}, ["GPUs of 2x1 have the memory of those of the instance, 10 bytes"])
    assert memory() == ({None}, [])  # nobody shares: memory is a matter of who fits where
    tight = {**TWO, "jobs": [{**job, "gpu_memory": 6} for job in TWO["jobs"]], "interference": {"ratio": 1.25}}
    done = command("run", written(tight), "-p", "sjf-ffs", "--cluster", "1x1", "--json")
    assert done.value == 30  # 6 + 6 > 10 bytes
    assert "have the memory of those of the instance" in done.err
    mixed = {**tight, "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}, {"gpus": 1, "gpu_memory": 20}]}}
    assert "those of the instance differ" in command("run", written(mixed), "--cluster", "1x1").mistake


# --- what is said once ------------------------------------------------------------------------------------------------


def test_models_that_nobody_measured_are_named_once(two: Path, command: Any) -> None:
    policies = ("-p", "sjf-ffs", "-p", "sjf-bsbf", "-p", "fifo")
    done = command("run", two, *policies, "--interference", "p100", "--json")
    assert done.err == "optsched: interference: no measurements of A, B: next to other jobs they run 2 x as long\n"
    assert done.value == 40  # at the ratio 2 of pairs that the table does not know


def test_a_report_says_where_its_interference_comes_from(two: Path, command: Any) -> None:
    for xi, told in [
        ("1.25", "interference: a job that shares a GPU with another one runs 1.25 x as long"),
        ("p100", "26 kinds of jobs; 2 for others (stanford-futuredata/gavel (MIT), co-located on one P100)"),
    ]:
        assert told in command("run", two, "-p", "fifo", "--interference", xi).words
    assert "interference" not in command("run", two, "-p", "fifo").shown


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xi", "told"),
    [
        ("0.9", "interference.ratio = 0.9: invalid (expected: a number from 1"),
        ({"kinds": ["A", "B"], "ratios": [[1, 1]]}, "not a square table"),
    ],
)
def test_interference_that_is_not_legal(
    xi: Any, told: str, two: Path, written: Any, tmp_path: Path, command: Any
) -> None:
    option = xi if isinstance(xi, str) else written(xi, "xi.json")
    for arguments in (
        ("run", two, "-p", "fifo", "-o", tmp_path / "out"),
        ("convert", two, "-o", tmp_path / "new.json"),
    ):
        assert told in command(*arguments, "--interference", option).mistake
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "new.json").exists()


def test_a_policy_that_shares_needs_interference(two: Path, tmp_path: Path, command: Any) -> None:
    asked, out = ("run", two, "-p", "sjf-bsbf", "-o", tmp_path / "out"), tmp_path / "out"
    assert "sjf-bsbf shares GPUs, and nothing says what that costs" in command(*asked).mistake
    assert not out.exists()
    out.mkdir()  # a folder that was there before stays
    assert command(*asked).code == 2
    assert list(out.iterdir()) == []


def test_jobs_with_tasks_do_not_take_interference(written: Any, command: Any) -> None:
    document = {
        **TWO,
        "jobs": [{"id": "a", "iterations": 3, "profile": "net", "gpu_memory": 1}],
        "tasks": {"net": {"forward": 1, "backward": 1}},
    }
    line = command("run", written(document), "--interference", 1.5).mistake
    assert "interference = 1.5: jobs with tasks take turns on a GPU" in line


def test_profiles_are_for_jobs_with_batch_sizes(tmp_path: Path, two: Path, gavel: Any, command: Any) -> None:
    asked = ("--cluster", "1x1:P100", "-p", "fifo", "--profiles", tmp_path)
    for source in (two, gavel((LM, 100, 1, 0))):
        assert "profiles" in command("run", source, *asked).mistake


# --- scaling profiles -------------------------------------------------------------------------------------------------


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    (tmp_path / "w.csv").write_text("name,time,application,num_replicas,batch_size\nx-0,5,cifar10,2,256\n")
    (tmp_path / "iterations.csv").write_text("application,batch_size,iterations\ncifar10,128,1000\ncifar10,256,500\n")
    return tmp_path / "w.csv"


def test_a_pollux_trace_runs_at_built_in_profiles(workload: Path, command: Any) -> None:
    run = ("run", f"pollux:{workload}", "--cluster", "1x4", "-p", "fifo")
    assert command(*run, "--json").value > 0
    read = load(f"pollux:{workload}", cluster="1x4", interference=1.5)
    assert read.jobs_at("scalings").size == read.n
    assert read.jobs[0].batch_size == 256
    given = load(f"pollux:{workload}", cluster="1x4", profiles=read.scalings)
    assert given.replace(interference=read.interference).digest == read.digest
    assert "no" in command(*run, "--profiles", workload.parent / "no").mistake


def test_measured_profiles(data_dir: Path, workload: Path) -> None:
    measured = load(f"pollux:{workload}", cluster="1x4", profiles=data_dir / "pollux")
    assert measured.jobs_at("scalings").size == measured.n
    assert measured.scalings["cifar10"].measured is not None


# -- ``optsched fit``: from a table of measurements to a run; every mistake is one line -----------------------------------


TRANSFERS = "bytes,transfers,seconds\n" + "".join(
    f"{size:.0f},{k},{(k * ETHERNET_10G.seconds_per_byte + (k - 1) * ETHERNET_10G.penalty) * size!r}\n"
    for size in (1e6, 1e8)
    for k in (1, 2, 3)
)
PAIRS = "model;beside;throughput\nvgg;;10\nvgg;lstm;8\nlstm;;5\nlstm;vgg;2\nvgg;vgg;5\nlstm;lstm;4\n"
STEPS = (
    "model,gpus,nodes,batch,throughput,seen\nnet,1,1,32,160,x\nnet,1,1,64,177.77777777777778,x\nnet,2,1,64,250,x\n"
    "net,4,1,128,492.3076923076923,x\nnet,4,2,128,320,x\nother,1,1,8,80,x\n"
)
TABLES = {"contention": TRANSFERS, "interference": PAIRS, "scaling": STEPS}


@pytest.fixture
def table(written: Callable[..., Path]) -> Callable[[str], Path]:
    return lambda text: written(text, "measured.csv")


@pytest.fixture
def fitted(command: Any, table: Any, tmp_path: Path) -> Any:
    def fit(kind: str, *options: object) -> tuple[Path, Any]:
        """The part that it wrote, and what it said."""
        part = tmp_path / f"{kind}.json"
        return part, command("fit", kind, table(TABLES[kind]), "-o", part, *options)

    return fit


def instance(tmp_path: Path, **parts: Any) -> Path:
    path = tmp_path / "in.json"
    osd.Instance(**parts).save(path)
    return path


def test_contention_from_measurements_to_a_run(fitted: Any, tmp_path: Path, command: Any) -> None:
    """A network of other constants gives, with those fitted, what one of the published constants gives."""
    part, done = fitted("contention")
    for text in ("seconds_per_byte", "8.56e-10", "2.35e-10", "6 rows, R^2 1", "largest relative error", "wrote"):
        assert text in done.shown
    slow = osd.generate("ada-srsf", seed=2, jobs=6, cluster="2x4", scale=1, seconds_per_byte=1e-8, penalty=3e-9)
    slow.save(tmp_path / "slow.json")
    values = []
    for source in (slow.replace(contention=ETHERNET_10G), osd.load(tmp_path / "slow.json", contention=part), slow):
        values.append(osd.simulate(source, "ada-srsf").value("total_flow_time"))
    assert values[1] == pytest.approx(values[0], rel=1e-9)
    assert values[2] > 1.5 * values[0]
    run = command("run", tmp_path / "slow.json", "--contention", part, "-p", "ada-srsf", "--json")
    assert run.value == pytest.approx(values[0], rel=1e-9)
    whole = osd.load(tmp_path / "slow.json", contention=osd.Contention(1e-9), job_level=True)
    assert whole == osd.at_job_level(slow.replace(contention=osd.Contention(1e-9)))


def test_interference_from_measurements_to_a_run(fitted: Any, tmp_path: Path, command: Any) -> None:
    part, done = fitted("interference")
    assert "lstm beside vgg" in done.shown
    jobs = [osd.Job("a", duration=10, model="vgg"), osd.Job("b", duration=10, model="lstm")]
    source = instance(tmp_path, jobs=jobs, cluster="1x1", objective="total_flow_time")
    # beside lstm vgg takes 1.25 times as long and ends at 12.5, when lstm, 2.5 times as long, has done half of its 10
    run = command("run", source, "--interference", part, "-p", "sjf-ffs", "--json")
    assert run.value == pytest.approx(12.5 + 17.5)


def test_scaling_from_measurements_to_a_run(fitted: Any, tmp_path: Path, command: Any) -> None:
    part, done = fitted("scaling")
    assert "net: within" in done.shown
    assert "other: not identified by the measurements, taken to be 0: compute" in done.shown
    assert set(json.loads(part.read_text())) == {"net", "other"}
    jobs = [osd.Job("a", gpus=4, iterations=100, profile="net", batch_size=128)]
    own = {"net": osd.Scaling(1.0, 0.0, memory=1e9, most_local=50), "third": osd.Scaling(2.0, 0.0)}
    source = instance(tmp_path, jobs=jobs, cluster="2x2", scalings=own)
    made = osd.load(source, profiles=part).scalings
    assert (made["net"].memory, made["net"].most_local) == (1e9, 50)  # of which the measurements say nothing
    assert made["net"].per_sample == pytest.approx(0.005)
    assert made["third"] == own["third"]
    run = command("run", source, "--profiles", part, "-p", "fifo", "--json")
    assert run.value == pytest.approx(100 * 128 / 320)  # over two nodes


def test_scaling_of_a_trace(fitted: Any, tmp_path: Path) -> None:
    part, _ = fitted("scaling")
    (tmp_path / "jobs.csv").write_text("name,time,application,num_replicas,batch_size\na,0,net,1,32\n")
    (tmp_path / "iterations.csv").write_text("application,batch_size,iterations\nnet,32,10\nnet,64,10\n")
    read = osd.load(f"pollux:{tmp_path / 'jobs.csv'}", cluster="1x1", profiles=part)
    assert osd.simulate(read, "fifo").metrics["makespan"] == pytest.approx(10 * 32 / 160)


@pytest.mark.parametrize("kind", TABLES)
def test_json_has_the_constants_their_intervals_and_the_part(kind: str, fitted: Any) -> None:
    part, done = fitted(kind, "--json")
    document = done.document
    assert set(document) == {"kind", "file", "fits", kind}
    assert document[kind] == json.loads(part.read_text())
    for each in document["fits"]:
        assert set(each) == {"of", "rows", "r_squared", "largest_relative_error", "constants", "notes"}
        assert each["rows"] >= 1
        assert all(set(row) == {"name", "unit", "value", "error", "low", "high"} for row in each["constants"])
    assert sum(each["rows"] for each in document["fits"]) == TABLES[kind].count("\n") - 1


def test_options(table: Any, command: Any) -> None:
    one_size = table("bytes,transfers,seconds\n100,1,101\n100,2,241\n100,3,381\n")
    told = "do not determine 3 numbers (expected: several message sizes (or a given latency)"
    assert told in command("fit", "contention", one_size).mistake
    found = command("fit", "contention", one_size, "--latency", 1, "--json").document["contention"]
    assert found == pytest.approx({"seconds_per_byte": 1, "penalty": 0.4, "latency": 1})
    pairs = table("model,beside,seconds\na,,1\na,a,1.5\nb,,1\n")
    ratios = command("fit", "interference", pairs, "--ratio", 3, "--json").document["interference"]["ratios"]
    assert ratios == [[pytest.approx(1.5), 3], [3, 3]]


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("foo", TRANSFERS, "KIND = 'foo': invalid (expected: contention, interference, scaling)"),
        ("contention", "", "the file is empty"),
        ("contention", PAIRS, "measured.csv, row 1, columns = 'model, beside, throughput': missing: bytes, transfers"),
        ("contention", "bytes,transfers,seconds\n", "missing: measurements"),
        ("interference", "model,beside\na,\n", "row 1, columns: neither (expected: one of the columns seconds and"),
        ("interference", "model,beside,seconds,throughput\na,,1,1\n", "row 1, columns: both"),
        ("interference", "model,beside,seconds\na,b,1\n", "measured.csv: model = 'a': it was not measured alone"),
        ("scaling", "model,gpus,batch,seconds\n", "missing: measurements"),
        ("scaling", "[1]", "this is JSON, not a table"),
    ],
)
def test_a_mistake_is_one_line(kind: str, text: str, told: str, table: Any, command: Any) -> None:
    assert told in command("fit", kind, table(text)).mistake


@pytest.mark.parametrize(
    ("kind", "row", "told"),
    [
        ("contention", "0,1,1", "bytes = '0': invalid (expected: a number from 1e-18"),
        ("contention", "1,1.5,1", "transfers = '1.5': invalid (expected: an integer >= 1)"),
        ("contention", "1,1,nan", "seconds = 'nan': invalid"),
        ("contention", "1,1", "columns = 2: wrong number of fields (expected: 3 fields a row)"),
        ("interference", ";vgg;1", "model = '': missing"),
        ("interference", "vgg;lstm;fast", "throughput = 'fast': invalid"),
        ("scaling", "net,1,2,8,80,x", "nodes = '2': invalid (expected: at most its GPUs)"),
        ("scaling", "net,x,1,8,80,x", "gpus = 'x': invalid"),
        ("scaling", "net,1,1,,80,x", "batch = '': missing"),
    ],
)
def test_a_bad_row_is_named(kind: str, row: str, told: str, table: Any, command: Any) -> None:
    err = command("fit", kind, table(TABLES[kind] + row + "\n")).refusal
    number = TABLES[kind].count("\n") + 1
    assert f"1 of {number - 1} rows invalid" in err
    assert f"row {number}, {told}" in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "contention", "{table}", "--ratio", 2), "--ratio = 2.0: invalid (expected: a number >= 1, with"),
        (("fit", "interference", "{table}", "--latency", 2), "--latency = '2': invalid (expected: with contention"),
        (("fit", "contention", "{table}", "-o", "a.csv"), "(expected: .json)"),
        (("run", "{source}", "--contention", "{table}"), "measured.csv: not a JSON document"),
        (("run", "{source}", "--contention", "{bad}"), "bad.json, seconds_per_byte = 'x': invalid"),
        (("run", "{source}", "--profiles", "{bad}"), "bad.json, seconds_per_byte = 'x': invalid"),
        (("run", "{source}", "--contention", "{negative}"), "negative.json: contention.penalty = -2.0: invalid"),
        (("run", "{source}", "--profiles", "{other}"), "profiles: the profiles know no job of this instance"),
        (("run", "{source}", "--profiles", "{timeless}"), "timeless.json: compute = 0: an iteration takes no time"),
    ],
)
def test_mistakes_with_parts(
    arguments: tuple[Any, ...], told: str, table: Any, written: Any, tmp_path: Path, command: Any
) -> None:
    places = {"table": table(TRANSFERS), "source": instance(tmp_path, jobs=[osd.Job("a", duration=1)], cluster="1x1")}
    for name, part in {
        "bad": {"seconds_per_byte": "x"},
        "negative": {"seconds_per_byte": 1, "penalty": -2},
        "other": {"net": {"compute": 1, "per_sample": 0}},
        "timeless": {"net": {"compute": 0, "per_sample": 0}},
    }.items():
        places[name] = written(part, f"{name}.json")
    assert told in command(*(str(each).format(**places) for each in arguments)).mistake
