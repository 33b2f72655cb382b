"""An HTML document around a fragment: readable anywhere, without scripts and without anything to load."""

from __future__ import annotations

from optsched.problem.html import escaped

_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}th,td{border:1px solid #999;padding:.2em .6em;text-align:right}"
    "img{max-width:100%}pre{overflow:auto}"
)


def page(title: str, body: str) -> str:
    """The document; ``body`` is HTML, ``title`` is text."""
    head = f'<meta charset="utf-8"><title>{escaped(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
