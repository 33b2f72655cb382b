"""`Interference`: what two jobs on one GPU cost each other.

While A shares a GPU with B, an iteration of A takes xi_{A|B} >= 1 times as long, one of B xi_{B|A} times. At most two jobs
are on a GPU, their memory adds up to no more than it has, and a gang works in step: with several partners on its GPUs the
slowest rules, xi_A = max over its GPUs. Sources of ratios and closed forms: `optsched.speeds.partner_rates`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import is_number
from optsched.problem.contention import square
from optsched.problem.documents import Part

MOST = 1e6  # a slow-down beyond it is a typing error
TURNS = 2.0  # two jobs that take turns: sharing neither gains nor loses work


def _ratio(value: Any, field: str) -> float:
    check_legal(is_number(value) and 1 <= value <= MOST, field, value, f"a number from 1 (no interference) to {MOST:g}")
    return float(value)


@dataclass(frozen=True)
class Interference(Part):
    """Slow-downs xi_{A|B} >= 1 of pairs of jobs on one GPU.

    ``ratio``: xi of every pair that the table does not know, and of all pairs where there is no table; by default 2, as if
    the two took turns. ``kinds`` and ``ratios``: the table; ``ratios[a][b]`` is xi of ``kinds[a]`` beside ``kinds[b]``, None
    where that pair does not run (memory): it is never co-located. A job's kind is its ``profile``, else its ``model``.
    ``source`` says where the numbers come from; it decides nothing.
    """

    ratio: float = TURNS
    kinds: tuple[str, ...] = ()
    ratios: tuple[tuple[float | None, ...], ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        ratio, kinds = _ratio(self.ratio, "interference.ratio"), cast("Any", self.kinds)
        if isinstance(kinds, str) or not all(isinstance(kind, str) for kind in kinds):
            raise InputError("invalid", field="interference.kinds", value=kinds, legal="a list of names")
        ratios = square("interference", kinds, self.ratios, lambda xi, at: None if xi is None else _ratio(xi, at))
        self._set(ratio=ratio, kinds=tuple(kinds), ratios=ratios)

    @cached_property
    def row(self) -> dict[str, int]:
        """Position of every kind in the table."""
        return {kind: k for k, kind in enumerate(self.kinds)}

    def slowdown(self, one: str | None, other: str | None) -> float:
        """xi of ``one`` beside ``other``; inf: the two never share a GPU; ``ratio`` where either is not in the table."""
        a, b = self.row.get(one or ""), self.row.get(other or "")
        if a is None or b is None:
            return self.ratio
        value = self.ratios[a][b]
        return math.inf if value is None else value

    def table(self, kinds: Sequence[str | None]) -> npt.NDArray[np.float64]:
        """xi[a, b] of these kinds, f64[K, K]; inf in both directions where a pair never shares."""
        found = np.array([[self.slowdown(a, b) for b in kinds] for a in kinds], dtype=np.float64)
        found = found.reshape(len(kinds), len(kinds))
        return np.where(np.isfinite(found) & np.isfinite(found.T), found, np.inf)

    def restricted(self, kinds: Iterable[str]) -> Interference:
        """The rows and columns of these kinds only."""
        wanted = set(kinds)
        kept = [k for k, kind in enumerate(self.kinds) if kind in wanted]
        ratios = tuple(tuple(self.ratios[a][b] for b in kept) for a in kept)
        return Interference(self.ratio, tuple(self.kinds[k] for k in kept), ratios, self.source)

    def to_json(self) -> dict[str, Any]:
        """As it stands in an instance file."""
        return {"ratio": self.ratio, **super().to_json()}
