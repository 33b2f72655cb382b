"""Recipe ``hadar-60``: a stand-in for the workload of Hadar's simulations, 480 jobs on 60 GPUs of three types.

The paper's simulations (as generally attributed to it, not confirmed) take 480 jobs of the busiest hours of Microsoft's
Philly trace on 15 nodes of four GPUs: 20 V100, 20 P100, 20 K80. Their models follow from GPU-hours as in
`optsched.io.traces.gpu_hour_classes`, which says what of that is this project's own choice. Here nothing is read from the
trace:

* ``classes=philly``: S, M, L, XL as often as among the 80,544 jobs of the trace of at most 100 GPU-hours (78.4, 17.1, 3.5,
  0.9 %). ``even``: a quarter of the jobs each (rounded down, the rest S), in random order.
* GPU-hours log-uniform within the class, from `HOURS`: means 0.25, 3.9, 24.9, 72.1 (in the trace 0.26, 2.6, 23.1, 73.3).
* Gang sizes by class, from `GANGS`: the trace's counts, cut to 1, 2, 4, 8.
* Arrivals: independent and uniform over ``hours`` hours, the first at 0; whole seconds, rounded down.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.gpu_hour_classes import NAMES, modelled
from optsched.io.traces.laws import gang_law
from optsched.io.traces.recipe import Draw, Values, choice, cluster, integer, named, number, recipe
from optsched.io.traces.recipes.gavel import largest_type, model_names, speeds_on
from optsched.problem.arrays import Ints

CLUSTER = "5x4:V100+5x4:P100+5x4:K80"
COUNTS = np.array([63162, 13807, 2850, 725])  # jobs of the trace in the classes
HOURS = np.array([[0.02, 1.0], [1.0, 10.0], [10.0, 50.0], [50.0, 100.0]])
GANGS = (
    "weights:1=60875,2=1504,4=494,8=289",
    "weights:1=13175,2=29,4=282,8=321",
    "weights:1=2025,2=118,4=390,8=317",
    "weights:1=283,2=67,4=243,8=132",
)


@recipe(
    "hadar-60",
    jobs=integer(480, "number of jobs"),
    cluster=cluster(CLUSTER),
    classes=choice("philly", ("philly", "even"), "how often the classes S, M, L, XL are"),
    hours=number(8, "hours in which the jobs arrive"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Hadar's simulated cluster: 60 GPUs of three types, jobs of the Philly trace's sizes, models by GPU-hours."""
    jobs, where = values["jobs"], values["cluster"]
    kind = _classes(rng, jobs, values["classes"])
    low, high = HOURS[kind].T
    gpu_hours = low * (high / low) ** rng.random(jobs)
    gpus = _gangs(rng, kind)
    arrival = np.sort(np.floor(rng.random(jobs) * (values["hours"] * 3600.0)))
    made = modelled(rng, gpus, gpu_hours, largest_type(where))
    table = pl.DataFrame(
        {
            "id": named(jobs),
            "arrival": arrival - arrival[0],
            "gpus": made.gpus,
            "iterations": made.iterations,
            "profile": made.job_type,
            "model": model_names(made.job_type),
            "group": [NAMES[k] for k in kind],
        }
    )
    return Draw(table, where, throughputs=speeds_on(where, made.job_type, made.gpus))


def _classes(rng: np.random.Generator, jobs: int, how: str) -> Ints:
    if how == "philly":
        upper = np.cumsum(COUNTS) / COUNTS.sum()
        return np.searchsorted(upper, rng.random(jobs), side="right").astype(np.int64)
    return rng.permutation(even_classes(jobs))


def even_classes(jobs: int) -> Ints:
    """A quarter of the jobs in each class, rounded down; the rest in the first."""
    each = jobs // len(NAMES)
    return np.repeat(np.arange(len(NAMES)), [jobs - each * (len(NAMES) - 1), *[each] * (len(NAMES) - 1)])


def _gangs(rng: np.random.Generator, kind: Ints) -> Ints:
    gpus = np.ones(kind.size, dtype=np.int64)
    for k, text in enumerate(GANGS):
        mine = kind == k
        gpus[mine] = gang_law(text).draw(rng, int(mine.sum()))
    return gpus
