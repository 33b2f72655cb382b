"""Recipe ``poisson``: an open cluster with independent arrivals, gang sizes and durations.

Arrivals: ``poisson`` (independent exponential gaps), ``uniform`` (n independent uniform instants on a window of
n gaps, sorted) or ``together`` (all at 0). The mean gap is ``gap`` seconds, or follows from the offered load::

    load = E[gpus] E[duration] / (G gap),   G = GPUs of the cluster

A load above 1 cannot be served for ever. With ``whole`` arrivals are rounded down and durations up to integers, so that
all results are exact; the load then rises by at most half a second a job. ``heaviest`` > 1 draws integer weights
uniformly from 1..heaviest.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.recipe import (
    Draw,
    Values,
    choice,
    cluster,
    durations,
    gangs,
    integer,
    named,
    number,
    recipe,
    yes_or_no,
)
from optsched.problem.arrays import Floats

DEFAULT_LOAD = 0.8


@recipe(
    "poisson",
    jobs=integer(1000, "number of jobs"),
    cluster=cluster("8x8"),
    arrivals=choice("poisson", ("poisson", "uniform", "together"), "law of the arrivals"),
    load=number(None, f"offered load; {DEFAULT_LOAD} when no gap is given"),
    gap=number(None, "mean seconds between arrivals, instead of a load"),
    duration=durations("lognormal:mean=3600,sigma=1.5"),
    gpus=gangs("philly"),
    heaviest=integer(1, "weights are uniform integers from 1 to this", most=10**6),
    whole=yes_or_no(False, "integer arrivals and durations"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Open cluster: Poisson or uniform arrivals, laws of durations and GPU counts, given load or gap."""
    jobs, where, law = values["jobs"], values["cluster"], values["duration"]
    gang = values["gpus"].at_most(where.gpus)
    gap = mean_gap(values, gang.mean * law.mean / where.gpus)
    arrival = arrivals(rng, values["arrivals"], jobs, gap)
    gpus = gang.draw(rng, jobs)
    duration = law.draw(rng, jobs)
    weight = 1.0 + np.floor(rng.random(jobs) * values["heaviest"])
    if values["whole"]:
        arrival, duration = np.floor(arrival), np.ceil(duration)
    table = pl.DataFrame({"id": named(jobs), "arrival": arrival, "gpus": gpus, "duration": duration, "weight": weight})
    return Draw(table, where, derived={"gap": gap, "load": gang.mean * law.mean / (where.gpus * gap)})


def mean_gap(values: Values, work_per_gpu: float) -> float:
    """Seconds between arrivals: ``gap`` as given, else E[GPU-seconds of a job] / (G load)."""
    if values["gap"] is not None and values["load"] is not None:
        raise InputError(
            "gap and load say the same thing twice", field="load", value=values["load"], legal="one of them"
        )
    if values["gap"] is not None:
        return float(values["gap"])
    return work_per_gpu / float(values["load"] or DEFAULT_LOAD)


def arrivals(rng: np.random.Generator, kind: str, jobs: int, gap: float) -> Floats:
    """Rising arrival times in seconds, f64[jobs]."""
    if kind == "together":
        return np.zeros(jobs)
    if kind == "uniform":
        return np.sort(rng.random(jobs) * (jobs * gap))
    return np.cumsum(rng.standard_exponential(jobs) * gap)
