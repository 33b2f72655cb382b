"""Dialect pollux: iterations come from a second file, linear between batch sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import RowErrors
from optsched.io.traces.dialect import TraceRead

Reader = Callable[..., TraceRead]
HEAD = "name,time,application,num_replicas,batch_size\n"
ITERATIONS = "application,batch_size,iterations\ncifar10,256,20000\ncifar10,128,40000\nbert,12,900\n"


def test_iterations_are_linear_between_batch_sizes(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "iterations.csv").write_text(ITERATIONS)
    found = read("pollux", HEAD + "a,107,cifar10,6,128\nb,110,cifar10,1,160\nc,120.5,bert,2,12\n")
    instance = found.instance()
    assert instance.ids == ("a", "b", "c")
    assert instance.arrival.tolist() == [107.0, 110.0, 120.5]
    assert instance.gpus.tolist() == [6, 1, 2]
    assert instance.iterations.tolist() == [40000.0, 35000.0, 900.0]  # 160 is a quarter of the way
    assert instance.table["profile"].to_list() == [
        "cifar10 (batch size 128)",
        "cifar10 (batch size 160)",
        "bert (batch size 12)",
    ]
    assert instance.table["model"].to_list() == ["cifar10", "cifar10", "bert"]


@pytest.mark.parametrize(
    "content", [ITERATIONS + "bert,12,800\n", ITERATIONS + "bert,x,1\n", ITERATIONS + "bert,16,0\n"]
)
def test_a_bad_iterations_file_is_reported_as_that_file(read: Reader, tmp_path: Path, content: str) -> None:
    (tmp_path / "iterations.csv").write_text(content)
    with pytest.raises(RowErrors, match=r"iterations\.csv"):
        read("pollux", HEAD + "a,107,cifar10,6,128\n")
