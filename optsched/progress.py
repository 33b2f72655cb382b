"""Progress for people, on stderr, and only for what takes longer than two seconds; the compiler's time does not count."""

from __future__ import annotations

import contextlib
import datetime
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from optsched.rounding import fixed

DELAY = 2.0  # seconds before anything is shown

Advance = Callable[[int, int], None]


class Worked:
    """A clock of this thread's work, that any thread may read: it stops while something is compiled."""

    def __init__(self) -> None:
        from optsched.compiled import waiting_of_this_thread  # with it comes the compiler, which a run needs anyway

        self._waited = waiting_of_this_thread()
        self._began, self._before = time.perf_counter(), self._waited()

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return max(time.perf_counter() - self._began - (self._waited() - self._before), 0.0)


class _Seconds(ProgressColumn):
    """How long a step has worked."""

    def render(self, task: Task) -> Text:
        return Text(str(datetime.timedelta(seconds=int(task.fields["clock"].seconds))), style="progress.elapsed")


class _Left(ProgressColumn):
    """How many parts of a step are done, and how long the others take at the pace of those that this process did."""

    def render(self, task: Task) -> Text:
        if task.total is None or task.total <= 1:
            return Text("")
        done = task.completed - task.fields["begun"]
        left = (
            f", {_short(task.fields['clock'].seconds / done * task.remaining)} left"
            if done > 0 and task.remaining
            else ""
        )
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}{left}", style="progress.remaining")


def _short(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))


class Interval:
    """The state of a proof, in words: incumbent, bound, gap, time. nan is what is not known yet."""

    def __init__(self) -> None:
        self.incumbent = self.bound = self.gap = math.nan
        self._clock = Worked()

    def update(self, incumbent: float, bound: float, gap: float) -> None:
        """News."""
        self.incumbent, self.bound, self.gap = incumbent, bound, gap

    @property
    def text(self) -> str:
        """What the progress line shows, which shows the time itself."""
        parts = [f"incumbent {_amount(self.incumbent, up=True)}", f"bound {_amount(self.bound, up=False)}"]
        known = math.isfinite(self.incumbent) and math.isfinite(self.bound) and math.isfinite(self.gap)
        return ", ".join([*parts, f"gap {fixed(100 * self.gap, 2, 'up')} %" if known else "gap -"])

    @property
    def last(self) -> str:
        """The last line, when nothing follows any more."""
        if math.isnan(self.incumbent) and math.isnan(self.bound):
            return "no schedule was found and no bound proved"
        return f"{self.text}, after {self._clock.seconds:.1f} s"


def _amount(value: float, *, up: bool) -> str:
    if not math.isfinite(value):
        return "-"
    whole = value == int(value)
    return fixed(value, 0 if whole else 3, "up" if up else "down")


class Bars:
    """Named steps, with a bar each or in ``words``; silent when stderr is no terminal or everything is quick."""

    def __init__(self, words: bool = False) -> None:
        console = Console(stderr=True)
        text = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1))
        drawn = () if words else (BarColumn(20), TaskProgressColumn(), _Left())
        self._progress = Progress(
            SpinnerColumn(),
            text,
            *drawn,
            _Seconds(),
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self._timer = threading.Timer(DELAY, self._progress.start)
        self._timer.daemon = True

    def start(self) -> None:
        """Show them, after a while."""
        self._timer.start()

    def stop(self) -> None:
        """Show nothing any more."""
        self._timer.cancel()
        self._progress.stop()

    def step(self, name: str) -> Advance:
        """Begin a step; the callback takes (done, all)."""
        task = self._begin(name)

        begun: list[int] = []  # what a run that goes on had done before: it takes no time now

        def advance(done: int, total: int) -> None:
            if not begun:
                begun.append(max(done - 1, 0))
            self._progress.update(task, completed=done, total=total, begun=begun[0])

        return advance

    def line(self, name: str) -> Callable[[str], None]:
        """Begin a step without a known end; the callback changes what is said of it."""
        task = self._begin(name)
        return lambda text: self._progress.update(task, description=text)

    def interval(self, name: str) -> tuple[Interval, Callable[[Any], None]]:
        """Begin a proof: its state, and what is to be called with every report (``incumbent``, ``bound``, ``gap``) of it."""
        state, tell = Interval(), self.line(name)

        def report(event: Any) -> None:
            state.update(event.incumbent, event.bound, event.gap)
            tell(state.text)

        return state, report

    def _begin(self, name: str) -> TaskID:
        for task in self._progress.task_ids:
            self._progress.stop_task(task)
            self._progress.update(task, visible=False)
        return self._progress.add_task(name, total=None, clock=Worked(), begun=0)


_shown: list[Bars] = []


@contextlib.contextmanager
def bars(words: bool = False) -> Iterator[Bars]:
    """Bars that appear after two seconds and vanish at the end."""
    shown = Bars(words)
    _shown.append(shown)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
        _shown.remove(shown)


def stop_all() -> None:
    """Clear the terminal of progress for good: something else is to be said there."""
    for shown in _shown:
        shown.stop()
