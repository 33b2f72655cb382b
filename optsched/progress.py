"""Progress on stderr for steps that take longer than two seconds, without compilation."""

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
    """A clock of this thread's work that any thread may read; it stops during compilation."""

    def __init__(self) -> None:
        from optsched.compiled import waiting_of_this_thread  # with it comes the compiler, which a run needs anyway

        self._waited = waiting_of_this_thread()
        self._began, self._before = time.perf_counter(), self._waited()

    @property
    def seconds(self) -> float:
        """Seconds of work since the clock was made."""
        return max(time.perf_counter() - self._began - (self._waited() - self._before), 0.0)


class _Seconds(ProgressColumn):
    """Column with the working time of a step."""

    def render(self, task: Task) -> Text:
        return Text(str(datetime.timedelta(seconds=int(task.fields["clock"].seconds))), style="progress.elapsed")


class _Left(ProgressColumn):
    """Column with the finished parts of a step, and the time left at the pace of the parts done by this process."""

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
    """State of a proof for the progress line: incumbent, bound, gap, time; nan if not known yet."""

    def __init__(self) -> None:
        self.incumbent = self.bound = self.gap = math.nan
        self._clock = Worked()

    def update(self, incumbent: float, bound: float, gap: float) -> None:
        """Set the state.

        Parameters
        ----------
        incumbent
            Value of the best schedule.
        bound
            Proven bound.
        gap
            Relative gap.
        """
        self.incumbent, self.bound, self.gap = incumbent, bound, gap

    @property
    def text(self) -> str:
        """Text of the progress line, which shows the time itself."""
        parts = [f"incumbent {_amount(self.incumbent, up=True)}", f"bound {_amount(self.bound, up=False)}"]
        known = math.isfinite(self.incumbent) and math.isfinite(self.bound) and math.isfinite(self.gap)
        return ", ".join([*parts, f"gap {fixed(100 * self.gap, 2, 'up')} %" if known else "gap -"])

    @property
    def last(self) -> str:
        """Text of the last line, at the end."""
        if math.isnan(self.incumbent) and math.isnan(self.bound):
            return "no schedule was found and no bound proved"
        return f"{self.text}, after {self._clock.seconds:.1f} s"


def _amount(value: float, *, up: bool) -> str:
    if not math.isfinite(value):
        return "-"
    whole = value == int(value)
    return fixed(value, 0 if whole else 3, "up" if up else "down")


class Bars:
    """Named steps with a bar each, or in ``words``; silent if stderr is not a terminal or everything is quick."""

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
        """Show the bars, after a delay."""
        self._timer.start()

    def stop(self) -> None:
        """Hide the bars."""
        self._timer.cancel()
        self._progress.stop()

    def step(self, name: str) -> Advance:
        """Begin a step, and return its callback, which takes (done, all).

        Parameters
        ----------
        name
            Name of the step.
        """
        task = self._begin(name)

        begun: list[int] = []  # what a run that goes on had done before: it takes no time now

        def advance(done: int, total: int) -> None:
            if not begun:
                begun.append(max(done - 1, 0))
            self._progress.update(task, completed=done, total=total, begun=begun[0])

        return advance

    def line(self, name: str) -> Callable[[str], None]:
        """Begin a step without a known end, and return a callback that changes its text.

        Parameters
        ----------
        name
            Name of the step.
        """
        task = self._begin(name)
        return lambda text: self._progress.update(task, description=text)

    def interval(self, name: str) -> tuple[Interval, Callable[[Any], None]]:
        """Begin a proof, and return its state and a callback for reports (``incumbent``, ``bound``, ``gap``).

        Parameters
        ----------
        name
            Name of the step.
        """
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
    """Show bars that appear after two seconds and vanish at the end.

    Parameters
    ----------
    words
        Whether to write words instead of bars.
    """
    shown = Bars(words)
    _shown.append(shown)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
        _shown.remove(shown)


def stop_all() -> None:
    """Remove all progress from the terminal for good, so that something else can be written."""
    for shown in _shown:
        shown.stop()
