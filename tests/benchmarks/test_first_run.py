"""What linking buys: CPU seconds to compile a first run from nothing, with and without it, each in a process of its own.

The floor is numba's own way (every function is optimised and emitted with all that it calls). ``ratio`` = with / without.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import sys, time
import optsched as osd
from optsched.compiled import function
if sys.argv[1] == "without":
    def asked_for(self, args, kws):
        self.prepare()
        return function.CPUDispatcher.get_call_template(self, tuple(map(function._widened, args)), kws)
    function.Function.get_call_template = asked_for
instance = osd.load(sys.argv[2], limit=4)
with function.without_interpreting():
    osd.simulate(instance, sys.argv[3])
print(function._spent.compiling)
"""


def seconds(way: str, source: str, policy: str, cache: Path) -> float:
    """CPU seconds of compiling."""
    command = [sys.executable, "-c", PROGRAM, way, source, policy]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache / way)}
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
        ("all-four", "hadar"),
        ("all-four", "gavel"),
        ("sharing-cluster", "sjf-bsbf"),
        ("cluster-week", "hadar-commit"),
    ],
)
def test_compiling_a_first_run(benchmark: Any, source: str, policy: str, tmp_path: Path) -> None:
    without = seconds("without", source, policy, tmp_path)
    found = benchmark.pedantic(seconds, args=("with", source, policy, tmp_path), rounds=1)
    benchmark.extra_info.update(ratio=found / without, seconds=found, without=without)
    assert found < 0.8 * without
