"""Small instances in integers: ``machines``, ``rigid``, ``tardiness``, ``a-srpt-small`` and ``hetero-small``."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import Draw, Values, cluster, gangs, integer, non_negative, recipe
from optsched.io.traces.recipes.gavel_recipes import largest_type
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.throughputs import Key, Throughput, Throughputs


@recipe(
    "machines",
    jobs=integer(10, "number of jobs"),
    machines=integer(1, "identical machines: one-GPU nodes", most=10**6),
    longest=integer(20, "longest processing time", most=10**9),
    heaviest=integer(1, "largest weight", most=10**6),
    span=non_negative(0.6, "releases fill this share of the total work of a machine; 0: all at 0"),
)
def machines(rng: np.random.Generator, values: Values) -> Draw:
    """Classical machines: P|r_j|sum w_j C_j with small integers.

    Processing times are uniform integers in 1..longest, releases uniform integers in 0..floor(span x sum p_j / machines),
    weights uniform integers in 1..heaviest. Objective: ``total_completion_time`` for unit weights (heaviest = 1), else
    ``total_weighted_completion_time``. With span 0.6 this is the shape of the public optima of dialect ``classic``:
    A (machines 1, longest 20), B (heaviest 10), L (longest 100), D (machines 3, longest 30, heaviest 10). Everything is
    an integer, so values and bounds are exact.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, machines = values["jobs"], values["machines"]
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    latest = np.floor(values["span"] * duration.sum() / machines)
    arrival = uniform_integers(rng, 0, latest, jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    table = {"arrival": arrival, "duration": duration, "weight": weight}
    objective = "total_completion_time" if values["heaviest"] == 1 else "total_weighted_completion_time"
    return Draw(table, Cluster.machines(machines), objective)


def uniform_integers(rng: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """Return integers from ``low`` to ``high``, both included and equally likely, as f64[count].

    Parameters
    ----------
    rng
        Random generator.
    low
        Least integer.
    high
        Largest integer.
    count
        Number of integers.
    """
    return rng.integers(int(low), int(high), size=count, endpoint=True).astype(np.float64)


@recipe(
    "rigid",
    jobs=integer(10, "number of jobs"),
    gpus=integer(8, "GPUs of the one node", most=10**6),
    sizes=gangs("weights:1=2,2=1,4=1,8=1", "law of the gang sizes"),
    longest=integer(30, "longest processing time", most=10**9),
    heaviest=integer(1, "largest weight", most=10**6),
    span=non_negative(0.6, "releases fill this share of the node's total work; 0: all at 0"),
)
def rigid(rng: np.random.Generator, values: Values) -> Draw:
    """Rigid gangs on one node: P|r_j, size_j|sum w_j C_j with small integers.

    Processing times are uniform integers in 1..longest, gang sizes follow ``sizes`` cut to ``gpus``, releases are uniform
    integers in 0..floor(span x sum p_j size_j / gpus). With the defaults this is the shape of class C of dialect
    ``classic``, whose 65 jobs have 1, 2, 4, 8 GPUs 27, 16, 9, 13 times.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, gpus = values["jobs"], values["gpus"]
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    size = values["sizes"].at_most(gpus).draw(rng, jobs)
    arrival = uniform_integers(rng, 0, np.floor(values["span"] * float(duration @ size) / gpus), jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    table = {"arrival": arrival, "gpus": size, "duration": duration, "weight": weight}
    objective = "total_completion_time" if values["heaviest"] == 1 else "total_weighted_completion_time"
    return Draw(table, Cluster((NodeGroup(gpus=gpus),)), objective)


@recipe(
    "tardiness",
    jobs=integer(40, "number of jobs"),
    longest=integer(100, "longest processing time", most=10**9),
    heaviest=integer(10, "largest weight", most=10**6),
    tightness=non_negative(0.6, "TF: the mean due date is (1 - TF) sum p"),
    spread=non_negative(0.4, "RDD: width of the interval of due dates as a share of sum p"),
)
def tardiness(rng: np.random.Generator, values: Values) -> Draw:
    """One machine, weighted tardiness: OR-Library's generator.

    p_j uniform integers in 1..100, w_j in 1..10, and with P = sum p_j due dates uniform integers in
    [P (1 - tightness - spread / 2), P (1 - tightness + spread / 2)]. OR-Library uses tightness and spread (its TF and RDD)
    in {0.2, 0.4, 0.6, 0.8, 1.0} with n = 40, 50, 100. Due dates may be negative; such a job is late in every schedule.

    Reference: H. A. J. Crauwels, C. N. Potts, L. N. Van Wassenhove, "Local search heuristics for the single machine total
    weighted tardiness scheduling problem", INFORMS Journal on Computing 10, 1998.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, half = values["jobs"], values["spread"] / 2
    duration = uniform_integers(rng, 1, values["longest"], jobs)
    weight = uniform_integers(rng, 1, values["heaviest"], jobs)
    total, middle = duration.sum(), 1.0 - values["tightness"]
    first = np.ceil(total * (middle - half))
    last = max(first, np.floor(total * (middle + half)))  # a narrow interval may hold no integer
    due = uniform_integers(rng, first, last, jobs)
    table = {"duration": duration, "weight": weight, "due": due}
    return Draw(table, Cluster.machines(1), "total_weighted_tardiness")


DURATIONS = np.array([1, 2, 3, 5, 8, 13], dtype=np.float64)


@recipe(
    "a-srpt-small",
    jobs=integer(5, "number of jobs"),
    gpus=integer(4, "G, GPUs of the one node", most=10**6),
    latest=integer(8, "latest release", least=0, most=10**9),
    widest=integer(None, "largest gang; G when not given", most=10**6),
)
def a_srpt_small(rng: np.random.Generator, values: Values) -> Draw:
    """Tiny gang instances with durations 1, 2, 3, 5, 8, 13, as used to check A-SRPT's lemmas.

    Durations uniform in {1, 2, 3, 5, 8, 13}, releases uniform integers in 0..latest (the checks used 0, 3, 8 and 20), gang
    sizes uniform in 1..widest (the checks used 1, G/2 and G), on one node of G GPUs (2, 3, 4, 6, 8) with 2 to 6 jobs. Small
    enough for brute force.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, gpus = values["jobs"], values["gpus"]
    widest = gpus if values["widest"] is None else values["widest"]
    if widest > gpus:
        raise InputError("recipe a-srpt-small", field="widest", value=widest, legal=f"at most gpus = {gpus}")
    duration = DURATIONS[rng.integers(0, len(DURATIONS), size=jobs)]
    arrival = uniform_integers(rng, 0, values["latest"], jobs)
    size = uniform_integers(rng, 1, widest, jobs).astype(np.int64)
    table = {"arrival": arrival, "gpus": size, "duration": duration}
    return Draw(table, Cluster((NodeGroup(gpus=gpus),)), "total_completion_time")


RATES = (1.0, 2.0, 4.0)  # iterations/s of a gang on one node
WHOLE = 8.0  # iterations are multiples of this, which gives whole seconds at half of the slowest rate


@recipe(
    "hetero-small",
    jobs=integer(5, "number of jobs"),
    cluster=cluster("1x2:V100+1x2:K80", "nodes of two or three GPU types"),
    widest=integer(2, "largest gang, cut to the GPUs of one type", most=10**4),
    longest=integer(3, "iterations are 8 times an integer up to this", most=10**6),
    span=non_negative(0.5, "releases fill this share of the cluster's total work; 0: all at 0"),
)
def hetero_small(rng: np.random.Generator, values: Values) -> Draw:
    """Small gangs whose speed depends on the GPU type, with integer durations on every type.

    Every job has a model of its own: on every GPU type its gang does 1, 2 or 4 iterations a second on one node, equally
    likely, and spread over nodes half as many or as many. Iterations are multiples of eight, at most eight times
    ``longest``, so that a job that is not moved lasts a whole number of seconds. Gangs are uniform in 1..widest, cut to what
    one GPU type holds; releases uniform integers in 0..floor(span x sum g_j d_j / G), d_j the seconds alone where the job is
    fastest. Objective: sum of completion times.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
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
