"""How many examples a property is tried on: all that it names in `make study`, half of them by default."""

from __future__ import annotations

from hypothesis import settings


def examples(most: int) -> int:
    """``most`` where examples are explored that nobody has seen, else half: the same ones every time."""
    return most if settings.get_current_profile_name() == "explore" else most // 2
