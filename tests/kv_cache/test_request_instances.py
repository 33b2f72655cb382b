"""Requests as jobs: their fields, files, sources, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.classes import classes_of
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.errors import InputError
from optsched.io.traces.generate import generate


def test_an_instance_keeps_its_requests_in_a_file(tmp_path: Path) -> None:
    """Arrays go in and come out, and a file has them all."""
    arrival, weight = [0, 1, 2, 3], [1, 2, 3, 4]
    made = request_instance([2, 1, 3, 0], [4, 7, 2, 5], 12, arrival=arrival, weight=weight, limit=[5, 7, 3, 5])
    assert classes_of(made) == ("kv-cache",)
    requests = requests_of(made)
    assert requests.volume.tolist() == [18, 35, 9, 15]
    assert (requests.cells, requests.arrival.tolist(), requests.weight.tolist()) == (12, arrival, weight)
    made.save(tmp_path / "requests.json")
    assert osd.load(tmp_path / "requests.json") == made


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"prompt": [2, -1]}, "row 2, profile = 'prompt--1': no request"),
        ({"output": [0, 4]}, "row 1, iterations = 0.0: invalid"),
        ({"output": [11, 4]}, "row 1, iterations = 11.0: the peak is larger than the cache"),
        ({"output": [1.5, 4]}, "row 1, iterations = 1.5: invalid"),
        ({"arrival": [0.5, 0]}, "row 1, arrival = 0.5: invalid"),
        ({"cells": 10.5}, "requests need one worker"),
    ],
)
def test_illegal_requests_are_refused(parts: dict[str, Any], line: str) -> None:
    """One clear line names row, field and value."""
    with pytest.raises(InputError) as refused:
        request_instance(**{"prompt": [2, 1], "output": [3, 4], "cells": 12, **parts})
    assert line in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 2


def test_policies_for_whole_jobs_are_refused() -> None:
    """The message names the policies for requests."""
    with pytest.raises(InputError, match=r"schedules whole jobs, these have prompts.*mc-sf"):
        osd.simulate(request_instance([1], [2], 9), "fifo")


def test_recipes_draw_the_published_settings() -> None:
    """The paper's two settings, and log-normal numbers of tokens with the stated mean and median."""
    for seed in range(20):
        for online in (False, True):
            requests = requests_of(generate("kv-paper", seed, online=online))
            assert 30 <= requests.cells <= 50
            assert set(requests.prompt.tolist()) <= {1, 2, 3, 4, 5}
            assert len(set(requests.prompt.tolist())) == 1
            assert requests.arrival.max() < (60 if online else 1)
    tokens = requests_of(generate("kv-lognormal", 1, jobs=100_000)).output
    assert abs(tokens.mean() - 85.32) < 2
    assert abs(np.median(tokens) - 45) < 1


def test_azure_requests_are_read(tmp_path: Path) -> None:
    """Arrivals in rounds, peaks that are left out, and what the text after # states."""
    log = tmp_path / "log.csv"
    rows = ["18:00:00.0000000,374,44", "18:00:01.0500000,9000,1", "18:00:01.1000000,5,0", "18:00:02,7,3"]
    log.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *(f"2023-11-16 {row}" for row in rows)]))
    requests = requests_of(osd.load(f"azure-llm:{log}"))
    assert (requests.cells, requests.arrival.tolist()) == (16_492, [0, 5, 10])
    assert (requests.prompt.tolist(), requests.output.tolist()) == ([374, 5, 7], [44, 1, 3])
    late = requests_of(osd.load(f"azure-llm:{log}#first=1,round=0.5,cells=20"))
    assert (late.cells, late.prompt.tolist(), late.arrival.tolist()) == (20, [7], [0])
    affine = requests_of(osd.load(f"azure-llm:{log}#round=affine"))
    assert affine.affine
    assert affine.arrival.tolist() == pytest.approx([0, 1.1, 2])
    for text, line in (("round=-1", "azure-llm"), ("cell=3", "cells"), ("at-once=maybe", "at_once")):
        with pytest.raises(InputError, match=line):
            osd.load(f"azure-llm:{log}#{text}")
