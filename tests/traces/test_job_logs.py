"""Dialects philly, tiresias, muri, gavel and pollux: columns and units; and what every dialect does with bad rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import TraceRead
from optsched.io.traces.named_models import with_scalings
from optsched.problem.scaling import Scaling
from optsched.speeds.scaling_files import built_in_scalings

Reader = Callable[..., TraceRead]
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
TAIL = ",91000,437,0.6,419,49,0\n"


def test_philly_s_columns_and_units(read: Reader) -> None:
    found = read(
        "philly",
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-08 23:59:59,2951.5,16,47224.0,6214e9\n"
        "\n",
    )
    assert found.table.to_dict(as_series=False) == {
        "arrival": [7 * 3600 + 116.0, 0.0],
        "duration": [66.0, 2951.5],
        "gpus": [1, 16],
        "group": ["11cb48", "6214e9"],
        "id": ["2", "3"],
    }
    instance = found.instance()
    assert instance.objective is None
    assert instance.cluster.spec == "8x8"


def test_milliseconds_of_muri(read: Reader) -> None:
    found = read("muri", MURI + "0,8,1500,10956,gpt2,4,5095000" + TAIL + "1,1,0,3,dqn,128,250" + TAIL)
    rows = found.table.select("arrival", "duration", "iterations", "model").rows()
    assert rows == [(1.5, 5095.0, 10956.0, "gpt2"), (0.0, 0.25, 3.0, "dqn")]


def test_columns_may_stand_in_any_order_and_interval_may_be_absent(read: Reader) -> None:
    found = read("tiresias", "duration,extra,job_id,num_gpu,submit_time,model_name,iterations\n164,?,0,2,5,vgg,7\n")
    assert found.table.select("id", "arrival", "gpus", "duration").row(0) == ("0", 5.0, 2, 164.0)
    assert found.instance().table["profile"].null_count() == 1  # the duration counts: no rate model is asked for


def line(*fields: object) -> str:
    return "\t".join(map(str, fields)) + "\n"


def gavel(model: str = "A3C", steps: object = 9, gpus: object = 4, weight: float = 1, slo: object = -1, at: float = 7):
    return line(model, "cmd", "d", "-n", 1, steps, gpus, weight, slo, at)


# dialect: the file, the (row, field) of every bad row, options; row 1 or 2 is legal
BAD: dict[str, tuple[str, list[tuple[int, str]], dict[str, Any]]] = {
    "tiresias": (
        TIRESIAS + "0,1,0,6,m,164,3\n0,1,-1,6,m,164,3\n1,0,0,6,m,164,3\n2,1,0,-1,m,164,3\n3,1,0,6,,164,3\n4,1,0,6,m,,3\n",
        [(3, "submit_time"), (4, "num_gpu"), (5, "iterations"), (6, "model_name"), (7, "duration")],
        {},
    ),
    "muri": (
        MURI + "".join(f"{row}{TAIL}" for row in ("0,8,0,1,m,4,9", "0,8,0,1,m,4,9", "1,8,-1,1,m,4,9", "2,8,0,1,m,4,0")),
        [(3, "job_id"), (4, "submit_time"), (5, "duration")],
        {},
    ),
    "gavel": (
        gavel() + gavel(steps=0) + gavel(gpus=0) + gavel(weight=-1) + gavel(slo="soon") + gavel(at=-5)
        + "A3C\ttoo\tshort\n" + gavel(gpus=65) + gavel(model=""),
        [
            *((2, "total_steps"), (3, "scale_factor"), (4, "priority_weight"), (5, "SLO"), (6, "arrival_time")),
            *((7, "columns"), (8, "scale_factor"), (9, "job_type")),
        ],
        {},
    ),
    "pollux": (
        "name,time,application,num_replicas,batch_size\na,1,cifar10,1,128\nb,1,cifar10,1,300\nc,1,vgg,1,128\n"
        "a,1,bert,1,12\nd,-1,bert,1,12\ne,1,bert,0,12\nf,1,bert,1,1.5\n",
        [
            *((3, "batch_size"), (4, "application"), (5, "name"), (6, "time"), (7, "num_replicas"), (8, "batch_size")),
        ],
        {},
    ),
    "csv": (
        "submitted,wanted,seconds,job\n0,1,5,a\n-1,1,5,b\n0,65,5,c\n0,1,0,d\n0,1,5,a\n2024-05-01 08:00:00,1,5,e\n",
        [(3, "submitted"), (4, "wanted"), (5, "seconds"), (6, "job"), (7, "submitted")],
        {"columns": {"arrival": "submitted", "gpus": "wanted", "duration": "seconds", "id": "job"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", BAD)
def test_bad_rows_are_named_all_at_once_or_left_out(dialect: str, read: Reader, tmp_path: Path) -> None:
    text, bad, options = BAD[dialect]
    (tmp_path / "iterations.csv").write_text(
        "application,batch_size,iterations\ncifar10,256,9\ncifar10,128,9\nbert,12,9\n"
    )
    with pytest.raises(RowErrors) as caught:
        read(dialect, text, **options)
    assert [(problem.row, problem.field) for problem in caught.value.problems] == bad
    values = [str(problem.value) for problem in caught.value.problems if problem.field != "columns"]
    assert all(value in text for value in values)
    if dialect == "pollux":
        assert "from 128 to 256" in caught.value.problems[0].legal
        assert "bert, cifar10" in caught.value.problems[1].legal
    found = read(dialect, text, skip_bad=True, **options)
    assert (found.table.height, found.skipped_rows) == (1, len(bad))


# -- Dialect gavel: four variants told apart by the number of columns; a command is never more than text ------------------


JOB = "ResNet-18 (batch size 128)"


def test_today_s_ten_columns(read: Reader) -> None:
    other = line("A3C", "x", "rl", "--max-steps", 0, 25832, 1, 1, -1, 43.5)
    found = read("gavel", gavel(JOB, 925982, 4, 2.5, "-1.000000") + other).instance()
    assert found.jobs == [
        osd.Job("1", 7, 4, iterations=925982, profile=JOB, weight=2.5, model="ResNet-18"),
        osd.Job("2", 43.5, 1, iterations=25832, profile="A3C", model="A3C"),
    ]


def test_nine_columns(read: Reader) -> None:
    found = read("gavel", line(JOB, "cmd", "-step", 1, 100, 2, 5, -1, 3))
    assert found.table.select("iterations", "gpus", "weight", "arrival").row(0) == (100.0, 2, 5.0, 3.0)
    assert found.recipe["parameters"]["columns_in_file"] == 9


def test_shockwave_s_twelve_columns_bring_a_duration_and_due_dates(read: Reader) -> None:
    head = (JOB, "cmd", "dir", "--steps", 1, 134583, 1, "gns", 1)
    found = read("gavel", line(*head, "-1.000000", 1418, 55) + line(*head, "1.5", 100, 10)).instance()
    same = {"iterations": 134583, "model": "ResNet-18"}  # without a profile: the duration counts
    due = 10 + 1.5 * 100
    assert found.jobs == [osd.Job("1", 55, 1, 1418, **same), osd.Job("2", 10, 1, 100, due=due, **same)]


def shockwave(mode: str, gpus: int = 1, steps: int = 9) -> str:
    return line(JOB, "cmd", "dir", "--steps", 1, steps, gpus, mode, 1, -1, 1418, 0)


def test_a_mode_that_is_not_modelled_is_said(command: Any, written: Any, tmp_path: Path) -> None:
    rows = [shockwave(mode) for mode in ("gns", "static", "accordion", "gns")] + [shockwave("gns", gpus=9)]
    path, made = written("".join(rows), "s.trace"), tmp_path / "made.json"
    said = "mode is not modelled: 1 accordion and 2 gns of 4 jobs change their batch size"
    reading = (f"gavel:{path}", "--cluster", "2x4", "--skip-bad")
    ran = command("run", *reading, "-p", "fifo", "--json")
    assert ran.err.startswith(f"optsched: gavel:{path}: {said}")
    assert ran.err.count("\n") == 1
    assert json.loads(ran.out)["instance"]["skipped"] == {"scale_factor: the gang is larger than the cluster": 1}
    (line,) = json.loads(ran.out)["instance"]["not_modelled"]
    assert line.startswith(said)
    assert said in command("convert", *reading, "-o", made).err
    again = command("run", made, "-p", "fifo")  # the instance file keeps it
    assert said in again.err
    assert said in " ".join(again.out.split())
    with pytest.warns(UserWarning, match=said):
        found = osd.load(f"gavel:{path}", cluster="2x4", skip_bad=True)
    assert found.recipe["parameters"]["modes"] == {"accordion": 1, "gns": 2}
    assert found.duration.tolist() == [1418.0] * 4


@pytest.mark.filterwarnings("error")
def test_a_mode_that_changes_nothing_is_no_news(command: Any, written: Any) -> None:
    path = written(shockwave("static") * 2, "s.trace")
    assert "not_modelled" not in osd.load(f"gavel:{path}", cluster="2x4").recipe["parameters"]
    ran = command("run", f"gavel:{path}", "--cluster", "2x4", "-p", "fifo", "--json")
    assert ran.err == ""
    assert "not_modelled" not in ran.document["instance"]


def test_the_published_trace_of_shockwave_says_its_modes(data_dir: Path) -> None:
    path = data_dir / "shockwave" / "shockwave_120.trace"
    with pytest.warns(UserWarning, match="mode is not modelled: 59 accordion and 57 gns of 120 jobs"):
        assert osd.load(f"gavel:{path}", cluster="8x4").n == 120


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("tiresias", TIRESIAS + "1,2,0,0,vgg,100,5\n2,1,10,0,vgg,50,5\n"),
        ("muri", MURI + "1,2,0,0,vgg,4,100000" + TAIL + "2,1,10000,0.0,vgg,4,50000" + TAIL),
        ("csv", "arrival,gpus,duration,iterations\n0,2,100,0\n10,1,50,0\n"),
    ],
)
def test_iterations_that_nothing_reads_may_be_0(read: Reader, dialect: str, text: str) -> None:
    found = read(dialect, text)
    assert found.table.select("gpus", "arrival", "duration", "iterations").rows() == [
        (2, 0.0, 100.0, None),
        (1, 10.0, 50.0, None),
    ]
    assert found.instance().duration.tolist() == [100.0, 50.0]


def test_steps_beside_a_duration_may_be_0_and_must_not_be_without(read: Reader) -> None:
    assert read("gavel", shockwave("static", steps=0)).table["iterations"].to_list() == [None]
    with pytest.raises(RowErrors, match="total_steps = '0'"):
        read("gavel", gavel(steps=0))
    with pytest.raises(RowErrors, match="iterations = '0'"):
        read("csv", "arrival,gpus,iterations,profile\n0,1,0,resnet\n")


def test_an_slo_without_a_run_time_is_counted_as_not_kept(read: Reader) -> None:
    found = read("gavel", gavel(slo=1.2) + gavel() + gavel(slo=10))
    assert found.table.height == 3
    assert "due" not in found.table.columns
    assert found.recipe["parameters"]["slo_not_kept"] == 2


def test_quotes_and_shell_in_a_command_are_data(read: Reader, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    command = f'echo "$(touch {witness})"; touch {witness} && `touch {witness}` \'x'
    found = read("gavel", line(JOB, command, "d", "-n", 1, 10, 1, 1, -1, 0) + gavel())
    assert found.table.height == 2
    assert not witness.exists()


def test_an_unknown_number_of_columns_is_another_dialect(read: Reader) -> None:
    with pytest.raises(InputError, match=r"columns = 3: wrong dialect\?.*7, 9, 10, 12 tab-separated"):
        read("gavel", line("a", "b", "c") * 3)


# -- Dialect pollux: iterations come from a second file, linear between batch sizes ---------------------------------------


HEAD = "name,time,application,num_replicas,batch_size\n"
ITERATIONS = "application,batch_size,iterations\ncifar10,256,20000\ncifar10,128,40000\nbert,12,900\n"


def test_iterations_are_linear_between_batch_sizes(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "iterations.csv").write_text(ITERATIONS)
    found = read("pollux", HEAD + "a,107,cifar10,6,128\nb,110,cifar10,1,160\nc,120.5,bert,2,12\n")
    assert found.table.select("id", "arrival", "gpus", "iterations", "profile", "model").rows() == [
        ("a", 107.0, 6, 40000.0, "cifar10 (batch size 128)", "cifar10"),
        ("b", 110.0, 1, 35000.0, "cifar10 (batch size 160)", "cifar10"),  # 160 is a quarter of the way
        ("c", 120.5, 2, 900.0, "bert (batch size 12)", "bert"),
    ]


@pytest.mark.parametrize(
    "content", [ITERATIONS + "bert,12,800\n", ITERATIONS + "bert,x,1\n", ITERATIONS + "bert,16,0\n"]
)
def test_a_bad_iterations_file_is_reported_as_that_file(read: Reader, tmp_path: Path, content: str) -> None:
    (tmp_path / "iterations.csv").write_text(content)
    with pytest.raises(RowErrors, match=r"iterations\.csv"):
        read("pollux", HEAD + "a,107,cifar10,6,128\n")


# -- Scaling profiles for a trace that names applications and batch sizes -------------------------------------------------


TEXT = "name,time,application,num_replicas,batch_size\na,0,cifar10,4,256\nb,5,vgg,1,64\nc,9,bert,6,32\n"
ITERATIONS_SCALED_MODELS = "application,batch_size,iterations\ncifar10,256,200\nvgg,64,10\nbert,32,30\n"


@pytest.fixture
def trace(read: Reader, tmp_path: Path) -> TraceRead:
    (tmp_path / "iterations.csv").write_text(ITERATIONS_SCALED_MODELS)
    return read("pollux", TEXT)


def test_known_applications_run_at_their_profiles_and_others_stay_as_they_are(trace: TraceRead) -> None:
    said: list[str] = []
    found = with_scalings(trace, None, "t.csv", say=said.append)
    assert found.table["profile"].to_list() == ["cifar10", "vgg (batch size 64)", "bert"]
    assert found.scalings == {name: built_in_scalings()[name] for name in ("bert", "cifar10")}
    assert len(said) == 1
    assert said[0].startswith("bert, cifar10: iteration times by formulas")
    instance = found.instance()
    assert instance.jobs_at("scalings").tolist() == [0, 2]
    assert instance.table["batch_size"].to_list() == [256, 64, 32]
    first = [instance.sub_batches(j)[0] for j in (0, 2)]
    assert [(each.size, each.steps) for each in first] == [(64, 1), (6, 1)]
    with pytest.raises(InputError, match="vgg"):
        osd.simulate(instance, "fifo")


def test_given_profiles_are_used_alone_and_without_a_word(trace: TraceRead) -> None:
    said: list[str] = []
    given = {"vgg": Scaling(1.0, 0.0), "unused": Scaling(1.0, 0.0)}
    found = with_scalings(trace, given, "t.csv", say=said.append)
    assert found.table["profile"].to_list() == ["cifar10 (batch size 256)", "vgg", "bert (batch size 32)"]
    assert list(found.scalings) == ["vgg"]
    assert said == []


def test_profiles_that_know_nothing_of_the_trace_are_an_error_and_built_in_ones_are_not(trace: TraceRead) -> None:
    with pytest.raises(InputError, match=r"t\.csv, profiles: .*know no application.*bert, cifar10, vgg"):
        with_scalings(trace, {"x": Scaling(1.0, 0.0)}, "t.csv")
    other = TraceRead(trace.table.filter(trace.table["model"] == "vgg"), "t", cluster=trace.cluster)
    assert with_scalings(other, None, "t.csv") is other
    plain = TraceRead(trace.table.drop("batch_size"), "t")
    assert with_scalings(plain, None, "t.csv") is plain
    with pytest.raises(InputError, match="names an application and a batch size"):
        with_scalings(plain, built_in_scalings(), "t.csv")


def test_a_whole_trace_runs(trace: TraceRead) -> None:
    kept = TraceRead(trace.table.filter(trace.table["model"] != "vgg"), "t", cluster=osd.Cluster.parse("2x4"))
    run = osd.simulate(with_scalings(kept, None, "t.csv").instance(), "fifo+consolidated")
    assert run.unfinished == []
    cifar = built_in_scalings()["cifar10"]
    expected = 0.01866 + 0.00068 * 64, 0.0154 + 2 * 4.7e-8
    step = (expected[0] ** 1.28 + expected[1] ** 1.28) ** (1 / 1.28)
    assert cifar.overlap == 1.28
    assert run.schedule.completion[0] == pytest.approx(200 * step, rel=1e-9)
