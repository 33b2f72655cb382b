"""Sweeps on a Dask scheduler with two workers, and on a Ray head, all started from the command line, reached by address."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.sweeps.cell import CellResult
from optsched.sweeps.processes import Task
from optsched.sweeps.run_sweep import results

from .test_sweep import GRID, alike

pytestmark = [pytest.mark.clusters, pytest.mark.xdist_group("clusters")]
BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        port: int = each.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([str(BIN), os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip(f"{name} is not installed: pip install 'optsched[{name}]'")
    return found


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("when", ["at work", "with results"])
def test_dask_with_a_worker_that_is_killed(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'optsched[dask]'")
    dask, port = program("dask"), free_port()
    address = f"tcp://127.0.0.1:{port}"
    alone = osd.sweep(GRID, tmp_path / "alone.sqlite", workers=1)
    worker = [dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "60"]
    killed = threading.Event()
    with (
        started(dask, "scheduler", "--port", str(port), "--no-dashboard"),
        started(*worker),
        started(*worker) as victim,
    ):

        def kill() -> None:
            victim.send_signal(signal.SIGKILL)
            killed.set()

        def heard(result: CellResult, settled: int, every: int) -> None:
            if settled == 3 and when == "at work":
                kill()

        def lost_first(futures: Iterable[Any]) -> Iterator[Any]:
            """All are done, then the worker dies, and whose result died with it is asked for before it is run again."""
            left = list(futures)
            distributed.wait(left)
            kill()
            end = time.monotonic() + 10
            while not (lost := [each for each in left if each.status == "lost"]) and time.monotonic() < end:
                time.sleep(0.0005)
            yield from sorted(left, key=lambda each: each not in lost)

        while not answers(port):
            time.sleep(0.1)
        with distributed.Client(address) as client:
            client.wait_for_workers(2)
        if when == "with results":
            monkeypatch.setattr(distributed, "as_completed", lost_first)
        table = osd.sweep(GRID, tmp_path / "dask.sqlite", backend="dask", address=address, heard=heard)
    assert killed.is_set()
    assert alike(table, alone)


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_what_a_worker_raises_is_the_cells(backend: str, module: str) -> None:
    pytest.importorskip(module, reason=f"{backend} is not installed: pip install 'optsched[{backend}]'")
    tasks = [Task(key, "here") for key in ("[1]", "no JSON", "[2]")]
    found = list(results(json.loads, tasks, backend, workers=1))
    assert sorted(each for each in found if isinstance(each, list)) == [[1], [2]]
    (failed,) = (each for each in found if isinstance(each, CellResult))
    assert failed.key == "no JSON"
    assert failed.error.startswith("JSONDecodeError: Expecting value")


def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'optsched[ray]'")
    ray, port = program("ray"), free_port()
    alone = osd.sweep(GRID, tmp_path / "alone.sqlite", workers=1)
    head = [ray, "start", "--head", "--port", str(port), "--num-cpus", "2", "--include-dashboard=false"]
    subprocess.run([*head, "--disable-usage-stats"], check=True, capture_output=True)
    try:
        table = osd.sweep(GRID, tmp_path / "ray.sqlite", backend="ray", address=f"127.0.0.1:{port}")
    finally:
        subprocess.run([ray, "stop", "--force"], check=False, capture_output=True)
    assert alike(table, alone)
