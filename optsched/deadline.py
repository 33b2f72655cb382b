"""`Deadline`: the moment when an answer is due. It is handed down, whole, to all that may take time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


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
