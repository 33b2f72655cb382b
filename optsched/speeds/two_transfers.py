"""When should two transfers on one link overlap: AdaDUAL's threshold and its exact ratio.

Alone a transfer takes b seconds a byte, beside another one 2 b + eta. So two transfers are two jobs of b M_1 and b M_2
seconds that slow each other by xi = (2 b + eta) / b, and the pair theorem (`optsched.speeds.sharing_pair`) says: only
starting at once or when the old one has ended can be optimal, and **starting at once wins iff M_2 / M_1 < theta =
b / (2 (b + eta))**, M_1 bytes left of the old one, M_2 of the new.

Source of the rule: Q. Wang, S. Shi, C. Wang, X. Chu, "Communication Contention Aware Scheduling of Multiple Deep Learning
Training Jobs", arXiv 2002.10105; the ratio is proved in `adadual_ratio`.
"""

from __future__ import annotations

from optsched.errors import InputError, check_legal
from optsched.problem.contention import Contention
from optsched.speeds.sharing_pair import Number, SharingPair, is_finite, sharing_pair


def threshold(contention: Contention) -> float:
    """AdaDUAL's theta = b / (2 (b + eta)): 1/2 for eta = 0, 0.3923 for 10 GbE. `InputError` unless eta >= 0."""
    contention.require_penalty("AdaDUAL's threshold")
    return contention.theta


def adadual_ratio(theta: Number) -> Number:
    """AdaDUAL's exact competitive ratio for the sum of completion times of two transfers on one link.

    (2 + theta) / (1 + 2 theta) for theta = `threshold` in (0, 1/2]: 5/4 for eta = 0, 1.3405 for 10 GbE, 2 as eta grows.
    Tight: sizes 1 and theta, the second released just after the first. It does not hold for three transfers: there is a
    family on which the ratio grows with their number.

    Proof for releases 0 and 0+ (b = 1, sizes 1 and m). Contention moves no bytes faster than 1/b, so the optimum is at least
    shortest first alone: 1 + 2 m for m <= 1, 2 + m beyond. AdaDUAL pays 1 + m (3 + 2 eta) = 1 + m + m / theta for m <
    theta, over which the ratio rises, and 2 + m from there on, over which it falls to 1 at m = 1 and stays. Both forms
    meet at m = theta. Other releases: no worse, proved in `optsched.guarantees.adadual`.
    """
    legal = "b / (2 (b + eta)), a number in (0, 1/2]"
    check_legal(is_finite(theta) and 0 < 2 * theta <= 1, "theta", theta, legal)
    return (2 + theta) / (1 + 2 * theta)


def two_transfers(contention: Contention, old_left: float, new_size: float) -> SharingPair:
    """A transfer with ``old_left`` bytes left on a link, and another of ``new_size`` bytes that is to start.

    Raises
    ------
    InputError
        eta < 0, measured ratios, or a latency a > 0 (the theorem has none); a size that is not a finite number > 0.
    """
    contention.require_penalty("the two-transfer theorem")
    if contention.latency != 0:
        message = "the two-transfer theorem knows no latency"
        raise InputError(message, field="contention.latency", value=contention.latency, legal="0")
    for field, size in (("old_left", old_left), ("new_size", new_size)):
        check_legal(is_finite(size) and size > 0, field, size, "a finite number of bytes > 0")
    b = contention.seconds_per_byte
    xi = (2 * b + contention.penalty) / b
    return sharing_pair(b * old_left, b * new_size, xi, xi)
