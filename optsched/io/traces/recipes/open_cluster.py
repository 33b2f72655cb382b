"""An open cluster, of any laws (``poisson``) or of those measured on the Philly trace (``philly-like``)."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.io.traces.generate import (
    Draw,
    Values,
    choice,
    cluster,
    durations,
    gangs,
    integer,
    number,
    recipe,
    yes_or_no,
)
from optsched.io.traces.laws import gang_law
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
def poisson(rng: np.random.Generator, values: Values) -> Draw:
    """Open cluster: Poisson or uniform arrivals, laws of durations and GPU counts, given load or gap.

    Arrivals: ``poisson`` (independent exponential gaps), ``uniform`` (n independent uniform instants on a window of
    n gaps, sorted) or ``together`` (all at 0). The mean gap is ``gap`` seconds, or follows from the offered load::

        load = E[gpus] E[duration] / (G gap),   G = GPUs of the cluster

    A load above 1 cannot be served for ever. With ``whole`` arrivals are rounded down and durations up to integers, so that
    all results are exact; the load then rises by at most half a second a job. ``heaviest`` > 1 draws integer weights
    uniformly from 1..heaviest.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where, law = values["jobs"], values["cluster"], values["duration"]
    gang = values["gpus"].at_most(where.gpus)
    gap = mean_gap(values, gang.mean * law.mean / where.gpus)
    arrival = arrivals(rng, values["arrivals"], jobs, gap)
    gpus = gang.draw(rng, jobs)
    duration = law.draw(rng, jobs)
    weight = 1.0 + np.floor(rng.random(jobs) * values["heaviest"])
    if values["whole"]:
        arrival, duration = np.floor(arrival), np.ceil(duration)
    table = {"arrival": arrival, "gpus": gpus, "duration": duration, "weight": weight}
    return Draw(table, where, derived={"gap": gap, "load": gang.mean * law.mean / (where.gpus * gap)})


def mean_gap(values: Values, work_per_gpu: float) -> float:
    """Return the seconds between arrivals: ``gap`` as given, else E[GPU-seconds of a job] / (G load).

    Parameters
    ----------
    values
        Values of the recipe's parameters, by name.
    work_per_gpu
        E[GPU-seconds of a job] / G.

    Raises
    ------
    InputError
        If both gap and load are given.
    """
    if values["gap"] is not None and values["load"] is not None:
        why = "gap and load say the same thing twice"
        raise InputError(why, field="load", value=values["load"], legal="one of them")
    if values["gap"] is not None:
        return float(values["gap"])
    return work_per_gpu / float(values["load"] or DEFAULT_LOAD)


def arrivals(rng: np.random.Generator, kind: str, jobs: int, gap: float) -> Floats:
    """Return rising arrival times in seconds, f64[jobs].

    Parameters
    ----------
    rng
        Random generator.
    kind
        "poisson", "uniform" or "together".
    jobs
        Number of jobs.
    gap
        Mean gap in seconds.
    """
    if kind == "together":
        return np.zeros(jobs)
    if kind == "uniform":
        return np.sort(rng.random(jobs) * (jobs * gap))
    return np.cumsum(rng.standard_exponential(jobs) * gap)


LEVELS = np.array([0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1])
# seconds at LEVELS, by the smallest gang size of the group: 1, 2, 4, 8, more than 8 GPUs
QUANTILES = {
    1: [1, 52, 62, 122, 1117, 2716, 8512, 19137, 68252, 135399, 266914, 865709, 3256045],
    2: [2, 9, 11, 16, 21, 76, 72740, 197062, 343862, 523316, 808064, 1474215, 2582803],
    4: [3, 75, 138, 773, 17410, 89394, 184435, 273968, 533378, 907376, 1205990, 2446301, 2750674],
    8: [1, 125, 216, 1876, 23683, 173248, 351982, 525618, 795161, 1060498, 2000448, 2656479, 4628226],
    9: [1, 35, 72, 566, 21137, 104218, 247972, 443240, 613624, 922629, 1274181, 1612502, 1710643],
}
GAPS = [0, 0, 1, 3, 8, 44, 361, 599, 600, 601, 724.8, 2279.5, 247199]


