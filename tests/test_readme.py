"""The README: short, and what it shows is what there is. (Its blocks are run by `pages.test_snippets`.)"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages.page import README, ROOT, Page
from pages.picture import DRAWN, TOLERATED, difference, draw
from pages.player import WIDTH, command, same

pytestmark = pytest.mark.release

PAGE = Page(README)
SHOWN = next(block.text for block in PAGE.blocks if block.language == "text")  # the first output
(MAIN_RUN,) = re.findall(
    r"^run: .*\n\t\$\(BIN\)/(optsched run .*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)


def test_it_is_short() -> None:
    assert len(PAGE.text.splitlines()) <= 165  # the table of the first command takes three blocks at 80 columns
    # tables and links apart, lines a terminal and an editor can hold
    assert max(len(line) for line in PAGE.prose.splitlines() if not line.startswith(("|", "!", "*"))) <= 125


def test_two_commands_and_the_table_of_the_first() -> None:
    made = [line for block in PAGE.blocks if block.language == "sh" for line in block.text.splitlines()]
    assert [line.split(" #")[0].rstrip() for line in made if line.startswith("make ")] == ["make run", "make test"]
    texts = [block.text for block in PAGE.blocks]
    assert texts[texts.index(SHOWN) - 1].strip() == MAIN_RUN


def test_make_run_prints_the_table() -> None:
    # `make test` is what runs this test; `make run` is run here, as a process, on the environment that exists.
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("make builds .venv, and the tests run in another environment")
    done = subprocess.run(
        ["make", "--silent", "--no-print-directory", "run"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": WIDTH},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert same(done.stdout, SHOWN)


def test_every_column_is_explained() -> None:
    columns = set()
    for head in re.findall(r"^┏.*?\n(.*?)^┡", SHOWN, re.MULTILINE | re.DOTALL):
        lines = [[cell.strip() for cell in line.strip("┃").split("┃")] for line in head.splitlines()]
        columns |= {" ".join(filter(None, words)).replace("_ ", "_") for words in zip(*lines, strict=True)}
    explained = set(re.findall(r"^\| `([^`]+)` \|", PAGE.text, re.MULTILINE))
    assert len(columns) == 13
    assert columns == explained


def test_a_policy_of_ones_own_makes_a_difference() -> None:
    # what the block prints is what stands there: pages.test_snippets
    blocks = [each.text for each in PAGE.blocks]
    (at,) = [k for k, text in enumerate(blocks) if "def decide" in text]
    ratios = {name: float(ratio) for name, ratio in (line.split() for line in blocks[at + 1].splitlines())}
    assert ratios["packed"] < 0.9 * ratios["srtf"]


@pytest.mark.release
@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.name)
def test_pictures_are_what_is_drawn_now(picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {f"optsched {line}" for line in DRAWN[picture]} <= set(PAGE.commands)
    assert difference(draw(picture, tmp_path), picture) < TOLERATED, "make pages draws it again"
    command(["plot", "result/schedule-02-srtf.json", "--instance", "rigid-12-1", "-o", "other.png"])
    assert difference(tmp_path / "other.png", picture) > 2 * TOLERATED  # another schedule would be noticed
    assert f"]({picture.relative_to(ROOT)})" in PAGE.text


def test_shell_blocks_are_what_a_shell_runs(tmp_path: Path) -> None:
    # The pages are played without a shell; this block has a here-document and continued lines.
    (block,) = [each.text for each in PAGE.blocks if each.language == "bash" and "<<" in each.text]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (tmp_path / "log" / "certificate.json").exists()
