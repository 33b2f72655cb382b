"""Recipe ``sharing-vectors``: jobs of eight models with resource vectors, from which their interference is guessed.

Counts and times of a trace of 61 jobs for 32 GPUs in the public research scheduler of an author of SJF-BSBF
(Lai-JX/Scheduler, no licence: facts and figures only). It is a later platform, not that of the paper.

* Gangs and models: of n jobs, in their order, job k = 0 .. n-1 has the gang (the model) at the place (k + 1/2) / n of the
  trace's numbers, both in random order and independent of each other. A gang is cut to the cluster.
* Iterations: the trace has 111 to 6690; here log-uniform between these, rounded down.
* A duration is iterations x seconds of one (`MODELS`; gang sizes that were not measured: linear between the
  neighbours). The time of a gang is that of the trace, wherever it lies.
* Arrivals are uniform from 2 to 600 seconds, rounded down.
* Nodes of eight GPUs of 49140 MB; a job needs the memory of its model.

**xi** ``resources``: from the resource vectors of one GPU (`optsched.speeds.interference_sources`), a formula and no
measurement; one number; or ``exp``, drawn for every ordered pair of models.
"""

from __future__ import annotations

import numpy as np

from optsched.io.traces.generate import Draw, Values, in_proportion, integer, recipe
from optsched.io.traces.slowdowns import interference_of, slowdowns
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.speeds.interference_sources import resource_interference

GPUS, MEMORY = 8, 49140e6
GANGS = {1: 26, 2: 10, 4: 13, 8: 8, 16: 2, 32: 2}
ITERATIONS, ARRIVALS = (111, 6690), (2, 600)
# jobs in the trace, memory in MB, milliseconds of an iteration by GPUs
MODELS: dict[str, tuple[int, float, dict[int, float]]] = {
    "a2c": (10, 2094, {1: 517, 2: 525, 4: 533, 8: 555, 16: 567, 32: 585}),
    "resnet18": (9, 6432, {1: 779, 2: 881, 4: 921, 8: 1010, 32: 1059}),
    "vgg19": (9, 4304, {1: 109, 2: 205, 4: 212, 8: 226, 16: 302, 32: 356}),
    "dqn": (8, 2230, {1: 490, 2: 495, 4: 505, 8: 509, 16: 525, 32: 546}),
    "shufflenet_v2_x1_0": (7, 5252, {1: 798, 2: 850, 4: 886, 8: 957, 32: 1019}),
    "vgg16": (7, 4224, {1: 107, 2: 191, 4: 201, 8: 214, 32: 336}),
    "bert": (6, 8058, {1: 178, 2: 195, 4: 190, 8: 192, 32: 260}),
    "gpt2": (5, 10532, {1: 426, 4: 433, 8: 437, 32: 514}),
}


@recipe(
    "sharing-vectors",
    jobs=integer(61, "number of jobs"),
    nodes=integer(4, "nodes of eight GPUs", most=10**4),
    xi=slowdowns("resources", "resources"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """61 jobs of eight models on 32 GPUs; their interference is guessed from resource vectors.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs = values["jobs"]
    cluster = Cluster((NodeGroup(gpus=GPUS, count=values["nodes"], gpu_memory=MEMORY),))
    of_gang, of_model, of_iterations, of_arrival, of_xi = rng.spawn(5)
    gang = np.minimum(of_gang.permutation(np.array(in_proportion(jobs, GANGS), dtype=np.int64)), cluster.gpus)
    model = of_model.permutation(in_proportion(jobs, {name: row[0] for name, row in MODELS.items()})).tolist()
    low, high = ITERATIONS
    iterations = np.floor(low * (high / low) ** of_iterations.random(jobs))
    first, last = ARRIVALS
    rows = [(list(MODELS[name][2].items()), g) for name, g in zip(model, gang.tolist(), strict=True)]
    milliseconds = [np.interp(g, *np.array(known).T) for known, g in rows]
    table = {
        "arrival": np.sort(np.floor(first + (last - first) * of_arrival.random(jobs))),
        "gpus": gang,
        "duration": iterations * (np.array(milliseconds) / 1000.0),
        "model": model,
        "gpu_memory": [1e6 * MODELS[name][1] for name in model],
    }
    tables = {"resources": resource_interference()}
    kinds = sorted(set(model))
    interference = interference_of(values["xi"], sorted(MODELS), of_xi, tables).restricted(kinds)
    return Draw(table, cluster, "total_flow_time", interference=interference)
