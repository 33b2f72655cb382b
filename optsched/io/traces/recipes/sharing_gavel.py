"""Recipe ``sharing-gavel``: Gavel's job types on one GPU type, with the interference that was measured there.

As in `optsched.io.traces.recipes.gavel` (stanford-futuredata/gavel, MIT): 1, 2, 4 or 8 GPUs, a job type that may
have so many and runs on this GPU type, a run time on V100s that becomes steps. Nodes of four GPUs ``gpu``. Gaps between
arrivals are exponential, scaled so that the instance offers the load

    load = sum_j g_j e_j / (G t),   t: the last arrival, e_j = seconds alone at best on this GPU type.

**xi** ``measured``: co-located throughputs on one such GPU (`optsched.speeds.colocation`). Gangs were not measured: the
ratio of one GPU stands for them. One number, or ``exp``, drawn for every ordered pair of job types, stand in its place.
"""

from __future__ import annotations

import numpy as np

from optsched.io.traces.recipe import Draw, Values, choice, durations, gangs, integer, number, recipe
from optsched.io.traces.recipes.gavel import is_distributed, model_names, steps_on_v100
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.cluster import Cluster
from optsched.problem.throughputs import Throughputs
from optsched.speeds.colocation import built_in_interference, measured_gpus
from optsched.speeds.throughput_table import built_in, completed

GPUS = 4  # of a node


@recipe(
    "sharing-gavel",
    jobs=integer(240, "number of jobs"),
    nodes=integer(16, "nodes of four GPUs", most=10**4),
    gpu=choice("P100", measured_gpus(), "the GPU type"),
    load=number(1.0, "offered load"),
    duration=durations("gavel", "law of the seconds on V100s"),
    gpus=gangs("gavel"),
    xi=slowdowns("measured", "measured"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Gavel's job types on one GPU type, two to a GPU, with the interference that was measured on it."""
    jobs, gpu = values["jobs"], values["gpu"]
    cluster = Cluster.parse(f"{values['nodes']}x{GPUS}:{gpu}")
    of_type, of_gap, of_duration, of_gang, of_xi = rng.spawn(5)
    gang = values["gpus"].at_most(cluster.gpus).draw(of_gang, jobs)
    # Rates of all job types in these gangs, but for those that were measured not to fit this GPU type.
    sizes = sorted(set(gang.tolist()))
    rows = [(name, g, built_in().get(name, gpu, g)) for name in built_in().job_types for g in sizes]
    speeds = completed(built_in(), [(name, g) for name, g, row in rows if row is None or row.together > 0], [gpu])
    # A job type for every gang, uniform over those that may have so many GPUs and run on them.
    possible = {
        g: [name for name in speeds.job_types if (g == 1 or is_distributed(name)) and _rate(speeds, name, gpu, g) > 0]
        for g in set(gang.tolist())
    }
    choices = [possible[g] for g in gang.tolist()]
    job_type = [
        names[int(x * len(names))] for names, x in zip(choices, of_type.random(gang.size).tolist(), strict=True)
    ]
    iterations = steps_on_v100(job_type, gang, values["duration"].draw(of_duration, jobs))
    rates = [_rate(speeds, name, gpu, g) for name, g in zip(job_type, gang.tolist(), strict=True)]
    work = float(np.sum(gang * iterations / np.array(rates)))
    arrival = np.cumsum(of_gap.standard_exponential(jobs))
    last = work / (cluster.gpus * values["load"])
    table = {
        "arrival": arrival * (last / arrival[-1]),
        "gpus": gang,
        "iterations": iterations,
        "profile": job_type,
        "model": model_names(job_type),
    }
    kinds = sorted(set(job_type))
    xi = interference_of(values["xi"], built_in().job_types, of_xi, {"measured": built_in_interference(gpu)})
    used, gap = speeds.restricted(set(kinds)), {"gap": last / jobs}
    return Draw(table, cluster, "total_flow_time", gap, throughputs=used, interference=xi.restricted(kinds))


def _rate(speeds: Throughputs, job_type: str, gpu: str, gpus: int) -> float:
    found = speeds.get(job_type, gpu, gpus)
    if found is None:
        return 0.0
    return max(found.together, found.over_nodes) if gpus <= GPUS else found.over_nodes  # some were faster spread
