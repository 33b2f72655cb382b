"""Published measurements of all-reduces: alone over message sizes, and several at once. Seconds and bytes.

Source: public repository shyhuai/dl_scheduling (figures only), the measurements behind arXiv 2002.10105. They do not
speak with one voice: in `OSU_100_MIB` and `OSU_100_MIB_OTHER_STATE` two all-reduces at once take 1.27 to 1.57 times as long
as one, less than the 2 of a link that is shared without loss, so that a fit anchored at one transfer gives a **negative**
eta. The eta/b = 0.27 of `optsched.problem.contention.ETHERNET_10G` belongs to another set. Sweep eta / b; do not take
it for a law.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MIB_100 = 100 * 2**20  # bytes of every message in the tables
TRANSFERS = tuple(range(1, 9))  # k of their columns


class PublishedFit(NamedTuple):
    """T(M) = a + b M of one all-reduce alone: a = ``latency`` seconds, b = ``seconds_per_byte``."""

    measured_with: str
    nodes: int
    latency: float
    seconds_per_byte: float


PUBLISHED_FITS = (
    PublishedFit("NCCL, 10 GbE", 2, 5.663e-4, 8.564e-10),  # the b of ETHERNET_10G
    PublishedFit("NCCL, 10 GbE", 4, 2.603e-4, 1.295e-9),
    PublishedFit("NCCL, 10 GbE", 8, 2.465e-3, 1.490e-9),
    PublishedFit("OSU ring, 10 GbE", 2, 2.535e-4, 1.0586e-9),
    PublishedFit("OSU ring, 10 GbE", 4, 4.382e-4, 2.408e-9),
    PublishedFit("OSU ring, 10 GbE", 8, 8.455e-4, 3.465e-9),
    PublishedFit("OSU, 1 GbE", 2, 1.49e-2, 9.92e-9),  # not the authors': least squares of their public data
)


def _seconds(milliseconds: Mapping[int, tuple[float, ...]]) -> Mapping[int, tuple[float, ...]]:
    return {nodes: tuple(value / 1000 for value in row) for nodes, row in milliseconds.items()}


# Nodes to T(k), k = 1..8, of an OSU all-reduce of 100 MiB at 10 GbE, to the millisecond.
OSU_100_MIB = _seconds(
    {
        2: (179, 229, 301, 389, 476, 688, 875, 986),
        3: (196, 288, 399, 498, 624, 791, 917, 1078),
        4: (218, 324, 442, 568, 702, 885, 1123, 1271),
        5: (245, 359, 478, 594, 761, 961, 1126, 1351),
        6: (244, 370, 485, 622, 777, 939, 1153, 1362),
        7: (252, 384, 513, 649, 801, 999, 1246, 1474),
        8: (294, 378, 503, 648, 873, 980, 1227, 1490),
    }
)

# The same in another public state of the file they stand in (results.csv), probably another averaging of the logs.
OSU_100_MIB_OTHER_STATE = _seconds(
    {
        2: (152.0, 210.2, 274.9, 359.0, 443.5, 524.5, 661.6, 749.4),
        3: (174.9, 266.7, 364.8, 475.0, 593.5, 696.3, 827.9, 939.9),
        4: (196.0, 301.6, 407.9, 530.9, 665.8, 790.1, 913.4, 1063.2),
        5: (211.6, 323.6, 439.2, 569.7, 700.9, 844.5, 945.6, 1109.8),
        6: (209.9, 328.0, 452.7, 596.4, 741.0, 890.7, 1031.6, 1165.7),
        7: (215.8, 338.3, 472.8, 614.4, 765.8, 897.1, 1056.3, 1215.4),
        8: (241.3, 343.2, 476.9, 626.0, 784.2, 932.8, 1068.0, 1232.9),
    }
)
