"""The optimum of small integer programs by CP-SAT, in a process of its own: it imports nothing of optsched, and no highspy.

Reads one program a line from stdin, as JSON in integers: ``columns`` [lower, upper], ``rows`` [lower, upper, {column:
coefficient}] with None for no bound, ``cost``, ``sense``. Answers with ["infeasible"] or ["optimal", value].
"""

from __future__ import annotations

import json
import sys
from typing import Any


def optimum(program: dict[str, Any]) -> list[Any]:
    """What CP-SAT proves; anything else ends the process."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    if any(low > high for low, high in program["columns"]):
        return ["infeasible"]
    columns = [model.new_int_var(low, high, "") for low, high in program["columns"]]
    for low, high, terms in program["rows"]:
        total = sum(value * columns[int(j)] for j, value in terms.items())
        if low is not None:
            model.add(total >= low)
        if high is not None:
            model.add(total <= high)
    total = sum(value * column for value, column in zip(program["cost"], columns, strict=True))
    (model.minimize if program["sense"] == 1 else model.maximize)(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return ["infeasible"]
    if status != cp_model.OPTIMAL:
        raise SystemExit(f"CP-SAT: {solver.status_name(status)}")
    return ["optimal", round(solver.objective_value)]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(optimum(json.loads(line))), flush=True)
