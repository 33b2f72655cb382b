"""Sentences on the best candidates, on those who lose by them, and on what a replay cannot know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from optsched.evaluation.advice.advice_row import AdviceRow, best_of, gained, tied_with
from optsched.evaluation.as_logged import AS_LOGGED, IdleSpan
from optsched.evaluation.report import queued_hours
from optsched.io.traces.log_reading import unit_of
from optsched.rounding import Side, number, significant
from optsched.simulation.knowledge import Knowledge

NAMED = 4  # candidates that avoid equally much and are named
BUSY = 0.85  # utilisation from which on people who wait are likely to submit later


def details(rows: Sequence[AdviceRow], utilization: float, idle: Sequence[IdleSpan] = ()) -> Iterator[str]:
    """Yield sentences: queued GPU-hours, outages, the best policies, who loses by them, and the limits of a replay.

    Parameters
    ----------
    rows
        The first row, and the candidates.
    utilization
        Utilisation of the GPUs in the first row, from 0 to 1.
    idle
        Spans of the log in which GPUs were idle although the next job fitted.
    """
    base, best, stopping = rows[0], best_of(rows), best_of(rows, stops=True)
    queued, avoidable = queued_hours(base.line.run), base.line.avoidable_queueing
    unit = unit_of(base.line.run.instance)
    if avoidable is not None:
        who = "Jobs queued" if base.policy == AS_LOGGED else f"Under {base.policy} jobs queue"
        most = f"at most {at_most(avoidable, queued)} are avoidable"
        yield f"{who} {spelled(queued)} {unit}-hours (waiting time times gang), of which {most}."
    if idle:
        yield _outages(idle, unit)
    if best is None:
        yield f"No candidate that stops no job and needs no durations avoids queueing compared with {base.policy}."
    else:
        start = "Of the candidates that stop no job and need no durations,"
        yield f"{start} {_most(best, tied_with(best, rows))}"
    if stopping is not None and stopping is not best:
        tied = tied_with(stopping, rows, stops=True)
        yield f"If jobs can be stopped, {_most(stopping, tied)}"
    if utilization > BUSY:
        yield (
            f"The cluster was {100 * utilization:.0f} % in use while jobs were submitted. A replay cannot know that "
            "people who wait submit later: on so busy a cluster the true differences are smaller than these numbers."
        )


def _outages(idle: Sequence[IdleSpan], unit: str) -> str:
    hours, once = spelled(sum(span.gpu_hours for span in idle)), len(idle) == 1
    times = "Once" if once else f"{len(idle):,} times"
    return (
        f"{times} for more than an hour the next job waited although it fitted ({hours} idle {unit}-hours): an outage, "
        "dedicated time, or a limit that the instance does not know. The candidates may start jobs in "
        f"{'this span' if once else 'these spans'}: a part of what they avoid need not be due to their order of jobs."
    )


def _most(best: AdviceRow, tied: Sequence[AdviceRow]) -> str:
    """Return which candidates avoid most, and who loses by the first of them."""
    if len(tied) == 1:
        return f"{best.named} avoids most: {_hours(best)}.{_who_loses(best)}"
    names = [row.named for row in tied]
    named = f"{', '.join(names[:-1])} and {names[-1]}"
    if len(names) > NAMED:
        named = f"{len(names)} candidates ({', '.join(names[:NAMED])}, ...)"
    loses = _who_loses(best, best.named)
    return f"{named} avoid most, and equally much: {_hours(best)}.{loses}"


def _hours(row: AdviceRow) -> str:
    saving, hours = row.saving, f"queued {unit_of(row.line.run.instance)}-hours"
    if saving is None or saving.low is None or saving.high is None:
        return f"{spelled(gained(row))} {hours}"
    low, high = spelled(saving.low, "down"), spelled(saving.high, "up")
    return f"{spelled(saving.gpu_hours)} {hours} ({low} to {high} in 95 % of the draws of weeks)"


def _who_loses(row: AdviceRow, who: str = "It") -> str:
    fair = row.fairness
    if fair is None or not fair.losers:
        return ""
    loser = fair.losers[0]
    most = f"{fair.by} {loser.name} loses most (mean slowdown {loser.before:.1f}, then {loser.after:.1f})"
    return f" {who} makes {fair.worse:,} of {fair.people:,} {fair.by}s worse off; {most}."


def knowledge_note(rows: Sequence[AdviceRow]) -> str:
    """Return a note on the levels of knowledge of the rows.

    Parameters
    ----------
    rows
        The first row, and the candidates.
    """
    used = {row.knowledge for row in rows}
    return f"knowledge: {', '.join(f'{level} ({level.meaning})' for level in Knowledge if level in used)}"


def spelled(value: float, side: Side = "nearest") -> str:
    """Return GPU-hours as sentences, notes and the page show them.

    Parameters
    ----------
    value
        The GPU-hours.
    side
        Side of the rounding, as for `optsched.rounding.fixed`.
    """
    if abs(value) >= 1e6:
        return f"{significant(value / 1e6, 3, side)} million"
    return number(value, 4, side)


def at_most(part: float, whole: float, write: Callable[..., str] = spelled) -> str:
    """Return an upper bound on a part, rounded up, but never more than the whole as it is shown.

    Parameters
    ----------
    part
        The bound on the part, in GPU-hours.
    whole
        The GPU-hours of which it is a part.
    write
        Function that writes a number, rounded to a ``side``.
    """
    up = write(part, side="up")
    return write(whole) if part <= whole and up == write(whole, side="up") else up
