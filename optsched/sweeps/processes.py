"""Processes of this machine that run cells; the cells of an instance run in the same process and share its bounds.

joblib's `Parallel` gives a cell to any free process, and each process would prove the bounds of every instance. So every
process is an executor of its own: the next cell is chosen for the process that runs it, and if a process dies, exactly one
cell is to blame.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple, TypeVar

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

T = TypeVar("T")
IDLE = 60.0  # seconds after which a process ends by itself: so it does when the sweep was killed
# Processes have one thread each, so that they do not fight.
LIBRARIES = [
    "OMP_NUM",
    "OPENBLAS_NUM",
    "MKL_NUM",
    "BLIS_NUM",
    "VECLIB_MAXIMUM",
    "NUMBA_NUM",
    "NUMEXPR_NUM",
    "POLARS_MAX",
]
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}
_running: set[ProcessPoolExecutor] = set()


class Task(NamedTuple):
    """Input of one cell: its key and its instance (whose bounds are proved once in a process)."""

    key: str
    instance: str


class Died:
    """Result of a cell whose process died every time it was started."""


class _Process:
    """One process, the cells that it will run, and the one that it runs now."""

    def __init__(self) -> None:
        self.left: deque[Task] = deque()
        self.runs: Task | None = None
        self.executor: ProcessPoolExecutor | None = None

    def begin(self, work: Callable[[str], T], task: Task) -> Future[T]:
        self.left.remove(task)
        self.runs = task
        for _ in range(2):
            if self.executor is None:
                self.executor = ProcessPoolExecutor(max_workers=1, timeout=IDLE, env=ONE_THREAD)
                _running.add(self.executor)
            with contextlib.suppress(BrokenProcessPool):
                future: Future[T] = self.executor.submit(work, task.key)
                return future
            self.end()  # it died after its last cell
        raise BrokenProcessPool("processes die before they begin")

    def end(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=False, kill_workers=True)
            _running.discard(self.executor)
            self.executor = None


def stop() -> bool:
    """Kill all running processes, for a quick exit; return whether there were any."""
    for executor in tuple(_running):
        executor.shutdown(wait=False, kill_workers=True)
    return bool(_running)


def computed(
    work: Callable[[str], T], tasks: Sequence[Task], workers: int | None, deaths: int
) -> Iterator[tuple[str, T | Died]]:
    """Yield (key, ``work(key)``) as soon as it is known, in any order.

    A process takes the tasks of one instance, and then half of those that the slowest process has left.

    Parameters
    ----------
    work
        Function of a key.
    tasks
        Tasks to run.
    workers
        Number of processes; None: one for each processor; 1: this process.
    deaths
        Number of processes that a task may cost before its result is `Died`.
    """
    if workers == 1:
        yield from ((task.key, work(task.key)) for task in tasks)
        return
    instances: dict[str, deque[Task]] = {}
    for each in tasks:
        instances.setdefault(each.instance, deque()).append(each)
    waiting, died = deque(instances.values()), Counter[str]()
    processes = [_Process() for _ in range(min(workers or cpu_count(), len(tasks)))]
    futures: dict[Future[T], _Process] = {}

    def go_on() -> None:
        for process in processes:
            if process.runs is None and (task := _next(process, processes, waiting)) is not None:
                futures[process.begin(work, task)] = process

    try:
        go_on()
        while futures:
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                process = futures.pop(future)
                task, process.runs = process.runs, None
                assert task is not None
                try:
                    found: T | Died | None = future.result()
                except BrokenProcessPool:
                    process.end()
                    died[task.key] += 1
                    found = Died() if died[task.key] == deaths else None
                    process.left.extendleft([] if found else [task])
                go_on()
                if found is not None:
                    yield task.key, found
    finally:
        for process in processes:
            process.end()


def _next(process: _Process, processes: Sequence[_Process], waiting: deque[deque[Task]]) -> Task | None:
    if not process.left:
        if waiting:
            process.left = waiting.popleft()
        else:
            longest = max(processes, key=lambda each: len(each.left))
            process.left.extend(longest.left.pop() for _ in range((len(longest.left) + 1) // 2))
    return next(iter(process.left), None)
