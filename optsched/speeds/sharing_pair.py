"""The pair theorem behind SJF-BSBF: the cases in which two jobs should share their GPUs, or never should.

**Notation**: job B runs, and would take e_B > 0 more seconds alone; job A, e_A > 0 seconds alone, is to start. Both
take the same GPUs (or some of the same). Alone a job advances one second a second; together A advances 1 / xi_A, B 1 /
xi_B, with xi >= 1. The formulas use +, -, * and / only, so that `fractions.Fraction` in gives `Fraction` out.

    k = xi_A (2 - 1/xi_B),   K = xi_B (2 - 1/xi_A),   (K - 1) xi_A = (k - 1) xi_B = 2 xi_A xi_B - xi_A - xi_B >= 0

**Theorem** (`SharingPair`). Let A start after a delay u in [0, e_B]. The sum of both completions has its least value at u
= 0 (share at once) or at u = e_B (one after the other), for any lengths and slow-downs. Sharing at once costs min(e_B + k
e_A, K e_B + e_A), waiting 2 e_B + e_A; hence

    share  iff  K < 2  or  (k - 1) e_A < e_B

Proof. Let A^ = xi_A e_A and B^ = xi_B (e_B - u). If A^ <= B^, A ends first: C_A = u + A^, and C_B = e_B + A^ (1 -
1/xi_B) does not depend on u: the sum rises by 1. If A^ > B^, B ends first: C_B = u + B^, C_A = u + e_A + B^ (1 -
1/xi_A): the slope 2 - 2 xi_B + xi_B / xi_A = 2 - K is constant. Both forms meet where A^ = B^, and as u grows B^
falls, so that the rising piece comes first: no inner point is a minimum. (Weights change the slopes to w_A and to
another constant: it holds for weighted sums, too.) At u = 0 the sum is e_B + k e_A where A ends first and K e_B + e_A
where it ends last; their difference, (K - 1) e_B - (k - 1) e_A, has the sign of xi_B e_B - xi_A e_A by the identity
above, so that the sum is the smaller of the two. Compare with 2 e_B + e_A.

For xi_A = xi_B = xi: k = K = 2 xi - 1, share iff xi < 3/2 or e_A / e_B < 1 / (2 xi - 2).

**Two transfers on one link** (`two_transfers`): alone a transfer takes b seconds a byte, together with another one 2 b
+ eta. So they are two jobs of b M_1 and b M_2 seconds with xi = (2 b + eta) / b: only starting at once or when the old
one has ended can be optimal, and starting at once wins iff M_2 / M_1 < theta = b / (2 (b + eta)), M_1 bytes left of
the old one, M_2 of the new. That is AdaDUAL's threshold.

**The best of all schedules**, preemption allowed, when both jobs are released: min(2 e_A + e_B, e_A + 2 e_B, both at
once). Proof. Let A end first, after a seconds alone and c together with B (B alone before that only delays A). The sum
is 2 e_A + e_B + c (2 - 2/xi_A - 1/xi_B), linear in c, hence least at c = 0 or where A or B shares with the other all
the time.

**Never, whatever the lengths**: the better of the two orders is never beaten iff k >= 2 and K >= 2. For in units of
e_B, with y = e_A, sharing beats 2 + y iff K < 2 or (k - 1) y < 1, and 1 + 2 y iff k < 2 or y > K - 1; if k >= 2 and K
>= 2 that would need K - 1 < y < 1 / (k - 1), but (k - 1) (K - 1) >= 1. If k < 2 a small y does, if K < 2 a large one.
Equal xi: never iff xi >= 3/2. Given the lengths: never iff K >= 2 and (k - 1) e_A >= e_B, or k >= 2 and (K - 1) e_B >=
e_A.

The last completion falls iff 1/xi_A + 1/xi_B > 1, whatever the lengths: until one of them ends they do that much work
a second. Many jobs: where 1/xi_{a|b} + 1/xi_{b|a} <= 1 for all of them and all gangs have one width that divides the
number of GPUs, or all are wider than two thirds of them, some preemptive schedule without sharing is as good for every
job (speeds on the GPUs add up to those of that number of gangs alone; McNaughton's wrap-around divides the time).

Source of the pair test: the authors' public scheduler of "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters
via Wise Resource Sharing", IWQoS 2024, arXiv 2407.13088. The closed form with ``or``, the preemptive optimum and
"never": this project. AdaDUAL: Q. Wang, S. Shi, C. Wang, X. Chu, "Communication Contention Aware Scheduling of
Multiple Deep Learning Training Jobs", arXiv 2002.10105; the ratio is proved in `adadual_ratio`.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.problem.contention import Contention

Number = int | float | Fraction


def is_finite(value: Any) -> bool:
    """Return True for a real number that is neither infinite nor NaN; an int or Fraction may be too large for a float.

    Parameters
    ----------
    value
        Any object.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Rational) or math.isfinite(value)


