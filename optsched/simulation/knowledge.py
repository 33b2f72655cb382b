"""`Knowledge`: the facts about unfinished jobs that a policy may ask for."""

from __future__ import annotations

from enum import StrEnum


class Knowledge(StrEnum):
    """A level of knowledge about the length of a job at its arrival.

    A clairvoyant policy knows processing times, a policy with predictions asks a predictor, and a non-clairvoyant
    policy learns the length of a job when the job completes.
    """

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    NON_CLAIRVOYANT = "non-clairvoyant"


NOT_STATED = "not stated"  # the knowledge of whoever made a schedule that no policy of optsched made
