"""Interference: what ``--interference`` takes, rates of two jobs on a GPU, resource vectors, and the built-in tables."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError, RowErrors
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.interference_sources import (
    RESOURCE_TIMES,
    built_in_interference,
    interference,
    interference_of,
    measured_gpus,
    random_interference,
    read_resource_times,
    resource_interference,
    unmeasured_note,
    with_interference,
)
from optsched.speeds.throughput_sources import built_in, read_throughputs

HERE = Cluster.parse("2x2:P100")
OWN: dict[str, Any] = {"ratio": 1.5, "kinds": ["a", "b"], "ratios": [[1.2, None], [None, 1.0]], "source": "by hand"}
GAVEL: dict[str, Any] = {
    "p100": {
        "('a', 1)": {"null": 10.0, "('a', 1)": [5.0, 5.0], "('b', 1)": [8.0, 1.0]},
        "('b', 1)": {"null": 4.0, "('a', 1)": [1.0, 8.0], "('b', 1)": [4.5, 4.5]},
    },
    "v100": {"('a', 1)": {"null": 9.0}},
}


def written(folder: Path, document: Any, name: str = "t.json") -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_numbers_and_names() -> None:
    assert interference("1.3", HERE) == Interference(1.3)
    assert interference(" 1 ", HERE) == Interference(1.0)
    assert interference(1.3, HERE) == Interference(1.3)
    assert interference(Interference(2.5), HERE) == Interference(2.5)
    assert interference("p100", HERE) is built_in_interference("P100")
    assert interference("V100", HERE) is built_in_interference("v100")
    assert interference("Resources", HERE).ratios == resource_interference().ratios


def test_files(tmp_path: Path) -> None:
    assert interference(written(tmp_path, OWN), HERE) == Interference.from_json(OWN)
    assert interference(Path(written(tmp_path, OWN)), HERE) == Interference.from_json(OWN)
    said: list[str] = []
    found = interference(written(tmp_path, GAVEL), HERE, say=said.append)
    assert (found.kinds, found.ratios) == (("a", "b"), ((2.0, 1.25), (4.0, 1.0)))
    assert said == ["interference: 1 of 4 ratios are below 1 and taken as 1"]
    head = "job_id,num_gpu,model_name,iteration_time,resource_time_0,resource_time_1,resource_time_2\n"
    found = interference(written(tmp_path, head + "0,1,m,10,4,7,0\n", "t.csv"), HERE)
    assert (found.kinds, found.ratios) == (("m",), ((1.4,),))


def test_what_to_json_writes_is_read_again(tmp_path: Path) -> None:
    for each in (Interference(1.25), Interference.from_json(OWN), random_interference(["x", "y z"], seed=3)):
        assert interference(written(tmp_path, each.to_json()), HERE) == each


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0.99", "interference.ratio = 0.99: invalid .*from 1"),
        ("-1", "interference.ratio = -1.0"),
        ("nan", "interference.ratio = nan"),
        ("inf", "interference.ratio = inf"),
        ("p10", "neither a number, nor a known table, nor a file.*did you mean p100"),
        ("", "neither a number"),
        ("nowhere.json", "nowhere.json: no such file"),
        ("nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_texts_that_name_nothing(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        interference(text, HERE)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "not a JSON document"),
        ("[]", "not a table of throughputs"),
        ({"ratio": 0.5}, "interference.ratio = 0.5|ratio.*greater than or equal to 1"),
        ({"ratio": "2"}, "ratio.*valid number"),
        ('{"ratio": NaN}', "ratio.*finite"),
        ({}, "says nothing of interference.*Gavel's table"),
        ({"kinds": ["a", "b"], "ratios": [[1, 2]]}, "not a square table.*2 rows of 2"),
        ({"kinds": ["a", "b"], "ratios": [[1, 2], [1]]}, "not a square table"),
        ({"kinds": ["a", "a"], "ratios": [[1, 2], [1, 2]]}, "a kind is given twice"),
        ({"kinds": "a", "ratios": [[1]]}, "kinds = .a.: .*valid (array|list)"),
        ({"kinds": ["a"]}, "not a square table"),
        ({"kinds": ["a"], "ratios": [[0.9]]}, r"interference.ratios\['a', 'a'\] = 0.9"),
        ('{"kinds": ["a"], "ratios": [[Infinity]]}', "ratios.0.0.*finite"),
        ({"kinds": ["a"], "ratios": [[1]], "penalty": 3}, "penalty"),
        ({"p100": {"('a', 1)": {"null": -1}}}, "invalid"),
        ({"k80": {"('a', 1)": {"null": 1}}}, "no rates of two jobs on one P100.*on none"),
    ],
)
def test_files_that_are_not_legal(document: Any, told: str, tmp_path: Path) -> None:
    path = written(tmp_path, document)
    with pytest.raises(InputError, match=told) as error:
        interference(path, HERE)
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_a_text_is_not_a_list_of_kinds() -> None:
    with pytest.raises(InputError, match=r"interference.kinds = 'ab'.*a list of names"):
        Interference(2, "ab", ((1, 1), (1, 1)))  # type: ignore[arg-type]


def test_gavels_table_needs_one_type_of_gpu(tmp_path: Path) -> None:
    path = written(tmp_path, GAVEL)
    with pytest.raises(InputError, match=r"rates of which GPU type\? \(expected: a cluster of one GPU type"):
        interference(path, Cluster.parse("1x1:P100+1x1:V100"))
    with pytest.raises(InputError, match=r"no rates of two jobs on one V100.*on p100"):
        interference(path, Cluster.parse("1x1:V100"))
    assert interference(written(tmp_path, OWN), Cluster.parse("1x1:P100+1x1:V100")).ratio == 1.5


def test_drawn_tables_are_reproducible_and_exponential() -> None:
    kinds = [str(k) for k in range(60)]
    one = random_interference(kinds, 0.5, 7)
    assert one == random_interference(kinds, 0.5, 7)
    assert one.ratios != random_interference(kinds, 0.5, 8).ratios
    values = np.array(one.ratios)
    assert values.min() > 1
    assert (values != values.T).mean() > 0.9  # each ordered pair has its own
    assert values.mean() - 1 == pytest.approx(0.5, abs=4 * 0.5 / 60)  # standard error of 3600 draws: mean / 60
    assert (values > 1.5).mean() == pytest.approx(np.exp(-1), abs=0.033)
    assert random_interference(kinds[:1], 0).ratios == ((1.0,),)
    for mean in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="finite number >= 0"):
            random_interference(kinds, mean)


def of(*models: str | None, table: Interference | None = None) -> Instance:
    return Instance([Job(str(k), duration=1, model=name) for k, name in enumerate(models)], "1x1", interference=table)


def test_asked_interference_replaces_what_the_instance_states() -> None:
    stated = of("a", table=Interference(3)).replace(
        optimum={"objective": "makespan", "class": "gpu-sharing", "value": 1, "proved_by": []}
    )
    assert with_interference(stated, None) is stated
    for asked in (1.5, "1.5", Interference(1.5)):
        found = with_interference(stated, asked)
        assert found.interference == Interference(1.5)
        assert found.optimum is None  # proved for something else


def test_models_that_nobody_measured_are_named_once() -> None:
    table = Interference(2.5, ("a",), ((1.1,),))
    assert unmeasured_note(of("a", "a", table=table)) is None
    assert unmeasured_note(of("x", table=Interference(2))) is None  # no table: nothing is missing in it
    assert unmeasured_note(of("x")) is None
    said: list[str] = []
    with_interference(of("b", "a", None, "b", "c", "d", "e", "f", "g"), table, say=said.append)
    listed = "b, jobs without a model, c, d, e, f and 1 more"
    assert said == [f"interference: no measurements of {listed}: next to other jobs they run 2.5 x as long"]


# -- measured on shared GPUs: the public file and the built-in tables -----------------------------------------------------


LM, RESNET = "LM (batch size 5)", "ResNet-50 (batch size 16)"
ONE = {("a", "P100", 1): Throughput(10.0), ("b", "P100", 1): Throughput(4.0)}


def test_ratios_are_rates_alone_over_rates_beside_the_other() -> None:
    pairs = {
        ("P100", ("a", 1), ("a", 1)): (5.0, 5.0),
        ("P100", ("a", 1), ("b", 1)): (8.0, 1.0),
        ("P100", ("b", 1), ("b", 1)): (2.5, 2.5),
    }
    found = interference_of(Throughputs(ONE, pairs), "p100")
    assert found.kinds == ("a", "b")
    assert found.ratios == ((2.0, 10 / 8), (4.0, 4 / 2.5))
    assert found.slowdown("b", "a") == 4  # b crawls beside a, not a beside b


def test_the_direction_in_which_a_pair_is_listed_does_not_matter() -> None:
    pairs = {("P100", ("a", 1), ("b", 1)): (8.0, 1.0), ("P100", ("a", 1), ("a", 1)): (5.0, 5.0)}
    turned = {("p100", ("b", 1), ("a", 1)): (1.0, 8.0), ("P100", ("a", 1), ("a", 1)): (5.0, 5.0)}
    assert interference_of(Throughputs(ONE, pairs), "P100") == interference_of(Throughputs(ONE, turned), "P100")


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.0, 3.0), (3.0, 0.0)])
def test_a_rate_of_zero_keeps_a_pair_apart_in_both_directions(rates: tuple[float, float]) -> None:
    pairs = {("P100", ("a", 1), ("b", 1)): rates, ("P100", ("a", 1), ("a", 1)): (5.0, 5.0)}
    found = interference_of(Throughputs(ONE, pairs), "P100", ratio=3)
    assert found.ratios == ((2.0, None), (None, 3.0))  # (b, b) is not in the table
    assert found.table(["a", "b"]).tolist() == [[2, math.inf], [math.inf, 3]]


def test_what_is_changed_or_missing_is_said_with_its_count() -> None:
    pairs = {("P100", ("a", 1), ("b", 1)): (10.5, 1.0)}
    said: list[str] = []
    found = interference_of(Throughputs(ONE, pairs), "P100", say=said.append)
    assert found.ratios == ((2.0, 1.0), (4.0, 2.0))
    assert said == [
        "interference: 1 of 4 ratios are below 1 and taken as 1",
        "interference: 2 of 4 pairs were not measured and run 2 x as long",
    ]
    assert found.source.endswith("on one P100, 1 ratios below 1 taken as 1")


def test_only_pairs_of_single_gpus_of_that_type_count() -> None:
    entries = {**ONE, ("a", "V100", 1): Throughput(20.0), ("c", "P100", 1): Throughput(0.0)}
    pairs = {
        ("V100", ("a", 1), ("a", 1)): (19.0, 19.0),
        ("P100", ("a", 2), ("b", 2)): (1.0, 1.0),
        ("P100", ("a", 1), ("c", 1)): (1.0, 0.0),  # c runs on no P100, alone or not
    }
    with pytest.raises(InputError, match=r"no rates of two jobs on one P100 \(expected: .* on V100\)|on P100, V100"):
        interference_of(Throughputs(entries, pairs), "P100")
    assert interference_of(Throughputs(entries, pairs), "V100").kinds == ("a",)
    with pytest.raises(InputError, match="those of this one are on none"):
        interference_of(Throughputs(entries), "V100")


def test_the_built_in_tables_name_the_job_types_of_the_built_in_rates() -> None:
    assert measured_gpus() == ("K80", "P100", "V100")
    for gpu in measured_gpus():
        found = built_in_interference(gpu.lower())
        assert found.kinds == built_in().job_types
        assert found.ratio == 2
        apart = [[value is None for value in row] for row in found.ratios]
        assert apart == np.transpose(apart).tolist()
    p100 = built_in_interference("P100")
    assert p100.slowdown(LM, RESNET) == 3.37
    assert p100.slowdown(RESNET, LM) == 1.20
    with pytest.raises(InputError, match=r"'p10'.*did you mean"):
        built_in_interference("p10")


# GPU: pairs that run, least, 10 %, median, mean, 90 %, most, per cent below 1.5, exactly 1, that gain by sharing
PRINTED = {
    "K80": (589, 1.16, 1.46, 1.87, 1.95, 2.53, 4.25, 13, 0, 75),
    "P100": (656, 1.01, 1.27, 1.70, 1.78, 2.40, 3.56, 33, 0, 87),
    "V100": (636, 1.00, 1.00, 1.47, 1.91, 3.25, 10.97, 52, 13, 78),
}


def spread_of(found: Interference) -> tuple[float, ...]:
    table = found.table(built_in().job_types)
    runs = np.isfinite(table)
    values = table[runs]
    gains = (1 / table + 1 / table.T)[runs] > 1
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    shares = (np.mean(values < 1.5), np.mean(values == 1), np.mean(gains))
    sizes = (values.size, values.min(), low, middle, values.mean(), high, values.max())
    return (*sizes, *(float(100 * each) for each in shares))


@pytest.mark.parametrize("gpu", PRINTED)
def test_the_built_in_tables_have_the_printed_quantiles(gpu: str) -> None:
    found = spread_of(built_in_interference(gpu))
    assert found[:7] == pytest.approx(PRINTED[gpu][:7], abs=0.0051)
    assert found[7:] == pytest.approx(PRINTED[gpu][7:], abs=1.6)  # 1.4957 is below 1.5, its two decimals are not


def test_the_public_file_gives_the_built_in_table_and_exactly_the_printed_quantiles(data_dir: Path) -> None:
    said: list[str] = []
    throughputs = read_throughputs(data_dir / "gavel" / "simulation_throughputs.json")
    for gpu in measured_gpus():
        read = interference_of(throughputs, gpu, say=said.append)
        found = spread_of(read)
        assert found[:7] == pytest.approx(PRINTED[gpu][:7], abs=0.00501)
        assert tuple(round(each) for each in found[7:]) == PRINTED[gpu][7:]
        built = built_in_interference(gpu)
        assert set(read.kinds) == set(built.kinds)
        np.testing.assert_allclose(read.table(built.kinds), built.table(built.kinds), atol=0.0051)
    assert said == []  # nothing below 1, nothing missing


# -- resource vectors -----------------------------------------------------------------------------------------------------


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
