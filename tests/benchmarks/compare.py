"""Compare two checkouts: CPU seconds and peak memory of named rows, in turns, each run in a fresh process.

``python -m benchmarks.compare BEFORE [AFTER]`` takes commits or folders (AFTER: this checkout) and prints a table in
Markdown. ``rows.toml`` has the rows:

point
    Group of rows, such as ``million``; ``--point`` selects some.
name
    First column of the table.
command
    Arguments of ``optsched``. Files are made in the folder of the row, which both checkouts share.
code
    Python instead of a command. What comes after a line ``# measured`` is measured without start and imports.
prepare
    Commands of ``optsched`` that make the files of the row, once, by the checkout AFTER.
prepare_code
    Python that runs after them in the folder of the row.
long
    True: measured only with ``--long``.
limit
    CPU seconds after which a process is stopped; it counts as failed, and is not tried again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROWS, ROOT, MEASURED = HERE.with_name("rows.toml"), HERE.parents[2], "# measured\n"
FAILED = "failed"
TIMED = """
import resource, sys, time
before, measured = sys.argv.pop(1), sys.argv.pop(1)
names = {}
exec(before, names)
begun = time.process_time()
exec(measured, names)
print("measured:", time.process_time() - begun)
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and peak memory in MB."""

    seconds: float
    memory: float


def rows(chosen: list[str] | None = None, long: bool = False) -> list[dict[str, Any]]:
    """The rows of some points (None: all)."""
    every = tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"]
    return [row for row in every if (not chosen or row["point"] in chosen) and (long or not row.get("long", False))]


@contextlib.contextmanager
def checkout(name: str) -> Iterator[Path]:
    """The folder of a checkout: a folder, or a commit, which is checked out for as long as the context lasts."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "checkout")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), name], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def words(row: dict[str, Any]) -> list[str]:
    """The command line of the process that runs a row."""
    if "command" in row:
        return [sys.executable, "-m", "optsched", *shlex.split(row["command"])]
    before, mark, measured = row["code"].rpartition(MEASURED)
    return [sys.executable, "-c", TIMED, before if mark else "", measured]


def cost(command: list[str], tree: Path, folder: Path, limit: int | None = None) -> Cost | None:
    """The cost of a process; None if it fails or takes more CPU seconds than the limit."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=None if limit is None else partial(resource.setrlimit, resource.RLIMIT_CPU, (limit, limit)),
    )
    said = process.stdout.read().decode() if process.stdout is not None else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return None
    seconds = used.ru_utime + used.ru_stime
    if "measured: " in said:
        seconds = float(said.rpartition("measured: ")[2])
    return Cost(seconds, used.ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1))


def best(row: dict[str, Any], trees: list[Path], rounds: int) -> list[Cost | None]:
    """The least cost of a row in every checkout, measured in turns after a run that compiles."""
    with tempfile.TemporaryDirectory() as place:
        for command in row.get("prepare", []):
            made = cost([sys.executable, "-m", "optsched", *shlex.split(command)], trees[-1], Path(place))
            if made is None:
                raise SystemExit(f"{row['name']}: cannot prepare it: optsched {command}")
        if "prepare_code" in row:
            subprocess.run([sys.executable, "-c", row["prepare_code"]], cwd=place, check=True)
        found: list[list[Cost | None]] = [[] for _ in trees]
        for k in range(rounds + 1):
            for costs, tree in zip(found, trees, strict=True):
                if None not in costs:
                    measured = cost(words(row), tree, Path(place), row.get("limit"))
                    costs += [measured] if k or measured is None else []
        return [None if None in costs else min(filter(None, costs), key=lambda c: c.seconds) for costs in found]


def line(row: dict[str, Any], before: Cost | None, after: Cost | None) -> str:
    """The row as a line of the table."""
    shown = [f"{c.seconds:.3g} s, {c.memory:,.0f} MB" if c else FAILED for c in (before, after)]
    ratios = ["", ""]
    if before and after:
        ratios = [f"{before.seconds / after.seconds:.2f}", f"{before.memory / after.memory:.2f}"]
    return "| " + " | ".join([row["point"], row["name"], *shown, *ratios]) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="two checkouts, row by row")
    parser.add_argument("before", help="a commit or a folder")
    parser.add_argument("after", nargs="?", default=str(ROOT), help="a commit or a folder; default: this checkout")
    parser.add_argument("--point", action="append", help="only rows of this point; repeatable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", action="store_true", help="long rows, too")
    parser.add_argument("-o", type=Path, help="write the table to a file, too")
    given = parser.parse_args(arguments)
    table = ["| point | row | before | after | time | memory |", "|---|---|---|---|---|---|"]
    print("\n".join(table), flush=True)
    with checkout(given.before) as before, checkout(given.after) as after:
        for row in rows(given.point, given.long):
            table.append(line(row, *best(row, [before, after], given.rounds)))
            print(table[-1], flush=True)
    if given.o is not None:
        given.o.write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
