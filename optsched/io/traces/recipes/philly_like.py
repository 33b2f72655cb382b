"""Recipe ``philly-like``: jobs with the distributions measured on Microsoft's Philly trace.

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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from optsched.io.traces.laws import gang_law
from optsched.io.traces.recipe import Draw, Values, choice, cluster, integer, named, number, recipe
from optsched.io.traces.recipes.poisson import arrivals, mean_gap
from optsched.problem.arrays import Floats

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
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Jobs like Microsoft's Philly trace: its GPU counts, durations by gang size, and bursts."""
    jobs, where = values["jobs"], values["cluster"]
    gang = gang_law("philly").at_most(where.gpus)
    group = np.searchsorted(list(QUANTILES), gang.counts, side="right") - 1
    means = np.array([mean_of_quantiles(np.array(table, dtype=np.float64)) for table in QUANTILES.values()])
    work = float((gang.shares * gang.counts) @ means[group])  # GPU-seconds a job
    gap = mean_gap(values, work / where.gpus)
    arrival = bursts(rng, jobs, gap) if values["arrivals"] == "bursty" else arrivals(rng, "poisson", jobs, gap)
    gpus = gang.draw(rng, jobs)
    duration = _durations(rng, gpus)
    table = pl.DataFrame({"id": named(jobs), "arrival": np.floor(arrival), "gpus": gpus, "duration": duration})
    return Draw(table, where, derived={"gap": gap, "load": work / (where.gpus * gap)})


def _durations(rng: np.random.Generator, gpus: np.ndarray[Any, np.dtype[np.int64]]) -> Floats:
    # f64[n]: inverse of the quantile function of each job's gang size, straight in the logarithm between levels
    u = rng.random(len(gpus))
    group = np.searchsorted(list(QUANTILES), gpus, side="right") - 1
    duration = np.empty(len(gpus))
    for index, table in enumerate(QUANTILES.values()):
        mine = group == index
        duration[mine] = np.exp(np.interp(u[mine], LEVELS, np.log(table)))
    return np.ceil(duration)


def bursts(rng: np.random.Generator, jobs: int, gap: float) -> Floats:
    """Arrivals with independent gaps of the measured shape, scaled to mean ``gap`` seconds, f64[jobs]."""
    shifted = np.array(GAPS) + 1.0  # a gap of 0 has no logarithm
    mean = mean_of_quantiles(shifted) - 1.0
    gaps = np.exp(np.interp(rng.random(jobs), LEVELS, np.log(shifted))) - 1.0
    return np.cumsum(gaps * (gap / mean))


def mean_of_quantiles(table: Floats) -> float:
    """Mean of the law whose log-quantile function is linear between ``LEVELS``: sum of widths times log means."""
    low, high = table[:-1], table[1:]
    grows = high > low
    log_mean = np.where(grows, (high - low) / np.log(np.where(grows, high / low, np.e)), low)
    return float(np.diff(LEVELS) @ log_mean)
