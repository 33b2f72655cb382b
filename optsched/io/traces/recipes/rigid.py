"""Recipe ``rigid``: small instances of rigid parallel jobs on one node, P|r_j, size_j|sum C_j.

Processing times are uniform integers in 1..longest, gang sizes follow ``sizes`` cut to ``gpus``, releases are uniform
integers in 0..floor(span x sum p_j size_j / gpus). With the defaults this is the shape of class C of dialect
``classic``, whose 65 jobs have 1, 2, 4, 8 GPUs 27, 16, 9, 13 times.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.recipe import Draw, Values, gangs, integer, named, non_negative, recipe
from optsched.io.traces.recipes.machines import uniform_integers
from optsched.problem.cluster import Cluster, NodeGroup


@recipe(
    "rigid",
    jobs=integer(10, "number of jobs"),
    gpus=integer(8, "GPUs of the one node", most=10**6),
    sizes=gangs("weights:1=2,2=1,4=1,8=1", "law of the gang sizes"),
    longest=integer(30, "longest processing time", most=10**9),
    heaviest=integer(1, "largest weight", most=10**6),
    span=non_negative(0.6, "releases fill this share of the node's total work; 0: all at 0"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Rigid gangs on one node: P|r_j, size_j|sum w_j C_j with small integers."""
    jobs, gpus = values["jobs"], values["gpus"]
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    size = values["sizes"].at_most(gpus).draw(rng, jobs)
    arrival = uniform_integers(rng, 0, np.floor(values["span"] * float(duration @ size) / gpus), jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    table = pl.DataFrame({"id": named(jobs), "arrival": arrival, "gpus": size, "duration": duration, "weight": weight})
    objective = "total_completion_time" if values["heaviest"] == 1 else "total_weighted_completion_time"
    return Draw(table, Cluster((NodeGroup(gpus=gpus),)), objective)
