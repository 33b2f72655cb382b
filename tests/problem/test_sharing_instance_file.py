"""Instance files with interference, scaling profiles and batch sizes: round trips, digests, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError, RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.instance_file import json_schema
from optsched.problem.interference import Interference
from optsched.problem.scaling import MeasuredSteps, Scaling

GPUS = Cluster((NodeGroup(count=2, gpus=2, gpu_memory=100.0),))
TABLE = Interference(1.5, ("net", "m"), ((1.25, None), (None, 1 / 3 + 1)), "by hand")
NET = Scaling(
    0.1,
    0.002,
    within=0.01,
    within_growth=0.001,
    across=0.05,
    across_growth=0.02,
    overlap=1.7,
    most_local=48,
    memory=20.0,
    memory_per_sample=1.5,
    iterations=((64, 1000.0), (128, 600.5)),
    measured=MeasuredSteps(((2, 32.0, 0.2, 0.01), (11, 32.0, 0.3, 0.1)), ((1, 2, 32.0, 0.2, 0.01),)),
)
JOBS = [
    Job("a", gpus=2, iterations=100, profile="net", batch_size=128),
    Job("b", arrival=3, iterations=50, profile="net", batch_size=7, gpu_memory=50.0),
    Job("c", duration=5, model="m", gpu_memory=10),
]
WHOLE = Instance(JOBS, GPUS, "shares", scalings={"net": NET, "spare": Scaling(0, 1)}, interference=TABLE)


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_round_trip(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"i{suffix}"
    WHOLE.save(path)
    read = Instance.load(path)
    assert read.interference == TABLE  # `source`, too
    assert read.scalings == WHOLE.scalings
    assert read.jobs == WHOLE.jobs
    assert [job.batch_size for job in read.jobs] == [128, 7, None]
    assert read.digest == WHOLE.digest
    assert [read.sub_batches(j) for j in range(3)] == [WHOLE.sub_batches(j) for j in range(3)]
    read.save(tmp_path / f"again{suffix}")
    assert Instance.load(tmp_path / f"again{suffix}").to_json() == WHOLE.to_json()


def test_the_memory_that_a_sub_batch_left_stays_what_it_was(tmp_path: Path) -> None:
    # 64 samples a GPU in two steps of 32: 20 + 1.5 x 32 of 100 bytes; the second job states its own
    assert WHOLE.gpu_memory.tolist() == [68, 50, 10]
    path = tmp_path / "i.json"
    WHOLE.save(path)
    assert Instance.load(path).gpu_memory.tolist() == [68, 50, 10]


def test_it_is_what_the_schema_says(tmp_path: Path) -> None:
    jsonschema.validate(json.loads(json.dumps(WHOLE.to_json())), json_schema())


@given(
    st.floats(1, 1e6), st.lists(st.lists(st.none() | st.floats(1, 1e6), min_size=3, max_size=3), min_size=3, max_size=3)
)
def test_any_table_survives_a_file(ratio: float, rows: list[list[float | None]]) -> None:
    table = Interference(ratio, ("x", "y", "z ü"), tuple(map(tuple, rows)))
    assert Interference.from_json(json.loads(json.dumps(table.to_json()))) == table


def changed(**changes: Any) -> str:
    return WHOLE.replace(**changes).digest


def test_the_digest_changes_with_what_decides_a_value() -> None:
    other = [
        changed(interference=None),
        changed(interference=Interference(1.6, TABLE.kinds, TABLE.ratios)),
        changed(interference=Interference(1.5, TABLE.kinds, ((1.26, None), (None, 4 / 3)))),
        changed(interference=Interference(1.5, TABLE.kinds, ((1.25, 9.0), (9.0, 4 / 3)))),
        changed(jobs=[Job("a", gpus=2, iterations=100, profile="net", batch_size=126), *JOBS[1:]]),
        changed(scalings={"net": Scaling(0.1, 0.003, memory=20, memory_per_sample=1.5)}),
    ]
    assert len({WHOLE.digest, *other}) == len(other) + 1


def test_the_digest_ignores_what_decides_nothing() -> None:
    assert changed(interference=Interference(1.5, TABLE.kinds, TABLE.ratios, "elsewhere")) == WHOLE.digest
    more = ("net", "m", "nobody"), ((1.25, None, 2.0), (None, 4 / 3, 2.0), (2.0, 2.0, 2.0))
    assert changed(interference=Interference(1.5, *more)) == WHOLE.digest
    assert changed(scalings={"net": NET}) == WHOLE.digest
    one_way = Interference(1.5, TABLE.kinds, ((1.25, 3.0), (None, 4 / 3)))  # None in one direction keeps both apart
    assert changed(interference=one_way) == WHOLE.digest


DOCUMENT: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}]},
    "jobs": [{"id": "a", "iterations": 3, "profile": "net", "batch_size": 4}],
    "scalings": {"net": {"compute": 1, "per_sample": 1, "memory": 2, "memory_per_sample": 1}},
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"interference": {"ratio": 0.9}}, r"interference\.ratio = 0\.9"),
        ({"interference": {"ratio": "2"}}, r"interference\.ratio = '2'"),
        ({"interference": {"kinds": ["a"], "ratios": [[1, 1]]}}, "not a square table"),
        ({"interference": {"kinds": ["a"], "ratios": [[0]]}}, r"interference\.ratios\['a', 'a'\] = 0"),
        ({"interference": {"kinds": ["a", "a"], "ratios": [[1, 1], [1, 1]]}}, "a kind is given twice"),
        ({"interference": {"xi": 2}}, r"interference\.xi"),
        ({"scalings": {"net": {"compute": -1, "per_sample": 1}}}, r"scalings\.net\.compute = -1"),
        ({"scalings": {"net": {"compute": 0, "per_sample": 0}}}, "an iteration takes no time"),
        ({"scalings": {"net": {"compute": 1, "per_sample": 1, "overlap": 0.5}}}, r"scalings\.net\.overlap"),
        ({"jobs": [{"iterations": 3, "profile": "net"}]}, r"row 1, batch_size.*missing"),
        ({"jobs": [{"iterations": 3, "profile": "net", "batch_size": 0}]}, r"row 1, batch_size = 0"),
        (
            {"scalings": {"net": {"compute": 1, "per_sample": 1, "memory": 9.5, "memory_per_sample": 1}}},
            r"row 1, gpu_memory = 10\.5: net does not fit .*sub-batch 1",
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".json"])
def test_mistakes(change: dict[str, Any], told: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"i{suffix}"
    path.write_text(json.dumps({**DOCUMENT, **change}))
    with pytest.raises(InputError, match=told) as error:
        Instance.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value) or isinstance(error.value, RowErrors)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_ratios_are_finite(number: str, tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    for part in (f'{{"ratio": {number}}}', f'{{"kinds": ["a"], "ratios": [[{number}]]}}'):
        text = json.dumps(DOCUMENT)[:-1] + f', "interference": {part}}}'
        path.write_text(text)
        with pytest.raises(InputError, match="interference"):
            Instance.load(path)
