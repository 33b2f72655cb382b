"""numba's ``njit`` with a cache on disk that notices every change of compiled code.

numba files a compiled function under the time stamp of its own source file. Functions here call and inline each other
across files, so that an edit in one file would leave stale machine code of another behind. Therefore the cache lies in a
folder named after the content of all modules that compile anything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types

__all__ = ["njit", "types"]

_PACKAGE = Path(__file__).resolve().parent
_MARK = b"optsched.compiled import"
_PREFIX = "compiled-"
_FORGOTTEN = 7 * 86400.0  # seconds after which the code of an older version is removed


@cache
def _stamp() -> str:
    h = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        if _MARK in content:
            h.update(path.name.encode() + content)
    return h.hexdigest()[:16]


@cache
def _folder() -> str:
    """Where compiled code is kept: inside the package where that can be written, else in the user's cache."""
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optsched"
    base = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else _PACKAGE / "__pycache__"
    for place in (base, user):
        folder = place / f"{_PREFIX}{_stamp()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            _forget(place, folder)
            return str(folder)
    return ""  # numba's own choice


def _forget(place: Path, current: Path) -> None:
    for old in place.glob(f"{_PREFIX}*"):
        if old != current and time.time() - old.stat().st_mtime > _FORGOTTEN:
            shutil.rmtree(old, ignore_errors=True)


def njit(*arguments: Any, **options: Any) -> Any:
    """`numba.njit` with ``cache=True`` in the folder of this version of the code; same arguments, same two uses."""
    if len(arguments) == 1 and callable(arguments[0]) and not options:
        return njit()(arguments[0])

    def decorate(function: Any) -> Any:
        kept = numba.config.CACHE_DIR
        folder = _folder()
        numba.config.CACHE_DIR = folder or kept
        try:
            return numba.njit(*arguments, **{**options, "cache": True})(function)
        finally:
            numba.config.CACHE_DIR = kept

    return decorate
