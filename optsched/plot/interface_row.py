"""All-reduces on a network interface: side by side in its row, as high as their share of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Piece(NamedTuple):
    """From ``start`` to ``end`` a transfer has the part of the row between ``upper`` and ``lower``, in [0, 1] downwards."""

    start: float
    end: float
    upper: float
    lower: float


def side_by_side(start: Sequence[float], end: Sequence[float]) -> list[list[Piece]]:
    """The pieces of every transfer of one interface, each list by time.

    While k run, each has 1 / k of the row; who started first is at the top. At one instant ends come before starts.
    O(m log m + P) for m transfers and P pieces.
    """
    pieces: list[list[Piece]] = [[] for _ in start]
    events = sorted(
        [(time, 1, start[i], i) for i, time in enumerate(start)]
        + [(time, 0, start[i], i) for i, time in enumerate(end)]
    )
    running: list[int] = []
    for (now, starts, _, i), (following, *_) in pairwise(events):
        if starts and end[i] > start[i]:
            running.append(i)
        elif not starts and i in running:
            running.remove(i)
        if following <= now:
            continue
        for position, j in enumerate(running):
            upper, lower = position / len(running), (position + 1) / len(running)
            _extend(pieces[j], Piece(now, following, upper, lower))
    return pieces


def _extend(pieces: list[Piece], new: Piece) -> None:
    if pieces and pieces[-1][2:] == new[2:]:
        pieces[-1] = pieces[-1]._replace(end=new.end)
    else:
        pieces.append(new)


def outline(pieces: Sequence[Piece], top: float, height: float) -> list[tuple[float, float]]:
    """The corners of the polygon that the pieces form in a row that begins at ``top``, clockwise."""
    above = [(x, top + p.upper * height) for p in pieces for x in (p.start, p.end)]
    below = [(x, top + p.lower * height) for p in reversed(pieces) for x in (p.end, p.start)]
    return above + below
