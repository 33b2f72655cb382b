"""Progress for people, on stderr, and only for what takes longer than two seconds."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from optsched.rounding import fixed

DELAY = 2.0  # seconds before anything is shown

Advance = Callable[[int, int], None]


@dataclass
class Interval:
    """Where a proof stands, in words: incumbent, bound, gap, time. nan is what is not known yet."""

    incumbent: float = math.nan
    bound: float = math.nan
    gap: float = math.nan
    seconds: float = 0.0

    def update(self, incumbent: float, bound: float, gap: float, seconds: float) -> None:
        """News."""
        self.incumbent, self.bound, self.gap, self.seconds = incumbent, bound, gap, seconds

    @property
    def text(self) -> str:
        """What the progress line shows, which shows the time itself."""
        parts = [f"incumbent {_shown(self.incumbent, up=True)}", f"bound {_shown(self.bound, up=False)}"]
        known = math.isfinite(self.incumbent) and math.isfinite(self.bound) and math.isfinite(self.gap)
        return ", ".join([*parts, f"gap {fixed(100 * self.gap, 2, 'up')} %" if known else "gap -"])

    @property
    def last(self) -> str:
        """What is told when nothing follows any more."""
        if math.isnan(self.incumbent) and math.isnan(self.bound):
            return "no schedule was found and no bound proved"
        return f"{self.text}, after {self.seconds:.1f} s"


def _shown(value: float, *, up: bool) -> str:
    if not math.isfinite(value):
        return "-"
    whole = value == int(value)
    return fixed(value, 0 if whole else 3, "up" if up else "down")


class _Unless(BarColumn):
    """A bar, and nothing for steps that are told in words."""

    def render(self, task: Task) -> Text:  # type: ignore[override]
        return Text() if task.fields.get("words") else super().render(task)  # type: ignore[return-value]


class _Percent(TaskProgressColumn):
    def render(self, task: Task) -> Text:
        return Text() if task.fields.get("words") else super().render(task)


class Bars:
    """Named steps with a bar each; silent when stderr is not a terminal or everything is quick."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, overflow="ellipsis")),
            _Unless(bar_width=20),
            _Percent(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self._timer = threading.Timer(DELAY, self._progress.start)
        self._timer.daemon = True

    def step(self, name: str) -> Advance:
        """Begin a step; the callback takes (done, all)."""
        task = self._begin(name)

        def advance(done: int, total: int) -> None:
            self._progress.update(task, completed=done, total=total)

        return advance

    def line(self, name: str) -> Callable[[str], None]:
        """Begin a step without a known end; the callback changes what is told of it."""
        task = self._begin(name, words=True)
        return lambda text: self._progress.update(task, description=f"{name}: {text}")

    def _begin(self, name: str, words: bool = False) -> TaskID:
        for task in self._progress.task_ids:
            self._progress.stop_task(task)
            self._progress.update(task, visible=False)
        return self._progress.add_task(name, total=None, words=words)


@contextlib.contextmanager
def bars() -> Iterator[Bars]:
    """Bars that appear after two seconds and vanish at the end."""
    shown = Bars()
    shown._timer.start()
    try:
        yield shown
    finally:
        shown._timer.cancel()
        shown._progress.stop()
