"""Few jobs that may share GPUs in pairs, on one node: ``sharing-small`` and ``sharing-partners``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optsched.io.traces.generate import Draw, Values, durations, integer, non_negative, recipe, yes_or_no
from optsched.io.traces.slowdowns import EXPONENTIAL, interference_of, slowdowns
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.interference import MOST, Interference

SHORTEST, LONGEST = 0.1, 10.0  # s alone
AT_ONCE = 0.4  # share of the jobs that are released at 0
MEAN = 0.5  # of the exponential variate
SCALE, EIGHTHS = 10.0, 8.0


@recipe(
    "sharing-small",
    jobs=integer(4, "number of jobs", most=10**4),
    gpus=integer(1, "G, GPUs of the one node; gangs are uniform in 1..G", most=10**4),
    xi=replace(
        slowdowns(EXPONENTIAL),
        legal=f"a number from 1 to {MOST:g}, or {EXPONENTIAL}",
        meaning="slow-down of every pair, or exp: 1 + Exp(mean 1/2) for every ordered pair of jobs",
    ),
    span=non_negative(0.7, "late releases fill this share of the total work"),
    per_gpu=yes_or_no(False, "total work sum n_j e_j / G instead of sum e_j"),
    whole=yes_or_no(False, "whole seconds, ten times as many, and slow-downs drawn in eighths"),
)
def sharing_small(rng: np.random.Generator, values: Values) -> Draw:
    """Small jobs that may share GPUs in pairs, as in the table of ratios to the optimum of SJF-BSBF.

    Seconds alone are log-uniform in 0.1..10, gangs uniform in 1..G. A job is released at 0 with probability 0.4, otherwise
    uniformly in 0..``span`` x the total work; the total work is sum e_j. ``per_gpu`` divides sum n_j e_j by G instead, so
    that the load does not fall with G. ``xi`` is the slow-down of every pair, or ``exp``: 1 + an exponential variate of
    mean 1/2 for every ordered pair of jobs. ``whole``: ten times as long, times rounded up to seconds and drawn slow-downs
    to eighths, for values that floats hold. Objective: sum of flow times.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, gpus, xi = values["jobs"], values["gpus"], values["xi"]
    duration = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), jobs))
    gang = rng.integers(1, gpus + 1, jobs)
    total = float(gang @ duration) / gpus if values["per_gpu"] else float(duration.sum())
    late = rng.random(jobs) >= AT_ONCE
    arrival = np.where(late, rng.random(jobs) * values["span"] * total, 0.0)
    if values["whole"]:
        duration, arrival = np.ceil(SCALE * duration), np.ceil(SCALE * arrival)
    table: dict[str, Any] = {"arrival": arrival, "gpus": gang, "duration": duration}
    interference = Interference(2.0 if xi == EXPONENTIAL else xi)
    if xi == EXPONENTIAL:
        table["model"] = [f"job-{k}" for k in range(1, jobs + 1)]
        ratios = 1.0 + rng.exponential(MEAN, (jobs, jobs))
        if values["whole"]:
            ratios = np.ceil(EIGHTHS * ratios) / EIGHTHS
        interference = Interference(kinds=tuple(table["model"]), ratios=tuple(map(tuple, ratios.tolist())))
    return Draw(table, Cluster((NodeGroup(gpus=gpus),)), "total_flow_time", interference=interference)


@recipe(
    "sharing-partners",
    jobs=integer(3, "P + 1: jobs that run, one a GPU, and the gang", least=2, most=10**4),
    running=durations("constant:value=1", "law of the seconds of the jobs that run"),
    gang=durations("constant:value=10", "law of the seconds of the gang"),
    delay=non_negative(1e-6, "seconds until the gang arrives"),
    xi=slowdowns("1.4"),
)
def sharing_partners(rng: np.random.Generator, values: Values) -> Draw:
    """P jobs of one GPU run, a gang of P GPUs arrives: where a test of pairs is no joint test.

    The cluster is one node of P GPUs. P jobs arrive at 0 and last as ``running`` says; job P + 1 with P GPUs arrives after
    ``delay`` and lasts as ``gang`` says. It may share the GPUs of all, or wait for the last of them. With equal lengths e,
    a gang that ends last and xi for all pairs, sharing costs (P + 1) xi e + e_A - e in all, waiting (P + 1) e + e_A:
    sharing pays iff xi < (P + 2) / (P + 1), while a test of one pair at a time says iff xi < 1.5.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    p = values["jobs"] - 1
    of_running, of_gang, of_xi = rng.spawn(3)
    kinds = [f"running-{k}" for k in range(1, p + 1)] + ["gang"]
    table: dict[str, Any] = {
        "arrival": [0.0] * p + [values["delay"]],
        "gpus": [1] * p + [p],
        "duration": np.concatenate([values["running"].draw(of_running, p), values["gang"].draw(of_gang, 1)]),
        "model": kinds,
    }
    cluster = Cluster((NodeGroup(gpus=p),))
    return Draw(table, cluster, "total_flow_time", interference=interference_of(values["xi"], kinds, of_xi))
