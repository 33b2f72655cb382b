"""Recipe ``hetero-small``: a few gangs on two or three GPU types, with integer durations everywhere; optima can be proved.

Every job has a model of its own: on every GPU type its gang does 1, 2 or 4 iterations a second on one node, equally likely,
and spread over nodes half as many or as many. Iterations are multiples of eight, at most eight times ``longest``, so that a
job that is not moved lasts a whole number of seconds. Gangs are uniform in 1..widest, cut to what one GPU type holds;
releases uniform integers in 0..floor(span x sum g_j d_j / G), d_j the seconds alone where the job is fastest. Objective: sum
of completion times.
"""

from __future__ import annotations

import numpy as np

from optsched.io.traces.recipe import Draw, Values, cluster, integer, non_negative, recipe
from optsched.io.traces.recipes.classical import uniform_integers
from optsched.io.traces.recipes.gavel import largest_type
from optsched.problem.throughputs import Key, Throughput, Throughputs

RATES = (1.0, 2.0, 4.0)  # iterations/s of a gang on one node
WHOLE = 8.0  # iterations are multiples of it: whole seconds at half of the slowest rate


@recipe(
    "hetero-small",
    jobs=integer(5, "number of jobs"),
    cluster=cluster("1x2:V100+1x2:K80", "nodes of two or three GPU types"),
    widest=integer(2, "largest gang, cut to the GPUs of one type", most=10**4),
    longest=integer(3, "iterations are 8 times an integer up to this", most=10**6),
    span=non_negative(0.5, "releases fill this share of the cluster's total work; 0: all at 0"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Small gangs whose speed depends on the GPU type, with integer durations on every type."""
    jobs, where = values["jobs"], values["cluster"]
    gpus = uniform_integers(rng, 1, min(values["widest"], largest_type(where)), jobs).astype(np.int64)
    entries: dict[Key, Throughput] = {}
    for j, gang in enumerate(gpus.tolist()):
        for gpu in where.gpu_types:
            rate = RATES[int(rng.integers(len(RATES)))]
            spread = rate / int(rng.integers(1, 3))
            entries[f"model-{j + 1}", gpu, gang] = Throughput(rate, spread)
    iterations = WHOLE * uniform_integers(rng, 1, values["longest"], jobs)
    best = [max(rate.together for key, rate in entries.items() if key[0] == f"model-{j + 1}") for j in range(jobs)]
    latest = np.floor(values["span"] * float(gpus @ (iterations / np.array(best))) / where.gpus)
    table = {
        "arrival": uniform_integers(rng, 0, latest, jobs),
        "gpus": gpus,
        "iterations": iterations,
        "profile": [f"model-{j + 1}" for j in range(jobs)],
    }
    return Draw(table, where, "total_completion_time", throughputs=Throughputs(entries))
