"""Times and limits as ``sacct`` prints them, in seconds.

``SLURM_TIME_FORMAT`` is a form of strftime, ``standard`` (``2026-03-02T09:00:00``, on the clock of the client, without its
zone) or ``relative``. Times without a date or without seconds are refused: what they leave out cannot be found again.
"""

from __future__ import annotations

import re

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.rows import Rows, seconds_of_date_times, seconds_of_durations

NONE = ("Unknown", "None", "N/A", "0", "4294967294", "4294967295")
UNIX_SECONDS = (1e8, 4e9)  # other numbers are no times
YEAR = 365 * 86400.0  # a limit this long means none
MOMENT_LEGAL = "Unix seconds, or a time such as 2026-03-02T09:00:00"
LIMIT_LEGAL = "a limit such as 1-00:00:00, UNLIMITED or Partition_Limit"
_ADVICE = "set SLURM_TIME_FORMAT=%s for sacct"
_CLOCK = r"(\d{1,2}:\d\d:\d\d(?:\.\d+)?.*)"


def moments(rows: Rows, field: str) -> pl.Series:
    """Return Unix seconds of a field, f64[rows]; null where Slurm has no time yet.

    Parameters
    ----------
    rows
        Records of the export.
    field
        Name of the field.

    Raises
    ------
    InputError
        If the field has no time that is read, but times without a date or seconds, or in another form.
    """
    text = rows.text(field, required=False)
    number = text.cast(pl.Float64, strict=False)
    none = (text.is_in(NONE) | (number < 0).fill_null(False)).fill_null(True)
    number = number.set(none | ~number.is_between(*UNIX_SECONDS).fill_null(False), None)
    seconds = number
    dated = text.filter(number.is_null() & ~none).unique()
    if not dated.is_empty():
        # 28.11.26 09:00:00 is the only form without two meanings that does not begin with the year
        form = dated.str.replace(r"^(\d\d?)\.(\d\d?)\.(\d\d)[ T]", "$1.$2.20${3}T")
        form = form.str.replace(rf"^(\d\d?)\.(\d\d?)\.(\d{{4}})[ T]{_CLOCK}$", "$3-$2-${1}T$4")
        with_seconds = form.str.contains(r"\d:\d\d:\d\d")
        known = pl.DataFrame({"text": dated, "seconds": seconds_of_date_times(form).set(~with_seconds, None)})
        found = pl.DataFrame({"text": text}).join(known, on="text", how="left", maintain_order="left")["seconds"]
        seconds = number.to_frame("number").select(pl.coalesce(pl.col("number"), found))["number"]
    unread = ~none & seconds.is_null() & rows.good
    if unread.sum() > seconds.is_not_null().sum():
        raise _unread(rows, field, text, int(unread.arg_true()[0]))
    rows.reject(unread, field, MOMENT_LEGAL)
    return seconds.alias(field)


def _unread(rows: Rows, field: str, text: pl.Series, position: int) -> InputError:
    value = text[position]
    if re.fullmatch(r"\d\d?:\d\d:\d\d|[A-Z][a-z]+ \d\d?:\d\d|\d\d? [A-Z][a-z]{2}( \d\d?:\d\d)?", value):
        why = "a time without its date (SLURM_TIME_FORMAT=relative)"
    elif re.search(r"(^|[^:\d])\d\d?:\d\d([^:\d]|$)", value) or re.fullmatch(r"\d+\D\d+\D\d+", value):
        why = "a time without its seconds"
    else:
        why = "a form of time that is not read"
    return InputError(why, file=rows.file, row=rows.line[position], field=field, value=value, legal=_ADVICE)


def limits(rows: Rows) -> pl.Series:
    """Return the limits of jobs in seconds, f64[rows]; null where there is none.

    Parameters
    ----------
    rows
        Records of the export, with ``Timelimit`` or ``TimelimitRaw`` (minutes), or neither.
    """
    field = next((name for name in ("TimelimitRaw", "Timelimit") if name in rows.columns), None)
    if field is None:
        return rows.line.cast(pl.Float64).set(rows.line > -1, None)
    text = rows.text(field, required=False)
    none = text.is_in(("UNLIMITED", "Partition_Limit", "INVALID")).fill_null(True)
    seconds = seconds_of_durations(text)
    if field == "TimelimitRaw":
        seconds = text.cast(pl.Float64, strict=False) * 60
    rows.reject(~none & ~(seconds >= 0).fill_null(False), field, LIMIT_LEGAL)
    return seconds.set((none | ~(seconds > 0) | (seconds >= YEAR)).fill_null(True), None)


def lengths(rows: Rows, *fields: str) -> pl.Series | None:
    """Return seconds of the first of some fields that the export has, f64[rows]; None if it has none of them.

    Parameters
    ----------
    rows
        Records of the export.
    *fields
        Names of fields with durations, the best first.
    """
    field = next((name for name in fields if name in rows.columns), None)
    return None if field is None else rows.durations(field, required=False)