def ends_first(xi: Number, other: Number) -> Number:
    """Return k = xi (2 - 1 / other): the cost of sharing for each second of a job that ends first.

    Parameters
    ----------
    xi
        Slow-down of the job.
    other
        Slow-down of its partner.
    """
    return xi * (2 * other - 1) / other


def ends_last(xi: Number, other: Number) -> Number:
    """Return K = other (2 - 1 / xi): the cost for each second of its partner if the job ends last; it shares iff K < 2.

    Parameters
    ----------
    xi
        Slow-down of the job.
    other
        Slow-down of its partner.
    """
    return ends_first(other, xi)


def share_threshold(new: Number, old: Number) -> Number:
    """Return the bound on e_A / e_B below which the new job starts at once: inf for K < 2, else 1 / (k - 1).

    1/2 for xi = 2; inf for equal xi < 3/2, 1 at 3/2.

    Parameters
    ----------
    new, old
        Slow-downs xi_A and xi_B, >= 1.

    Raises
    ------
    InputError
        A number is no slow-down.
    """
    xi_a, xi_b = _slowdown(new, "new"), _slowdown(old, "old")
    return math.inf if ends_last(xi_a, xi_b) < 2 else 1 / (ends_first(xi_a, xi_b) - 1)


@dataclass(frozen=True, slots=True)
class SharingPair:
    """A running job B and a job A that is to start.

    ``left``: e_B, seconds that B would still take alone. ``alone``: e_A, seconds of A alone. ``old``: xi_B. ``new``:
    xi_A. Every method is O(1), in seconds from now, and exact for Fractions. `sharing_pair` makes it and checks the
    numbers.
    """

    left: Number
    alone: Number
    old: Number
    new: Number

    def completions(self, delay: Number = 0) -> tuple[Number, Number]:
        """Return the completions of B and A.

        Parameters
        ----------
        delay
            Seconds >= 0 until A starts.
        """
        check_legal(is_finite(delay) and delay >= 0, "delay", delay, "a finite number of seconds >= 0")
        if delay >= self.left:
            return self.left, delay + self.alone
        hat_a, hat_b = self.new * self.alone, self.old * (self.left - delay)
        if hat_a <= hat_b:
            return self.left + hat_a * (self.old - 1) / self.old, delay + hat_a
        return delay + hat_b, delay + self.alone + hat_b * (self.new - 1) / self.new

    def delayed_sum(self, delay: Number) -> Number:
        """Return C_A + C_B.

        Parameters
        ----------
        delay
            Seconds >= 0 until A starts.
        """
        old, new = self.completions(delay)
        return old + new

    @property
    def together(self) -> Number:
        """Average completion t_con if A starts now, min(e_B + k e_A, K e_B + e_A) / 2."""
        k, K = ends_first(self.new, self.old), ends_last(self.new, self.old)
        return min(self.left + k * self.alone, K * self.left + self.alone) / 2

    @property
    def in_turn(self) -> Number:
        """Average completion t_seq if A waits for B, e_B + e_A / 2."""
        return (2 * self.left + self.alone) / 2

    @property
    def start_now(self) -> bool:
        """True if t_con < t_seq: the closed form without divisions; of two equally good delays the later."""
        both = 2 * self.new * self.old
        always = both - self.old < 2 * self.new  # K < 2
        return always or (both - self.new - self.old) * self.alone < self.old * self.left

    @property
    def best_delay(self) -> Number:
        """Best delay: 0 or e_B."""
        return 0 if self.start_now else self.left

    @property
    def optimal_sum(self) -> Number:
        """Least C_A + C_B over all delays of A."""
        return self.delayed_sum(self.best_delay)

    @property
    def preemptive_sum(self) -> Number:
        """Least C_A + C_B over all schedules in which B may also be preempted: A first is a third candidate."""
        return min(self.optimal_sum, self.left + 2 * self.alone)


