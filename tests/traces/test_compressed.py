"""Compressed logs: read like plain ones in every dialect, never beyond a bound, and refused in one line if damaged."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import one_line

import optsched as osd
from optsched.io.traces.compressed import plain, zstd

CSV = "submitted,gpus,seconds\n0,4,60\n5,1,30\n"
NAMES = "arrival=submitted,gpus=gpus,duration=seconds"
PACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstd.compress}


@pytest.mark.parametrize("kind", PACKED)
def test_a_compressed_log_is_read_like_a_plain_one(tmp_path: Path, kind: str) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    whole, half = tmp_path / f"log.csv.{kind}", CSV.encode()
    whole.write_bytes(PACKED[kind](half[:30]) + PACKED[kind](half[30:]))  # two members, as rotated logs have
    read = osd.load(f"csv:{whole}", columns=NAMES, cluster="1x4")
    assert read.digest == osd.load(f"csv:{tmp_path}/log.csv", columns=NAMES, cluster="1x4").digest
    assert read.name == "log"
    assert read.recipe is not None
    assert read.recipe["parameters"]["sha256"] == hashlib.sha256(whole.read_bytes()).hexdigest()
    with one_line("a trace is named with its dialect", f"csv:{whole} --columns {NAMES} --cluster NODESxGPUS"):
        osd.load(whole)


@pytest.mark.parametrize("kind", PACKED)
def test_damaged_and_huge_streams_are_one_line(tmp_path: Path, kind: str) -> None:
    path, content = tmp_path / f"log.{kind}", PACKED[kind](CSV.encode() * 50)
    at = {"gz": 12, "zst": 6}[kind]  # in the first block
    for damaged in (content[:-3], content[:at] + b"\xff\xff" + content[at + 2 :], content[:8], content + content[:9]):
        path.write_bytes(damaged)
        with one_line("cannot decompress", begins=path):
            osd.load(f"csv:{path}", columns=NAMES, cluster="1x4")
    bomb = PACKED[kind](b"\n" * 10**6)
    with one_line("too long", "more than 1000", "at most 1000 after decompression"):
        plain(bomb, path, 1000)
    assert plain(bomb, path, 10**6) == b"\n" * 10**6
