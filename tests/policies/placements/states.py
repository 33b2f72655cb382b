"""States of a cluster to ask placement rules about, and how to ask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from optsched.simulation.placement import Placement
from optsched.speeds.speed_tables import PLACE, tables_of

GUARD = -77
# One GPU type.
NO_PROFILE = tables_of([], np.full(1, -1, dtype=np.int64), None)._replace(places=np.zeros(64, dtype=PLACE))


@dataclass(frozen=True)
class Nodes:
    """Free GPUs, sizes and eligibility by node."""

    size: tuple[int, ...]
    free: tuple[int, ...]
    eligible: tuple[bool, ...]

    @property
    def offered(self) -> int:
        """Free GPUs on eligible nodes."""
        return sum(free for free, ok in zip(self.free, self.eligible, strict=True) if ok)


@st.composite
def nodes(draw: st.DrawFn) -> Nodes:
    """Up to seven nodes of up to eight GPUs, partly taken, partly not for this job."""
    size = draw(st.lists(st.integers(1, 8), min_size=1, max_size=7))
    free = [draw(st.integers(0, gpus)) if draw(st.booleans()) else gpus for gpus in size]
    eligible = [draw(st.integers(0, 4)) > 0 for _ in size]
    return Nodes(tuple(size), tuple(free), tuple(eligible))


def ask(
    placement: Placement, gang: int, where: Nodes, random: np.ndarray | None = None
) -> list[tuple[int, int]] | None:
    """(node, GPUs) pairs in the order of the answer, or None; fails when the rule writes where it must not."""
    size, free = np.array(where.size, dtype=np.int64), np.array(where.free, dtype=np.int64)
    eligible = np.array(where.eligible, dtype=np.bool_)
    width = min(gang, size.size)
    out = np.full((2, width + 4), GUARD, dtype=np.int64)
    random = placement.random_state() if random is None else random
    entries = placement.place(
        0, gang, free, size, eligible, random, NO_PROFILE, out[0, 2 : width + 2], out[1, 2 : width + 2]
    )
    assert free.tolist() == list(where.free)
    assert size.tolist() == list(where.size)
    assert eligible.tolist() == list(where.eligible)
    assert 0 <= entries <= width
    assert (out[:, :2] == GUARD).all()
    assert (out[:, width + 2 :] == GUARD).all()
    if entries == 0:
        return None
    return list(zip(out[0, 2 : entries + 2].tolist(), out[1, 2 : entries + 2].tolist(), strict=True))
