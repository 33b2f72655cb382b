"""Speeds of jobs: formulas, readers and fits; `kinds` has a file for every model.

The public names are `paces` and the theorem on two jobs, or two transfers, that may run at once.
"""

from __future__ import annotations

from optsched.speeds.duration import paces
from optsched.speeds.sharing_pair import SharingPair, adadual_ratio, share_threshold, sharing_pair, two_transfers

__all__ = ["SharingPair", "adadual_ratio", "paces", "share_threshold", "sharing_pair", "two_transfers"]


def __dir__() -> list[str]:
    return sorted(__all__)
