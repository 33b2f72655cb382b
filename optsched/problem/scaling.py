"""`Scaling`: how long an iteration of a data-parallel model takes, by local batch, accumulation, replicas and placement.

**Notation**: r replicas, B samples of an iteration on each (the total batch over r, rounded up), s sub-steps of gradient
accumulation of m = B / s samples each. C(m) = alpha_c + beta_c m seconds of computing; N seconds of communication, 0 for
r = 1, alpha_r + beta_r max(r - 2, 0) on one node, alpha_n + beta_n max(r - 2, 0) over several;

    T(m, s, r) = (s - 1) C(m) + (C(m)^gamma + N^gamma)^(1 / gamma),   gamma >= 1: overlap (1: none).

Memory on each GPU: ``memory`` + ``memory_per_sample`` x m bytes. The formulas are in `optsched.speeds.iteration_times`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from optsched.errors import InputError, check_legal
from optsched.problem.contention import LARGEST, legal_fields, legal_number
from optsched.problem.documents import Part
from optsched.problem.job_speeds import SubBatch


@dataclass(frozen=True)
class MeasuredSteps(Part):
    """Measured seconds of a step: ``step`` in all, of which ``sync`` communication.

    ``placements``: (placement, local batch, step, sync); a placement is one digit for every node, the replicas there, in
    the smallest of its rotations (``112``: two nodes of one replica, then one of two). ``scalability``: (nodes, replicas,
    local batch, step, sync). Read and interpolated in `optsched.speeds.iteration_times`.
    """

    placements: tuple[tuple[int, float, float, float], ...] = ()
    scalability: tuple[tuple[int, int, float, float, float], ...] = ()

    def __post_init__(self) -> None:
        for name, width in (("placements", 4), ("scalability", 5)):
            rows = tuple(tuple(row) for row in getattr(self, name))
            for row in rows:
                check_legal(len(row) == width, f"measured.{name}", row, f"{width} numbers")
                for value in row:
                    legal_number(value, f"measured.{name}", "numbers >= 0")
            self._set(**{name: rows})


@dataclass(frozen=True)
class Scaling(Part):
    """The scaling profile of a model; seconds, bytes, samples. See the module for the notation.

    ``compute`` alpha_c, ``per_sample`` beta_c; ``within`` alpha_r, ``within_growth`` beta_r; ``across`` alpha_n,
    ``across_growth`` beta_n; ``overlap`` gamma. ``most_local`` the largest sub-batch that a GPU is given (None: any).
    ``memory`` bytes on each GPU whatever the batch, ``memory_per_sample`` bytes for a sample of the sub-batch (both 0: not
    stated). ``iterations``: ((total batch, iterations to completion), ...) rising in the batch: what a job takes when it may
    choose its batch, linear between; empty: a job cannot. ``measured``: rules over the formula where it is given.
    """

    compute: float
    per_sample: float
    within: float = 0.0
    within_growth: float = 0.0
    across: float = 0.0
    across_growth: float = 0.0
    overlap: float = 1.0
    most_local: int | None = None
    memory: float = 0.0
    memory_per_sample: float = 0.0
    iterations: tuple[tuple[int, float], ...] = ()
    measured: MeasuredSteps | None = None

    def __post_init__(self) -> None:
        seconds = ("compute", "per_sample", "within", "within_growth", "across", "across_growth")
        legal_fields(self, "a number of seconds >= 0", *seconds)
        legal_fields(self, "a number >= 1", "overlap", least=1.0)
        legal_fields(self, "a number of bytes >= 0", "memory", "memory_per_sample")
        if self.compute + self.per_sample == 0 and self.measured is None:
            raise InputError("an iteration takes no time", field="compute", value=0, legal="seconds > 0")
        most = self.most_local
        check_legal(most is None or (type(most) is int and most >= 1), "most_local", most, "an integer >= 1, or none")
        self._set(iterations=_rising(self.iterations))

    @property
    def knows_memory(self) -> bool:
        """True if the memory of a sub-batch is stated."""
        return self.memory + self.memory_per_sample > 0

    def sub_batches(self, batch_size: int, replicas: int) -> tuple[SubBatch, ...]:
        """Return the ways to split the samples of a GPU into sub-steps, the largest sub-batch first.

        A GPU has B = ceil(batch_size / replicas) samples. The first sub-batch is B itself, or as much of it as
        `most_local` allows; each further one is the largest divisor that is at most half of the one before, down to
        1.

        Parameters
        ----------
        batch_size
            Samples of an iteration over the whole gang.
        replicas
            Number of GPUs.

        Notes
        -----
        O(sqrt B).
        """
        largest, steps = self.first_split(batch_size, replicas)
        small = [m for m in range(1, math.isqrt(largest) + 1) if largest % m == 0]
        divisors = sorted({*small, *(largest // m for m in small)})
        chain = [largest]
        while chain[-1] > 1:
            chain.append(max(m for m in divisors if m <= chain[-1] // 2))
        return tuple(SubBatch(m, steps * (largest // m), self.memory + self.memory_per_sample * m) for m in chain)

    def first_split(self, batch_size: int, replicas: int) -> tuple[int, int]:
        """Return the sub-batch and the number of sub-steps with the fewest steps that `most_local` allows.

        Parameters
        ----------
        batch_size
            Samples of an iteration over the whole gang.
        replicas
            Number of GPUs.

        Returns
        -------
        tuple[int, int]
            (m, s), the first of `sub_batches`.
        """
        local = -(-batch_size // replicas)
        steps = 1 if self.most_local is None else -(-local // self.most_local)
        return -(-local // steps), steps

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the scaling that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file, as `to_json` returns it.
        """
        measured = document.get("measured")
        return super().from_json({**document, "measured": measured and MeasuredSteps(**measured)})


def _rising(rows: Sequence[Sequence[float]]) -> tuple[tuple[int, float], ...]:
    found: list[tuple[int, float]] = []
    for row in rows:
        legal = "[[total batch, iterations], ...], batches rising, iterations > 0"
        numbers = all(isinstance(x, int | float) and math.isfinite(x) for x in row)
        if len(row) != 2 or not numbers or int(row[0]) != row[0] or row[0] < 1 or not 0 < row[1] <= LARGEST:
            raise InputError("invalid", field="iterations", value=row, legal=legal)
        if found and row[0] <= found[-1][0]:
            raise InputError("not rising", field="iterations", value=row, legal=legal)
        found.append((int(row[0]), float(row[1])))
    return tuple(found)
