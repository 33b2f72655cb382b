"""The tolerance of the referee: rounding of times, once a job, whatever the epoch of the log.

**One comparison** (`slack`). Whole numbers (below 2**53) are compared exactly: float64 adds them without error, and
rounding never makes one whole number of another. Any other comparison allows ``1e-9`` of the seconds compared (a segment's
length, a job's duration) for what a producer's sums lose, and 8 units in the last place (ulp) of the clock for the rounding
of the times themselves. Nothing is relative to the clock: at 1e8 s that would give every job a tenth of a second.

**A job** (`overspent`). What single comparisons forgive does not add up: all that a job's segments overdraw together (work
beyond their lengths, overlaps with others, starts before the arrival, gaps) stays within *one* such tolerance of the job,
1e-9 of its seconds and 8 ulp. m segments whose ends were each rounded to the clock lose or win about sqrt(m) ulp together;
2 sqrt(m) are allowed for that, but no more than 1e-6 of the job's seconds (`job_tolerance`).

So an accepted schedule becomes feasible when it is stretched by a part in 1e6 and some ulp a job, whatever its epoch, its
unit, and the number of its segments. **Every comparison is written so that NaN is refused**: legal is what compares as
legal.
"""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints

RELATIVE = 1e-9
ULPS = 8
ROOT_ULPS = 2  # times the root of the number of rounded segments
MOST = 1e-6  # of a job's seconds: what the rounding of many segments may add up to
EXACT = 2.0**53


def whole(x: Floats) -> Bools:
    """Return which numbers are integers that float64 adds without error, bool[...].

    Parameters
    ----------
    x
        Numbers, f64[...].
    """
    return np.asarray((np.floor(x) == x) & (np.abs(x) < EXACT))


def all_whole(*compared: Floats) -> Bools:
    """Return where all of several arrays are `whole`.

    Parameters
    ----------
    *compared
        Arrays of one shape.
    """
    return np.asarray(np.logical_and.reduce([whole(x) for x in compared]))


def slack(seconds: Floats, *compared: Floats) -> Floats:
    """Return the tolerance of one comparison; 0 if all compared numbers are whole.

    Parameters
    ----------
    seconds
        Seconds that are compared, f64[...].
    *compared
        Times that are compared, f64[...].
    """
    clock = np.maximum.reduce([np.abs(x) for x in compared])
    return np.where(all_whole(*compared), 0.0, RELATIVE * np.maximum(seconds, 0.0) + ULPS * np.spacing(clock))


def of_jobs(job: Ints, values: Floats, n: int) -> Floats:
    """Return sums by job, f64[n].

    Parameters
    ----------
    job
        Job of every row, i64[R].
    values
        Value of every row, f64[R].
    n
        Number of jobs.
    """
    return np.bincount(job, weights=values, minlength=n).astype(np.float64)


def largest_of_jobs(job: Ints, values: Floats, n: int) -> Floats:
    """Return the largest value of every job, f64[n]; 0 for a job without any.

    Parameters
    ----------
    job
        Job of every row, i64[R].
    values
        Value >= 0 of every row, f64[R].
    n
        Number of jobs.
    """
    largest = np.zeros(n)
    np.maximum.at(largest, job, values)
    return largest


def job_tolerance(seconds: Floats, ulp: Floats, rounded: Ints | Floats | int = 0) -> Floats:
    """Return the seconds that every job may overdraw in all, f64[n].

    Parameters
    ----------
    seconds
        Seconds that the job runs, f64[n].
    ulp
        Unit in the last place of its clock, f64[n].
    rounded
        Number of its rounded segments.
    """
    many = np.minimum(ROOT_ULPS * np.sqrt(rounded) * ulp, MOST * seconds)
    return RELATIVE * seconds + ULPS * ulp + many


def overspent(job: Ints, lost: Floats, each: Floats, allowed: Floats) -> tuple[Ints, Ints]:
    """Return the rows that overdraw by themselves, and the jobs that do so only in sum; NaN is always too much.

    Parameters
    ----------
    job
        Job of every row, i64[R].
    lost
        Seconds >= 0 that every row overdraws, f64[R].
    each
        Seconds that every row may overdraw, f64[R].
    allowed
        Seconds that every job may overdraw in all, f64[n].
    """
    alone = np.asarray(~(lost <= each))
    total = of_jobs(job, np.where(alone, 0.0, lost), allowed.size)
    over = ~(total <= allowed)
    over[job[alone]] = False
    return np.flatnonzero(alone), np.flatnonzero(over)


def number(x: float) -> str:
    """Return digits that read back as ``x``, without ``.0``.

    Parameters
    ----------
    x
        A number.
    """
    return str(int(x)) if np.isfinite(x) and abs(x) < EXACT and x == int(x) else repr(float(x))
