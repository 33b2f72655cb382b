"""The clock of the progress line: of work, not of the compiler; seen from another thread, while something is compiled."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import numba
import pytest

import optsched.compiled.function as compiled
from optsched.progress import Interval, Worked

SLOW = 0.3


def slow_compiler(monkeypatch: pytest.MonkeyPatch, during: list[float], clock: Worked) -> compiled.Function:
    """A function whose compilation takes so many seconds; meanwhile another thread reads the clock."""

    def compile(self: Any, sig: Any) -> Any:
        time.sleep(SLOW)
        other = threading.Thread(target=lambda: during.append(clock.seconds))
        other.start()
        other.join()
        return original(self, sig)

    original = numba.core.registry.CPUDispatcher.compile
    monkeypatch.setattr(numba.core.registry.CPUDispatcher, "compile", compile)

    @compiled.njit(interpreted=False)
    def one_more(x: int) -> int:
        return x + 1

    return one_more


def test_the_clock_stands_still_while_something_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told, during = Worked(), Interval(), list[float]()
    function, began = slow_compiler(monkeypatch, during, clock), time.perf_counter()
    assert function(1) == 2
    passed = time.perf_counter() - began
    assert during
    assert max(during) < passed - SLOW / 2
    assert clock.seconds < passed - SLOW / 2
    told.update(3.0, 2.0, 1 / 3)
    shown = re.search(r"after ([\d.]+) s", told.last)
    assert shown
    assert float(shown[1]) < time.perf_counter() - began - SLOW / 2
