"""Ctrl-C and time limits that take effect at once, whatever is running.

Solvers and compiled loops do not handle signals, and they do not always check the clock. A command therefore runs in a
thread of its own while the main thread waits for it. On Ctrl-C, or if the work overruns its deadline, the main thread prints
the results so far and ends the process, and the work ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from optsched.cli.output import say
from optsched.deadline import NEVER, Deadline
from optsched.problem.atomic_files import discard_unfinished

T = TypeVar("T")
THREAD = "optsched command"
ENDING = 0.7  # seconds in which a campaign ends after its processes were stopped
POLL = 0.1  # seconds; waiting for a thread cannot always be interrupted, so it is done in slices
MOST_WAITED = 20  # a start-up on a busy machine takes at most this multiple of its CPU seconds
GRACE = 0.4  # seconds by which work may overrun its deadline; most work ends in this time

ATTEMPTS, PAUSE = 15, 0.05  # attempts to print the results so far, and seconds between them

Tell = Callable[[], None]
Late = Callable[[], int | None]
_speakers: list[tuple[Tell, Late | None, Deadline]] = []
_untidy: list[Tell] = []
_speaking = threading.Lock()  # held by the thread that prints the final message
_leaving = threading.Event()
_began = time.monotonic()


class TimeIsUp(Exception):
    """The work has overrun its deadline.

    Parameters
    ----------
    tell
        Prints the results so far; nobody else prints them any more.
    """

    def __init__(self, tell: Late) -> None:
        self.tell = tell


def clock_starts(own_process: bool) -> None:
    """Start the clock of time limits.

    Parameters
    ----------
    own_process
        True if the command is the whole process; the clock then started with the process.
    """
    global _began
    _began = time.monotonic() - (_seconds_old() if own_process else 0.0)


def _seconds_old() -> float:
    # The age of the process on Linux, unless an older program has become this one; else the CPU time so far.
    spent = time.process_time()
    with contextlib.suppress(OSError, AttributeError, IndexError, ValueError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        old = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return old if spent <= old <= MOST_WAITED * spent else spent
    return spent


def due(seconds: float | None) -> Deadline:
    """Return the deadline of a command.

    Parameters
    ----------
    seconds
        Time limit with start-up; None for no limit.
    """
    return NEVER if seconds is None else Deadline(_began + seconds)


@contextlib.contextmanager
def telling(tell: Tell, *, late: Late | None = None, deadline: Deadline = NEVER) -> Iterator[None]:
    """Print the results so far if the user interrupts the block, or if it overruns its deadline.

    Parameters
    ----------
    tell
        Prints the results so far; called on Ctrl-C.
    late
        Prints the results so far and returns the exit status (None: 0); called when the deadline has passed.
    deadline
        The deadline of the block.
    """
    speaker = tell, late, deadline
    _speakers.append(speaker)
    try:
        yield
    finally:
        while not _speaking.acquire(timeout=POLL):
            if _leaving.is_set():
                raise SystemExit  # ends the working thread: the main thread no longer waits for it
        _speakers.remove(speaker)
        _speaking.release()


@contextlib.contextmanager
def tidying(tidy: Tell) -> Iterator[None]:
    """Call ``tidy()`` after all messages if the user interrupts the block.

    Parameters
    ----------
    tidy
        Removes what must not be left behind.
    """
    _untidy.append(tidy)
    try:
        yield
    finally:
        _untidy.remove(tidy)


def interruptible(work: Callable[[], T], *, own_process: bool = False) -> T:
    """Run ``work()`` in another thread; return its result or raise its exception.

    `KeyboardInterrupt` leaves the thread running, and so does `TimeIsUp`, which is raised only in a process of its own.

    Parameters
    ----------
    work
        The work.
    own_process
        True if the process ends with the work.
    """
    clock_starts(own_process)
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        shield_processes()
        try:
            results.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name=THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL)
        if own_process:
            _require_time()
    if failed:
        raise failed[0]
    return results[0]


def _require_time() -> None:
    if not _speaking.acquire(blocking=False):
        return
    for _, late, deadline in _speakers[-1:]:
        if late is not None and Deadline(deadline.at + GRACE).passed:
            raise TimeIsUp(late)  # and keeps the lock
    _speaking.release()


def shield_processes() -> None:
    """Block Ctrl-C in processes that this thread starts from now on; they are stopped instead, without complaints."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    if "joblib" in sys.modules:  # joblib starts this process first, which unblocks the signal in the thread
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
    # The processes or their watcher release what they share; a warning that it was already released is of no interest.
    warned, quiet = os.environ.get("PYTHONWARNINGS", ""), "ignore:resource_tracker"
    if quiet not in warned:
        os.environ["PYTHONWARNINGS"] = f"{warned},{quiet}" if warned else quiet
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def leave_work_behind(code: int, late: Late | None = None) -> None:
    """Print the results so far, tidy up, and end the process together with the thread that still works.

    Parameters
    ----------
    code
        The exit status, unless ``late`` returns another one.
    late
        Prints the results so far instead of the innermost `telling`.
    """
    _speaking.acquire(blocking=False)
    _leaving.set()
    with contextlib.suppress(Exception):  # a terminal where progress is just about to appear
        if "optsched.progress" in sys.modules:
            sys.modules["optsched.progress"].stop_all()
    codes: list[int | None] = []
    for tell in [late] if late is not None else [tell for tell, _, _ in _speakers[-1:]]:
        any(_completed(tell, codes) for _ in range(ATTEMPTS))
    code = next((given for given in codes if given is not None), code)
    campaign = False
    threading.excepthook = lambda _: None  # threads that wait for a process that is stopped now
    with contextlib.suppress(KeyboardInterrupt, Exception):
        for tidy in (discard_unfinished, *_untidy):
            tidy()
        campaign = _workers_stopped()
        _stop_programs()
    if late is None:
        say("interrupted")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    if campaign and _ended(ENDING):
        sys.exit(code)  # the processes then release what they share in good order
    os._exit(code)  # the interpreter's normal exit would crash a thread inside a solver


def _completed(tell: Late, codes: list[int | None]) -> bool:
    """Call ``tell``; return False if Ctrl-C interrupted it (polars raises the first one until no thread is within it)."""
    try:
        with contextlib.suppress(Exception):
            codes.append(tell())
    except KeyboardInterrupt:
        time.sleep(PAUSE)
        return False
    return True


def _workers_stopped() -> bool:
    # Stop the processes of a sweep or a campaign, if any; the code that waits for them then ends. loky's public
    # `get_reusable_executor` would start processes if none run: tests/solvers/test_public_ground.py checks the private name.
    sweeps = sys.modules.get("optsched.sweeps.processes")
    if sweeps is not None and sweeps.stop():
        return True
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is None:
        return False
    executor.shutdown(wait=False, kill_workers=True)
    return True


def _stop_programs() -> None:
    # Solvers in processes of their own; there is no list of them.
    for thing in gc.get_objects():
        if type(thing) is subprocess.Popen and thing.poll() is None:
            thing.kill()


def _ended(seconds: float) -> bool:
    working = [thread for thread in threading.enumerate() if thread.name == THREAD]
    for thread in working:
        thread.join(seconds)
    return not any(thread.is_alive() for thread in working)
