"""Dialect gavel: four variants told apart by the number of columns; a command is never more than text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead

Reader = Callable[..., TraceRead]
JOB = "ResNet-18 (batch size 128)"


def line(*fields: object) -> str:
    return "\t".join(str(field) for field in fields) + "\n"


def today(
    steps: object = 925982, gpus: object = 4, weight: object = 2.5, slo: object = "-1.000000", arrival: object = 7
) -> str:
    return line(JOB, "python3 main.py", "cifar10", "--num_steps", 1, steps, gpus, weight, slo, arrival)


def test_today_s_ten_columns(read: Reader) -> None:
    found = read("gavel", today() + line("A3C", "x", "rl", "--max-steps", 0, 25832, 1, 1, -1, 43.5))
    instance = found.instance()
    assert instance.ids == ("1", "2")
    assert instance.table["profile"].to_list() == [JOB, "A3C"]
    assert instance.table["model"].to_list() == ["ResNet-18", "A3C"]
    assert instance.iterations.tolist() == [925982.0, 25832.0]
    assert instance.gpus.tolist() == [4, 1]
    assert instance.weight.tolist() == [2.5, 1.0]
    assert instance.arrival.tolist() == [7.0, 43.5]
    assert instance.table["due"].null_count() == 2
    assert instance.table["duration"].null_count() == 2


def test_nine_columns(read: Reader) -> None:
    found = read("gavel", line(JOB, "cmd", "-step", 1, 100, 2, 5, -1, 3))
    assert found.table.select("iterations", "gpus", "weight", "arrival").row(0) == (100.0, 2, 5.0, 3.0)
    assert found.recipe["parameters"]["columns_in_file"] == 9


def test_shockwave_s_twelve_columns_bring_a_duration_and_due_dates(read: Reader) -> None:
    head = (JOB, "cmd", "dir", "--steps", 1, 134583, 1, "gns", 1)
    found = read("gavel", line(*head, "-1.000000", 1418, 55) + line(*head, "1.5", 100, 10))
    instance = found.instance()
    assert instance.duration.tolist() == [1418.0, 100.0]
    assert instance.arrival.tolist() == [55.0, 10.0]
    assert instance.table["due"].to_list() == [None, 160.0]  # arrival + SLO x duration
    assert instance.iterations.tolist() == [134583.0, 134583.0]
    assert instance.table["profile"].null_count() == 2  # the duration counts


def test_an_slo_without_a_run_time_is_counted_as_not_kept(read: Reader) -> None:
    found = read("gavel", today(slo=1.2) + today() + today(slo=10))
    assert found.table.height == 3
    assert "due" not in found.table.columns
    assert found.recipe["parameters"]["slo_not_kept"] == 2


def test_quotes_and_shell_in_a_command_are_data(read: Reader, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    command = f'echo "$(touch {witness})"; touch {witness} && `touch {witness}` \'x'
    found = read("gavel", line(JOB, command, "d", "-n", 1, 10, 1, 1, -1, 0) + today())
    assert found.table.height == 2
    assert not witness.exists()


def test_an_unknown_number_of_columns_is_another_dialect(read: Reader) -> None:
    with pytest.raises(InputError, match=r"columns = 3: wrong dialect\?.*7, 9, 10, 12 tab-separated"):
        read("gavel", line("a", "b", "c") * 3)
