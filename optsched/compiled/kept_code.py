"""Cache of compiled code on disk that notices every change of compiled code.

numba files a compiled function under the time stamp of its own source file. Functions here call and inline each other
across files, so that an edit in one file would leave stale machine code of another behind. Therefore the cache lies in a
folder named after the content of all modules that a module imports, directly or not, and that say ``optsched.compiled``:
those that compile, and those whose constants are frozen into compiled code. It is made for its owner alone; one that
another user owns or may write into is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numba

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PACKAGE = Path(__file__).resolve().parents[1]
_MARK = "optsched.compiled"
_IMPORT = re.compile(r"^\s*from (optsched[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_PREFIX, _DIGITS = "compiled-", 16
_FORGOTTEN = 7 * 86400.0  # seconds after which the code of an older version is removed
_LONGEST_WAIT = 120.0  # seconds that another process may take to compile what this one waits for


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    # Files of this package that a file imports; "from optsched.a import b" may mean the module b too.
    found = []
    for module, several, one in _IMPORT.findall(path.read_text(encoding="utf-8")):
        names = [word.split()[0] for word in (several or one.partition("#")[0]).split(",") if word.strip()]
        for dotted in (module, *(f"{module}.{name}" for name in names)):
            base = _PACKAGE.joinpath(*dotted.split(".")[1:])
            found += [file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()]
    return tuple(found)


@cache
def _stamp(path: Path) -> str:
    """The content of the compiled modules behind the file ``path``, its own included, as text."""
    reached, todo = {path}, [path]
    while todo:
        for file in _imports(todo.pop()):
            if file not in reached:
                reached.add(file)
                todo.append(file)
    h = hashlib.sha256()
    for file in sorted(reached):
        content = file.read_text(encoding="utf-8")
        if _MARK in content or file == path:
            h.update(f"{file.name}\n{content}".encode())
    return h.hexdigest()[:_DIGITS]


@cache
def _folder(stamp: str) -> str:
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optsched"
    base = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else _PACKAGE / "__pycache__"
    for place in (base, user):
        folder = place / f"{_PREFIX}{stamp}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if not os.access(folder, os.W_OK):
            continue
        if not _is_ours(folder):
            legal = "owned by you and writable by nobody else"
            print(f"optsched: {folder} is not used: what is kept there runs, and it is not {legal}", file=sys.stderr)
            continue
        os.utime(folder)  # in use: not to be forgotten
        for old in place.glob(_PREFIX + "[0-9a-f]" * _DIGITS):
            with contextlib.suppress(OSError):  # another process may have removed it
                if old != folder and time.time() - old.stat().st_mtime > _FORGOTTEN:
                    shutil.rmtree(old, ignore_errors=True)
        return str(folder)
    return ""


def _is_ours(folder: Path) -> bool:
    # What is loaded from it is unpickled, which runs code.
    if os.name != "posix":
        return True
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


_used: set[str] = set()
_nothing = False


def folder_of(function: Callable[..., Any]) -> str:
    """Return the folder for a function's machine code: in the package if writable, else the user's cache, else "".

    Parameters
    ----------
    function
        The Python function.
    """
    path = Path(function.__code__.co_filename)
    if _nothing or not path.is_file():
        return ""
    folder = _folder(_stamp(path))
    _used.add(folder)
    return folder


def clear() -> None:
    """Remove the stored code of the versions in use, because some of it cannot be read."""
    for folder in filter(None, _used):
        for file in (*Path(folder).rglob("*.nb[ic]"), *Path(folder).glob(f"*{_NOTE}")):
            file.unlink(missing_ok=True)


_NOTE = ".kept"


@cache
def _processor() -> tuple[str, ...]:
    # Machine code of another kind of processor in a shared folder is not loaded: numba would compile instead.
    asked = (os.environ.get("NUMBA_CPU_NAME", ""), os.environ.get("NUMBA_CPU_FEATURES", ""))
    about = platform.machine(), platform.processor(), *asked
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return about
    said = (line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))
    return (*about, *dict.fromkeys(said))


def _note_of(function: Callable[..., Any], types: tuple[Any, ...] | None) -> Path | None:
    # An empty file whose name says for what the machine code is; None for any types.
    folder = folder_of(function)
    if not folder:
        return None
    machine = (sys.implementation.cache_tag, numba.__version__, *_processor())
    name = f"{function.__module__}.{function.__qualname__}"
    said = hashlib.sha256(repr((name, machine, types and tuple(map(str, types)))).encode()).hexdigest()
    return Path(folder, said[:24] + _NOTE)


def note_kept(function: Callable[..., Any], types: tuple[Any, ...]) -> None:
    """Note next to the stored code that there is machine code of a function for some types of arguments.

    Parameters
    ----------
    function
        The Python function.
    types
        Types of its arguments.
    """
    for form in (types, None):
        note = _note_of(function, form)
        if note is not None:
            with contextlib.suppress(OSError):
                note.touch()


def is_kept(function: Callable[..., Any], types: tuple[Any, ...] | None) -> bool:
    """Return whether there is stored machine code of a function for some types of arguments.

    Parameters
    ----------
    function
        The Python function.
    types
        Types of its arguments; None: any.
    """
    note = _note_of(function, types)
    return note is not None and note.exists()


def forget() -> None:
    """Stop storing and reading code, because nothing can be written."""
    global _nothing
    _nothing = True


@contextlib.contextmanager
def kept_in(folder: str) -> Iterator[None]:
    """Open caches of numba in a folder inside the context.

    Parameters
    ----------
    folder
        The folder.
    """
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


@contextlib.contextmanager
def alone(function: Callable[..., Any]) -> Iterator[None]:
    """Prevent other processes from compiling a function inside the context, and wait for one that is compiling it.

    There is no wait if code is not stored or files cannot be locked; a wait ends after two minutes.

    Parameters
    ----------
    function
        The Python function.
    """
    with contextlib.ExitStack() as held:
        folder = folder_of(function)
        if folder and fcntl is not None:
            with contextlib.suppress(OSError):
                file = held.enter_context(open(Path(folder, f"{function.__name__}.lock"), "a"))
                _lock(file)
        yield


def _lock(file: IO[str]) -> None:
    # Until it is closed. A process that ends, however, leaves no lock behind.
    latest = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < latest:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.02)
