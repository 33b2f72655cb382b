"""Tables of measured ratios: reading them, what a file may not say, and speeds beside others."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.speeds.measured_contention import (
    implied_penalties,
    kept_speed,
    read_isolated_throughputs,
    read_ratio_matrix,
    read_total_samples,
)

GOOD = ',"A,2,1","B,4,4"\n"A,2,1",0.5,1.000\n"B,4,4",0.8,0.4\n'


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        '\ufeff"kind, one a row"' + GOOD,  # a byte order mark before a quote
        GOOD.replace("\n", "\r\n") + "\r\n",
        ',"A,2,1","B,4,4"\n\n"B,4,4",0.8,0.4\n" A,2,1 ", 0.5 ,1\n',  # rows in another order, a blank line, blanks
    ],
)
def test_a_table_is_read(tmp_path: Path, text: str) -> None:
    found = read_ratio_matrix(written(tmp_path, text), 2e-9)
    assert found == Contention(2e-9, kinds=("A,2,1", "B,4,4"), ratios=((0.5, 1.0), (0.8, 0.4)))
    assert read_ratio_matrix(written(tmp_path, text)).seconds_per_byte == 1.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        (b"\xff\xfe,a", "not UTF-8"),
        (",a\n\xe4,1".encode("latin-1"), "not UTF-8"),
        (',"a\n', "row 1.*not csv"),
        ("kinds\n", "header: invalid"),
        (",a,a\na,1,1\n", "row 1, header: invalid.*different names"),
        (",a,\na,1,1\n", "row 1, header"),
        (",a,b\na,1\nb,1,1\n", r"row 2, a = 1: wrong number of fields \(expected: 2 numbers\)"),
        (",a,b\na,1,1\nb,1,1,1\n", r"row 3, b = 3: wrong number of fields"),
        (",a,b\na,1,1\na,1,1\n", r"row 3, kind = 'a': invalid \(expected: a name that no row before has"),
        (",a,b\na,1,1\n,1,1\n", r"row 3, kind = ''"),
        (",a,b\na,1,1\n", r"kind = 'b': not a square table: kinds without a row"),
        (",a\na,1\nb,1\n", r"kind = 'b': not a square table: a row without a column"),
        (",a,b\na,1,1\nc,1,1\n", r"kind = 'b': not a square table"),
        (",a,b\na,,1\nb,1,1\n", r"row 2, a beside a = '': invalid \(expected: a number in \(0, 1\]\)"),
        (",a,b\na,1,0\nb,1,1\n", r"row 2, a beside b = '0'"),
        (",a,b\na,1,1.001\nb,1,1\n", r"row 2, a beside b = '1.001'"),
        (",a,b\na,1,-0.5\nb,1,1\n", r"a beside b = '-0.5'"),
        (",a,b\na,1,nan\nb,1,1\n", r"a beside b = 'nan'"),
        (",a,b\na,1,fast\nb,1,1\n", r"a beside b = 'fast'"),
    ],
)
def test_what_a_table_may_not_say(tmp_path: Path, text: str | bytes, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=told) as caught:
        read_ratio_matrix(path)
    assert str(path) in str(caught.value)


def test_every_bad_row_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_ratio_matrix(written(tmp_path, ",a,b\na,2,x\nb,1\n"))
    first, *rows = str(caught.value).splitlines()
    assert "2 of 2 rows" in first
    assert len(rows) == 3


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_ratio_matrix(tmp_path / "none.csv")


def test_the_other_two_files(tmp_path: Path) -> None:
    assert read_isolated_throughputs(written(tmp_path, ',thp\n"A,2,1",3.5\n')) == {"A,2,1": 3.5}
    assert read_total_samples(written(tmp_path, "\ufeff,2,4\nA,10,20.5\n")) == {("A", 2): 10.0, ("A", 4): 20.5}
    for text, told in (
        (",thp\na,0\n", "a beside thp = '0'"),
        (",x,y\na,1,2\n", "row 1, 2: not a table of throughputs"),
    ):
        with pytest.raises(InputError, match=told):
            read_isolated_throughputs(written(tmp_path, text))
    for text, told in ((",2,four\na,1,2\n", "GPUs = 'four'"), (",2,4\na,1,inf\n", "a beside 4 = 'inf'")):
        with pytest.raises(InputError, match=told):
            read_total_samples(written(tmp_path, text))


# --- speeds -----------------------------------------------------------------------------------------------------------

TABLE = Contention(1.0, kinds=("a", "b", "c"), ratios=((0.5, 0.8, 1.0), (0.9, 0.4, 0.7), (1.0, 0.6, 1.0)))


def test_speed_kept_beside_others() -> None:
    assert kept_speed(TABLE, "a", []) == 1.0
    assert kept_speed(TABLE, "a", ["b"]) == 0.8
    assert kept_speed(TABLE, "b", ["a"]) == 0.9  # not symmetric
    assert kept_speed(TABLE, "b", ["a", "c", "c"]) == pytest.approx(0.9 * 0.7 * 0.7)
    assert kept_speed(TABLE, "b", ["a", "c", "c"], worst_pair=True) == 0.7
    assert kept_speed(TABLE, "a", [], worst_pair=True) == 1.0


def test_speeds_that_nobody_measured() -> None:
    with pytest.raises(InputError, match=r"kind = 'd': the table does not have this kind.*kinds: a, b, c"):
        kept_speed(TABLE, "a", ["b", "d"])
    with pytest.raises(InputError, match="kind = 'd'"):
        kept_speed(TABLE, "d", [])
    for call in (lambda: kept_speed(ETHERNET_10G, "a", []), lambda: implied_penalties(ETHERNET_10G)):
        with pytest.raises(InputError, match="no measured ratios"):
            call()
    with pytest.raises(InputError, match="network_share = 0"):
        implied_penalties(TABLE, 0)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("eta", [-0.4, 0.0, 0.2745, 1.0])
def test_implied_penalties_recover_what_the_model_gives(eta: float, share: float) -> None:
    """A job that computes and sends, beside its twin: only the share on the network takes T(2) / T(1) = 2 + eta / b."""
    ratio = 1 / ((1 - share) + share * (2 + eta))
    (found,) = implied_penalties(Contention(1.0, kinds=("a",), ratios=((ratio,),)), share).values()
    assert found.eta_over_b == pytest.approx(eta)
    assert found.fits
    if eta != 0:
        assert found.negative == (eta < 0)
    assert found.least_network_share == pytest.approx(share * (1 + eta))


def test_twins_that_do_not_slow_each_other() -> None:
    found = implied_penalties(TABLE)
    assert {kind: each.eta_over_b for kind, each in found.items()} == pytest.approx({"a": 0.0, "b": 0.5, "c": -1.0})
    assert [kind for kind, each in found.items() if each.negative] == ["c"]
    assert not found["c"].fits
    assert found["c"].least_network_share == 0


# --- the public measurements ------------------------------------------------------------------------------------------


def test_the_deepshare_table(data_dir: Path) -> None:
    folder = data_dir / "deepshare"
    table = read_ratio_matrix(folder / "shared_thp_ratio.csv")
    assert len(table.kinds) == 36
    with (folder / "shared_thp_ratio.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    for column in (1, 17, 36):  # against a plain reading of the cells
        for row in rows[1:]:
            assert kept_speed(table, row[0], [rows[0][column]]) == float(row[column])
    assert min(min(row) for row in table.ratios) == 0.123
    found = implied_penalties(table)
    assert [kind for kind, each in found.items() if not each.negative] == ["FSDP,8,8", "DLRM,8,8", "MoE,2,2"]
    assert sum(not each.fits for each in found.values()) == 6  # ratio 1 beside their twin
    assert found["DLRM,8,8"].eta_over_b == pytest.approx(1 / 0.289 - 2)


def test_the_other_deepshare_files_belong_to_the_table(data_dir: Path) -> None:
    """Samples trained are an hour of the throughput alone: to 0.02 % on 2 GPUs, within the placements' spread on more."""
    folder = data_dir / "deepshare"
    alone = read_isolated_throughputs(folder / "isolated_thp.csv")
    assert tuple(alone) == read_ratio_matrix(folder / "shared_thp_ratio.csv").kinds
    totals = read_total_samples(folder / "total_samples_trained.csv")
    assert len(totals) == 18
    for (model, gpus), samples in totals.items():
        seconds = [samples / rate for kind, rate in alone.items() if kind.rpartition(",")[0] == f"{model},{gpus}"]
        assert min(seconds) / 1.0002 <= 3600 <= max(seconds) * 1.0002
        if gpus == 2:
            assert math.isclose(seconds[0], 3600, rel_tol=2e-4)
