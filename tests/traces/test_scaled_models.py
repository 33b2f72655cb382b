"""Scaling profiles for a trace that names applications and batch sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead
from optsched.io.traces.named_models import with_scalings
from optsched.problem.scaling import Scaling
from optsched.speeds.scaling_files import built_in_scalings

Reader = Callable[..., TraceRead]
TEXT = "name,time,application,num_replicas,batch_size\na,0,cifar10,4,256\nb,5,vgg,1,64\nc,9,bert,6,32\n"
ITERATIONS = "application,batch_size,iterations\ncifar10,256,200\nvgg,64,10\nbert,32,30\n"


@pytest.fixture
def trace(read: Reader, tmp_path: Path) -> TraceRead:
    (tmp_path / "iterations.csv").write_text(ITERATIONS)
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
