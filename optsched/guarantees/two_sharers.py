"""Two jobs that cannot run apart: what the theorems on sharing GPUs assume, and the numbers they are about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.guarantees.assumptions import broken, own_network
from optsched.problem.instance import Instance
from optsched.simulation.placing import Placement
from optsched.speeds.duration import seconds_alone

NO_GAIN = "shortest remaining time first: two jobs do no more work together than one"  # why some optima are optima


@dataclass(frozen=True, slots=True)
class TwoSharers:
    """The job released first (of two at once, that of the first row) runs alone until the second comes.

    ``first`` xi_1, ``second`` xi_2: slow-downs beside each other; ``gap`` r = r_2 - r_1, ``left`` R: seconds that the first
    has left at r_2, at most 0 when they never meet; ``alone`` e_2.
    """

    first: Fraction
    second: Fraction
    gap: Fraction
    left: Fraction
    alone: Fraction

    @property
    def turned(self) -> TwoSharers:
        """The same with the roles exchanged, where both come at once."""
        return TwoSharers(self.second, self.first, self.gap, self.alone, self.left)


def two_sharers(instance: Instance) -> TwoSharers:
    """Exact, for the floats as given; the assumptions hold."""
    assert instance.interference is not None  # an assumption
    arrival = [Fraction(r) for r in instance.arrival.tolist()]
    alone = [Fraction(e) for e in seconds_alone(instance).tolist()]
    a, b = (0, 1) if arrival[0] <= arrival[1] else (1, 0)
    xi = instance.interference.table(instance.kinds)
    gap = arrival[b] - arrival[a]
    return TwoSharers(Fraction(float(xi[a, b])), Fraction(float(xi[b, a])), gap, alone[a] - gap, alone[b])


def cannot_run_apart(instance: Instance) -> tuple[str, ...]:
    """Two jobs, n_1 + n_2 > G, that may share their GPUs, at speeds that do not depend on which GPUs they take."""
    return broken(*_assumed(instance))


def decided_at_once(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    """What is broken of `cannot_run_apart`, under a policy that is asked whenever a job comes or goes."""
    return broken("decisions wait for an interval" if policy.interval > 0 else None, *cannot_run_apart(instance))


def _assumed(instance: Instance) -> Iterable[str | None]:
    if instance.n != 2 or instance.at_task_level:
        yield "not two jobs without tasks"
        return
    if instance.interference is None:
        yield "nothing says what sharing costs"
        return
    total, cluster = instance.gpus.sum(), instance.cluster
    yield None if total > cluster.gpus else "they fit side by side"
    placed = bool((instance.gpus < cluster.gpus).any() and np.isnan(instance.duration).any())
    yield "the time of some job depends on its placement" if placed else None
    yield own_network(instance)
    yield None if instance.unrestricted else "some jobs may not use every GPU"
    fits = bool((instance.gpu_memory.sum() <= cluster.node_memory).all())
    yield None if fits else "some GPU has no room for both with their largest sub-batches"
    runs = bool(np.isfinite(instance.interference.table(instance.kinds)[0, 1]))
    yield None if runs else "the two never share a GPU"
