"""Refusals: the rule that a certificate breaks, and the reason in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VALUE, DUAL, INSTANCE, KIND = "value", "dual-feasibility", "instance", "kind"  # rules that a certificate can break
UNJUDGED = "unjudged"  # the certificate may hold, but this program cannot tell
WIDEST = 1 << 512  # larger integers are not printed

Few = Callable[[int, int, str], None]  # (count, largest legal count, noun); raises `Refused` above it


class Refused(Exception):
    """A certificate does not hold, or cannot be judged.

    Parameters
    ----------
    text
        Reason, in one line.
    rule
        `VALUE`, `DUAL`, `INSTANCE`, `KIND`, or `UNJUDGED` if the certificate may hold.
    """

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(text)
        self.rule = rule


def need(legal: object, text: str, rule: str = VALUE) -> None:
    """Raise `Refused` unless a condition is true.

    Parameters
    ----------
    legal
        Condition.
    text
        Reason of the refusal.
    rule
        Rule that is broken.

    Raises
    ------
    Refused
        If the condition is false.
    """
    if not legal:
        raise Refused(text, rule)


def shown(value: Any) -> str:
    """Return a value for a message: ASCII, at most 80 characters, in one line.

    Parameters
    ----------
    value
        Any value of a JSON document.
    """
    return ascii(value if not isinstance(value, int) or abs(value) < WIDEST else "a huge number")[:80]
