"""`promised_starts`: the starts that a policy promised, compared with the starts of its run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Bools, Floats
from optsched.simulation.metrics import first_starts
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.run import Run


@dataclass(frozen=True)
class PromisedStarts:
    """The promised starts of a run: an answer to "how long will I wait", and how good it was.

    Attributes
    ----------
    wait
        Seconds from the arrival of every job to the start that it was promised, f64[n]; nan for a job without promise.
    late
        Seconds by which every job started after the promised start, f64[n]; negative: before it; nan without promise.
    kept
        Whether a job started by the promised start, bool[n].
    """

    wait: Floats
    late: Floats
    kept: Bools

    @property
    def share(self) -> float:
        """Share of the jobs that had a promise, 0 to 1; nan if there are no jobs."""
        return float(np.isfinite(self.wait).mean()) if self.wait.size else np.nan

    @property
    def share_kept(self) -> float:
        """Share of the promises that were kept, 0 to 1; nan if there are none."""
        promised = np.isfinite(self.wait)
        return float(self.kept[promised].mean()) if promised.any() else np.nan

    @property
    def mean_late(self) -> float:
        """Mean of ``late`` over the jobs with a promise that started, in seconds; nan if there are none."""
        late = self.late[np.isfinite(self.late)]
        return float(late.mean()) if late.size else np.nan

    def late_at(self, share: float) -> float:
        """Return a quantile of ``late`` over the jobs with a promise that started; nan if there are none.

        Parameters
        ----------
        share
            Level of the quantile, 0 to 1.
        """
        late = self.late[np.isfinite(self.late)]
        return float(np.quantile(late, share)) if late.size else np.nan


def promised_starts(run: Run) -> PromisedStarts | None:
    """Return the promises of a run; None if its policy makes none.

    Parameters
    ----------
    run
        A run whose ``notes`` have ``promised``, as those of `optsched.policies.backfill`.

    Examples
    --------
    >>> import optsched as osd
    >>> jobs = [osd.Job("a", 0, 3, 20, walltime=30), osd.Job("b", 1, 4, 10, walltime=10)]
    >>> made = osd.promised_starts(osd.simulate(osd.Instance(jobs, "1x4"), "conservative"))
    >>> made.wait.tolist(), made.late.tolist(), made.share_kept
    ([0.0, 29.0], [0.0, -10.0], 1.0)
    """
    run = run.relative  # times from the first arrival: the epoch of the log costs no digit
    if "promised" not in run.notes:
        return None
    instance, noted = run.instance, run.notes["promised"]
    promised = np.full(instance.n, np.nan)
    promised[: noted.size] = noted
    start = first_starts(run.schedule)
    with np.errstate(invalid="ignore"):
        kept = start <= promised + np.abs(promised) * (last_of_instant(1.0) - 1.0)
    return PromisedStarts(promised - instance.arrival, start - promised, kept)
