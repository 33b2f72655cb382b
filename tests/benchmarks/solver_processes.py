"""Solve an instance by optsched, by CP-SAT and by PyJobShop: each in its own process, with one thread, until a CPU limit.

The CPU seconds of a process decide, since wall time means little on a busy machine. At the limit optsched is asked for its
interval so far, and the others get Ctrl-C, after which CP-SAT reports the interval. CPU seconds are those of the whole
process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.solvers.methods import cpsat_worker
from optsched.speeds.duration import seconds_alone

HERE = Path(__file__).parent
OWN, CPSAT, PYJOBSHOP = "optsched", "cp-sat", "pyjobshop"
OBJECTIVES = ("total_completion_time", "total_weighted_completion_time", "total_weighted_tardiness")
SOLVERS = (OWN, CPSAT, PYJOBSHOP)
LOOK = 0.2  # seconds between looks at the CPU time
GRACE = 20.0  # CPU seconds after Ctrl-C until the process is killed
NONE = "no answer within the limit"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Answer:
    """The interval that a solver proves, in units of the objective, and its CPU ``seconds``; ``why`` it has none."""

    value: float | None
    bound: float | None
    seconds: float
    why: str = ""

    @property
    def proved(self) -> bool:
        """True if the interval is a point."""
        return self.value is not None and self.value == self.bound


def answer(solver: str, instance: Instance, objective: str, limit: float, pyjobshop: str = sys.executable) -> Answer:
    """Return the answer of a solver.

    Parameters
    ----------
    solver
        One of `SOLVERS`.
    instance
        The instance.
    objective
        Name of the objective.
    limit
        Limit in CPU seconds.
    pyjobshop
        Path of the Python interpreter that has PyJobShop.
    """
    if solver == OWN:
        return _own(instance, objective, limit)
    problem = integer_problem(instance, objective)
    if solver == CPSAT:
        worker = [sys.executable, str(Path(cpsat_worker.__file__))]
    elif not has_pyjobshop(pyjobshop):
        return Answer(None, None, 0.0, "PyJobShop is not installed")
    else:
        worker = [pyjobshop, str(HERE / "pyjobshop_worker.py")]
    lines, seconds, failed = run(worker, json.dumps(problem), limit)
    answers = [json.loads(line) for line in lines]
    if not answers:
        return Answer(None, None, round(seconds, 1), failed or NONE)
    last = answers[-1]
    if "value" not in last:
        starts = next((each["starts"] for each in reversed(answers) if each["starts"] is not None), None)
        last["value"] = None if starts is None else cost(problem, starts)
    return Answer(last["value"], last["bound"], round(seconds, 1))


def _own(instance: Instance, objective: str, limit: float) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.json"
        instance.save(file)
        command = [sys.executable, "-m", "benchmarks.optsched_worker", str(file), objective, str(limit)]
        lines, seconds, failed = run(command, "", limit + GRACE)
    if not lines:
        return Answer(None, None, round(seconds, 1), failed or NONE)
    document = json.loads(lines[-1])
    return Answer(document["value"], document["bound"], round(seconds, 1))


def has_pyjobshop(python: str) -> bool:
    """Return whether an interpreter has PyJobShop.

    Parameters
    ----------
    python
        Path of the interpreter.
    """
    return not subprocess.run([python, "-c", "import pyjobshop"], capture_output=True, check=False).returncode


def integer_problem(instance: Instance, objective: str) -> dict[str, Any]:
    """Return the instance in integers, as the CP-SAT worker reads it.

    Parameters
    ----------
    instance
        The instance, whose times and weights are integers.
    objective
        One of `OBJECTIVES`.

    Raises
    ------
    ValueError
        If the objective is another one.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"{objective} is none of {', '.join(OBJECTIVES)}")
    release, duration = _integers(instance.arrival), _integers(seconds_alone(instance))
    slope = _integers(instance.weight) if "weighted" in objective else [1] * instance.n
    due = _integers(instance.due) if "tardiness" in objective else [0] * instance.n
    return {
        "release": release,
        "duration": duration,
        "gpus": instance.gpus.tolist(),
        "capacity": instance.cluster.gpus,
        "slope": slope,
        "kink": [weight * date for weight, date in zip(slope, due, strict=True)],
        "base": [0] * instance.n,
        "maximum": False,
        "horizon": max(release) + sum(duration),
        "hint": [],
        "time_limit": None,
    }


def _integers(numbers: Floats) -> list[int]:
    whole = np.rint(numbers).astype(np.int64)
    if not np.array_equal(whole, numbers):
        raise ValueError("a time or a weight is no integer")
    return [int(number) for number in whole]


def cost(problem: dict[str, Any], starts: list[int]) -> int:
    """Return the cost of starts.

    Parameters
    ----------
    problem
        The problem in integers.
    starts
        Start of every job.
    """
    columns = (problem[name] for name in ("duration", "slope", "kink"))
    return sum(max(0, s * (start + p) - k) for start, p, s, k in zip(starts, *columns, strict=True))


def run(command: list[str], said: str, limit: float) -> tuple[list[str], float, str]:
    """Run a process until it ends or has used its CPU time; return (lines of stdout, CPU seconds, the last line of stderr).

    Parameters
    ----------
    command
        The command.
    said
        What it reads from stdin.
    limit
        CPU seconds after which it gets Ctrl-C.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ONE_THREAD,
        start_new_session=True,
    )
    threading.Thread(target=_stop, args=(process.pid, limit), daemon=True).start()
    before = _children()
    out, err = process.communicate(said)
    lines = [line for line in out.splitlines() if line.strip()]
    return lines, _children() - before, err.strip()[-200:] if process.returncode else ""


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _stop(pid: int, limit: float) -> None:
    """Send Ctrl-C when the CPU time is used, and kill the process if it goes on for too long."""
    tick, told = os.sysconf("SC_CLK_TCK"), False
    while True:
        time.sleep(LOOK)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return
        if fields[0] == "Z":
            return
        seconds = (int(fields[11]) + int(fields[12])) / tick
        if seconds > limit and not told:
            os.kill(pid, signal.SIGINT)
            told = True
        elif seconds > limit + GRACE:
            os.kill(pid, signal.SIGKILL)
            return
