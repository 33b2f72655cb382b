"""Facts that an instance keeps on its log, in its recipe: notes, the unit of its gangs, its clock, and a window of time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from optsched.deadline import seconds_in
from optsched.errors import InputError
from optsched.io.traces.rows import seconds_of_date_times
from optsched.problem.instance import Instance
from optsched.rounding import counted, number

NOT_MODELLED, LEFT_OUT, SKIPPED, SAID = (
    "not_modelled",
    "left_out",
    "skipped",
    "said",
)  # keys in the parameters of a recipe
ORIGIN, ZONE, COUNTS = (
    "origin",
    "zone",
    "counts",
)  # further ones; see `LogClock`, and the singular of what a gang counts
WINDOW = "window"  # key in a recipe
UNIX, LATEST = 5e8, 1e10  # a moment between them is in Unix seconds
THE_LOGS = "the log's clock"  # date-times without a UTC offset
MOMENT_LEGAL = "2026-03-01, '2026-03-01 09:00', or a time after the first submission such as 7d"


def _parameters(instance: Instance) -> Mapping[str, Any]:
    parameters = (instance.recipe or {}).get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}


def reading_notes(instance: Instance) -> list[str]:
    """Return what a reader must know about how a log was read, a line each, for people.

    The window, rows that were left out and rows that were skipped, by reason, what the reader assumed, and what no instance
    can have.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    parameters, window = _parameters(instance), (instance.recipe or {}).get(WINDOW)
    lines = [*([str(window)] if window else []), *not_modelled(instance)]
    for key, phrase in ((LEFT_OUT, "left out"), (SKIPPED, "invalid rows skipped")):
        counts = parameters.get(key)
        if isinstance(counts, Mapping) and counts:
            lines.append(f"{phrase}: {', '.join(f'{count:,} ({reason})' for reason, count in counts.items())}")
    said = parameters.get(SAID)
    return lines + ([str(line) for line in said] if isinstance(said, list) else [])


def not_modelled(instance: Instance) -> list[str]:
    """Return properties of an instance's trace that no instance can have, a line each, for people.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    lines = _parameters(instance).get(NOT_MODELLED)
    return [str(line) for line in lines] if isinstance(lines, list) else []


def unit_of(instance: Instance) -> str:
    """Return what the gangs of an instance count, in the singular: ``GPU``, ``CPU``, ``node``, ``processor`` or ``host``.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    return str(_parameters(instance).get(COUNTS, "GPU"))


def in_its_unit(instance: Instance, text: str) -> str:
    """Return a text of optsched about GPUs with the unit of an instance in their place.

    Parameters
    ----------
    instance
        Jobs and cluster.
    text
        The text, without names from a log.
    """
    return text.replace("GPU", unit_of(instance))


@dataclass(frozen=True)
class LogClock:
    """The calendar of a log.

    Parameters
    ----------
    origin
        Unix seconds at second 0 of the instance.
    zone
        ``UTC``, or `THE_LOGS` if its date-times have no UTC offset.
    """

    origin: float
    zone: str = "UTC"

    def date(self, seconds: float, form: str = "%Y-%m-%d") -> str:
        """Return the date of a moment, without its zone.

        Parameters
        ----------
        seconds
            The moment on the clock of the instance.
        form
            A form of strftime.
        """
        return f"{datetime.fromtimestamp(self.origin + seconds, UTC):{form}}"

    def moment(self, seconds: float) -> str:
        """Return a moment to the second, with its zone if it is UTC.

        Parameters
        ----------
        seconds
            The moment on the clock of the instance.
        """
        return self.date(seconds, "%Y-%m-%d %H:%M:%S") + " UTC" * (self.zone == "UTC")


