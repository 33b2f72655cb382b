"""The synthetic setting of Jaillet et al. under general solvers: `python -m kv_cache.other_solvers SECONDS SEED... NAME...`.

Each solver gets one thread, SECONDS of CPU time and the schedule of mc-sf as its start, HiGHS the best of three list
schedules. HiGHS and SCIP solve the program ``kv-time-indexed``; CP-SAT has a start variable a request and, for its j-th
round, an interval of length 1 that holds s + j cells. Each one runs in a process of its own: their libraries do not work in
the same process. Without a NAME all four run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time

import numpy as np

import optsched as osd
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.problem.instance import Instance


def paper_instance(seed: int) -> Instance:
    """Return an instance of the setting with all requests at 0, as in the table of docs/serving-optimum.md."""
    rng = np.random.default_rng(seed)
    cells, prompt, n = int(rng.integers(30, 51)), int(rng.integers(1, 6)), int(rng.integers(40, 61))
    output = np.sort(rng.integers(1, cells - prompt + 1, size=n))
    return request_instance([prompt] * n, output, cells, name=f"kv-paper-{seed}")


NAMES = "cache-states", "cp-sat", "scip", "highs"
LONG = 20  # seconds of the clock that a solver may take for a second of CPU time
interval = [np.inf, 0.0]  # value and bound so far


def row() -> str:
    """Return the interval so far and the CPU seconds of this process."""
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    return f"value {interval[0]:.0f}, bound {interval[1]:.1f}, CPU {cpu.ru_utime + cpu.ru_stime:.0f} s"


def stop_after(seconds: float) -> None:
    """Print the interval and end the process when it has used its CPU time."""
    while time.process_time() < seconds:
        time.sleep(0.2)
    print(row(), flush=True)
    os._exit(0)


def note(value: float, bound: float) -> None:
    """Take a value and a bound."""
    interval[:] = min(interval[0], value), max(interval[1], bound)


def cp_sat(instance: Instance, seconds: float) -> tuple[float, float]:
    """Return the value and the bound of CP-SAT."""
    from ortools.sat.python import cp_model

    requests, hint = requests_of(instance), osd.simulate(instance, "mc-sf").schedule.start
    model, starts, tokens, cells = cp_model.CpModel(), [], [], []
    horizon = int(hint.max() + requests.output.max())
    for i, (s, o) in enumerate(zip(requests.prompt.tolist(), requests.output.tolist(), strict=True)):
        start = model.new_int_var(0, horizon - o, f"start{i}")
        model.add_hint(start, int(hint[i]))
        starts.append(start)
        tokens += [model.new_fixed_size_interval_var(start + j, 1, f"{i}-{j}") for j in range(o)]
        cells += [s + j + 1 for j in range(o)]
    model.add_cumulative(tokens, cells, requests.cells)
    model.minimize(sum(starts) + int(requests.output.sum()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = LONG * seconds, 1
    solver.best_bound_callback = lambda bound: note(np.inf, bound)

    class Noted(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            note(self.objective_value, self.best_objective_bound)

    solver.solve(model, Noted())
    return solver.objective_value, solver.best_objective_bound


def scip(instance: Instance, seconds: float) -> tuple[float, float]:
    """Return the value and the bound of SCIP."""
    from ortools.linear_solver import pywraplp

    requests, hint = requests_of(instance), osd.simulate(instance, "mc-sf").schedule.start.astype(int).tolist()
    prompt, output = requests.prompt.tolist(), requests.output.tolist()
    solver = pywraplp.Solver.CreateSolver("SCIP")
    horizon = max(k + o for k, o in zip(hint, output, strict=True))
    rounds = [solver.Constraint(0, requests.cells) for _ in range(horizon + 1)]
    cost, begins = solver.Objective(), []
    for s, o in zip(prompt, output, strict=True):
        once = solver.Constraint(1, 1)
        begins.append([solver.BoolVar("") for _ in range(horizon - o + 1)])
        for k, begin in enumerate(begins[-1]):
            once.SetCoefficient(begin, 1)
            cost.SetCoefficient(begin, k + o)
            for j in range(1, o + 1):
                rounds[k + j].SetCoefficient(begin, s + j)
    cost.SetMinimization()
    chosen = [(begin, float(k == at)) for row, at in zip(begins, hint, strict=True) for k, begin in enumerate(row)]
    solver.SetHint(*map(list, zip(*chosen, strict=True)))
    solver.SetSolverSpecificParametersAsString(f"timing/clocktype = 1\nlimits/time = {seconds}")
    solver.Solve(pywraplp.MPSolverParameters())
    return cost.Value(), cost.BestBound()


def by_name(name: str, instance: Instance, seconds: float) -> tuple[float, float]:
    """Return the value and the bound of a solver, or of our own search (``cache-states``)."""
    if name in ("cp-sat", "scip"):
        return (cp_sat if name == "cp-sat" else scip)(instance, seconds)
    model = "kv-time-indexed" if name == "highs" else name
    best = osd.solve(instance, model=model, time_limit=LONG * seconds, progress=lambda at: note(at.incumbent, at.bound))
    return float(best.value or np.inf), float(best.bound or 0)


def main(seconds: float, seeds: list[int], names: list[str]) -> None:
    """Print a row for every seed and solver."""
    for seed in seeds:
        first = osd.simulate(paper_instance(seed), "mc-sf").value()
        for name in names:
            command = [sys.executable, "-m", "kv_cache.other_solvers", "row", str(seconds), str(seed), name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"{seed} {name}: mc-sf {first:.0f}, {done.stdout.strip() or done.stderr[-300:]}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "row":
        limit = float(sys.argv[2])
        if sys.argv[4] != "scip":  # it measures CPU time itself
            threading.Thread(target=stop_after, args=(limit,), daemon=True).start()
        note(*by_name(sys.argv[4], paper_instance(int(sys.argv[3])), limit))
        print(row(), flush=True)
        os._exit(0)
    arguments = sys.argv[2:]
    chosen = [name for name in arguments if not name.isdigit()]
    main(float(sys.argv[1]), [int(seed) for seed in arguments if seed.isdigit()], chosen or list(NAMES))
