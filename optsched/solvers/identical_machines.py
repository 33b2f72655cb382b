"""Optima of a few jobs on identical machines, all released at 0, by dynamic programming over the loads of the machines.

**Problem** P || C_max and P || sum w_j C_j. **Method**: put the jobs on machines one after the other, in Smith's order
(p / w rises; for C_max the longest first). The state is the sorted vector of loads; for the sum it has the least cost with
which the loads can be reached. On one machine Smith's order is optimal, so that job j costs w_j (load + p_j)
on any machine. **Guarantee** exact for integers. **Complexity** O(n m S), S the number of sorted load vectors: at most
m^n, for small integers far fewer. **Reference** Rothkopf 1966 (from recollection).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Loads = tuple[int, ...]


def least_makespan(lengths: Sequence[int], machines: int) -> int:
    """Return the optimum of P || C_max for integers.

    Parameters
    ----------
    lengths
        Durations, integers >= 0.
    machines
        Number of machines.

    Raises
    ------
    ValueError
        If there is no machine.
    """
    return min(loads[-1] for loads in _least([(length, 0) for length in sorted(lengths, reverse=True)], machines))


def least_weighted_completion(lengths: Sequence[int], weights: Sequence[int], machines: int) -> int:
    """Return the optimum of P || sum w_j C_j for integers.

    Parameters
    ----------
    lengths
        Durations, integers >= 0.
    weights
        Weights, integers >= 0.
    machines
        Number of machines.

    Raises
    ------
    ValueError
        If there is no machine.
    """
    jobs = zip(lengths, weights, strict=True)
    order = sorted(jobs, key=lambda job: (job[0] / job[1] if job[1] else float("inf"), job))
    return min(_least(order, machines).values())


def _least(jobs: Iterable[tuple[int, int]], machines: int) -> dict[Loads, int]:
    """Return the least cost of (length, weight) jobs in this order, by the loads to which they lead."""
    if machines < 1:
        raise ValueError(f"{machines} machines: at least one is needed")
    least: dict[Loads, int] = {(0,) * machines: 0}
    for length, weight in jobs:
        following: dict[Loads, int] = {}
        for loads, cost_so_far in least.items():
            for i in range(machines):
                if i == 0 or loads[i] != loads[i - 1]:  # try one of the machines with the same load
                    after = tuple(sorted((*loads[:i], loads[i] + length, *loads[i + 1 :])))
                    cost = cost_so_far + weight * (loads[i] + length)
                    if cost < following.get(after, cost + 1):
                        following[after] = cost
        least = following
    return least
