"""Atomic writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.problem.files import atomic_path, read_bytes, write_atomic


def test_text_and_bytes_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    write_atomic(path, "grüße\n")
    assert read_bytes(path) == "grüße\n".encode()
    write_atomic(str(path), b"\x00\xff")
    assert read_bytes(str(path)) == b"\x00\xff"
    assert [file.name for file in tmp_path.iterdir()] == ["f.txt"]


def test_a_new_file_has_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "f", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_no_temporary(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "f.txt"
    write_atomic(path, "old")

    def interrupted() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half of the n")
            assert temporary.parent == path.parent  # so that renaming is atomic
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["f.txt"]


def test_where_nothing_can_be_written_or_read_the_error_is_one_line(tmp_path: Path) -> None:
    for path, what in ((tmp_path, "this is a folder"), (tmp_path / "no" / "f", "No such file or directory")):
        with pytest.raises(InputError) as caught:
            write_atomic(path, "x")
        assert str(caught.value).startswith(f"{path}: cannot write: {what}")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"f: no such file$"):
        read_bytes(tmp_path / "f")
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        read_bytes(tmp_path)
