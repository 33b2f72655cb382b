"""Solve an instance by `optsched.solve`, and print the interval at a limit of CPU seconds: ``FILE OBJECTIVE LIMIT``."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import optsched
from optsched.solvers.solution import Solution
from optsched.solvers.solve import begin

LOOK = 0.05  # seconds between looks at the CPU time


def main() -> None:
    """Print one JSON line with ``value``, ``bound``, and ``model``, the method."""
    file, objective, limit = sys.argv[1:]
    solve = begin(optsched.load(file), objective)

    def watch() -> None:
        while time.process_time() < float(limit):
            time.sleep(LOOK)
        say(solve.so_far("the limit of CPU seconds"))
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    say(solve.run())


def say(solution: Solution) -> None:
    """Print a solution.

    Parameters
    ----------
    solution
        The solution.
    """
    document = {"value": solution.value, "bound": solution.bound, "model": solution.model, "done": True}
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    main()
