"""Views of results in a notebook: ``_repr_html_`` looks up the view of its kind here.

Views draw pictures, so they belong to a layer far above the results: `optsched.report.html_views` registers
them.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from optsched.errors import printable
from optsched.registry import Registry

VIEWS: Registry[Callable[[Any], str]] = Registry("view", package="optsched.report.html_views")


def html_of(kind: str, thing: Any) -> str:
    """Return the view of a result: a self-contained HTML fragment without scripts.

    Parameters
    ----------
    kind
        Kind of result, by which the view is registered.
    thing
        Result to show.
    """
    return VIEWS.get(kind)(thing)


def escaped(text: str) -> str:
    """Return text for an HTML page, escaped.

    Parameters
    ----------
    text
        Text from any source.
    """
    return html.escape(printable(text, lines=True))


def number(value: float | None) -> str:
    """Return a value for people, with its integer part in full: 133, 1234567.891; a dash for none.

    Parameters
    ----------
    value
        Number, None or nan.
    """
    if value is None or value != value:
        return "-"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}" if abs(value) >= 1 else f"{value:.4g}"
