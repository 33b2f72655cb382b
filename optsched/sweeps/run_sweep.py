"""`sweep`: run the open cells of a grid, store every cell when it is done, and return the table.

Cells run in processes of this machine (loky), or on a running cluster of Dask or Ray.

If a worker dies (out of memory, killed), its cell is run again; it fails after a number of deaths, and stops no other cell.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from optsched.errors import InputError, NotInstalledError, check_legal
from optsched.sweeps.cell import CellResult, run_cell
from optsched.sweeps.grid import Cell, Grid, GridSource
from optsched.sweeps.processes import Died, Task, computed
from optsched.sweeps.store import Store

DEATHS = 3  # of workers that a cell may cost
ANSWER = 10.0  # seconds that a cluster may take to answer
Work = Callable[[str], CellResult]


def results(
    work: Work, tasks: Sequence[Task], backend: str = "loky", address: str | None = None, workers: int | None = None
) -> Iterator[CellResult]:
    """Yield the result of every cell as soon as it is known, in any order.

    Parameters
    ----------
    work
        Function that runs a cell.
    tasks
        Cells to run.
    backend
        ``loky``, ``dask`` or ``ray``.
    address
        Address of a running cluster of Dask or Ray.
    workers
        Number of processes; None: one for each processor.

    Raises
    ------
    InputError
        If the backend is unknown, loky is given an address, or no cluster answers at the address.
    NotInstalledError
        If the backend is not installed.
    """
    if backend not in BACKENDS:
        raise InputError("unknown", field="backend", value=backend, legal=", ".join(BACKENDS))
    whole = workers is None or (isinstance(workers, int) and workers >= 1)
    check_legal(whole, "workers", workers, "an integer >= 1")
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
            key = futures[future]
            try:
                result = future.result()  # of a worker that died since: when another one has run the cell again
            except distributed.KilledWorker:
                result = _lost(key)
            except Exception as error:  # whatever it is, it stops no other cell
                result = _failed(key, error)
            yield result


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
                except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                    yield _lost(key)
                except ray.exceptions.RayError as error:  # with what the function raised as its cause
                    yield _failed(key, getattr(error, "cause", error))
    finally:
        ray.shutdown()


def _failed(key: str, error: Exception) -> CellResult:
    return CellResult(key, error=f"{type(error).__name__}: {error}")


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


Heard = Callable[[CellResult, int, int], None]


def sweep(
    source: GridSource,
    store: str | os.PathLike[str] | None = None,
    *,
    backend: str = "loky",
    address: str | None = None,
    workers: int | None = None,
    retry: bool = False,
    heard: Heard | None = None,
) -> pl.DataFrame:
    """Run a grid of instances x policies x parameters x seeds; a repeated call continues an interrupted sweep.

    Every cell is one run, checked by the referee, with a certified bound on each objective. It is committed to the file
    ``store`` when it is done, so an interruption loses no finished cell, and no finished cell runs again. A failed cell
    stores its error, and its instance for a replay (``STORE.failed/``), and stops no other cell. The grid may grow
    between calls: only new cells run. Numbers depend neither on the backend nor on the number of workers.

    Parameters
    ----------
    source
        A TOML file, or a mapping with its keys (`optsched.sweeps.grid`).
    store
        The SQLite file (`optsched.sweeps.store`); default: next to the TOML file, with the suffix ``.sqlite``, for a mapping
        ``NAME.sqlite`` in the current folder.
    backend
        ``loky``, processes of this machine; ``dask`` or ``ray``, with the ``address`` of a running cluster that has
        optsched on its workers (without an address, one is started here).
    address
        Address of a running cluster of Dask or Ray.
    workers
        Processes with one thread each; default: one for each processor; 1: this process itself.
    retry
        Whether to run failed cells again.
    heard
        Function called with (result, settled cells, all cells) after each commit.

    Returns
    -------
    polars.DataFrame
        One row for each cell: the parameters of the instance, ``seed``, ``policy``, ``state``, ``error``, ``cpu_seconds``,
        metrics, objectives with ``_bound`` and ``_ratio``; null if not known.

    Raises
    ------
    InputError
        If the grid is invalid (before anything runs), the file is not that of a sweep or another sweep writes it, the
        backend is unknown or not installed, or no cluster answers at the address.

    Examples
    --------
    >>> import optsched as osd, tempfile
    >>> grid = {"policies": ["fifo", "srtf"], "seeds": [1, 2], "instances": [{"recipe": "rigid", "jobs": 6}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = osd.sweep(grid, f"{folder}/small.sqlite", workers=1)
    >>> table.select("seed", "policy", "state").row(0), table.height
    ((1, 'fifo', 'done'), 4)
    """
    grid = Grid.read(source)
    with Store(_home(source, store, grid)) as kept:
        left = kept.enter(grid, retry=retry)
        settled, every = len(grid.cells) - len(left), len(grid.cells)
        tasks = [Task(cell.key, cell.on) for cell in left]
        for result in results(run_cell, tasks, backend, address, workers):
            kept.commit(result)
            settled += 1
            if heard is not None:
                heard(result, settled, every)
        return kept.frame(grid.cells)


@dataclass(frozen=True)
class Cost:
    """Cost of a sweep: all cells, cells to run, and their CPU seconds."""

    cells: int
    left: int
    cpu_seconds: float


def estimate(source: GridSource, store: str | os.PathLike[str] | None = None) -> Cost:
    """Estimate the cost of a `sweep`.

    For a policy without a finished cell, the first cell is run here and stored. Other cells are expected to cost the mean of
    their policy, per job if the grid states the number of jobs. Compilation is included.

    Parameters
    ----------
    source
        A TOML file or a mapping, as for `sweep`.
    store
        The SQLite file, as for `sweep`.
    """
    grid = Grid.read(source)
    with Store(_home(source, store, grid)) as kept:
        left = {cell.key for cell in kept.enter(grid)}
        known = {
            row[0] for row in kept.frame(grid.cells).filter(pl.col("state") != "open").select("policy").iter_rows()
        }
        for cell in grid.cells:
            if cell.policy not in known:
                known.add(cell.policy)
                kept.commit(run_cell(cell.key))
                left.discard(cell.key)
        seconds = kept.frame(grid.cells)["cpu_seconds"].to_list()
    cost: dict[str, list[float]] = {}
    for cell, spent in zip(grid.cells, seconds, strict=True):
        if spent is not None:
            cost.setdefault(cell.policy, []).append(spent / _jobs(cell))
    mean = {policy: sum(each) / len(each) for policy, each in cost.items()}
    to_come = sum(mean[cell.policy] * _jobs(cell) for cell in grid.cells if cell.key in left)
    return Cost(len(grid.cells), len(left), to_come)


def _jobs(cell: Cell) -> float:
    where = dict(cell.where)
    return float(where.get("jobs", where.get("limit", 1)))


def _home(source: GridSource, store: str | os.PathLike[str] | None, grid: Grid) -> Path:
    if store is not None:
        return Path(store)
    return Path(f"{grid.name}.sqlite") if isinstance(source, Mapping | Grid) else Path(source).with_suffix(".sqlite")
