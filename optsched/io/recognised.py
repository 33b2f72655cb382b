"""Recognise a trace by its first lines, to say which SOURCE to type for it."""

from __future__ import annotations

import shlex
from pathlib import Path

from optsched.io.traces.columns_csv import RAN, asked_columns
from optsched.io.traces.compressed import first_lines
from optsched.io.traces.dialect import DIALECTS, Dialect

CLUSTER = " --cluster NODESxGPUS"


def source_to_type(path: Path) -> str:
    """Return the SOURCE to type for a trace, with the options that it needs, or "" if the file does not look like one.

    Parameters
    ----------
    path
        The file.
    """
    lines = [line for line in first_lines(path) if line.strip()]
    if not lines:
        return ""
    fitting = [name for name, form in DIALECTS.items() if form.recognises is not None and form.recognises(lines)]
    if fitting:
        return " or ".join(_typed(DIALECTS.get(name), path) for name in fitting)
    first = lines[0].strip()
    separator = max(",;\t|", key=first.count)
    names = [name.strip().strip('"') for name in first.split(separator)]
    if len(names) < 2 or not all(names) or "\ufffd" in first or first.startswith(("{", "[")):
        return ""
    fitting = [name for name, form in DIALECTS.items() if form.header and set(form.header) <= set(names)]
    if fitting:
        form = max((DIALECTS.get(name) for name in fitting), key=lambda form: len(form.header))
        # philly's table does not say when jobs ran; its other form, which does, is recognised above
        return _typed(form, path, guesses=form.guesses_cluster and form.recognises is None)
    if not any(name.isidentifier() for name in names):  # only numbers, so there is no header
        return ""
    columns = asked_columns(names)
    return f"{shlex.quote(f'csv:{path}')} --columns {columns}" + ("" if f"{RAN[0]}=" in columns else CLUSTER)


def _typed(form: Dialect, path: Path, guesses: bool | None = None) -> str:
    part = f"#{form.fragment.split()[0].rstrip(',')}" if form.fragment else ""
    guesses = form.guesses_cluster if guesses is None else guesses
    return shlex.quote(f"{form.name}:{path}") + part + ("" if form.brings_cluster or guesses else CLUSTER)
