"""What the documents of studies say: the mean of every measure, cell by cell."""

from __future__ import annotations

from typing import Any


def cells(document: Any, prefix: str = "") -> dict[tuple[str, str, str], dict[str, float]]:
    """By experiment (those whose names begin so), row and column."""
    return {
        (each["name"], cell["row"], cell["column"]): {k: m["mean"] for k, m in cell["measures"].items() if m}
        for each in document["experiments"]
        if each["name"].startswith(prefix)
        for cell in each["cells"]
    }
