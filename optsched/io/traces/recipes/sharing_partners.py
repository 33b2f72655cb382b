"""Recipe ``sharing-partners``: P jobs with one GPU each, and a gang that needs all P: what pairs do not show.

The cluster is one node of P GPUs. P jobs arrive at 0 and last as ``running`` says; job P + 1 with P GPUs arrives after
``delay`` and lasts as ``gang`` says. It may share the GPUs of all, or wait for the last of them. With equal lengths e, a
gang that ends last and xi for all pairs, sharing costs (P + 1) xi e + e_A - e in all, waiting (P + 1) e + e_A: sharing pays
iff xi < (P + 2) / (P + 1), while a test of one pair at a time says iff xi < 1.5.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.recipe import Draw, Values, durations, integer, named, non_negative, recipe
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.cluster import Cluster, NodeGroup


@recipe(
    "sharing-partners",
    jobs=integer(3, "P + 1: jobs that run, one a GPU, and the gang", least=2, most=10**4),
    running=durations("constant:value=1", "law of the seconds of the jobs that run"),
    gang=durations("constant:value=10", "law of the seconds of the gang"),
    delay=non_negative(1e-6, "seconds until the gang arrives"),
    xi=slowdowns("1.4"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """P jobs of one GPU run, a gang of P GPUs arrives: where a test of pairs is no joint test."""
    p = values["jobs"] - 1
    of_running, of_gang, of_xi = rng.spawn(3)
    kinds = [f"running-{k}" for k in range(1, p + 1)] + ["gang"]
    table = pl.DataFrame(
        {
            "id": named(p + 1),
            "arrival": [0.0] * p + [values["delay"]],
            "gpus": [1] * p + [p],
            "duration": np.concatenate([values["running"].draw(of_running, p), values["gang"].draw(of_gang, 1)]),
            "model": kinds,
        }
    )
    cluster = Cluster((NodeGroup(gpus=p),))
    return Draw(table, cluster, "total_flow_time", interference=interference_of(values["xi"], kinds, of_xi))
