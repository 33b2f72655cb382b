"""Files are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from optsched.errors import InputError


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path``, renamed to it on success and removed on failure.

    Raises
    ------
    InputError
        When the folder does not exist or cannot be written, or ``path`` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError("cannot write: this is a folder", file=target, legal="the name of a file")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    except OSError as error:
        raise InputError(
            f"cannot write: {error.strerror or error}",
            file=target,
            legal="a file in an existing, writable folder",
        ) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", file=target) from None
    finally:
        temporary.unlink(missing_ok=True)


LONGEST = 2**31  # bytes of a file that is read at once
TABLES = (".json", ".parquet")  # what instances and schedules are written to


def check_writable(path: str | os.PathLike[str], what: str = "", suffixes: tuple[str, ...] = TABLES) -> None:
    """`InputError` when ``path`` cannot be written: asked before a long computation, not after it.

    ``what`` ("a schedule"): its format is told by the suffix, which must be one of ``suffixes``.
    """
    target = Path(path)
    if what and target.suffix.lower() not in suffixes:
        message = f"cannot tell the format of {what} from its name"
        raise InputError(message, file=target, legal=" or ".join(suffixes))
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError("cannot write", file=target, legal="a file in an existing, writable folder")


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to ``path`` through a temporary name; `InputError` when it cannot be."""
    data = content.encode() if isinstance(content, str) else content
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; `InputError` when it is missing, cannot be read, or is longer than `LONGEST` bytes."""
    source = Path(path)
    try:
        if source.stat().st_size > LONGEST:
            raise InputError("the file is too long", file=source, legal=f"at most {LONGEST} bytes")
        return source.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", file=source) from None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", file=source) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
