"""Measured pairs of jobs: which gain from sharing a GPU, and how far simpler models of their slow-downs are off.

A pair gains if the two together do more work than in turns: 1 / xi_{A|B} + 1 / xi_{B|A} > 1. Two simpler models are compared
with the table of directed ratios: one ratio for both jobs of a pair (their geometric mean), and one ratio for all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from optsched.rounding import counted


def pair_notes(ratios: Mapping[tuple[str, str], float]) -> tuple[str, ...]:
    """Return lines on the pairs that were measured in both directions.

    Parameters
    ----------
    ratios
        Slow-down xi >= 1 of the first kind of job next to the second.

    Returns
    -------
    tuple[str, ...]
        Empty if no pair was measured in both directions.

    Examples
    --------
    >>> pair_notes({("a", "b"): 1.25, ("b", "a"): 1.6, ("a", "a"): 2.4})[0]
    '1 of 2 pairs does more work together than in turns (1/xi + 1/xi > 1); best: a and b, x 1.43'
    """
    pairs = {(a, b): (xi, ratios[b, a]) for (a, b), xi in ratios.items() if a <= b and (b, a) in ratios}
    if not pairs:
        return ()
    work = {pair: 1 / xi + 1 / other for pair, (xi, other) in pairs.items()}
    best, gains = max(work, key=work.__getitem__), sum(rate > 1 for rate in work.values())
    does = "does" if gains == 1 else "do"
    notes = [
        f"{gains} of {counted(len(pairs), 'pair')} {does} more work together than in turns (1/xi + 1/xi > 1); "
        f"best: {best[0]} and {best[1]}, x {work[best]:.2f}"
    ]
    uneven = {pair: math.sqrt(max(xi / other, other / xi)) - 1 for pair, (xi, other) in pairs.items()}
    if max(uneven.values()) > 0:
        worst = max(uneven, key=uneven.__getitem__)
        notes.append(
            f"one ratio for both jobs of a pair would be off by up to {100 * uneven[worst]:.0f} % ({worst[0]} and {worst[1]})"
        )
    if len(ratios) > 1:
        middle = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        off = max(max(xi / middle, middle / xi) for xi in ratios.values()) - 1
        notes.append(f"one ratio for all pairs would be {middle:.2f}, off by up to {100 * off:.0f} %")
    return tuple(notes)
