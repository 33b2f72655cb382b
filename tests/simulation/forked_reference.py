"""HadarE with the rule ``work`` on one-GPU nodes once more, in fractions, one job and one node at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Number = Fraction


@dataclass
class Replayed:
    """Completion of every job, and of every round its begin and its copies (job, node)."""

    completion: list[Fraction]
    rounds: list[tuple[Fraction, list[tuple[int, int]]]] = field(default_factory=list)


def replay(
    arrival: Sequence[Number],
    work: Sequence[Number],
    rate: Sequence[Sequence[Number]],
    copies: int,
    length: Number,
    overhead: Number,
) -> Replayed:
    """HadarE's rounds, step by step; ``rate[j][h]`` > 0 everywhere."""
    n, nodes = len(work), len(rate[0]) if rate else 0
    left = [Fraction(w) for w in work]
    done = Replayed([Fraction(0)] * n)
    now = min(arrival, default=Fraction(0))
    while any(left):
        active = sorted((j for j in range(n) if left[j] and arrival[j] <= now), key=lambda j: (arrival[j], j))
        if not active:
            now = min(arrival[j] for j in range(n) if left[j])
            continue
        given = choose(active, left, rate, copies, length - overhead)
        done.rounds.append((now, given))
        last = now
        for j in active:
            mine = [rate[j][h] * (length - overhead) for k, h in given if k == j]
            if not mine:
                continue
            scale = min(Fraction(1), left[j] / sum(mine))
            left[j] -= scale * sum(mine)
            end = now + overhead + scale * (length - overhead)
            last = max(last, end)
            done.completion[j] = end
        now = last if not any(left[j] for j in active) else now + length
    assert nodes
    return done


def choose(
    active: list[int], left: list[Fraction], rate: Sequence[Sequence[Number]], copies: int, seconds: Number
) -> list[tuple[int, int]]:
    nodes = range(len(rate[0]))
    mean = {j: sum(rate[j]) / len(nodes) for j in active}
    speed = {h: sum(rate[j][h] / mean[j] for j in active) for h in nodes}
    plan, count, given = {j: left[j] for j in active}, dict.fromkeys(active, 0), []
    for h in sorted(nodes, key=lambda h: (-speed[h], h)):
        spare = [j for j in active if count[j] < copies]
        if not spare:
            break
        j = max(spare, key=lambda j: plan[j] / mean[j])  # the first of equals
        given.append((j, h))
        count[j] += 1
        plan[j] -= rate[j][h] * seconds
    return given
