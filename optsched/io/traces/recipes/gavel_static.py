"""Recipe ``gavel-static``: the static workloads of Gavel's generator, on the built-in throughput table.

As in stanford-futuredata/gavel (MIT), the distributions; its own random streams are not reproduced:

* The job type is uniform over the 26 of the table. Only ResNet-18, ResNet-50, Transformer and LM are trained on several
  GPUs: 1, 2 or 4 with probability .7, .1, .2; the others have one.
* Run times are uniform over ``values`` evenly spaced ones from ``shortest`` to ``longest`` (1, 2, 3, 4 h); steps = run
  time x the rate of the gang on V100s of one node.
* All arrive at 0, or with Poisson arrivals of mean gap ``gap``.

Job types, gaps, run times and gang sizes come from streams of their own. The cluster is as in `gavel_continuous`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.recipe import Draw, Values, cluster, gangs, integer, named, non_negative, number, recipe
from optsched.io.traces.recipes.gavel_continuous import (
    CLUSTER,
    is_distributed,
    largest_type,
    model_names,
    speeds_on,
    steps_on_v100,
)
from optsched.speeds.throughput_table import built_in

HOUR = 3600.0


@recipe(
    "gavel-static",
    jobs=integer(100, "number of jobs"),
    cluster=cluster(CLUSTER),
    gap=non_negative(0, "mean seconds between arrivals; 0: all at 0"),
    shortest=number(HOUR, "least seconds on V100s"),
    longest=number(4 * HOUR, "most seconds on V100s"),
    values=integer(4, "number of different run times", most=10**6),
    gpus=gangs("weights:1=7,2=1,4=2", "law of the gangs of models that several GPUs train"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Gavel's static workload: 26 job types, 1 to 4 GPUs, 1 to 4 hours on V100s, all there at the beginning."""
    jobs, where = int(values["jobs"]), values["cluster"]
    if values["longest"] < values["shortest"]:
        raise InputError("recipe gavel-static", field="longest", value=values["longest"], legal="at least shortest")
    of_type, of_gap, of_duration, of_gang = rng.spawn(4)
    every = built_in().job_types
    job_type = [every[k] for k in of_type.integers(len(every), size=jobs)]
    several = np.array([is_distributed(name) for name in job_type])
    gpus = np.where(several, values["gpus"].at_most(largest_type(where)).draw(of_gang, jobs), 1)
    possible = np.linspace(values["shortest"], values["longest"], values["values"])
    table = pl.DataFrame(
        {
            "id": named(jobs),
            "arrival": np.cumsum(of_gap.standard_exponential(jobs) * values["gap"]),
            "gpus": gpus,
            "iterations": steps_on_v100(job_type, gpus, of_duration.choice(possible, size=jobs)),
            "profile": job_type,
            "model": model_names(job_type),
        }
    )
    return Draw(table, where, throughputs=speeds_on(where, job_type, gpus))
