"""Measure how soon commands end: after Ctrl-C at a random moment, and after their time limit.

``python -m benchmarks.limits [-k WORD] [--times N] [--data FOLDER]`` prints a line for each command: the seconds from
Ctrl-C to the end (legal: 2) at every moment, or the seconds beyond the limit (legal: a tenth of it and 1), the CPU seconds
of the command in that time, the processes that are left, and the files that are unfinished. A line begins with ``LATE`` if
these CPU seconds are illegal or something is left, and with ``BUSY`` if only the seconds are: other programs ran, too.
Logs of the folder (``swf/``, ``philly/``; default: ``$OPTSCHED_DATA``) are read if they exist.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
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
    "ratio rigid --set jobs=40 --seeds 200 -p srtf --strong -o worst",
    "attack sjf --budget 60 --workers 1 -o worst.json",
    "run many.parquet -p srtf -o out --force",
    "run many.parquet -p fifo -p srtf -p sjf -o out --force",
    "solve hard.json -o best.json",
    "generate philly-like --set jobs=1000000 --set cluster=64x8 --seed 1 -o made.json",
    "solve hard.json --time-limit {limit}",
    "solve hard.json --model rigid-time-indexed --time-limit {limit}",
    "solve hard.json --model cp-sat --time-limit {limit}",
    "solve {kth} --time-limit {limit}",
    "attack sjf --budget {limit} --workers 1",
    "attack sjf --budget {limit} --workers 2",
)


@dataclass(frozen=True)
class Ended:
    """The end of a command.

    ``late`` and ``spent`` are seconds and CPU seconds since Ctrl-C or beyond the limit, ``left`` processes, and
    ``unfinished`` files that are temporary or cannot be read.
    """

    status: int
    late: float
    left: list[str]
    spent: float
    unfinished: list[str]


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
    until, before, status = due + longest, None, None
    while status is None and time.monotonic() < until:
        if before is None and time.monotonic() >= due:
            before = _cpu_seconds(process.pid)
            if interrupted is not None:
                os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.01)
        status, used = _end(process)
    late = time.monotonic() - due
    until = time.monotonic() + ENDED
    while (left := _processes(process.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    if status is None or left:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if status is None:
        status, used = process.wait(), math.inf
    spent = 0.0 if before is None else used - before
    return Ended(status, late, left, spent, unfinished(folder))


def _end(process: subprocess.Popen[bytes]) -> tuple[int | None, float]:
    """The exit status and the CPU seconds of a process; None while it runs."""
    ended, status, used = os.wait4(process.pid, os.WNOHANG)
    if not ended:
        return None, 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def _cpu_seconds(process: int) -> float:
    """The CPU seconds of a process and of those that it has waited for; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def unfinished(folder: Path) -> list[str]:
    """The temporary files and folders of a folder, and the files in it that cannot be read."""
    found = []
    for path in folder.rglob("*"):
        if path.name.startswith("."):
            found.append(path.name)
        elif path.suffix == ".json":
            with contextlib.suppress(ValueError):
                json.loads(path.read_bytes())
                continue
            found.append(path.name)
        elif path.suffix == ".parquet" and path.read_bytes()[-4:] != b"PAR1":
            found.append(path.name)
    return found


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
            shown, late, broken = [], False, False
            for limit in limits:
                moment = None if limit else draw.uniform(0.5, 15.0)
                words = shlex.split(
                    command.format(limit=limit, kth=f"swf:{logs['kth']}", philly=f"philly:{logs['philly']}")
                )
                ended = finish(words, folder, moment, limit)
                most = SHARE * limit + 1 if limit else SOON
                shown.append(f"{ended.late:.1f} (CPU {ended.spent:.1f}, at {moment or limit:.1f}, exit {ended.status})")
                shown += [f"left: {', '.join(names)}" for names in (ended.left, ended.unfinished) if names]
                broken = broken or bool(ended.left or ended.unfinished) or ended.spent > most
                late = late or ended.late > most
            mark = "LATE " if broken else "BUSY " if late else ""
            print(f"{mark}{command}: {'; '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
