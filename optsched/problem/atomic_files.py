"""Files are written whole or not at all; through links, and into devices and pipes instead of over them.

While `keeping_sources` lasts, what has been read, or will be, is never written over.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from optsched.errors import InputError
from optsched.problem.memory import require_room


def file_name(text: str) -> str:
    """Return a text as part of the name of a file.

    Parameters
    ----------
    text
        Any text; characters other than letters, digits and ``._=-`` become hyphens.
    """
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-")


_sources: list[set[Path]] = []  # for each `keeping_sources` that lasts: the files that are read


@contextlib.contextmanager
def keeping_sources() -> Iterator[None]:
    """Protect source files while the context lasts: no file that was read is written over.

    Sources are the files that `read_bytes` has read and those that `note_source` was given. A command runs
    inside this context, since its command line does not name everything that it reads (the sources of a grid,
    the file beside a trace). A Python program may replace a file that it has loaded.
    """
    _sources.append(set())
    try:
        yield
    finally:
        _sources.pop()


def note_source(path: str | os.PathLike[str]) -> None:
    """Register a file that will be read, so that it is not written over.

    Parameters
    ----------
    path
        Path of the file; a device, a pipe or a folder is not registered.
    """
    if _sources and os.path.isfile(path):
        # a link and the file that it leads to: either may be replaced by a file of the same name
        _sources[-1] |= {Path(os.path.abspath(path)), Path(os.path.realpath(path))}


def note_named(text: str) -> None:
    """Register the file that a SOURCE names, by its path alone or as ``DIALECT:PATH#PART``.

    Parameters
    ----------
    text
        The SOURCE.
    """
    for name in (text, text.partition(":")[2]):
        for path in (name, name.rpartition("#")[0]):
            note_source(path)


def sources() -> frozenset[Path]:
    """Return the files that were read since the innermost `keeping_sources` began, as absolute paths.

    Paths are stored with links and with links resolved.
    """
    return frozenset(_sources[-1]) if _sources else frozenset()


def is_source(path: str | os.PathLike[str]) -> bool:
    """Return True if a path leads to a file that was read: under another name, by a link or in another case.

    Parameters
    ----------
    path
        Path to look up.
    """
    if not os.path.isfile(path):
        return False
    return any(os.path.isfile(each) and os.path.samefile(each, path) for each in sources())


def refuse_source(path: str | os.PathLike[str], field: str | None = None) -> None:
    """Refuse to replace a file that was read.

    Parameters
    ----------
    path
        File that would be written.
    field
        Option that names it, for the error.

    Raises
    ------
    InputError
        If writing to the path would replace a file that was read.
    """
    if is_source(path):
        legal = "another file than one that is read"
        if field is None:
            raise InputError("would replace its own source", file=path, legal=legal)
        raise InputError("would replace its own source", field=field, value=str(path), legal=legal)


_unfinished: set[Path] = set()  # temporary files and folders that somebody is writing


@contextlib.contextmanager
def atomic_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new temporary folder in a folder; it is removed at the end.

    Parameters
    ----------
    folder
        Existing folder.
    """
    with tempfile.TemporaryDirectory(prefix=".optsched-", dir=folder, ignore_cleanup_errors=True) as name:
        temporary = Path(name)
        _unfinished.add(temporary)
        try:
            yield temporary
        finally:
            _unfinished.discard(temporary)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to a file; it is renamed to the file on success and removed on failure.

    A link stays: its target is replaced and keeps its mode. A device or a pipe is never replaced: the content
    is copied into it.

    Parameters
    ----------
    path
        File to write.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written, or the path is a folder or a source (`is_source`).
    """
    target = Path(path)
    refuse_source(target)
    if target.is_dir():
        raise InputError("cannot write: this is a folder", file=target, legal="the name of a file")
    streamed = is_stream(target)
    place = target if streamed else Path(os.path.realpath(target))
    folder = tempfile.gettempdir() if streamed else place.parent
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{target.stem}.", suffix=target.suffix)
    except OSError as error:
        raise InputError(
            f"cannot write: {error.strerror or error}",
            file=target,
            legal="a file in an existing, writable folder",
        ) from None
    os.close(handle)
    temporary = Path(name)
    _unfinished.add(temporary)
    try:
        yield temporary
        if streamed:
            _copy_into(temporary, target)
        else:
            temporary.chmod(stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o666 & ~_umask())
            temporary.replace(place)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", file=target) from None
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def discard_unfinished() -> None:
    """Remove the temporary files and folders of this process, since the process is about to end."""
    for temporary in list(_unfinished):
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return True if a path is neither a file nor a folder but a device, a pipe or this process's own stdout.

    Parameters
    ----------
    path
        Path to look up.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _own_descriptor(path) is not None


LONGEST, MOST_JSON = 2**31, 2**28  # bytes that are read at once of a table or a trace, and of anything else
TABLES = (".json", ".parquet")  # what instances and schedules are written to


def suffix_of(path: str | os.PathLike[str], what: str = "", suffixes: tuple[str, ...] = TABLES) -> str:
    """Return the suffix that names the format of a file, in lower case.

    Parameters
    ----------
    path
        File; a device or a pipe without a suffix takes JSON.
    what
        Content of the file (``"a schedule"``), for the error; without it every suffix is legal.
    suffixes
        Legal suffixes.

    Raises
    ------
    InputError
        If the suffix is illegal.
    """
    suffix = Path(path).suffix.lower()
    suffix = ".json" if not suffix and is_stream(path) else suffix
    if what and suffix not in suffixes:
        raise InputError(f"cannot tell the format of {what} from its name", file=path, legal=" or ".join(suffixes))
    return suffix


def _own_descriptor(path: str | os.PathLike[str]) -> int | None:
    # /dev/stdout may lead to a file: to open it again would write over what is there
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
    return None


def _copy_into(temporary: Path, target: Path) -> None:
    own = _own_descriptor(target)
    if own is not None:
        (sys.stdout if own == 1 else sys.stderr).flush()
    # never made anew: it was there, and what it is must not change
    descriptor = os.dup(own) if own is not None else os.open(target, os.O_WRONLY)
    with temporary.open("rb") as written, os.fdopen(descriptor, "wb") as stream:
        shutil.copyfileobj(written, stream)


def check_writable(path: str | os.PathLike[str] | None, what: str = "", suffixes: tuple[str, ...] = TABLES) -> None:
    """Check before a long computation that a file can be written.

    Parameters
    ----------
    path
        File to write; None for no file.
    what
        Content of the file (``"a schedule"``), whose format the suffix decides.
    suffixes
        Legal suffixes.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if path is None:
        return
    target = Path(path)
    suffix_of(target, what, suffixes)
    refuse_source(target)
    place = target if is_stream(target) else Path(os.path.realpath(target)).parent
    if target.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise InputError("cannot write", file=target, legal="a file in an existing, writable folder")


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file under a temporary name and rename it.

    Parameters
    ----------
    path
        File to write.
    content
        Bytes, or text that is written as UTF-8.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def read_bytes(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    path
        File to read; at most ``most`` bytes are read of a pipe or a device.
    most
        Largest legal size in bytes; None: `LONGEST` for Parquet, `MOST_JSON` for all others.

    Raises
    ------
    InputError
        If the file is missing, unreadable or longer; the size is checked before reading.
    """
    source = Path(path)
    note_source(source)
    most = most or (LONGEST if source.suffix.lower() == ".parquet" else MOST_JSON)
    try:
        with source.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most and source.suffix.lower() != ".parquet":
                require_room(size, source)
            content = b"" if size > most else file.read(most + 1)
    except FileNotFoundError:
        raise InputError("no such file", file=source) from None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", file=source) from None
    if max(size, len(content)) > most:
        raise InputError("too long", file=source, field="bytes", value=max(size, len(content)), legal=f"at most {most}")
    return content


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
