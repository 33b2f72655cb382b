"""What ``--interference`` takes: numbers, names, files, and one clear line for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.speeds.interference_sources import (
    built_in_interference,
    interference,
    random_interference,
    resource_interference,
    unmeasured_note,
    with_interference,
)

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
    assert said == [f"interference: no measurements of {listed}: beside others they run 2.5 x as long"]
