"""`Deadline`: the moment when an answer is due. It is handed down, whole, to all that may take time.

`seconds_in`: how long something may take, or when it is, as people write it.
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
    """A `Deadline` has passed; what was found by then is in the hands of whoever set it."""


@dataclass(frozen=True)
class Deadline:
    """``at``: seconds of `time.monotonic`, which all processes of a machine share; inf: never."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None: never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Is the time up?"""
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise `Late` if the time is up."""
        if self.passed:
            raise Late

    def share(self, part: float) -> Deadline:
        """When this part of the time that is left has passed."""
        return self if self.at == math.inf else Deadline(time.monotonic() + part * self.left)


NEVER = Deadline()


def seconds_in(text: str | float, field: str, legal: str = DURATION) -> float:
    """Seconds that ``text`` says: a number, numbers with units (``"90s"``, ``"1.5 h"``, ``"1h30m"``), ``[D-]HH:MM:SS``.

    A number without a unit is in seconds, and stands alone. A sign may come first. Case does not matter. ``HH:MM`` is
    refused: to some it is minutes and seconds. Raises `InputError`, which names the ``field`` and what is ``legal``.

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
