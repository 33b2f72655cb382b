"""What somebody may change in the document of a file."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Change = Callable[[dict[str, Any]], dict[str, Any]]


def put(*keys: Any, to: Any) -> Change:
    """A copy in which the value at these keys is another; it is removed where it is to be ``...``."""

    def changed(document: dict[str, Any]) -> dict[str, Any]:
        at: Any = (made := copy.deepcopy(document))
        for key in keys[:-1]:
            at = at[key]
        if to is ...:
            del at[keys[-1]]
        else:
            at[keys[-1]] = to
        return made

    return changed
