"""``optsched fit``: from a table of measurements to a run; every mistake is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.problem.contention import ETHERNET_10G

pytestmark = pytest.mark.release

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
def table(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "measured.csv"
        path.write_text(text)
        return path

    return write


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
    assert (
        "do not determine 3 numbers (expected: several message sizes (or a given latency)"
        in command("fit", "contention", one_size).mistake
    )
    found = command("fit", "contention", one_size, "--latency", 1, "--json").document["contention"]
    assert found == pytest.approx({"seconds_per_byte": 1, "penalty": 0.4, "latency": 1})
    pairs = table("model,beside,seconds\na,,1\na,a,1.5\nb,,1\n")
    assert command("fit", "interference", pairs, "--ratio", 3, "--json").document["interference"]["ratios"] == [
        [pytest.approx(1.5), 3],
        [3, 3],
    ]


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
        (
            ("fit", "contention", "{table}", "--ratio", 2),
            "--ratio = 2.0: invalid (expected: a number >= 1, with interf",
        ),
        (
            ("fit", "interference", "{table}", "--latency", 2),
            "--latency = 2.0: invalid (expected: with contention only)",
        ),
        (("fit", "contention", "{table}", "-o", "a.csv"), "(expected: .json)"),
        (("run", "{source}", "--contention", "{table}"), "measured.csv: not a JSON document"),
        (("run", "{source}", "--contention", "{bad}"), "bad.json, seconds_per_byte = 'x': invalid"),
        (("run", "{source}", "--profiles", "{bad}"), "bad.json, seconds_per_byte = 'x': invalid"),
        (("run", "{source}", "--contention", "{negative}"), "negative.json: contention.penalty = -2.0: invalid"),
        (("run", "{source}", "--profiles", "{other}"), "profiles: the profiles know no job of this instance"),
        (("run", "{source}", "--profiles", "{timeless}"), "timeless.json: compute = 0: an iteration takes no time"),
    ],
)
def test_mistakes_with_parts(arguments: tuple[Any, ...], told: str, table: Any, tmp_path: Path, command: Any) -> None:
    places = {"table": table(TRANSFERS), "source": instance(tmp_path, jobs=[osd.Job("a", duration=1)], cluster="1x1")}
    for name, text in {
        "bad": '{"seconds_per_byte": "x"}',
        "negative": '{"seconds_per_byte": 1, "penalty": -2}',
        "other": '{"net": {"compute": 1, "per_sample": 0}}',
        "timeless": '{"net": {"compute": 0, "per_sample": 0}}',
    }.items():
        places[name] = tmp_path / f"{name}.json"
        places[name].write_text(text)
    assert told in command(*(str(each).format(**places) for each in arguments)).mistake
