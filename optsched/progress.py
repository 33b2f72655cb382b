"""Progress for people, on stderr, and only for what takes longer than two seconds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

DELAY = 2.0  # seconds before anything is shown

Advance = Callable[[int, int], None]


class Bars:
    """Named steps with a bar each; silent when stderr is not a terminal or everything is quick."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._timer = threading.Timer(DELAY, self._progress.start)
        self._timer.daemon = True

    def step(self, name: str) -> Advance:
        """Begin a step; the callback takes (done, all)."""
        for task in self._progress.task_ids:
            self._progress.stop_task(task)
            self._progress.update(task, visible=False)
        task = self._progress.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            self._progress.update(task, completed=done, total=total)

        return advance

    def say(self, name: str) -> Callable[[str], None]:
        """Begin a step without a known end; the callback changes its text."""
        self.step(name)
        task = self._progress.task_ids[-1]
        return lambda text: self._progress.update(task, description=f"{name}: {text}")


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
