"""`Statement`: what every theorem of this room says of itself, whatever it is held against."""

from __future__ import annotations

from dataclasses import dataclass

STATUSES = ("proved", "published", "recollected")
KNOWLEDGE = ("non-clairvoyant", "predicted", "clairvoyant", "offline")  # of lengths; offline: of everything, in advance


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A theorem in words.

    Parameters
    ----------
    id, statement, source : its name, the theorem in one line, and who proved it.
    notation : its problem in Graham's three fields, with words for what they have no sign for.
    knowledge : what the algorithm needs to know, one of `KNOWLEDGE`.
    status : one of `STATUSES`. ``proved``: ``proof`` is complete, or the module of the theorem has it; ``published``: proved
        in the source, not repeated here; ``recollected``: as ``published``, but the source was not at hand.
    proof : the proof in a few sentences, or the idea of the one in the source.
    objective : the name of the objective that it bounds.
    """

    id: str
    statement: str
    notation: str
    knowledge: str
    source: str
    status: str
    proof: str
    objective: str
