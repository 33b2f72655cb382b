"""A deadline that depends on no clock."""

from __future__ import annotations

from optsched.deadline import Deadline


class Looks(Deadline):
    """It has passed when it has been looked at so often."""

    def __init__(self, looks: int) -> None:
        super().__init__(0.0)
        object.__setattr__(self, "looks", iter([False] * looks))

    @property
    def passed(self) -> bool:
        return next(self.looks, True)  # type: ignore[attr-defined]

    def share(self, part: float) -> Deadline:
        return self
