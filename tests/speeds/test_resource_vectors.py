"""Interference from resource vectors: the formula in exact fractions, the built-in figures against the traces."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError, RowErrors
from optsched.speeds.interference_sources import RESOURCE_TIMES, read_resource_times, resource_interference

HEAD = "job_id,num_gpu,model_name,iteration_time,resource_time_0,resource_time_1,resource_time_2\n"
milliseconds = st.integers(0, 1000)


@given(st.lists(st.tuples(st.integers(1, 1000), milliseconds, milliseconds, milliseconds), min_size=1, max_size=5))
def test_the_busiest_resource_decides(rows: list[tuple[int, ...]]) -> None:
    found = resource_interference({str(k): row for k, row in enumerate(rows)})
    for a, one in enumerate(rows):
        for b, other in enumerate(rows):
            sums = [Fraction(u, one[0]) + Fraction(v, other[0]) for u, v in zip(one[1:], other[1:], strict=True)]
            assert found.slowdown(str(a), str(b)) == pytest.approx(float(max(Fraction(1), *sums)), rel=1e-14)
            assert found.slowdown(str(a), str(b)) == found.slowdown(str(b), str(a))


def test_built_in_values() -> None:
    found = resource_interference()
    assert found.kinds == tuple(RESOURCE_TIMES)
    assert found.slowdown("bert", "gpt2") == pytest.approx(160 / 178 + 410 / 426)  # both on the GPU
    assert found.slowdown("bert", "resnet18") == pytest.approx(160 / 178 + 110 / 779)  # GPU beside input: little
    assert found.slowdown("a2c", "gpt2") == pytest.approx(1.0, abs=0.01)
    assert found.slowdown("vgg16", "vgg16") == pytest.approx(234 / 107)
    assert found.slowdown("vgg16", "nobody") == 2


def test_the_built_in_figures_are_those_of_the_traces(data_dir: Path) -> None:
    for name in ("trace1.csv", "cluster_trace.csv"):
        read = read_resource_times(data_dir / "muri" / name)
        assert read.keys() == RESOURCE_TIMES.keys()
        for model, times in read.items():
            assert times == pytest.approx(RESOURCE_TIMES[model], rel=1e-12)


def test_only_jobs_of_one_gpu_are_read_and_averaged(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "0,1,a,10,1,2,3\n1,2,a,99,x,2,3\n2,1,a,20,3,4,5\n3,1,b,5,5,0,0\n")
    assert read_resource_times(path) == {"a": (15, 2, 3, 4), "b": (5, 5, 0, 0)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "no column model_name"),
        ("", "no column model_name"),
        (HEAD, "num_gpu: no job of one GPU"),
        (HEAD + "0,2,a,1,1,1,1\n", "num_gpu: no job of one GPU"),
    ],
)
def test_a_file_without_vectors(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=told) as error:
        read_resource_times(path)
    assert str(path) in str(error.value)


def test_every_bad_time_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "0,1,a,0,1,1,1\n1,1,a,1,-1,1,nan\n2,1,a,1,1\n3,1,a,1,1,1,1\n")
    with pytest.raises(RowErrors) as error:
        read_resource_times(path)
    assert "3 of 4 rows" in str(error.value)
    assert [(each.row, each.field) for each in error.value.problems] == [
        (2, "iteration_time"),
        (3, "resource_time_0"),
        (3, "resource_time_2"),
        (4, "resource_time_1"),
        (4, "resource_time_2"),
    ]


@pytest.mark.parametrize(
    "times", [{"a": (1,)}, {"a": (1, 1), "b": (1, 1, 1)}, {"a": (0, 1)}, {"a": (1, -1)}, {"a": (float("nan"), 1)}]
)
def test_times_that_are_not_legal(times: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(InputError, match="expected: "):
        resource_interference(times)
