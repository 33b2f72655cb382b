"""The best schedule of two transfers in closed form, with any releases: four candidates, no search.

**Problem**: `optsched.problem.transfers` with n = 2. **Method**: let x be what is left of the transfer that runs first when
the other is released or when it starts, whichever is later. By the two-transfer theorem (5.1 of the AdaDUAL sheet) the sum
of completion times as a function of the delay of the second start first rises and then falls, so the second starts at
once or when the first has ended:

    at once, M <= x:    b x + M (3 b + 2 eta)        both ends, in seconds from that moment
    afterwards:         2 b x + b M

At once is better iff M / x < b / (2 (b + eta)), which is below 1. The transfer released first starts at its release, or lets
the other one go first; to start it between is worse than at its release, since both sums above rise with x.
Transfers without a common link do not meet. **Guarantee**: exact, in fractions. **Complexity** O(1).
"""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem


def two_transfer_optimum(problem: TransferProblem) -> Fraction:
    """The least sum of completion times of two transfers, seconds, exact for the floats as given.

    Raises `InputError` unless n = 2.
    """
    if problem.n != 2:
        raise InputError("the closed form is for two transfers", field="n", value=problem.n, legal="2")
    b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
    release = [Fraction(r) for r in problem.release.tolist()]
    size = [Fraction(M) for M in problem.size.tolist()]
    if not set.intersection(*(set(links) for links in problem.links)):
        return sum(release) + b * sum(size)
    first, second = (0, 1) if release[0] <= release[1] else (1, 0)
    left = size[first] - (release[second] - release[first]) / b
    if left <= 0:
        return sum(release) + b * sum(size)
    in_turn = _pair(left, size[second], b, eta)
    the_other_first = _pair(size[second], size[first], b, eta)
    return 2 * release[second] + min(in_turn, the_other_first)


def _pair(old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> Fraction:
    # Both ends together, from the moment when `old` bytes are left of the one and the other may start.
    wait = 2 * b * old + b * new
    return min(wait, b * old + new * (3 * b + 2 * eta)) if new <= old else wait
