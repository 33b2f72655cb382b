"""Compressed text: logs as ``.gz`` and ``.zst`` are read like plain ones.

The first bytes decide, not the name. Not more than a stated number of bytes is decompressed, so a small file cannot fill
the memory.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from pathlib import Path
from typing import IO

from optsched.errors import InputError
from optsched.problem.atomic_files import note_source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # first bytes; no text in UTF-8 begins like this
HEAD, LINES = 65_536, 40  # bytes and lines at the beginning of a file by which its format is recognised


def plain(content: bytes, path: str | os.PathLike[str], most: int) -> bytes:
    """Return content as it is, or decompressed if it is gzip or Zstandard.

    Parameters
    ----------
    content
        Bytes of a file.
    path
        The file, for errors.
    most
        Largest legal number of bytes after decompression.

    Raises
    ------
    InputError
        If the content is damaged, ends early, or is longer after decompression.
    """
    if not content.startswith((GZIP, ZSTD)):
        return content
    try:
        with _decompressed(io.BytesIO(content), content) as stream:
            text = stream.read(most + 1)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        kind = "gzip" if content.startswith(GZIP) else "Zstandard"
        raise InputError(f"cannot decompress: {error}", file=path, legal=f"a whole {kind} file") from None
    if len(text) > most:
        legal = f"at most {most} after decompression"
        raise InputError("too long", file=path, field="bytes", value=f"more than {most}", legal=legal)
    return text


def first_lines(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the first lines of a file, decompressed, without line ends; none if it cannot be read or is no text.

    Parameters
    ----------
    path
        The file.
    """
    note_source(path)
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(ZSTD))
            file.seek(0)
            with _decompressed(file, start) as stream:
                head = stream.read(HEAD)
    except (OSError, EOFError, zlib.error, zstd.ZstdError):
        return ()
    if b"\x00" in head:
        return ()
    return tuple(head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").splitlines()[:LINES])


def _decompressed(file: IO[bytes], start: bytes) -> IO[bytes]:
    if start.startswith(GZIP):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    return zstd.ZstdFile(file) if start.startswith(ZSTD) else file  # type: ignore[return-value]