def sharing_pair(left: Number, alone: Number, old: Number, new: Number) -> SharingPair:
    """Return the pair in closed form.

    Parameters
    ----------
    left, alone
        e_B and e_A, seconds > 0 that the jobs take alone.
    old, new
        Slow-downs xi_B and xi_A, >= 1.

    Raises
    ------
    InputError
        A length is not a finite number > 0, or a slow-down is not a finite number >= 1.
    """
    return SharingPair(_length(left, "left"), _length(alone, "alone"), _slowdown(old, "old"), _slowdown(new, "new"))


def _length(value: Number, field: str) -> Number:
    check_legal(is_finite(value) and value > 0, field, value, "a finite number of seconds > 0")
    return value


def _slowdown(value: Number, field: str) -> Number:
    check_legal(is_finite(value) and value >= 1, f"{field}: slow-down", value, "a finite number >= 1")
    return value


def adadual_ratio(theta: Number) -> Number:
    """Return AdaDUAL's exact competitive ratio for the sum of completion times of two transfers on one link.

    (2 + theta) / (1 + 2 theta) for theta = `Contention.theta` in (0, 1/2]: 5/4 for eta = 0, 1.3405 for 10 GbE, 2 as
    eta grows. Tight: sizes 1 and theta, the second released just after the first. It does not hold for three
    transfers: there is a family on which the ratio grows with their number.

    Proof for releases 0 and 0+ (b = 1, sizes 1 and m). Contention moves no bytes faster than 1/b, so the optimum is at
    least shortest first alone: 1 + 2 m for m <= 1, 2 + m beyond. AdaDUAL pays 1 + m (3 + 2 eta) = 1 + m + m / theta
    for m < theta, over which the ratio rises, and 2 + m from there on, over which it falls to 1 at m = 1 and stays.
    Both forms meet at m = theta. Other releases are no worse, as `optsched.classes.task_sharing.guarantees.adadual` proves.

    Parameters
    ----------
    theta
        AdaDUAL's threshold, in (0, 1/2].

    Raises
    ------
    InputError
        ``theta`` is not in the range.
    """
    legal = "b / (2 (b + eta)), a number in (0, 1/2]"
    check_legal(is_finite(theta) and 0 < 2 * theta <= 1, "theta", theta, legal)
    return (2 + theta) / (1 + 2 * theta)


def two_transfers(contention: Contention, old_left: float, new_size: float) -> SharingPair:
    """Return the pair of a transfer that is on a link and another one that is to start.

    Parameters
    ----------
    contention
        Costs of transfers.
    old_left
        Bytes left of the first transfer.
    new_size
        Bytes of the second.

    Raises
    ------
    InputError
        eta < 0, measured ratios, or a latency a > 0 (the theorem has none); a size that is not a finite number > 0.
    """
    contention.require_penalty("the two-transfer theorem", latency=False)
    for field, size in (("old_left", old_left), ("new_size", new_size)):
        check_legal(is_finite(size) and size > 0, field, size, "a finite number of bytes > 0")
    b = contention.seconds_per_byte
    xi = (2 * b + contention.penalty) / b
    return sharing_pair(b * old_left, b * new_size, xi, xi)
