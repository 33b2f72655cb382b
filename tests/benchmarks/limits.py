"""Measure how soon commands end: after Ctrl-C at a random moment, and after their time limit.

``python -m benchmarks.limits [-k WORD] [--times N] [--data FOLDER]`` prints a line for each command: the seconds from
Ctrl-C to the end (legal: 2) at every moment, or the seconds beyond the limit (legal: a tenth of it and 1), and what is left
of its processes. Logs of the folder (``swf/``, ``philly/``; default: ``$OPTSCHED_DATA``) are read if they exist.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SOON, SHARE, ENDED = 2.0, 0.1, 5.0  # seconds after Ctrl-C; part of a limit, and 1 s; seconds until nothing is left
HARD = "generate rigid --set jobs=200 --seed 1 -o hard.json"
PREPARE = (HARD, "generate philly-like --set jobs=100000 --set cluster=64x8 --seed 1 -o many.parquet")
GRID = 'policies = ["fifo", "srtf"]\nseeds = "1-500"\n[[instances]]\nrecipe = "rigid"\njobs = 8\n'
COMMANDS = (  # {limit}: seconds; without it, a command is interrupted
    "run {kth} -p unified",
    "run {kth} -p hadar",
    "run {philly} --cluster 125x8 -p unified",
    "run {philly} --cluster 125x8 -p easy",
    "run many.parquet -p a-srpt",
    "bound {philly} --cluster 125x8",
    "bound {kth} --strong",
    "bound many.parquet --strong",
    "score {kth}",
    "advise {kth}",
    "solve hard.json",
    "solve hard.json --model rigid-time-indexed",
    "solve hard.json --model cp-sat",
    "solve {kth}",
    "attack sjf --budget 60 --workers 1",
    "attack sjf --budget 60 --workers 2",
    "sweep grid.toml --workers 2",
    "ratio rigid --set jobs=10 --seeds 200 -p srtf",
    "solve hard.json --time-limit {limit}",
    "solve hard.json --model rigid-time-indexed --time-limit {limit}",
    "solve hard.json --model cp-sat --time-limit {limit}",
    "solve {kth} --time-limit {limit}",
    "attack sjf --budget {limit} --workers 1",
    "attack sjf --budget {limit} --workers 2",
)


@dataclass(frozen=True)
class Ended:
    """The end of a command: exit status, seconds since Ctrl-C or beyond the limit, and processes that are left."""

    status: int
    late: float
    left: list[str]


def finish(
    arguments: list[str], folder: Path, interrupted: float | None, limit: float, longest: float = 120.0
) -> Ended:
    """Run ``optsched`` with these arguments, interrupt it after some seconds (None: not), and wait for its end."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "optsched", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it would be ignored
    )
    due = begun + (limit if interrupted is None else interrupted)
    try:
        if interrupted is not None:
            try:
                process.wait(interrupted)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
        process.wait(max(0.0, due - time.monotonic()) + longest)
    except subprocess.TimeoutExpired:
        pass
    late = time.monotonic() - due
    until = time.monotonic() + ENDED
    while (left := _processes(process.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    if process.poll() is None or left:
        os.killpg(process.pid, signal.SIGKILL)
    return Ended(process.wait(), late, left)


def _processes(session: int) -> list[str]:
    command = ["pgrep", "--session", str(session)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def main(arguments: list[str] | None = None) -> None:
    """Measure all commands and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description="Ctrl-C and time limits")
    parser.add_argument("-k", default="", help="only commands with this word")
    parser.add_argument("--times", type=int, default=3, help="moments of Ctrl-C; limits of 2, 5 and 10 s at most")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("OPTSCHED_DATA", ".")))
    given = parser.parse_args(arguments)
    logs = {"kth": given.data / "swf" / "KTH-SP2.swf", "philly": given.data / "philly" / "philly.csv"}
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for command in PREPARE:
            subprocess.run([sys.executable, "-m", "optsched", *shlex.split(command)], cwd=folder, check=True)
        (folder / "grid.toml").write_text(GRID, encoding="utf-8")
        for command in COMMANDS:
            if given.k not in command or any(
                f"{{{name}}}" in command and not log.exists() for name, log in logs.items()
            ):
                continue
            limits = [2.0, 5.0, 10.0][: given.times] if "{limit}" in command else [0.0] * given.times
            shown, legal = [], True
            for limit in limits:
                moment = None if limit else draw.uniform(0.5, 15.0)
                words = shlex.split(
                    command.format(limit=limit, kth=f"swf:{logs['kth']}", philly=f"philly:{logs['philly']}")
                )
                ended = finish(words, folder, moment, limit)
                shown.append(f"{ended.late:.1f} (at {moment or limit:.1f}, exit {ended.status})")
                legal &= ended.late <= (SHARE * limit + 1 if limit else SOON) and not ended.left
            print(f"{'' if legal else 'LATE '}{command}: {'; '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
