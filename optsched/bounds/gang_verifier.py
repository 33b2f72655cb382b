"""The verifiers' side of `optsched.bounds.gang_machine`: effective widths and capacity again, and the machine from them.

Nothing is shared with it; its docstring tells the theorem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from optsched.bounds.certificate import Certificate, data_integer
from optsched.bounds.verifier import Machine, Times, Twin, floor_to_grid, stated_exponent

FILL_LIMIT = 1 << 16  # GPUs; above it the capacity is not tightened


class GangTwin(Twin):
    """Machines by threshold; seconds alone are those of the gang."""

    words = True

    def machine(self, certificate: Certificate, times: Times) -> Machine:
        """The machine that a certificate's data name (``threshold``, ``grid_exponent``)."""
        gangs = self.instance.gpus.tolist()
        threshold, capacity, width = stated_widths(certificate, Counter(gangs), self.instance.cluster.gpus)
        exponent = stated_exponent(certificate)
        release = [capacity * floor_to_grid(r, times.per_second, exponent) for r in times.release]
        floors = (floor_to_grid(d, times.per_second, exponent) for d in times.duration)
        work = [width[g] * d for g, d in zip(gangs, floors, strict=True)]
        return Machine(capacity, exponent, release, work, {"threshold": threshold})


def stated_widths(certificate: Certificate, gangs: Mapping[int, int], total: int) -> tuple[int, int, dict[int, int]]:
    """(``data["threshold"]``, capacity, effective width of every size) for gangs by number.

    The widths are proved on the way: a threshold out of range gives none that are dual feasible.
    """
    threshold = data_integer(certificate, "threshold", 1, (total + 1) // 2, "dual-feasibility")
    middle = {g: count for g, count in gangs.items() if threshold <= g <= total - threshold}
    capacity = fill(middle, total) if middle else 1
    return threshold, capacity, {g: capacity if g > total - threshold else g if g in middle else 0 for g in gangs}


def fill(gangs: Mapping[int, int], total: int) -> int:
    """The most GPUs, at most ``total``, that gangs (how many, by size) fill; ``total`` where that is not looked for."""
    if total > FILL_LIMIT:
        return total
    reached = [True] + [False] * total
    for size, count in gangs.items():
        used = [0] * (total + 1)
        for level in range(size, total + 1):
            if not reached[level] and reached[level - size] and used[level - size] < count:
                reached[level] = True
                used[level] = used[level - size] + 1
        if reached[total]:
            return total
    return max(level for level, is_reached in enumerate(reached) if is_reached)
