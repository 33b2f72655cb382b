"""Runs of an installed package: from another folder, nothing of the checkout on the path, no right to write."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optsched
from optsched.io.index import entries
from optsched.models import FORMULATIONS

JOURNEY = Path(__file__).with_name("journey.py")
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1  # linux/prctl.h, linux/capability.h


def lock(folder: Path) -> None:
    """Take away the right to write in a folder and all below it."""
    for place, _, files in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in files)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)


def _as_anybody() -> Callable[[], None] | None:
    # Root writes where nobody may, and CI often runs as root: its child gives up that right before it starts.
    if sys.platform != "linux" or os.geteuid() != 0:
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


def run(
    command: list[str | Path], folder: Path, *, path: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that is its home, too; ``path`` becomes PYTHONPATH, and no other is inherited."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA", "XDG", "VIRTUAL"))
    }
    places = {"HOME": str(folder), **({"PYTHONPATH": str(path)} if path else {})}
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, **places, **variables},
        capture_output=True,
        text=True,
        preexec_fn=_as_anybody(),
    )


def travel(
    python: str | Path, package_in: Path, folder: Path, *, path: Path | None = None, writable: bool = False
) -> None:
    """Run the journey, interpreted, and hold what it finds against the tree."""
    told = ["--writable"] if writable else []
    done = run([python, JOURNEY, package_in, *told], folder, path=path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found == {
        "version": [optsched.__version__] * 2,
        "models": FORMULATIONS.names(),
        "instances": [each.name for each in entries()],
        "optimum": 47,
        "holds": True,
        "fifo": 205,
    }
