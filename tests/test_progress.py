"""The clock of the progress line: of work, not of the compiler; seen from another thread, while something is compiled."""

from __future__ import annotations

import io
import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import optsched.compiled.function as compiled
from optsched.progress import Bars, Interval, Worked

SLOW = 0.3


def slow_compiler(during: list[float], clock: Worked) -> compiled.Function:
    """A function whose compilation takes so many seconds; meanwhile another thread reads the clock."""

    class Slow:
        stats = SimpleNamespace(cache_misses={})  # as of a dispatcher of numba's

        def compile(self, _: Any) -> None:
            time.sleep(SLOW)
            other = threading.Thread(target=lambda: during.append(clock.seconds))
            other.start()
            other.join()

        def __call__(self, x: int) -> int:
            return x + 1

    made: compiled.Function = compiled.njit(interpreted=False)(lambda x: x + 1)
    made._machine = Slow()
    return made


def test_the_clock_stands_still_while_something_is_compiled() -> None:
    clock, told, during = Worked(), Interval(), list[float]()
    function, began = slow_compiler(during, clock), time.perf_counter()
    assert function(1) == 2
    passed = time.perf_counter() - began
    assert during
    assert max(during) < passed - SLOW / 2
    assert clock.seconds < passed - SLOW / 2
    told.update(3.0, 2.0, 1 / 3)
    shown = re.search(r"after ([\d.]+) s", told.last)
    assert shown
    assert float(shown[1]) < time.perf_counter() - began - SLOW / 2


def test_a_bar_says_how_many_are_done_and_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worked, "seconds", property(lambda self: 20.0))
    bars = Bars()
    advance = bars.step("running the study s")

    def shown() -> str:
        console = Console(width=120, file=io.StringIO(), record=True)
        console.print(bars._progress.make_tasks_table(bars._progress.tasks))
        return console.export_text()

    assert " of " not in shown()
    advance(1001, 3000)  # a thousand were kept by an earlier run, and took this one no time
    advance(1010, 3000)
    assert "1,010 of 3,000, 1:06:20 left" in shown()
    advance(3000, 3000)
    assert "3,000 of 3,000" in shown()
    assert "left" not in shown()
