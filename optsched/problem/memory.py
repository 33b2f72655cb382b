"""Memory that a file or a run needs and that the machine has: what does not fit is refused before it starts."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

from optsched.errors import InputError

JOB, POLICY = 1000, 250  # bytes of a job in a run under one policy, and of its schedule under each further policy
TEXT, ROW = 8, 200  # bytes for each byte of a text file and for each row of a Parquet table while it is read
FEW = 1 << 28  # bytes that are not checked, since looking takes longer
ANYWAY = "OPTSCHED_MEMORY"  # environment variable; "any": nothing is refused
_CONTROL = Path("/sys/fs/cgroup")
_FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def free_bytes() -> float:
    """Return the bytes that this process can still take: what the machine and its control group have free; else inf."""
    free = [math.inf]
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free.append(1024.0 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    for folder in _groups():
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max": no limit
            limit, used = (int((folder[1] / name).read_text()) for name in _FILES[folder[0]])
            free.append(max(0.0, limit - used + _reclaimable((folder[1] / _FILES[folder[0]][0]).parent)))
    return min(free)


def _groups() -> list[tuple[int, Path]]:
    # The control groups of this process, of version 2 (0) and version 1 (1), seen from outside or inside a container.
    groups = [(0, _CONTROL), (1, _CONTROL)]
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                groups.append((0, _CONTROL / path.lstrip("/")))
    return groups


def _reclaimable(folder: Path) -> int:
    # Bytes of files that the group holds and gives back when they are needed.
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = (folder / "memory.stat").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("inactive_file")).split()[1])
    return 0


def require_memory(jobs: int, policies: int = 1) -> None:
    """Check that a run with bound and proof fits into memory.

    Parameters
    ----------
    jobs
        Number of jobs.
    policies
        Number of policies, whose schedules are all kept.

    Raises
    ------
    InputError
        It needs more than `free_bytes`, and ``OPTSCHED_MEMORY`` is not ``any``.
    """
    needed = jobs * (JOB + POLICY * max(policies - 1, 0))
    _require(needed, f"the run of {jobs:,} jobs", f"fewer jobs (--limit), fewer policies, or {_TRY}")


def require_room(size: int, path: str | os.PathLike[str], rows: int | None = None) -> None:
    """Check that the content of a file fits into memory before it is read.

    Parameters
    ----------
    size
        Length of the file in bytes.
    path
        The file.
    rows
        Rows of a Parquet table; None for a text file.

    Raises
    ------
    InputError
        It needs more than `free_bytes`, and ``OPTSCHED_MEMORY`` is not ``any``.
    """
    needed = TEXT * size if rows is None else size + ROW * rows
    if needed > FEW:
        _require(needed, f"reading {size:,} bytes" + (f" with {rows:,} rows" if rows else ""), f"less, or {_TRY}", path)


_TRY = f"{ANYWAY}=any, which tries it"


def _require(needed: float, what: str, legal: str, file: str | os.PathLike[str] | None = None) -> None:
    if os.environ.get(ANYWAY) == "any":
        return
    free = free_bytes()
    if needed > free:
        need = f"{what} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free"
        raise InputError(need, file=file, legal=legal)
