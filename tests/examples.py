"""How many examples a property is tried on: all that it names in `make study`, some of them by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")


def pairs(table: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    """(key, value) of every value under a key."""
    return [(key, value) for key, values in table.items() for value in values]


def studied(*values: Any) -> Any:
    """A case of `make study` alone."""
    return pytest.param(*values, marks=pytest.mark.study)


def explored() -> bool:
    """Is this `make study`, where all examples are tried and hypothesis draws others every time?"""
    return settings.get_current_profile_name() == "explore"


def examples(most: int) -> int:
    """``most`` of hypothesis' examples where they are explored, else a fifth: the same ones every time."""
    return most if explored() else max(5, most // 5)


def few(cases: Sequence[T], count: int) -> Sequence[T]:
    """All cases where they are explored, else ``count`` of them, spread over all."""
    return cases if explored() or count >= len(cases) else [cases[k * len(cases) // count] for k in range(count)]
