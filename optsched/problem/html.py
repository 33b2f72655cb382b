"""How results show themselves in a notebook: ``_repr_html_`` asks here for the view of its kind.

Views draw pictures, so they belong to a layer far above the things that they show: `optsched.report.html_views` files them.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from optsched.errors import printable
from optsched.registry import Registry

VIEWS: Registry[Callable[[Any], str]] = Registry("view", package="optsched.report.html_views")


def html_of(kind: str, thing: Any) -> str:
    """The view of a thing of this kind: a self-contained HTML fragment, without scripts."""
    return VIEWS.get(kind)(thing)


def escaped(text: str) -> str:
    """Text of anybody for an HTML page."""
    return html.escape(printable(text, lines=True))


def number(value: float | None) -> str:
    """A value for people, its integer part in full: 133, 1234567.891; a dash for none."""
    if value is None or value != value:
        return "-"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}" if abs(value) >= 1 else f"{value:.4g}"
