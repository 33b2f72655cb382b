"""What one all-reduce over N workers costs alone, T(M) = a + b M, by algorithm: the textbook table.

alpha: seconds of latency a message; beta: seconds a byte sent; gamma: seconds a byte added up.

| algorithm | a | b |
|---|---|---|
| ring | 2 (N - 1) alpha | 2 (N - 1)/N beta + (N - 1)/N gamma |
| binary tree | 2 alpha log N | (2 beta + gamma) log N |
| recursive doubling | alpha log N | (beta + gamma) log N |
| recursive halving and doubling | 2 alpha log N | 2 (N - 1)/N beta + (N - 1)/N gamma |

log is to base 2; the last three are made for N a power of two, where they are exact for Fractions, too. The results have
eta = 0: what contention costs does not follow from these. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
Collective Communication Operations in MPICH", IJHPCA 19(1), 2005; for the ring P. Patarasuk, X. Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69(2), 2009.
"""

from __future__ import annotations

import math
from fractions import Fraction

from optsched.errors import InputError
from optsched.speeds.link_contention import LinkCost, Number


def ring(N: int, alpha: Number, beta: Number, gamma: Number = 0) -> LinkCost:
    """a and b of a ring all-reduce over ``N`` >= 2 workers: the least bytes, and latency that grows with N."""
    _check(N, alpha, beta, gamma)
    return LinkCost(Fraction(N - 1, N) * (2 * beta + gamma), latency=2 * (N - 1) * alpha)


def binary_tree(N: int, alpha: Number, beta: Number, gamma: Number = 0) -> LinkCost:
    """a and b of a reduction and a broadcast on a binary tree over ``N`` >= 2 workers."""
    _check(N, alpha, beta, gamma)
    return LinkCost(_log(N) * (2 * beta + gamma), latency=2 * _log(N) * alpha)


def recursive_doubling(N: int, alpha: Number, beta: Number, gamma: Number = 0) -> LinkCost:
    """a and b of recursive doubling over ``N`` >= 2 workers: the least latency, every byte in each of log N rounds."""
    _check(N, alpha, beta, gamma)
    return LinkCost(_log(N) * (beta + gamma), latency=_log(N) * alpha)


def halving_doubling(N: int, alpha: Number, beta: Number, gamma: Number = 0) -> LinkCost:
    """a and b of recursive halving and doubling over ``N`` >= 2 workers: the ring's bytes at 2 log N messages."""
    _check(N, alpha, beta, gamma)
    return LinkCost(Fraction(N - 1, N) * (2 * beta + gamma), latency=2 * _log(N) * alpha)


ALGORITHMS = {
    "ring": ring,
    "binary tree": binary_tree,
    "recursive doubling": recursive_doubling,
    "recursive halving and doubling": halving_doubling,
}


def _log(N: int) -> Number:
    return N.bit_length() - 1 if N & (N - 1) == 0 else math.log2(N)


def _check(N: int, alpha: Number, beta: Number, gamma: Number) -> None:
    if isinstance(N, bool) or not isinstance(N, int) or N < 2:
        raise InputError("invalid", field="N", value=N, legal="a whole number of workers >= 2")
    for field, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        if not value >= 0:
            raise InputError("invalid", field=field, value=value, legal="a number of seconds >= 0")
