"""Header of a log in the Standard Workload Format: lines ``; Field: value`` before the first row."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_FIELD = re.compile(r";(\s*)([A-Za-z]+)\s*:(.*)")
_MORE = re.compile(r";(\s+)(\S.*)")
LONGEST_NOTE, MOST_NOTES = 300, 8  # characters of a note that is shown, and notes


@dataclass(frozen=True)
class SwfHeader:
    """Fields of the header.

    ``fields``: the first value of each field, by its name in lower case; ``remarks``: the value of every ``Note``.
    """

    fields: dict[str, str]
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, lines: Iterable[str]) -> SwfHeader:
        """Return the fields of comment lines; a line that is indented deeper than its field continues it.

        Parameters
        ----------
        lines
            The lines, each with its semicolon.
        """
        entries: list[list[str]] = []
        margin, open_entry = 0, False
        for line in lines:
            field, more = _FIELD.fullmatch(line.rstrip()), _MORE.fullmatch(line.rstrip())
            depth = len(more[1].expandtabs()) if more else 0
            if field and not (open_entry and depth > margin):
                entries.append([field[2].lower(), field[3].strip()])
                margin, open_entry = depth, True
            elif more and open_entry:
                entries[-1][1] = f"{entries[-1][1]} {more[2]}".strip()
            else:
                open_entry = False
        fields = dict(reversed([(name, value) for name, value in entries]))
        return cls(fields, tuple(value for name, value in entries if name == "note" and value))

    def number(self, field: str) -> int | None:
        """Return the first integer of a field, the total where partitions follow in brackets; None if it has none > 0.

        Parameters
        ----------
        field
            Name of the field.
        """
        first = re.match(r"\d{1,15}(?![\d.])", self.fields.get(field.lower(), ""))
        return int(first[0]) or None if first else None

    @property
    def processors(self) -> tuple[int | None, str]:
        """Number of processors of the cluster, and the field that states it: ``MaxProcs``, else ``MaxNodes``."""
        for field in ("MaxProcs", "MaxNodes"):
            count = self.number(field)
            if count is not None:
                return count, field
        return None, ""

    @property
    def clock(self) -> dict[str, Any]:
        """Unix time of second 0 and the time zone, as far as the header states them, for the recipe of an instance."""
        start, zone = self.number("UnixStartTime"), self.fields.get("timezonestring") or self.fields.get("timezone")
        return {key: value for key, value in (("unix_start", start), ("time_zone", zone)) if value}

    @property
    def notes(self) -> list[str]:
        """Notes of the header for people, a line each."""
        lines = [note if len(note) <= LONGEST_NOTE else f"{note[:LONGEST_NOTE]}..." for note in self.remarks]
        more = len(lines) - MOST_NOTES
        return lines[:MOST_NOTES] + ([f"and {more} notes more, in the file"] if more > 0 else [])
