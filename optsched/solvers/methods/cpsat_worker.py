"""Worker process of the method ``cp-sat``: reads one problem as JSON from stdin, writes its results to stdout.

It is started as a script, by path. It imports ortools and nothing of optsched, because ortools and highspy 1.15.x cannot be
imported in one process. All numbers of the problem are integers. There is one JSON line for every improvement, the last one
with ``"done": true``; ``bound`` is null if nothing is proved.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def build(problem: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Build the CP-SAT model: an interval a job, a cumulative resource, costs ``base + max(0, slope C - kink)``.

    Parameters
    ----------
    problem
        The problem, as `optsched.solvers.methods.cpsat` writes it.

    Returns
    -------
    model
        The model.
    starts
        The variable of every start.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    horizon = problem["horizon"]
    starts, intervals, terms = [], [], []
    columns = (problem[name] for name in ("release", "duration", "slope", "kink", "base"))
    for release, duration, slope, kink, base in zip(*columns, strict=True):
        start = model.new_int_var(release, horizon - duration, "")
        starts.append(start)
        intervals.append(model.new_fixed_size_interval_var(start, duration, ""))
        if slope == 0 and not problem["maximum"]:
            continue
        rise = slope * (start + duration) - kink
        if slope * (release + duration) >= kink:
            terms.append(rise + base)
            continue
        cost = model.new_int_var(0, max(0, slope * horizon - kink), "")
        model.add(cost >= rise)
        terms.append(cost + base)
    model.add_cumulative(intervals, problem["gpus"], problem["capacity"])
    if problem["maximum"]:
        worst = model.new_int_var(min((0, *problem["base"])), problem["largest"], "")
        for term in terms:
            model.add(worst >= term)
        model.minimize(worst)
    else:
        model.minimize(sum(terms))
    for start, hint in zip(starts, problem["hint"], strict=False):
        model.add_hint(start, hint)
    return model, starts


def proved(bound: float, solved: bool) -> float | None:
    """Return the bound that OR-Tools has proved for a minimum, or None.

    Before it has a bound, or a solution, it reports 0.0, whatever the objective.

    Parameters
    ----------
    bound
        Bound that OR-Tools reports.
    solved
        It has a solution.
    """
    return bound if math.isfinite(bound) and (solved or bound != 0.0) else None


def main() -> None:
    """Solve the problem on stdin."""
    from ortools.sat.python import cp_model

    problem = json.load(sys.stdin)
    model, starts = build(problem)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # deterministic
    solver.parameters.random_seed = 0
    if problem["time_limit"] is not None:
        solver.parameters.max_time_in_seconds = problem["time_limit"]

    class Tell(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            say(self.best_objective_bound, [self.value(start) for start in starts], False)

    def say(bound: float | None, found: list[int] | None, done: bool, status: str = "") -> None:
        print(json.dumps({"bound": bound, "starts": found, "done": done, "status": status}), flush=True)

    status = solver.solve(model, Tell())
    found = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = [solver.value(start) for start in starts]
    say(proved(solver.best_objective_bound, found is not None), found, True, solver.status_name(status))


if __name__ == "__main__":
    main()
