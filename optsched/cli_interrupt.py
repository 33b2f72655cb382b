"""Ctrl-C that is heard at once, whatever is running.

Solvers and compiled loops do not listen to signals. Therefore a command runs in a thread of its own while the first thread
waits for it; on Ctrl-C the first thread says what is known and ends the process, and the work ends with it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from optsched.cli_output import say
from optsched.files import discard_unfinished

T = TypeVar("T")
POLL = 0.2  # seconds; where waiting for a thread cannot be interrupted, it is done in slices

_known: list[Callable[[], None]] = []
_untidy: list[Callable[[], None]] = []


@contextlib.contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """While this lasts, ``tell()`` is called when the user interrupts: it writes what is known so far."""
    _known.append(tell)
    try:
        yield
    finally:
        _known.remove(tell)


@contextlib.contextmanager
def tidying(tidy: Callable[[], None]) -> Iterator[None]:
    """While this lasts, ``tidy()`` is called when the user interrupts, after everything has been told."""
    _untidy.append(tidy)
    try:
        yield
    finally:
        _untidy.remove(tidy)


def interruptible(work: Callable[[], T]) -> T:
    """``work()`` in another thread, its result or its exception; `KeyboardInterrupt` leaves it behind, still running."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="command", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL)
    if failed:
        raise failed[0]
    return found[0]


def leave_work_behind(code: int) -> None:
    """Tell what is known, tidy up, and end the process together with the thread that still works."""
    with contextlib.suppress(KeyboardInterrupt, Exception):  # a second Ctrl-C: then nothing is told
        for tell in reversed(_known[-1:]):
            tell()
    with contextlib.suppress(KeyboardInterrupt, Exception):
        for tidy in (*_untidy, discard_unfinished, _stop_workers):
            tidy()
    say("interrupted")
    os._exit(code)  # not through the interpreter's end, which a thread within a solver does not survive


def _stop_workers() -> None:
    # Processes of a campaign, where one is running.
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=True)
