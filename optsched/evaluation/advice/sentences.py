"""Sentences on the best candidates, on those who lose by them, and on what a replay cannot know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optsched.evaluation.advice.advice_row import AdviceRow, best_of, gained
from optsched.evaluation.as_logged import AS_LOGGED
from optsched.evaluation.report import queued_hours
from optsched.rounding import Side, number, significant

BUSY = 0.85  # utilisation from which on people who wait are likely to submit later


def details(rows: Sequence[AdviceRow], utilization: float) -> Iterator[str]:
    """Yield sentences: queued GPU-hours, the best policies, who loses by them, and the limits of a replay.

    Parameters
    ----------
    rows
        The first row, and the candidates.
    utilization
        Utilisation of the GPUs in the first row, from 0 to 1.
    """
    base, best, stopping = rows[0], best_of(rows), best_of(rows, stops=True)
    queued, avoidable = queued_hours(base.line.run), base.line.avoidable_queueing
    if avoidable is not None:
        who = "Jobs queued" if base.policy == AS_LOGGED else f"Under {base.policy} jobs queue"
        most = f"at most {_spelled(avoidable, 'up')} are avoidable"
        yield f"{who} {_spelled(queued)} GPU-hours (waiting time times gang), of which {most}."
    if best is None:
        yield f"No candidate that stops no job and needs no durations avoids queueing compared with {base.policy}."
    else:
        start = "Of the candidates that stop no job and need no durations,"
        yield f"{start} {best.named} avoids most: {_hours(best)}.{_who_loses(best)}"
    if stopping is not None and stopping is not best:
        yield f"If jobs can be stopped, {stopping.named} avoids {_hours(stopping)}.{_who_loses(stopping)}"
    if utilization > BUSY:
        yield (
            f"The cluster was {100 * utilization:.0f} % in use while jobs were submitted. A replay cannot know that "
            "people who wait submit later: on so busy a cluster the true differences are smaller than these numbers."
        )


def _hours(row: AdviceRow) -> str:
    saving = row.saving
    if saving is None or saving.low is None or saving.high is None:
        return f"{_spelled(gained(row))} queued GPU-hours"
    low, high = _spelled(saving.low, "down"), _spelled(saving.high, "up")
    return f"{_spelled(saving.gpu_hours)} queued GPU-hours ({low} to {high} in 95 % of the draws of weeks)"


def _who_loses(row: AdviceRow) -> str:
    fair = row.fairness
    if fair is None or not fair.losers:
        return ""
    loser = fair.losers[0]
    most = f"{fair.by} {loser.name} loses most (mean slowdown {loser.before:.1f}, then {loser.after:.1f})"
    return f" It makes {fair.worse:,} of {fair.people:,} {fair.by}s worse off; {most}."


def _spelled(value: float, side: Side = "nearest") -> str:
    if abs(value) >= 1e6:
        return f"{significant(value / 1e6, 3, side)} million"
    return number(value, 4, side)