def clock_of(instance: Instance) -> LogClock | None:
    """Return the calendar of an instance; None if its log states no dates.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    parameters = _parameters(instance)
    start, zone = (
        parameters.get(ORIGIN, parameters.get("unix_start")),
        parameters.get(ZONE, "UTC"),
    )  # the second: of SWF
    if isinstance(start, int | float) and UNIX <= start + instance.epoch < LATEST:
        return LogClock(float(start), str(zone))
    return LogClock(0.0) if UNIX <= instance.epoch < LATEST else None


def dates_of(instance: Instance, form: str = "%Y-%m-%d", last: float | None = None) -> str:
    """Return the first and the last day of a log, ``2026-03-02 to 2026-03-05``; '' if it states no dates.

    Unless it is given, the last day is that of the last end that is known, and otherwise of the last submission.

    Parameters
    ----------
    instance
        Jobs and cluster.
    form
        A form of strftime for each of the two.
    last
        The last moment on the clock of the instance, in seconds.
    """
    clock = clock_of(instance)
    if clock is None or not instance.n:
        return ""
    last = last_moment(instance) if last is None else last
    return " to ".join(dict.fromkeys(clock.date(seconds, form) for seconds in (instance.epoch, last)))


def last_moment(instance: Instance) -> float:
    """Return the last end of a log that is known, or its last submission, in seconds on the clock of the instance.

    Parameters
    ----------
    instance
        Jobs and cluster, at least one job.
    """
    ends = instance.table.select(pl.col("ran").explode().list.get(1).max()).item()
    return max(float(instance.arrival.max()), instance.epoch if ends is None else ends)


def moment_in_words(instance: Instance, seconds: float) -> str:
    """Return a moment as a date, or in seconds if the log of an instance states no dates.

    Parameters
    ----------
    instance
        Jobs and cluster.
    seconds
        The moment on the clock of the instance.
    """
    clock = clock_of(instance)
    return f"{number(seconds, 15)} s" if clock is None else clock.moment(seconds)


def windowed(instance: Instance, since: str | float | None, until: str | float | None) -> Instance:
    """Return the jobs that were submitted in a window, with a note on those that were in the cluster at its start.

    Parameters
    ----------
    instance
        Jobs and cluster.
    since, until
        Start (included) and end (excluded): a date, or a time after the first submission; None: none.

    Raises
    ------
    InputError
        A moment is not legal, or no job was submitted in the window.
    """
    begin = -math.inf if since is None else _moment(instance, since, "from")
    end = math.inf if until is None else _moment(instance, until, "to")
    inside = (instance.arrival >= begin) & (instance.arrival < end)
    if not inside.any():
        first, last = (moment_in_words(instance, float(t)) for t in (instance.arrival.min(), instance.arrival.max()))
        where = {"field": "from" if since is not None else "to", "value": until if since is None else since}
        raise InputError(
            "no job was submitted in this window", **where, legal=f"submissions are from {first} to {last}"
        )
    span = [f"{word} {moment_in_words(instance, t)}" for word, t in (("from", begin), ("to", end)) if math.isfinite(t)]
    said = f"window {' '.join(span)}: {int(inside.sum()):,} of {instance.n:,} jobs were submitted in it"
    earlier = instance.table.filter(pl.Series(instance.arrival < begin))["ran"]
    ran = earlier.drop_nulls()
    if len(earlier) > len(ran):
        said += "; the log does not say which of the jobs submitted earlier still ran at its start: all are left out"
    elif len(ran):
        runs = ran.to_frame().select(
            start=pl.col("ran").list.eval(pl.element().list.get(0)).list.min(),
            end=pl.col("ran").list.eval(pl.element().list.get(1)).list.max(),
        )
        late = runs.filter(pl.col("end") > begin)
        waited = int((late["start"] >= begin).sum())
        said += (
            f"; {counted(late.height - waited, 'job')} submitted earlier still ran at its start and {waited:,} waited: they "
            "are left out, so policies start on an empty cluster, and the schedule that ran did not"
        )
    recipe = {**(instance.recipe or {}), WINDOW: said}
    return instance.replace(jobs=instance.table.filter(pl.Series(inside)), optimum=None, recipe=recipe)


def _moment(instance: Instance, text: str | float, field: str) -> float:
    """Return a moment on the clock of an instance."""
    date = seconds_of_date_times(pl.Series([str(text)], dtype=pl.String))[0]
    if date is None:
        return instance.epoch + seconds_in(text, field, legal=MOMENT_LEGAL)
    clock = clock_of(instance)
    if clock is None:
        raise InputError(
            "the log states no dates", field=field, value=text, legal="a time after the first submission, 7d"
        )
    return float(date) - clock.origin
