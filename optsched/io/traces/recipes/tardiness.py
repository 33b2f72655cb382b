"""Recipe ``tardiness``: 1||sum w_j T_j as in OR-Library's benchmark.

p_j uniform integers in 1..100, w_j in 1..10, and with P = sum p_j due dates uniform integers in
[P (1 - tightness - spread / 2), P (1 - tightness + spread / 2)]. OR-Library uses tightness and spread (its TF and RDD)
in {0.2, 0.4, 0.6, 0.8, 1.0} with n = 40, 50, 100. Due dates may be negative; such a job is late in every schedule.

Reference: H. A. J. Crauwels, C. N. Potts, L. N. Van Wassenhove, "Local search heuristics for the single machine total
weighted tardiness scheduling problem", INFORMS Journal on Computing 10, 1998.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.recipe import Draw, Values, integer, named, non_negative, recipe
from optsched.io.traces.recipes.machines import uniform_integers
from optsched.problem.cluster import Cluster


@recipe(
    "tardiness",
    jobs=integer(40, "number of jobs"),
    longest=integer(100, "longest processing time", most=10**9),
    heaviest=integer(10, "largest weight", most=10**6),
    tightness=non_negative(0.6, "TF: the mean due date is (1 - TF) sum p"),
    spread=non_negative(0.4, "RDD: width of the interval of due dates as a share of sum p"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """One machine, weighted tardiness: OR-Library's generator."""
    jobs, half = values["jobs"], values["spread"] / 2
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    total, middle = duration.sum(), 1.0 - values["tightness"]
    first = np.ceil(total * (middle - half))
    last = max(first, np.floor(total * (middle + half)))  # a narrow interval may hold no integer
    due = uniform_integers(rng, first, last, jobs)
    table = pl.DataFrame({"id": named(jobs), "duration": duration, "weight": weight, "due": due})
    return Draw(table, Cluster.machines(1), "total_weighted_tardiness")
