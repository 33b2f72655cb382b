"""Recipe ``a-srpt-small``: the random instances on which the lemmas of A-SRPT were checked; P|r_j, size_j|sum C_j.

Durations uniform in {1, 2, 3, 5, 8, 13}, releases uniform integers in 0..latest (the checks used 0, 3, 8 and 20), gang
sizes uniform in 1..widest (the checks used 1, G/2 and G), on one node of G GPUs (2, 3, 4, 6, 8) with 2 to 6 jobs. Small
enough for brute force.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.recipe import Draw, Values, integer, named, recipe
from optsched.io.traces.recipes.machines import uniform_integers
from optsched.problem.cluster import Cluster, NodeGroup

DURATIONS = np.array([1, 2, 3, 5, 8, 13], dtype=np.float64)


@recipe(
    "a-srpt-small",
    jobs=integer(5, "number of jobs"),
    gpus=integer(4, "G, GPUs of the one node", most=10**6),
    latest=integer(8, "latest release", least=0, most=10**9),
    widest=integer(None, "largest gang; G when not given", most=10**6),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Tiny gang instances with durations 1, 2, 3, 5, 8, 13, as used to check A-SRPT's lemmas."""
    jobs, gpus = values["jobs"], values["gpus"]
    widest = gpus if values["widest"] is None else values["widest"]
    if widest > gpus:
        raise InputError("recipe a-srpt-small", field="widest", value=widest, legal=f"at most gpus = {gpus}")
    duration = DURATIONS[rng.integers(0, len(DURATIONS), size=jobs)]
    arrival = uniform_integers(rng, 0, values["latest"], jobs)
    size = uniform_integers(rng, 1, widest, jobs).astype(np.int64)
    table = pl.DataFrame({"id": named(jobs), "arrival": arrival, "gpus": size, "duration": duration})
    return Draw(table, Cluster((NodeGroup(gpus=gpus),)), "total_completion_time")
