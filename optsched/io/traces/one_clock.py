"""Check that the times of one log are on one clock, and find those that are not, such as a 0 among Unix seconds.

Logs have sentinels where a time is not known: 0, the first second of 1970, the last one of 2038, the year 9999. Read as
times they make a makespan of decades. They differ from real times by the gap to all others: no log is silent for ten
years and then goes on. A log may be as long as it likes while its jobs lie closer together than that. On a clock that counts
from the log's own beginning, which made-up inputs use, too, only a gap of 1e9 seconds is rejected, 31.7 years: this is the
least distance between such a clock and Unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

UNIX_SECONDS = 1e9  # no log counted from its own beginning runs for 31 years
TEN_YEARS = 10 * 365.25 * 86400.0


def are_unix_seconds(times: pl.Series) -> bool:
    """Return whether at least half of the times are seconds since 1970.

    Parameters
    ----------
    times
        Times, f64[n], null for none.
    """
    return 0 < times.count() <= 2 * int((times >= UNIX_SECONDS).sum())


@dataclass(frozen=True)
class OneClock:
    """The clock that most times of a column are on.

    ``first`` and ``last``: the positions of the earliest and the latest of them; ``gap``: the largest number of seconds
    between a time of this clock and the next one.
    """

    first: int
    last: int
    earliest: float
    latest: float
    gap: float

    @classmethod
    def of(cls, times: pl.Series, judged: pl.Series, *, absolute: bool) -> OneClock | None:
        """Return the clock of most rows, the later one of two equals; None if there is no time. O(n log n).

        Parameters
        ----------
        times
            Times, f64[n], null for none.
        judged
            Rows that count, bool[n].
        absolute
            Times are date-times or Unix seconds, not seconds from the log's own beginning.
        """
        values = times.to_numpy()
        at = np.flatnonzero(judged.to_numpy() & np.isfinite(values))
        if not at.size:
            return None
        gap = TEN_YEARS if absolute else UNIX_SECONDS
        order = at[np.argsort(values[at], kind="stable")]
        clocks = np.split(order, np.flatnonzero(np.diff(values[order]) >= gap) + 1)
        most = max(reversed(clocks), key=len)
        first, last = int(most[0]), int(most[-1])
        return cls(first, last, float(values[first]), float(values[last]), gap)

    def not_on_it(self, times: pl.Series) -> pl.Series:
        """Return which times are not on the clock, bool[n]; null is on any clock.

        These times lie the gap or more before the earliest or after the latest one.

        Parameters
        ----------
        times
            Times, f64[n], null for none.
        """
        early, late = times <= self.earliest - self.gap, times >= self.latest + self.gap
        return (early | late).fill_null(False)

    def legal(self, first: str, last: str) -> str:
        """Return a text that says which times are on the clock.

        Parameters
        ----------
        first
            The earliest time and its place.
        last
            The latest time and its place.
        """
        gap = "ten years" if self.gap == TEN_YEARS else f"{self.gap:g} s"
        return f"a time on the clock of the others, less than {gap} from them; they are from {first} to {last}"