@recipe(
    "philly-like",
    jobs=integer(1000, "number of jobs"),
    cluster=cluster("8x8"),
    arrivals=choice("bursty", ("bursty", "poisson"), "law of the arrivals"),
    load=number(None, "offered load; 0.8 when no gap is given"),
    gap=number(None, "mean seconds between arrivals, instead of a load"),
)
def philly_like(rng: np.random.Generator, values: Values) -> Draw:
    """Jobs like Microsoft's Philly trace: its GPU counts, durations by gang size, and bursts.

    Measured on the 82,247 jobs of ``philly.csv`` (4 September to 22 December 2017, 9,408,690 s; petuum/adaptdl, branch
    osdi21-artifact, reduced from msr-fiddle/philly-traces, CC-BY-4.0; cite Jeon et al., USENIX ATC 2019):

    * GPU counts 1, 2, 4, 8, 12, 16, 24, 32, 64, 128 in 76627, 1818, 1870, 1643, 7, 199, 7, 67, 6, 3 jobs (mean 1.30).
    * Durations by gang size: the quantiles of ``QUANTILES`` below. Mean 13,136 s, median 1,144 s; logarithm: mean 6.791,
      standard deviation 2.156. No log-normal fits: eight-GPU jobs have median 23,683 s and mean 129,775 s where the
      log-normal with their moments (9.65, 2.79) has mean 764,000 s; hence quantiles, interpolated in the logarithm.
    * Gaps between submissions: mean 114.40 s, median 8 s, 8.1 % are 0, coefficient of variation 15.1: bursts. Quantiles in
      ``GAPS``.
    * Offered work: 3,521,082,502 GPU-s, on average 374.2 GPUs busy; 42,811 GPU-s a job.

    A job's gang size is drawn from the counts that fit on the cluster, its duration from the quantile function of its
    size, independently of all else. The quantile functions reproduce the means of the sizes within 8 % (8944 for 8301 s at
    one GPU; 29713 for 30942, 76972 for 78762, 129494 for 129775, 92308 for 95326 s). Arrivals are ``bursty`` (independent
    gaps from ``GAPS``, scaled to the wanted mean) or ``poisson``. Not modelled: virtual clusters, hours of the day, that
    users resubmit. Times are whole seconds as in the trace: arrivals rounded down, durations up.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    jobs, where = values["jobs"], values["cluster"]
    gang = gang_law("philly").at_most(where.gpus)
    group = np.searchsorted(list(QUANTILES), gang.counts, side="right") - 1
    means = np.array([mean_of_quantiles(np.array(table, dtype=np.float64)) for table in QUANTILES.values()])
    work = float((gang.shares * gang.counts) @ means[group])  # GPU-seconds a job
    gap = mean_gap(values, work / where.gpus)
    arrival = bursts(rng, jobs, gap) if values["arrivals"] == "bursty" else arrivals(rng, "poisson", jobs, gap)
    gpus = gang.draw(rng, jobs)
    # the inverse of the quantile function of each job's gang size, straight in the logarithm between levels
    u = rng.random(gpus.size)
    sizes, duration = np.searchsorted(list(QUANTILES), gpus, side="right") - 1, np.empty(jobs)
    for index, quantiles in enumerate(QUANTILES.values()):
        duration[sizes == index] = np.exp(np.interp(u[sizes == index], LEVELS, np.log(quantiles)))
    table = {"arrival": np.floor(arrival), "gpus": gpus, "duration": np.ceil(duration)}
    return Draw(table, where, derived={"gap": gap, "load": work / (where.gpus * gap)})


def bursts(rng: np.random.Generator, jobs: int, gap: float) -> Floats:
    """Return arrivals with independent gaps of the measured shape, in seconds, f64[jobs].

    Parameters
    ----------
    rng
        Random generator.
    jobs
        Number of jobs.
    gap
        Mean gap in seconds.
    """
    shifted = np.array(GAPS) + 1.0  # a gap of 0 has no logarithm
    mean = mean_of_quantiles(shifted) - 1.0
    gaps = np.exp(np.interp(rng.random(jobs), LEVELS, np.log(shifted))) - 1.0
    return np.cumsum(gaps * (gap / mean))


def mean_of_quantiles(table: Floats) -> float:
    """Return the mean of the law whose log-quantile function is linear between ``LEVELS``.

    It is the sum of widths times log means.

    Parameters
    ----------
    table
        Quantiles at ``LEVELS``, f64.
    """
    low, high = table[:-1], table[1:]
    grows = high > low
    log_mean = np.where(grows, (high - low) / np.log(np.where(grows, high / low, np.e)), low)
    return float(np.diff(LEVELS) @ log_mean)
