"""Rows of the advice: the schedule that ran or the first policy, and the candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from optsched.evaluation.advice.fairness import Fairness
from optsched.evaluation.advice.savings import Saving
from optsched.evaluation.report import Line
from optsched.simulation.knowledge import Knowledge
from optsched.simulation.metrics import first_starts
from optsched.simulation.promised_starts import PromisedStarts, promised_starts
from optsched.simulation.run import Run

EASY = "easy"
SAME = 1e-9  # relative: two sums of hours that differ by rounding alone


@dataclass(frozen=True)
class AdviceRow:
    """A candidate, or the first row.

    Parameters
    ----------
    line
        Value, bound, ratio and metrics.
    saving
        Queued GPU-hours avoided; None in the first row and for a candidate that leaves jobs unfinished.
    fairness
        Who loses; None as for ``saving``.
    promises
        The promises that the policy makes to jobs that wait; None if it makes none.
    """

    line: Line
    saving: Saving | None = None
    fairness: Fairness | None = None
    promises: PromisedStarts | None = None

    @property
    def policy(self) -> str:
        """The policy with its placement, or ``as logged``."""
        return self.line.policy

    @property
    def knowledge(self) -> str:
        """The knowledge that the policy has of processing times, as in every other table."""
        return self.line.knowledge

    @property
    def named(self) -> str:
        """The policy in a sentence."""
        if self.line.run.knowledge != Knowledge.USER_LIMITS:
            return self.policy
        head, plus, placement = self.policy.partition("+")
        return f"{head.upper() if head == EASY else head} with your users' limits{plus and f' ({placement})'}"

    @property
    def is_easy(self) -> bool:
        """True for EASY backfilling with users' limits, which nearly every batch system has."""
        return self.policy.partition("+")[0] == EASY and self.line.run.knowledge == Knowledge.USER_LIMITS

    @property
    def clairvoyant(self) -> bool:
        """True if the policy knows processing times, perhaps as perfect predictions: it is a yardstick for real clusters."""
        return self.line.run.knowledge == Knowledge.CLAIRVOYANT or self.perfectly_predicted

    @property
    def perfectly_predicted(self) -> bool:
        """True if the predictions that the policy asked for are the processing times."""
        run = self.line.run
        return run.predicted is not None and np.array_equal(run.predicted, run.instance.work)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``advise --json``."""
        fair = None if self.fairness is None else {**asdict(self.fairness), "share_worse": self.fairness.share_worse}
        return {
            **self.line.to_json(),
            "saving": None if self.saving is None else asdict(self.saving),
            "fairness": fair,
            "promises": None if self.promises is None else _summary(self.promises),
        }


def best_of(rows: Sequence[AdviceRow], *, stops: bool = False) -> AdviceRow | None:
    """Return the policy that avoids most queued GPU-hours without knowing durations; None if none avoids any.

    Parameters
    ----------
    rows
        The first row, and the candidates.
    stops
        True to consider policies that stop jobs, too.
    """
    best = max(able_of(rows, stops=stops), key=gained, default=None)
    return best if best is not None and gained(best) > 0 else None


def able_of(rows: Sequence[AdviceRow], *, stops: bool = False) -> list[AdviceRow]:
    """Return the candidates that need no durations and stop no job.

    Parameters
    ----------
    rows
        The first row, and the candidates.
    stops
        True to include policies that stop jobs.
    """
    return [row for row in rows[1:] if not row.clairvoyant and (stops or not row.line.run.preemptive)]


def tied_with(best: AdviceRow, rows: Sequence[AdviceRow], *, stops: bool = False) -> list[AdviceRow]:
    """Return the candidates of `able_of` that avoid as much as the best one, which is one of them.

    Parameters
    ----------
    best
        The best candidate.
    rows
        The first row, and the candidates.
    stops
        True to include policies that stop jobs.
    """
    return [row for row in able_of(rows, stops=stops) if math.isclose(gained(row), gained(best), rel_tol=SAME)]


def gained(row: AdviceRow) -> float:
    """Return the queued GPU-hours that a row avoids; 0 for the first row.

    Parameters
    ----------
    row
        The row.
    """
    return 0.0 if row.saving is None else row.saving.gpu_hours


def promises_to_waiting(run: Run) -> PromisedStarts | None:
    """Return the promises of a run to the jobs that did not start at their submission; None if its policy makes none.

    Parameters
    ----------
    run
        The run.
    """
    made, local = promised_starts(run), run.relative
    if made is None:
        return None
    waits = first_starts(local.schedule) > local.instance.arrival
    return PromisedStarts(made.wait[waits], made.late[waits], made.kept[waits])


def _summary(made: PromisedStarts) -> dict[str, Any]:
    promised = int(np.isfinite(made.wait).sum())
    late = {f"p{100 * share:.0f}": made.late_at(share) if promised else None for share in (0.5, 0.9, 0.99, 1.0)}
    kept = made.share_kept if promised else None
    return {"waiting": made.wait.size, "promised": promised, "share_kept": kept, "late": late}
