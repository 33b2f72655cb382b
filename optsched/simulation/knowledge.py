"""`Knowledge`: what a policy may ask about jobs that have not completed."""

from __future__ import annotations

from enum import StrEnum


class Knowledge(StrEnum):
    """What a policy knows about the length of a job when it arrives."""

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    NON_CLAIRVOYANT = "non-clairvoyant"
