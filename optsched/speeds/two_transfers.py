"""When should two transfers on one link overlap: the two-transfer theorem behind AdaDUAL, and AdaDUAL's exact ratio.

Pace of two at once: 2 b + eta seconds a byte each (`optsched.speeds.link_contention`). With +, -, * and / only, so that
`fractions.Fraction` goes in and comes out. Source of the rule: Q. Wang, S. Shi, C. Wang, X. Chu, arXiv 2002.10105; the
ratio is proved in `adadual_ratio`.
"""

from __future__ import annotations

from dataclasses import dataclass

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.link_contention import LinearLink, Number, is_finite, require_size


def threshold(contention: LinearLink) -> Number:
    """AdaDUAL's theta = b / (2 (b + eta)): the new transfer starts at once iff its size / bytes left of the old < theta.

    1/2 for eta = 0, falling with eta; 0.3923 for 10 GbE. `InputError` unless eta >= 0.
    """
    _require_theorem(contention, "AdaDUAL's threshold")
    b, eta = contention.seconds_per_byte, contention.penalty
    return b / (2 * (b + eta))


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
    if not is_finite(theta) or not 0 < 2 * theta <= 1:
        raise InputError("invalid", field="theta", value=theta, legal="b / (2 (b + eta)), a number in (0, 1/2]")
    return (2 + theta) / (1 + 2 * theta)


@dataclass(frozen=True, slots=True)
class TwoTransfers:
    """One transfer runs with M_1 = ``old_left`` bytes left; another of M_2 = ``new_size`` starts after a delay tau >= 0.

    b = ``b``, eta = ``eta`` >= 0, no latency, nothing else comes, no preemption. With x = M_1 - tau/b left when the new
    one starts, the sum of the two completion times rises with slope +1 while M_2 <= x and falls with slope
    -(1 + 2 eta/b) from then on until tau = b M_1; after that the link idles and it rises. **So only tau = 0 and tau = b M_1
    can be optimal, and starting at once wins iff M_2 / M_1 < theta = b / (2 (b + eta))**. Every method is O(1) and exact for
    Fractions. Made by `two_transfers`, which checks.
    """

    old_left: Number
    new_size: Number
    b: Number
    eta: Number

    @property
    def wait(self) -> Number:
        """b M_1: when the old transfer ends if it stays alone."""
        return self.b * self.old_left

    def completions(self, tau: Number) -> tuple[Number, Number]:
        """When the old and the new one end, seconds from now, if the new one starts after ``tau`` >= 0 seconds."""
        if not is_finite(tau) or tau < 0:
            raise InputError("invalid", field="tau", value=tau, legal="a finite number of seconds >= 0")
        b, eta, m = self.b, self.eta, self.new_size
        if tau >= self.wait:
            return self.wait, tau + b * m
        x = self.old_left - tau / b
        if m <= x:
            return self.wait + m * (b + eta), tau + m * (2 * b + eta)
        return tau + x * (2 * b + eta), tau + x * (b + eta) + b * m

    def delayed_sum(self, tau: Number) -> Number:
        """C_1 + C_2 when the new transfer starts after ``tau`` >= 0 seconds."""
        old, new = self.completions(tau)
        return old + new

    @property
    def start_now(self) -> bool:
        """Is tau = 0 strictly best? M_2 < theta M_1, written without a division; AdaDUAL decides the same."""
        return 2 * (self.b + self.eta) * self.new_size < self.b * self.old_left

    @property
    def best_delay(self) -> Number:
        """0 or b M_1; of two equally good ones the latter."""
        return 0 if self.start_now else self.wait

    @property
    def optimal_sum(self) -> Number:
        """The least C_1 + C_2 over all delays."""
        return self.delayed_sum(self.best_delay)


def two_transfers(contention: LinearLink, old_left: Number, new_size: Number) -> TwoTransfers:
    """The two-transfer problem in closed form: ``old_left``, ``new_size`` bytes > 0.

    Raises
    ------
    InputError
        eta < 0, measured ratios, or a latency a > 0 (the theorem has none); a size that is not a finite number > 0.
    """
    _require_theorem(contention, "the two-transfer theorem")
    if contention.latency != 0:
        message = "the two-transfer theorem knows no latency"
        raise InputError(message, field="contention.latency", value=contention.latency, legal="0")
    old, new = require_size(old_left, "old_left"), require_size(new_size, "new_size")
    return TwoTransfers(old, new, contention.seconds_per_byte, contention.penalty)


def _require_theorem(contention: LinearLink, what: str) -> None:
    """eta >= 0 and no table, as `Contention.require_penalty` demands; a `LinkCost` is asked the same."""
    if isinstance(contention, Contention):
        contention.require_penalty(what)
    elif contention.penalty < 0:
        message = f"{what} needs a penalty eta >= 0: with eta < 0 contention makes the link faster"
        raise InputError(message, field="penalty", value=contention.penalty, legal="a number >= 0")
