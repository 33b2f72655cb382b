"""Ctrl-C that is heard at once, and time limits that are kept, whatever is running.

Solvers and compiled loops do not listen to signals, and not always to the clock. Therefore a command runs in a thread of its
own while the first thread waits for it; on Ctrl-C, or where the work overruns its deadline, the first thread says what is
known and ends the process, and the work ends with it.
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
ENDING = 0.7  # seconds for a campaign without its processes to end
POLL = 0.1  # seconds; where waiting for a thread cannot be interrupted, it is done in slices
MOST_WAITED = 20  # times the CPU seconds that a start-up takes on a busy machine
GRACE = 0.4  # seconds by which work may overrun its deadline: most of it ends by itself

ATTEMPTS, PAUSE = 15, 0.05  # to print what is known, and seconds between them

Tell = Callable[[], None]
Late = Callable[[], int | None]
_known: list[tuple[Tell, Late | None, Deadline]] = []
_untidy: list[Tell] = []
_speaking = threading.Lock()  # held by who has the last word
_leaving = threading.Event()
_began = time.monotonic()


class TimeIsUp(Exception):
    """The work has overrun its deadline; what is to be said of it, nobody else says any more."""

    def __init__(self, tell: Late) -> None:
        self.tell = tell


def clock_starts(own_process: bool) -> None:
    """Limits count from now; in a process of its own from its beginning."""
    global _began
    _began = time.monotonic() - (_seconds_old() if own_process else 0.0)


def _seconds_old() -> float:
    # Of the process, as Linux knows it, where that is no older program that has become this one; else the CPU time so far.
    spent = time.process_time()
    with contextlib.suppress(OSError, AttributeError, IndexError, ValueError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        old = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return old if spent <= old <= MOST_WAITED * spent else spent
    return spent


def due(seconds: float | None) -> Deadline:
    """The deadline of a command that may take so many seconds, start-up included; None: never."""
    return NEVER if seconds is None else Deadline(_began + seconds)


@contextlib.contextmanager
def telling(tell: Tell, *, late: Late | None = None, deadline: Deadline = NEVER) -> Iterator[None]:
    """While this lasts, ``tell()`` is called when the user interrupts: it writes what is known so far.

    ``late()`` is called where this lasts beyond the ``deadline``; the process ends, with the code it gives, or 0.
    """
    known = tell, late, deadline
    _known.append(known)
    try:
        yield
    finally:
        while not _speaking.acquire(timeout=POLL):
            if _leaving.is_set():
                raise SystemExit  # of the thread that works: nobody listens to it any more
        _known.remove(known)
        _speaking.release()


@contextlib.contextmanager
def tidying(tidy: Tell) -> Iterator[None]:
    """While this lasts, ``tidy()`` is called when the user interrupts, after all messages."""
    _untidy.append(tidy)
    try:
        yield
    finally:
        _untidy.remove(tidy)


def interruptible(work: Callable[[], T], *, own_process: bool = False) -> T:
    """``work()`` in another thread, its result or its exception; `KeyboardInterrupt` leaves it behind, still running.

    So does `TimeIsUp`, where the process is its own and ends with it.
    """
    clock_starts(own_process)
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
        if own_process:
            _require_time()
    if failed:
        raise failed[0]
    return found[0]


def _require_time() -> None:
    if not _speaking.acquire(blocking=False):
        return
    for _, late, deadline in _known[-1:]:
        if late is not None and Deadline(deadline.at + GRACE).passed:
            raise TimeIsUp(late)  # and goes on speaking
    _speaking.release()


def shield_processes() -> None:
    """Processes that this thread begins from now on do not hear Ctrl-C, which would make them complain: they are stopped."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    if "joblib" in sys.modules:  # which begins this one first, and it makes the thread hear again
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
    # What the processes share is given back by them or by the process that watches for it: that it came second is no news.
    warned, quiet = os.environ.get("PYTHONWARNINGS", ""), "ignore:resource_tracker"
    if quiet not in warned:
        os.environ["PYTHONWARNINGS"] = f"{warned},{quiet}" if warned else quiet
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def leave_work_behind(code: int, late: Late | None = None) -> None:
    """Print what is known, or what ``late`` does, tidy up, and end the process together with the thread that still works.

    The exit code is ``code``, unless ``late`` gives another one.
    """
    _speaking.acquire(blocking=False)
    _leaving.set()
    with contextlib.suppress(Exception):  # a terminal where progress is just about to appear
        if "optsched.progress" in sys.modules:
            sys.modules["optsched.progress"].stop_all()
    given: list[int | None] = []
    for tell in [late] if late is not None else [tell for tell, _, _ in _known[-1:]]:
        any(_heard(tell, given) for _ in range(ATTEMPTS))
    code = next((each for each in given if each is not None), code)
    campaign = False
    threading.excepthook = lambda _: None  # those that wait for a process that is stopped now
    with contextlib.suppress(KeyboardInterrupt, Exception):
        for tidy in (*_untidy, discard_unfinished):
            tidy()
        campaign = _workers_stopped()
        _stop_programs()
    if late is None:
        say("interrupted")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    if campaign and _ended(ENDING):
        sys.exit(code)  # what its processes shared is then given back in good order
    os._exit(code)  # not through the interpreter's end, which a thread within a solver does not survive


def _heard(tell: Late, given: list[int | None]) -> bool:
    """Did no Ctrl-C come in between? polars, too, notes the first one, and raises it until no other thread is within it."""
    try:
        with contextlib.suppress(Exception):
            given.append(tell())
    except KeyboardInterrupt:
        time.sleep(PAUSE)
        return False
    return True


def _workers_stopped() -> bool:
    # Processes of a sweep or a campaign, where one is running: what waits for them then ends by itself. loky's public
    # `get_reusable_executor` would begin some where none are: tests/solvers/test_public_ground.py says what is gone.
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
    # A solver in a process of its own; nobody else knows which there are.
    for each in gc.get_objects():
        if type(each) is subprocess.Popen and each.poll() is None:
            each.kill()


def _ended(seconds: float) -> bool:
    working = [thread for thread in threading.enumerate() if thread.name == THREAD]
    for thread in working:
        thread.join(seconds)
    return not any(thread.is_alive() for thread in working)
