"""Who runs the cells: processes of this machine (loky), or a cluster of Dask or Ray that is running already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from joblib import Parallel, delayed, parallel_config

from optsched.errors import InputError, NotInstalledError, SimulationError
from optsched.sweeps.cell import CellResult

DEATHS = 3  # of workers in a row, without a cell that was finished between them
Work = Callable[[str], CellResult]


def results(
    work: Work, keys: Sequence[str], backend: str = "loky", address: str | None = None, workers: int | None = None
) -> Iterator[CellResult]:
    """What becomes of every cell, as soon as it is known. A worker that dies takes no result with it, and no other cell.

    Raises `InputError` for an unknown backend or an address that loky has no use for; `NotInstalledError`;
    `SimulationError` when workers keep dying.
    """
    if backend not in BACKENDS:
        raise InputError("unknown", field="backend", value=backend, legal=", ".join(BACKENDS))
    if workers is not None and workers < 1:
        raise InputError("invalid", field="workers", value=workers, legal="an integer >= 1")
    if backend == "loky" and address is not None:
        raise InputError("loky runs on this machine", field="address", value=address, legal="none, or a backend")
    yield from BACKENDS[backend](work, keys, address, workers)


def _loky(work: Work, keys: Sequence[str], address: str | None, workers: int | None) -> Iterator[CellResult]:
    # Every process has one thread, so that they do not fight. One that dies takes the others with it: the rest begins anew.
    left, deaths = dict.fromkeys(keys), 0
    while left:
        try:
            with parallel_config("loky", n_jobs=workers or -1, inner_max_num_threads=1):
                calls = (delayed(work)(key) for key in tuple(left))
                for result in Parallel(return_as="generator_unordered", batch_size=1)(calls):
                    del left[result.key]
                    deaths = 0
                    yield result
        except BrokenProcessPool as error:
            deaths += 1
            if deaths == DEATHS:
                raise SimulationError(
                    f"{DEATHS} times in a row a worker died (out of memory?) with {len(left)} cells to go, "
                    f"one of the next ones among them: {next(iter(left))}"
                ) from error


def _dask(work: Work, keys: Sequence[str], address: str | None, workers: int | None) -> Iterator[CellResult]:
    try:
        import distributed
    except ImportError:
        raise _not_installed("dask") from None
    with distributed.Client(address, **({} if address else {"n_workers": workers, "threads_per_worker": 1})) as client:
        futures = client.map(work, keys, pure=False)
        for _, result in distributed.as_completed(futures, with_results=True):
            yield result


def _ray(work: Work, keys: Sequence[str], address: str | None, workers: int | None) -> Iterator[CellResult]:
    try:
        import ray
    except ImportError:
        raise _not_installed("ray") from None
    limits = {} if address else {"num_cpus": workers}
    ray.init(address=address, log_to_driver=False, ignore_reinit_error=True, **limits)
    try:
        remote = ray.remote(max_retries=DEATHS)(work)
        running = [remote.remote(key) for key in keys]
        while running:
            done, running = ray.wait(running)
            yield from ray.get(done)
    finally:
        ray.shutdown()


def _not_installed(extra: str) -> NotInstalledError:
    return NotInstalledError(f"the backend {extra} is not installed: pip install 'optsched[{extra}]'")


BACKENDS = {"loky": _loky, "dask": _dask, "ray": _ray}
