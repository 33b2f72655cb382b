"""A console that shows no text which a terminal would obey: names come from files of anybody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from optsched.errors import printable


class SafeConsole(Console):
    """Control characters of texts are written out; those of colours are rich's own and stay."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What ``renderable`` is made of."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)
