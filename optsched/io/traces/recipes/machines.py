"""Recipe ``machines``: small instances of classical scheduling, 1|r_j|sum w_j C_j and P|r_j|sum w_j C_j.

Processing times are uniform integers in 1..longest, releases uniform integers in 0..floor(span x sum p_j / machines),
weights uniform integers in 1..heaviest. Objective: ``total_completion_time`` for unit weights (heaviest = 1), else
``total_weighted_completion_time``. With span 0.6 this is the shape of the public optima of dialect ``classic``:
A (machines 1, longest 20), B (heaviest 10), L (longest 100), D (machines 3, longest 30, heaviest 10). Everything is
an integer, so values and bounds are exact.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.recipe import Draw, Values, integer, named, non_negative, recipe
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster


@recipe(
    "machines",
    jobs=integer(10, "number of jobs"),
    machines=integer(1, "identical machines: one-GPU nodes", most=10**6),
    longest=integer(20, "longest processing time", most=10**9),
    heaviest=integer(1, "largest weight", most=10**6),
    span=non_negative(0.6, "releases fill this share of the total work of a machine; 0: all at 0"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Classical machines: P|r_j|sum w_j C_j with small integers."""
    jobs, machines = values["jobs"], values["machines"]
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    latest = np.floor(values["span"] * duration.sum() / machines)
    arrival = uniform_integers(rng, 0, latest, jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    table = pl.DataFrame({"id": named(jobs), "arrival": arrival, "duration": duration, "weight": weight})
    objective = "total_completion_time" if values["heaviest"] == 1 else "total_weighted_completion_time"
    return Draw(table, Cluster.machines(machines), objective)


def uniform_integers(rng: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """Integers from ``low`` to ``high``, both included and equally likely, as f64[count]."""
    return rng.integers(int(low), int(high), size=count, endpoint=True).astype(np.float64)
