"""CPU seconds to compile what a first run needs, from nothing, in a process of its own: at most `ALLOWED` on any machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ALLOWED = 25.0
PROGRAM = """
import sys
import optsched as osd
from optsched.compiled import function
instance = osd.load(sys.argv[1], limit=4)
with function.without_interpreting():
    osd.simulate(instance, sys.argv[2])
print(function._spent.compiling)
"""


def seconds(source: str, policy: str, cache: Path) -> float:
    """CPU seconds of compiling."""
    command = [sys.executable, "-c", PROGRAM, source, policy]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return float(
        json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    )


@pytest.mark.bench
@pytest.mark.parametrize(
    ("source", "policy"),
    [
        ("cluster-week", "fifo"),
        ("cluster-week", "a-srpt"),
        ("all-four", "a-srpt"),
        ("all-four", "makespan-rounds"),
        ("all-four", "gavel"),
        ("sharing-cluster", "sjf-bsbf"),
        ("cluster-week", "hadar"),
    ],
)
def test_compiling_a_first_run(benchmark: Any, source: str, policy: str, tmp_path: Path) -> None:
    found = benchmark.pedantic(seconds, args=(source, policy, tmp_path), rounds=1)
    benchmark.extra_info.update(seconds=found)
    assert found < ALLOWED
