"""`Deadline`: the time at which an answer is due, passed unchanged to every step that may take long.

`seconds_in`: durations and times as people write them.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass

from optsched.errors import InputError

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})\s*([a-z]*)\s*", re.ASCII)
_CLOCK = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-5]?[0-9]):([0-5]?[0-9](?:\.[0-9]*)?)", re.ASCII)
_UNITS = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    "ms": 1e-3,
    "us": 1e-6,
}
DURATION = "seconds, or a time such as 10s, 90min, 2h, 1d, 1h30m, 01:30:00"


class Late(Exception):
    """Raised after a `Deadline` has passed; the caller that set the deadline keeps the results so far."""


@dataclass(frozen=True)
class Deadline:
    """A time: ``at`` seconds of `time.monotonic`, which all processes of a machine share; inf: never."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline a number of seconds from now.

        Parameters
        ----------
        seconds
            Seconds from now; None: never.
        """
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Return whether the time is up."""
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise `Late` if the time is up."""
        if self.passed:
            raise Late

    def share(self, part: float) -> Deadline:
        """Return the deadline at which a part of the remaining time has passed.

        Parameters
        ----------
        part
            Part of the remaining time, from 0 to 1.
        """
        return self if self.at == math.inf else Deadline(time.monotonic() + part * self.left)


NEVER = Deadline()


def seconds_in(text: str | float, field: str, legal: str = DURATION) -> float:
    """Parse a duration: a number, numbers with units (``"90s"``, ``"1.5 h"``, ``"1h30m"``), or ``[D-]HH:MM:SS``.

    A number without a unit is in seconds and must be alone. A sign may come first. Case does not matter. ``HH:MM`` is
    refused, because it could mean minutes and seconds.

    Parameters
    ----------
    text
        Text or number to parse.
    field
        Name of the field, for errors.
    legal
        Legal values, for errors.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InputError
        If the text is not a duration; it names ``field`` and ``legal``.

    Examples
    --------
    >>> [seconds_in(text, "limit") for text in ("90", "2h", "1h 30min", "1-00:00:10")]
    [90.0, 7200.0, 5400.0, 86410.0]
    """
    written = str(text).strip().lower()
    sign, size = (-1.0, written[1:]) if written.startswith("-") else (1.0, written)
    clock = _CLOCK.fullmatch(size)
    if clock is not None:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return sign * (86400 * days + 3600 * hours + 60 * minutes + seconds)
    parts = _PART.findall(size)
    whole = "".join(number + unit for number, unit in parts) == re.sub(r"\s", "", size)
    fine = parts and whole and all(unit in _UNITS and (unit or len(parts) == 1) for _, unit in parts)
    found = sum(float(number) * _UNITS[unit] for number, unit in parts) if fine else math.nan
    if not math.isfinite(found):
        raise InputError("not a time", field=field, value=text, legal=legal)
    return sign * found
