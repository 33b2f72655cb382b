"""Seeds, records, parameters and refusals of `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces import generate as of
from optsched.io.traces.generate import RECIPES, generate, settings
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance

NAMES = RECIPES.names()
FIXED = "sharing-partners"  # the same whatever the seed: at least two jobs


def test_the_recipes_there_are() -> None:
    assert {"a-srpt-small", "machines", "philly-like", "poisson", "rigid", "tardiness", "hadar-60", FIXED} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_instance_and_another_seed_another(name: str) -> None:
    first, again, other = generate(name, 5, jobs=50), generate(name, seed=5, jobs="50"), generate(name, 6, jobs=50)
    assert first.table.equals(again.table)
    assert first.digest == again.digest
    assert (first.digest == other.digest) == (name == FIXED)
    assert first.n == 50
    assert first.name == f"{name}-5"


TOLD = [
    ("ada-srsf", {"seconds_per_byte": 1e-9, "penalty": 0, "latency": 6.69e-4}),
    ("sharing-cluster", {"load": 0.7, "xi": "exp"}),
    ("sharing-gavel", {"gpu": "K80"}),
    ("sharing-vectors", {"xi": 1.5}),
    ("sharing-small", {"gpus": 2, "whole": True}),
    ("recurring", {"load": 0.6, "nic_bandwidth": 1.25e9, "plain": True}),
    ("sharing-partners", {"gang": "uniform:low=1,high=2"}),
]


@pytest.mark.parametrize(("name", "told"), [*((name, {}) for name in NAMES), *TOLD])
def test_the_record_in_a_file_is_enough_to_make_the_instance_again(
    name: str, told: dict[str, object], tmp_path: Path
) -> None:
    made = generate(name, 3, jobs=20, **told)
    made.save(tmp_path / "made.json")
    record = Instance.load(tmp_path / "made.json").recipe
    again = generate(record["name"], record["seed"], **record["parameters"])
    assert again.digest == made.digest
    assert again.recipe == made.recipe


def test_the_record_holds_laws_and_clusters_as_text() -> None:
    record = generate("poisson", 1, jobs=5, duration="lognormal:sigma=2", gpus="uniform:high=4", load="0.5").recipe
    assert record["parameters"] == {
        "jobs": 5,
        "cluster": "8x8",
        "arrivals": "poisson",
        "load": 0.5,
        "duration": "lognormal:mean=3600,sigma=2",
        "gpus": "uniform:low=1,high=4",
        "heaviest": 1,
        "whole": False,
    }
    assert record["derived"] == {"gap": 2.5 * 3600 / (64 * 0.5), "load": 0.5}


@pytest.mark.parametrize("name", NAMES)
def test_one_job_and_many(name: str) -> None:
    assert generate(name, jobs=1 + (name == FIXED)).n == 1 + (name == FIXED)
    assert generate(name, jobs=200).n == 200


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"no recipe named 'poison'.*did you mean poisson"):
        generate("poison")
    with pytest.raises(InputError, match=r"job: recipe machines has no such parameter.*did you mean jobs"):
        generate("machines", job=3)
    for seed in (-1, 1.5, True, "3"):
        with pytest.raises(InputError, match="seed"):
            generate("machines", seed)
    assert generate("machines", np.int64(3)).digest == generate("machines", 3).digest


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a-srpt-small", {"widest": 5}, r"widest = 5.*at most gpus = 4"),
    ("poisson", {"gap": 1, "load": 1}, "gap and load"),
    ("poisson", {"cluster": "1x4", "gpus": "constant:value=8"}, "no gang fits"),
    *(
        ("ada-srsf", {key: value}, f"{key} = .*recipe ada-srsf")
        for key, value in (("scale", 0), ("penalty", -1), ("network", "100g"), ("memory", 0), ("seconds_per_byte", 0))
    ),
    ("ada-srsf", {"memory": 4e9}, r"memory = .*too small"),  # VGG-16 needs more
    ("ddl-small", {"widest": 17}, "widest"),
    ("recurring", {"one_off": 1.5}, "one_off = 1.5: recipe recurring.*at most 1"),
    ("recurring", {"load": 0}, "load = 0: invalid"),
    ("recurring", {"nic_bandwidth": 0}, "nic_bandwidth = 0: invalid"),
    ("recurring", {"gpus": "constant:value=100"}, "no gang fits"),
    ("recurring", {"bandwidth": 1}, "bandwidth: recipe recurring has no such parameter.*nic_bandwidth"),
    *(
        ("sharing-cluster", {key: value}, f"{key} = .*recipe sharing-cluster")
        for key, value in (("xi", 0.9), ("xi", "nan"), ("xi", "p100"), ("load", 0), ("hours", -1), ("mix", "philly"))
    ),
    ("sharing-cluster", {"memory": 8e9}, r"at least 9\.6e"),
    ("sharing-gavel", {"gpu": "A100"}, "gpu = "),
    *(("sharing-small", {"xi": xi}, r"xi = .*from 1") for xi in ("0.9", "nan", "inf", "expo", True, -1)),
    ("gavel-static", {"shortest": 10, "longest": 5}, "longest"),
    ("gavel-static", {"cluster": "4x2"}, "performance of this GPU type is not known"),
    ("hadar-mix", {"uneven": 1}, "uneven"),
    ("hadar-mix", {"longest": 5}, "longest"),
    ("hadar-60", {"classes": "odd"}, "classes"),
]


@pytest.mark.parametrize(("name", "given", "told"), REFUSED, ids=str)
def test_what_a_recipe_refuses(name: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        generate(name, 1, **given)


def test_settings_of_the_command_line() -> None:
    assert settings(["jobs=10", " gpu-count = weights:1=2,2=1 "]) == {"jobs": "10", "gpu_count": "weights:1=2,2=1"}
    for texts in (["jobs"], ["=3"], ["jobs="], ["jobs=1", "jobs=2"]):
        with pytest.raises(InputError, match="--set"):
            settings(texts)


# -- Parameters: typed from values and from the text of the command line, or refused with what is legal -------------------


@pytest.mark.parametrize(
    ("parameter", "given", "expected"),
    [
        (of.integer(3, "m"), "7", 7),
        (of.integer(3, "m"), 7, 7),
        (of.integer(3, "m"), "1e3", 1000),
        (of.integer(3, "m"), None, 3),
        (of.integer(None, "m"), None, None),
        (of.integer(0, "m", least=0), "0", 0),
        (of.number(None, "m"), "0.5", 0.5),
        (of.non_negative(0.6, "m"), "0", 0.0),
        (of.choice("a", ("a", "b"), "m"), "b", "b"),
        (of.yes_or_no(False, "m"), "true", True),
        (of.yes_or_no(True, "m"), False, False),
        (of.cluster("8x8"), "2x4", Cluster.parse("2x4")),
        (of.cluster("8x8"), Cluster.parse("2x4"), Cluster.parse("2x4")),
    ],
)
def test_values_that_are_legal(parameter: of.Parameter, given: Any, expected: Any) -> None:
    found = parameter.resolve("test", "key", given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        (of.integer(3, "m"), "0"),
        (of.integer(3, "m"), "1.5"),
        (of.integer(3, "m"), "many"),
        (of.integer(3, "m"), "inf"),
        (of.integer(3, "m"), "nan"),
        (of.integer(3, "m"), True),
        (of.integer(3, "m"), [4]),
        (of.integer(3, "m"), 10**9),
        (of.number(1.0, "m"), "0"),
        (of.number(1.0, "m"), "nan"),
        (of.number(1.0, "m"), "-1"),
        (of.non_negative(1.0, "m"), "-0.1"),
        (of.non_negative(1.0, "m"), "inf"),
        (of.choice("a", ("a", "b"), "m"), "c"),
        (of.yes_or_no(False, "m"), "maybe"),
    ],
)
def test_values_that_are_not_legal(parameter: of.Parameter, given: Any) -> None:
    with pytest.raises(InputError) as caught:
        parameter.resolve("test", "key", given)
    text = str(caught.value)
    assert "recipe test" in text
    assert f"key = {given!r}" in text
    assert parameter.legal in text


def test_every_recipe_documents_its_parameters() -> None:
    for name, each in of.RECIPES.items():
        assert each.name == name
        assert each.summary.endswith(".")
        assert all(parameter.meaning and parameter.legal for parameter in each.parameters.values())
        assert "jobs" in each.parameters
