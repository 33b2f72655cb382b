"""The mathematics of a formulation, read from the docstring of its module."""

from __future__ import annotations

import re

_SECTION = re.compile(r"(Sets|Data|Variables|Optimum|Size|Reference)\b[^:]*: ")
_ROW = re.compile(r"(.*\S)\s+(\(\d+\))(?:\s+(\w+(?:, \w+)*))?")


def mathematics(docstring: str) -> tuple[tuple[str, str], ...]:
    """Return the sections of a formulation from its module's docstring: sets, data, variables, objective, constraints.

    A section begins with its name at the start of a line and ends with a blank line or the next section. The program is
    indented; each of its rows ends with its number and the name that it has in the model (see the files of
    `optsched.models`).

    Parameters
    ----------
    docstring
        The docstring of the module.

    Returns
    -------
    tuple of (heading, text)
        Constraints have their number and name as heading.
    """
    sections: dict[str, list[str]] = {}
    rows: dict[str, list[str]] = {}
    head, open_row = "", list[str]()
    for line in docstring.splitlines():
        begin = _SECTION.match(line)
        if begin or not line.strip():
            head = begin[1].lower() if begin else ""
        if head:
            sections.setdefault(head, []).append(line.removeprefix(begin[0]) if begin else line)
        elif line.startswith("    ") and "variables" in sections:
            ended = _ROW.fullmatch(line.strip())
            open_row.append(re.sub(r"\s{2,}", "   ", (ended[1] if ended else line).strip().removeprefix("s.t. ")))
            if ended:
                name = ended[3] or ("objective" if ended[2] == "(0)" else "")
                rows[f"{ended[2]} {name}".strip()] = open_row
                open_row = []
    parts = {key: sections.pop(key) for key in ("sets", "data", "variables") if key in sections} | rows | sections
    return tuple((key, " ".join(text).replace("``", "").strip()) for key, text in parts.items())
