"""What somebody may change in the document of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def put(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    """The value at these keys becomes another; it is removed where it is to be ``...``."""

    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in keys[:-1]:
            at = at[key]
        if to is ...:
            del at[keys[-1]]
        else:
            at[keys[-1]] = to

    return change
