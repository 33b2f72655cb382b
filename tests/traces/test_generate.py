"""Seeds, records and refusals of `generate`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import RECIPES, generate, settings
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
    ("sharing-partners", {"gang": "uniform:low=1,high=2"}),
]


@pytest.mark.parametrize(("name", "told"), [*((name, {}) for name in NAMES), *TOLD])
def test_the_record_in_a_file_is_enough_to_make_the_instance_again(
    name: str, told: dict[str, object], tmp_path: Path
) -> None:
    made = generate(name, 3, jobs=20, **told)
    made.save(tmp_path / "made.json")
    record = Instance.load(tmp_path / "made.json").recipe
    assert record is not None
    again = generate(record["name"], record["seed"], **record["parameters"])
    assert again.digest == made.digest
    assert again.recipe == made.recipe


def test_the_record_holds_laws_and_clusters_as_text() -> None:
    record = generate("poisson", 1, jobs=5, duration="lognormal:sigma=2", gpus="uniform:high=4", load="0.5").recipe
    assert record is not None
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
            generate("machines", seed)  # type: ignore[arg-type]
    assert generate("machines", np.int64(3)).digest == generate("machines", 3).digest  # type: ignore[arg-type]


def test_settings_of_the_command_line() -> None:
    assert settings(["jobs=10", " gpu-count = weights:1=2,2=1 "]) == {"jobs": "10", "gpu_count": "weights:1=2,2=1"}
    for texts in (["jobs"], ["=3"], ["jobs="], ["jobs=1", "jobs=2"]):
        with pytest.raises(InputError, match="--set"):
            settings(texts)
