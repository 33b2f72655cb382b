"""Who runs the cells: processes of this machine (loky), or a cluster of Dask or Ray that is running already.

A cell whose worker dies (out of memory, killed) is run again, and fails when it has cost so many workers that it is to
blame; it stops no other cell.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from optsched.errors import InputError, NotInstalledError
from optsched.sweeps.cell import CellResult
from optsched.sweeps.processes import Died, Task, computed

DEATHS = 3  # of workers that a cell may cost
ANSWER = 10.0  # seconds that a cluster may take to answer
Work = Callable[[str], CellResult]


def results(
    work: Work, tasks: Sequence[Task], backend: str = "loky", address: str | None = None, workers: int | None = None
) -> Iterator[CellResult]:
    """What becomes of every cell, as soon as it is known, in any order.

    Raises `InputError` for an unknown backend, an address that loky has no use for or that nobody answers at, and
    `NotInstalledError`.
    """
    if backend not in BACKENDS:
        raise InputError("unknown", field="backend", value=backend, legal=", ".join(BACKENDS))
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError("invalid", field="workers", value=workers, legal="an integer >= 1")
    if backend == "loky" and address is not None:
        raise InputError("loky runs on this machine", field="address", value=address, legal="none, or a backend")
    if address is not None:
        _reach(address)
    if tasks:
        yield from BACKENDS[backend](work, tasks, address, workers)


def _loky(work: Work, tasks: Sequence[Task], address: str | None, workers: int | None) -> Iterator[CellResult]:
    for key, result in computed(work, tasks, workers, DEATHS):
        yield _lost(key) if isinstance(result, Died) else result


def _dask(work: Work, tasks: Sequence[Task], address: str | None, workers: int | None) -> Iterator[CellResult]:
    try:
        import distributed
    except ImportError:
        raise _not_installed("dask") from None
    with distributed.Client(address, **({} if address else {"n_workers": workers, "threads_per_worker": 1})) as client:
        keys = [task.key for task in tasks]
        futures = dict(zip(client.map(work, keys, pure=False), keys, strict=True))
        for future in distributed.as_completed(futures):
            yield future.result() if future.status == "finished" else _lost(futures[future])


def _ray(work: Work, tasks: Sequence[Task], address: str | None, workers: int | None) -> Iterator[CellResult]:
    try:
        import ray
    except ImportError:
        raise _not_installed("ray") from None
    ray.init(address=address, log_to_driver=False, **({} if address else {"num_cpus": workers}))
    try:
        remote = ray.remote(max_retries=DEATHS)(work)
        running = {remote.remote(task.key): task.key for task in tasks}
        while running:
            for each in ray.wait(list(running))[0]:
                key = running.pop(each)
                try:
                    yield ray.get(each)
                except ray.exceptions.RayError:
                    yield _lost(key)
    finally:
        ray.shutdown()


def _lost(key: str) -> CellResult:
    return CellResult(key, error="its worker died whenever it was run (out of memory?)")


def _not_installed(extra: str) -> NotInstalledError:
    return NotInstalledError(f"the backend {extra} is not installed: pip install 'optsched[{extra}]'")


def _reach(address: str) -> None:
    # Ray would try for minutes, and Dask for half of one. Not asked: addresses without a port, as ``auto``.
    try:
        where = urlsplit(address if "://" in address else f"//{address}")
        if where.port is not None:
            socket.create_connection((where.hostname or "", where.port), timeout=ANSWER).close()
    except (OSError, ValueError) as error:
        legal = "that of a running cluster, tcp://HOST:8786 (dask) or HOST:6379 (ray)"
        raise InputError(f"nobody answers: {error}", field="address", value=address, legal=legal) from None


BACKENDS = {"loky": _loky, "dask": _dask, "ray": _ray}
