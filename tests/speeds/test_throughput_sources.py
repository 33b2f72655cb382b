"""Gavel's file, the built-in table against it, and the rules that fill gaps."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.throughput_sources import (
    DEVICES,
    built_in,
    completed,
    is_known,
    performance_ratio,
    read_throughputs,
)

A, B = "ResNet-18 (batch size 128)", "LM (batch size 5)"
KEY_A, KEY_B = f"('{A}', 1)", f"('{B}', 1)"


def written(tmp_path: Path, document: Any) -> Path:
    path = tmp_path / "rates.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_gavels_form_is_read(tmp_path: Path) -> None:
    document = {
        "v100": {
            KEY_A: {"null": 18.0, KEY_B: [9.0, 50.0], KEY_A: [8, 8]},
            f"('{A}', 2)": {"null": 24},
            KEY_B: {KEY_A: [50.0, 9.0]},
        },
        "v100_unconsolidated": {KEY_A: {"null": 17.5, KEY_B: [1.0, 1.0]}, f"('{A}', 2)": {"null": 24.5}},
        "t4_unconsolidated": {f"('{B}', 4)": {"null": 3.0}},
    }
    table = read_throughputs(written(tmp_path, document))
    assert table.get(A, "V100", 1) == Throughput(18.0)  # one GPU is never spread
    assert table.get(A, "V100", 2) == Throughput(24.0, 24.5)
    assert table.get(B, "V100", 1) is None  # only its pairs are known
    assert table.get(B, "T4", 4) == Throughput(3.0, 3.0)
    assert table.together_with("V100", (A, 1), (B, 1)) == (9.0, 50.0)
    assert table.together_with("V100", (A, 1), (A, 1)) == (8.0, 8.0)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "not a JSON document"),
        ("[" * 100_000, "not a JSON document"),
        ("[]", "an object of worker types"),
        ("{}", "an object of worker types"),
        ({"v100": 3}, "v100: not a worker type"),
        ({"_unconsolidated": {}}, "not a worker type"),
        ({"v100": {KEY_A: 3}}, r"v100\.\('ResNet.* = 3"),
        (
            {"v100": {KEY_A: {"null": -1}}},
            r"v100\..*null = -1: invalid \(expected: a finite number of iterations/s >= 0",
        ),
        ('{"v100": {"' + KEY_A + '": {"null": NaN}}}', "= nan"),
        ('{"v100": {"' + KEY_A + '": {"null": Infinity}}}', "= inf"),
        ('{"v100": {"' + KEY_A + '": {"null": 1' + "0" * 400 + "}}}", "invalid"),
        ({"v100": {KEY_A: {"null": "fast"}}}, "= 'fast'"),
        ({"v100": {KEY_A: {"null": True}}}, "= True"),
        ({"v100": {KEY_A: {"null": None}}}, "= None"),
        ({"v100": {KEY_A: {KEY_B: 3.0}}}, "two numbers"),
        ({"v100": {KEY_A: {KEY_B: [3.0, -1.0]}}}, "= -1.0"),
        ({"v100_unconsolidated": {KEY_A: {KEY_B: [3.0, -1.0]}}}, "v100_unconsolidated.*= -1.0"),
        ({"v100": {KEY_A: {"LM": [3.0, 1.0]}}}, "= 'LM': not a key"),
        ({"v100": {"(": {}}}, "not a key"),
        ({"v100": {"('LM', 0)": {}}}, "not a key"),
        ({"v100": {"('LM', True)": {}}}, "not a key"),
        ({"v100": {"('LM', 1, 2)": {}}}, "not a key"),
        ({"v100": {"(3, 1)": {}}}, "not a key"),
        ({"v100": {"__import__('os').getcwd()": {}}}, "not a key"),
        ({"v100": {"(" * 5000: {}}}, "not a key"),
        ({"v100": {"7": {}}}, "not a key"),
        ({"v100": {KEY_A: {"null": 1}}, "V100": {KEY_A: {"null": 1}}}, "given twice"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_in_one_line(tmp_path: Path, document: Any, told: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(InputError, match=told) as caught:
        read_throughputs(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json"):
        read_throughputs(tmp_path / "nowhere.json")


def test_the_built_in_table_is_the_public_one_to_two_decimals(data_dir: Path) -> None:
    public = read_throughputs(data_dir / "gavel" / "simulation_throughputs.json")
    shipped = built_in()
    assert {(j, g.casefold(), n) for j, g, n in shipped.entries} == set(public.entries)
    for key, entry in public.entries.items():
        own = shipped.get(*key)
        assert own is not None
        assert own.together == pytest.approx(entry.together, abs=0.005001)
        assert (own.spread is None) == (entry.spread is None)
        assert own.over_nodes == pytest.approx(entry.over_nodes, abs=0.005001)
    assert len(public.pairs) == 3 * (26**2 + 3 * 19**2)
    assert Throughputs.from_json(public.to_json()).entries == public.entries


def test_the_built_in_table_stands_without_the_public_one() -> None:
    table = built_in()
    assert len(table.job_types) == 26
    assert len(table.entries) == 3 * 26 + 3 * 3 * 19
    assert table.get(A, "v100", 1) == Throughput(17.99)
    assert table.get(A, "v100", 4) == Throughput(69.95, 35.36)
    assert table.get("ResNet-50 (batch size 128)", "K80", 2) == Throughput(0.0)
    assert table.get("ResNet-50 (batch size 64)", "K80", 8) == Throughput(4.57)
    assert "MIT" in (resources.files("optsched.speeds") / "gavel_throughputs.csv").read_text(encoding="utf-8")


GAPS = Throughputs(
    {
        (A, "K80", 1): Throughput(2.0),
        (A, "K80", 2): Throughput(0.0),
        (A, "V100", 1): Throughput(16.0),
        (A, "V100", 4): Throughput(40.0, 30.0),
        (B, "P100", 2): Throughput(10.0, 8.0),
        ("big", "K80", 1): Throughput(0.0),
    }
)


def test_nothing_is_derived_and_said_where_nothing_is_missing() -> None:
    said: list[str] = []
    same = completed(GAPS, [(A, 1), (A, 1)], ["k80", "V100"], strict=True, say=said.append)
    assert same == GAPS
    assert said == []


def test_measured_zeros_stay() -> None:
    assert completed(GAPS, [(A, 2)], ["K80", "V100"]).get(A, "K80", 2) == Throughput(0.0)


def test_unknown_gang_sizes_are_multiples_of_the_one_gpu_rate() -> None:
    said: list[str] = []
    table = completed(GAPS, [(A, 3), (B, 6)], ["v100", "V100", "P100"], say=said.append)
    assert table.get(A, "V100", 3) == Throughput(48.0, measured=False)
    assert table.get(B, "P100", 6) == Throughput(30.0, 24.0, measured=False)  # three times the smallest known gang
    first, second = said
    assert "N times the one-GPU rate" in first
    assert f"{A} on 3 V100" in first
    assert f"{B} on 6 P100" in first
    assert "FP32" in second


def test_unknown_gpu_types_are_scaled_from_the_nearest_in_performance() -> None:
    said: list[str] = []
    table = completed(GAPS, [(A, 1), (A, 4)], ["A100", "T4", "T400"], say=said.append)
    # T4 8.1 is nearer to V100 15.7 than to K80 4.1; T400 1.1 is nearer to K80
    assert table.get(A, "A100", 1) == Throughput(16.0 * (312 / 125), measured=False)  # both have tensor cores
    assert table.get(A, "T4", 1) == Throughput(16.0 * (8.1 / 15.7), measured=False)
    assert table.get(A, "T400", 1) == Throughput(2.0 * (1.1 / 4.1), measured=False)
    # gangs of four are measured on V100 only: that goes before a nearer type at N times its one-GPU rate
    assert table.get(A, "T400", 4) == Throughput(40.0 * (1.1 / 15.7), 30.0 * (1.1 / 15.7), measured=False)
    assert len(said) == 1
    for name in ("A100", "T4", "T400", "V100", A):
        assert name in said[0]


def test_a_gang_that_does_not_fit_is_no_reason_for_another_type() -> None:
    table = completed(GAPS, [(A, 2)], ["T400"])
    assert table.get(A, "T400", 2) == Throughput(2 * 16.0 * (1.1 / 15.7), measured=False)  # from V100, not K80's zero


def test_types_that_nobody_can_scale_from_are_passed_over() -> None:
    table = Throughputs({(A, "odd", 1): Throughput(3.0), (A, "K80", 1): Throughput(2.0)})
    assert completed(table, [(A, 1)], ["odd", "T4"]).get(A, "T4", 1) == Throughput(2.0 * (8.1 / 4.1), measured=False)
    with pytest.raises(InputError, match="'odd'"):
        completed(table.restricted([A]), [(A, 1)], ["T4"]) and completed(
            Throughputs({(A, "odd", 1): Throughput(3.0)}), [(A, 1)], ["T4"]
        )


def test_many_derived_rows_are_one_short_line() -> None:
    said: list[str] = []
    completed(built_in(), [(job, 3) for job in built_in().job_types], ["V100"], say=said.append)
    assert len(said) == 1
    assert "and 20 more" in said[0]


@pytest.mark.parametrize(
    ("wanted", "types", "strict", "told"),
    [
        ([("ResNet-18 (batch size 129)", 1)], ["V100"], False, rf"did you mean .*{A[:9]}"),
        ([(A, 1)], ["GPU"], False, "gpu = 'GPU': the performance .* is not known .*K80"),
        ([("big", 1)], ["K80"], False, r"'big': throughput of zero for every type of the cluster \(K80\)"),
        ([("big", 2)], ["K80", "V100"], False, r"throughput of zero for every type of the cluster \(K80, V100\)"),
        ([(A, 1), (A, 3)], ["K80"], True, f"'{A.split()[0]}.* on 3 K80'.*no such row"),
        ([(A, 1)], ["T4"], True, "on 1 T4"),
    ],
)
def test_what_cannot_be_filled_is_refused(wanted: Any, types: list[str], strict: bool, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        completed(GAPS, wanted, types, strict=strict)
    assert "\n" not in str(caught.value)


# dense FP16 products on tensor cores over V100's 125, from the data sheets
@pytest.mark.parametrize(("gpu", "peak"), [("A100", 312), ("H100", 989), ("L40S", 362), ("RTX 4090", 165)])
def test_newer_devices_are_scaled_from_the_one_with_tensor_cores(gpu: str, peak: float) -> None:
    said: list[str] = []
    # P100 runs it faster, and is as far away in single precision or nearer
    table = Throughputs({(A, "V100", 1): Throughput(10.0), (A, "P100", 1): Throughput(30.0)})
    rate = completed(table, [(A, 1)], [gpu], say=said.append).get(A, gpu, 1)
    assert rate is not None
    assert rate.together == pytest.approx(10.0 * peak / 125)
    assert not rate.measured
    assert said == [
        f"throughputs: GPU types not in the table are scaled by peak speed: {gpu} = {peak / 125:.3g} x V100 (FP16 "
        f"tensor) for {A} on 1"
    ]


def test_devices_without_tensor_cores_compare_by_single_precision() -> None:
    assert performance_ratio("K80") == 4.1 / 15.7
    assert performance_ratio("H100", "P100") == 67 / 9.5
    assert performance_ratio("RTX 4090", "RTX 3090") == 82.6 / 35.6
    for one in DEVICES:
        for two in DEVICES:
            assert performance_ratio(one, two) * performance_ratio(two, one) == pytest.approx(1)


def test_device_names_match_loosely() -> None:
    for gpu in DEVICES:
        assert performance_ratio(gpu.upper().replace(" ", "_"), gpu.lower()) == 1
    assert not is_known("V1000")
    with pytest.raises(InputError, match="V100"):
        performance_ratio("V1000")
