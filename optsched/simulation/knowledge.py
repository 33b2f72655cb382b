"""`Knowledge`: the facts about unfinished jobs that a policy may ask for."""

from __future__ import annotations

from enum import StrEnum


class Knowledge(StrEnum):
    """A level of knowledge about the length of a job at its arrival.

    A clairvoyant policy knows processing times, a policy with predictions asks a predictor, a policy with user limits
    reads the limit that the user stated at submission (`Job.walltime`), and a non-clairvoyant policy learns the length
    of a job when the job completes. Clairvoyant policies and policies with predictions may also read limits.
    """

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    USER_LIMITS = "user-limits"
    NON_CLAIRVOYANT = "non-clairvoyant"

    @property
    def meaning(self) -> str:
        """The knowledge of a policy of this level, as a phrase without its subject."""
        return _MEANINGS[self]


_MEANINGS = {
    Knowledge.CLAIRVOYANT: "knows the processing time of a job at its arrival",
    Knowledge.PREDICTED: "asks a predictor for the processing time of a job at its arrival",
    Knowledge.USER_LIMITS: "reads the limit that the user stated at submission",
    Knowledge.NON_CLAIRVOYANT: "learns the processing time of a job when the job completes",
}

NOT_STATED = "not stated"  # the knowledge of whoever made a schedule that no policy of optsched made
