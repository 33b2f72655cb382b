"""Random measured scalings, and one more way to read them: by the definitions, nothing shared with `optsched.speeds`."""

from __future__ import annotations

import itertools
import random

from optsched.problem.scaling import MeasuredSteps, Scaling

LOCALS = (2, 5, 8)


def measured(seed: int, most: int = 3, nodes: int = 3, share: float = 0.7) -> Scaling:
    """A share of all placements of at most ``most`` replicas on each of at most ``nodes`` nodes, and a formula."""
    rng = random.Random(seed)
    rows = []
    for k in range(1, nodes + 1):
        for counts in itertools.product(range(1, most + 1), repeat=k):
            smallest = min(counts[i:] + counts[:i] for i in range(k))
            if counts == smallest and rng.random() < share:
                # as written in a file: any rotation must do
                turned = counts[1:] + counts[:1] if rng.random() < 0.3 else counts
                name = int("".join(map(str, turned)))
                rows += [(name, local, 0.1 + rng.random() + 0.05 * local, 0.1 * rng.random()) for local in LOCALS]
    grid = [(n, r, local) for n, r in ((1, 9), (4, 4), (4, 12), (6, 6), (6, 18)) for local in LOCALS]
    scalability = tuple((n, r, local, 1.5 + rng.random(), 0.2) for n, r, local in grid)
    return Scaling(0.3, 0.02, 0.1, 0.01, 0.4, 0.02, 1.5, measured=MeasuredSteps(tuple(rows), scalability))


def by_hand(scaling: Scaling, size: int, steps: int, counts: list[int]) -> float | None:
    """Seconds of an iteration where this placement was measured on both sides of ``size``; else None."""
    assert scaling.measured is not None
    turns = {"".join(map(str, counts[i:] + counts[:i])) for i in range(len(counts))}
    rows = sorted(row[1:] for row in scaling.measured.placements if str(row[0]) in turns)
    below, above = [row for row in rows if row[0] <= size], [row for row in rows if row[0] >= size]
    if not below or not above:
        return None
    (m0, t0, y0), (m1, t1, y1) = below[-1], above[0]
    part = 0.0 if m1 == m0 else (size - m0) / (m1 - m0)
    step, sync = t0 + part * (t1 - t0), y0 + part * (y1 - y0)
    return step + (steps - 1) * (step - sync)
