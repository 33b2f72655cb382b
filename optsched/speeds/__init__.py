"""How fast a job runs: formulas, readers and fits; `kinds` has a file for every model.

In public: when two jobs, or two transfers, should run at once.
"""

from __future__ import annotations

from optsched.speeds.duration import paces
from optsched.speeds.sharing_pair import SharingPair, adadual_ratio, share_threshold, sharing_pair, two_transfers

__all__ = ["SharingPair", "adadual_ratio", "paces", "share_threshold", "sharing_pair", "two_transfers"]


def __dir__() -> list[str]:
    return sorted(__all__)
