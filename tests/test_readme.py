"""Every snippet of the README is run, as written, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
SHELL = [block for language, block in BLOCKS if language == "bash" and "make " not in block]
MAKE = [line for language, block in BLOCKS if language == "bash" and "make " in block for line in block.splitlines()]
PYTHON = [block for language, block in BLOCKS if language == "python"]


def environment() -> dict[str, str]:
    """As in a shell with the environment's programs on the path."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg"}


def test_there_are_snippets() -> None:
    assert len(SHELL) >= 4
    assert len(PYTHON) >= 2
    assert MAKE == ["make run", "make test"]


def test_shell_snippets_in_one_empty_folder(tmp_path: Path) -> None:
    for block in SHELL:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "srtf.png").stat().st_size > 1000
    assert (tmp_path / "result" / "certificate.json").exists()


@pytest.mark.parametrize("block", PYTHON)
def test_python_snippets(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_make_run_prints_the_table() -> None:
    # `make test` is what runs this test; `make run` is run here on the environment that exists.
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("make builds .venv, and the tests run in another environment")
    done = subprocess.run(["make", "run"], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for policy in ("fifo+consolidated", "sjf+consolidated", "srtf", "tiresias"):
        assert policy in done.stdout


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
