"""The synthetic setting of Jaillet et al. under general solvers: `python -m kv_cache.other_solvers SECONDS SEED...`.

Each solver gets the best of three list schedules as its start and one thread. HiGHS solves the program ``kv-time-indexed``;
CP-SAT has a start variable a request and, for its j-th round, an interval of length 1 that holds s + j cells.
"""

from __future__ import annotations

import sys
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
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    solver.solve(model)
    return solver.objective_value, solver.best_objective_bound


def main(seconds: float, seeds: list[int]) -> None:
    """Print a row for every seed and solver."""
    for seed in seeds:
        instance = paper_instance(seed)
        first = osd.simulate(instance, "mc-sf").value()
        for name in ("cp-sat", "highs"):
            began = time.process_time()
            if name == "cp-sat":
                value, bound = cp_sat(instance, seconds)
            else:
                model = "kv-time-indexed" if name == "highs" else name
                best = osd.solve(instance, model=model, time_limit=seconds)
                value, bound = float(best.value or np.inf), float(best.bound or 0)
            cpu = time.process_time() - began
            print(
                f"{seed} {name}: mc-sf {first:.0f}, value {value:.0f}, bound {bound:.1f}, CPU {cpu:.0f} s", flush=True
            )


if __name__ == "__main__":
    main(float(sys.argv[1]), [int(seed) for seed in sys.argv[2:]])
