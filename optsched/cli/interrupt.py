"""Ctrl-C that is heard at once, whatever is running.

Solvers and compiled loops do not listen to signals. Therefore a command runs in a thread of its own while the first thread
waits for it; on Ctrl-C the first thread says what is known and ends the process, and the work ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from optsched.cli.output import say
from optsched.problem.files import discard_unfinished

T = TypeVar("T")
THREAD = "optsched command"
PATIENCE = 0.7  # seconds for a campaign without its processes to end
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
        shield_processes()
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name=THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL)
    if failed:
        raise failed[0]
    return found[0]


def shield_processes() -> None:
    """Processes that this thread begins from now on do not hear Ctrl-C, which would make them complain: they are stopped."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    if "joblib" in sys.modules:  # which begins this one first, and it makes the thread hear again
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def leave_work_behind(code: int) -> None:
    """Tell what is known, tidy up, and end the process together with the thread that still works."""
    with contextlib.suppress(KeyboardInterrupt, Exception):  # a second Ctrl-C: then nothing is told
        if "optsched.progress" in sys.modules:
            sys.modules["optsched.progress"].stop_all()
        for tell in reversed(_known[-1:]):
            tell()
    campaign = False
    with contextlib.suppress(KeyboardInterrupt, Exception):
        for tidy in (*_untidy, discard_unfinished):
            tidy()
        campaign = _workers_stopped()
        _stop_programs()
    say("interrupted")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    if campaign and _ended(PATIENCE):
        sys.exit(code)  # what its processes shared is then given back in good order
    os._exit(code)  # not through the interpreter's end, which a thread within a solver does not survive


def _workers_stopped() -> bool:
    # Processes of a campaign, where one is running: what waits for them then ends by itself.
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is None:
        return False
    executor.shutdown(wait=False, kill_workers=True)
    return True


def _stop_programs() -> None:
    # A solver in a process of its own; nobody else knows which there are.
    for each in gc.get_objects():
        if type(each) is subprocess.Popen and each.poll() is None:
            each.kill()


def _ended(seconds: float) -> bool:
    working = [thread for thread in threading.enumerate() if thread.name == THREAD]
    for thread in working:
        thread.join(seconds)
    return not any(thread.is_alive() for thread in working)
