"""Bad stage graphs, bandwidths and predictors on the command line: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.release

GOOD: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"count": 2, "gpus": 4, "nic_bandwidth": 5e9, "intra_bandwidth": 25e9}]},
    "profiles": {
        "m": {
            "stages": [
                {"name": "a", "replicas": 2, "forward": 0.1, "backward": 0.2, "parameters": 1e9, "activations": 1e6},
                {"name": "b", "replicas": 1, "forward": 0.1, "backward": 0.2},
            ]
        }
    },
    "jobs": [{"id": "x", "gpus": 3, "iterations": 10, "profile": "m"}],
}


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    change(document)
    return document


TEXTS = {
    "a-srpt:predictor=forrest": "did you mean forest?",
    "a-srpt:predictor=forest/trees": "trees=...",
    "a-srpt:overtake=-1": "a number >= 0; inf: no limit",
    "a-srpt+heavy-edge:variant=best": "variants: auto, plain, multi-seed, local-search",
}


@pytest.mark.parametrize("policy", TEXTS)
def test_bad_policies_and_predictors(policy: str, tmp_path: Path, command: Any) -> None:
    path = tmp_path / "good.json"
    path.write_text(json.dumps(GOOD))
    assert TEXTS[policy] in command("run", path, "-p", policy).mistake


def test_a_good_profile_runs_and_states_its_guarantee(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "good.json"
    path.write_text(json.dumps(GOOD))
    asked = ("run", path, "-p", "a-srpt", "-p", "spjf", "--objective", "total_completion_time", "--json")
    ours, baseline = command(*asked).document["runs"]
    assert ours["guarantee"]["id"] == "a-srpt"
    assert ours["guarantee"]["holds"] is True
    assert ours["guarantee"]["value"] <= ours["guarantee"]["ratio"] * ours["guarantee"]["bound"]
    assert baseline["guarantee"] is None


def test_a_factor_beyond_all_floats_promises_nothing(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**GOOD, "profiles": {}, "jobs": [{"duration": 1e9}]}))
    (run,) = command("run", path, "-p", "a-srpt:predictor=group-mean/prior=1e-300", "--json").document["runs"]
    assert run["guarantee"] is None


def test_seconds_at_the_speed_of_a_profile_have_the_range_of_durations(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "long.json"
    document = changed(lambda d: d["profiles"]["m"]["stages"][0].update(forward=1e300))
    path.write_text(json.dumps(document))
    assert "job 'x' takes from" in command("run", path, "-p", "fifo").refusal
