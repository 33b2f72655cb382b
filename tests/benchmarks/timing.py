"""CPU seconds of this process: what benchmarks measure, and their floors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu_seconds(work: Callable[[], Any], rounds: int = 5, calls: int = 1) -> float:
    """The least CPU time of a call, of so many rounds of so many calls."""
    found = []
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(calls):
            work()
        found.append((time.process_time() - begun) / calls)
    return min(found)
