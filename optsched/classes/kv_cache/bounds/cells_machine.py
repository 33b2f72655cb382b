"""All cells as one machine: requests need their volume of it. Rounds of length 1, and of affine length.

**Machine.** In a round, a request holds s + j cells, all requests together at most M. A machine of M units serves it for its
volume v = s o + o (o + 1) / 2 from its arrival on. Thrown-out executions only add volume. If rounds have affine length, a
round with requests i lasts R + sum_i (B + C (s_i + j)) + D (new prompts) >= sum_i (B + C (s_i + j) + R (s_i + j) / M) + D
(new prompts): on a machine of one unit a request needs B o + C v + D s + R v / M seconds.

**Mean moment.** Let x_j be what a request needs in its j-th round, spread evenly over the round, and a the least length of a
round with it (1; R + B + C (s + 1)). The j-th round is the (o - j)-th before the last, so the mean moment of what it needs is
at least a (o - mu) before its end, mu = sum_j x_j (j - 1/2) / sum_j x_j. That is the reach, halved, of
`optsched.bounds.relaxation.FastMachine`, rounded down to a float.

**Complexity** O(n). **Reference** derived here; mean busy times: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof, rounded_down
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.mean_busy_time import EXACT, HELD_UP_BITS, least_busy_time_sum, weights_on_grid
from optsched.bounds.proof import proved_bound
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Value, relaxation
from optsched.bounds.sum_costs import COMPLETION, FLOW, LARGEST_FLOW, MAKESPAN, SUMS, UTILITY, sum_costs
from optsched.classes.kv_cache.problem.requests import (
    CELL,
    NEW,
    REQUEST,
    ROUND,
    TICK,
    Requests,
    alone_ticks,
    requests_of,
)
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance

LARGEST = 2**53  # of what a request needs: an exact float


class RelaxedRequests(Relaxed):
    """Requests on the machine of all cells."""

    mean_beside = True

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield the one machine; nothing if a request needs too much for exact floats.

        Parameters
        ----------
        value
            Not used.
        rounds
            Not used.
        """
        requests = requests_of(self.instance)
        capacity, needs, moments = needs_of(requests)
        if int(needs.max()) >= LARGEST:
            return
        least = ROUND + REQUEST + CELL * (requests.prompt + 1) if requests.affine else np.ones(requests.n, np.int64)
        unit = TICK if requests.affine else 1
        columns = (x.tolist() for x in (least, requests.output, needs, moments))
        reach = [rounded_down(Fraction(a * (2 * o * v - w), unit * v)) for a, o, v, w in zip(*columns, strict=True)]
        ones = np.ones(requests.n, dtype=np.int64)
        yield (FastMachine(self.instance.arrival, needs.astype(np.float64), ones, capacity, dict, np.array(reach)),)


def needs_of(requests: Requests) -> tuple[int, Ints, Ints]:
    """Return the capacity of the machine, what requests need of it, and the sums of (2 j - 1) times that of round j.

    Parameters
    ----------
    requests
        Requests.
    """
    s, o = (x.astype(object) for x in (requests.prompt, requests.output))
    volume, moment = s * o + o * (o + 1) // 2, s * o * o + o * (o + 1) * (4 * o - 1) // 6
    if not requests.affine:
        return requests.cells, volume, moment
    m = requests.cells
    needs = m * (REQUEST * o + CELL * volume + NEW * s) + ROUND * volume
    moments = m * (REQUEST * o * o + CELL * moment + NEW * s) + ROUND * moment
    return m * TICK, needs, moments


def relaxed(instance: Instance, schedule_class: str) -> RelaxedRequests:
    """Return the relaxation of an instance.

    Parameters
    ----------
    instance
        Requests and one worker.
    schedule_class
        Not used: there is one class.
    """
    requests = requests_of(instance)
    alone: Floats = requests.output.astype(np.float64)
    if requests.affine:
        ticks = alone_ticks(requests.prompt, requests.output).tolist()
        alone = np.array([rounded_down(Fraction(x, TICK)) for x in ticks])
    return RelaxedRequests(instance, alone)


relaxation(
    Relaxation(
        name="kv",
        classes=("kv-cache",),
        find=relaxed,
        text="requests by volume, on all cells",
        names={
            "alone": {"kv-alone": (*SUMS, MAKESPAN, LARGEST_FLOW, UTILITY)},
            "mean-busy-time": {},
            "fair-share": {},
        },
    )
)


@proved_bound(
    "kv-mean-busy-time",
    objectives=(*COMPLETION, *FLOW),
    classes=("kv-cache",),
    statement="least mean moments of cells, and from there to the ends of requests",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the weights as multipliers; None for rounds of affine length, or weights of too many digits.

    Above 64 requests, distances to the ends are rounded down to multiples of 2^-32.

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    schedule_class
        Not used: there is one class.
    """
    requests, costs = requests_of(instance), sum_costs(instance, objective)
    weight, exponent = weights_on_grid(costs.weight)
    cells, needs, moments = needs_of(requests)
    last = float(instance.arrival.max()) * cells + float(sum(needs.tolist()))
    if (
        requests.affine
        or last >= 2.0**61
        or bool((np.ldexp(weight.astype(np.float64), -exponent) != costs.weight).any())
    ):
        return None
    used = weight > 0
    release, work = (requests.arrival * cells).astype(np.int64), needs.astype(np.int64)
    least, bits = least_busy_time_sum(release[used], work[used], weight[used])
    columns = zip(weight.tolist(), requests.output.tolist(), needs.tolist(), moments.tolist(), strict=True)
    rows = ((w * (2 * o * v - m), 2 * v) for w, o, v, m in columns)
    if instance.n <= EXACT:
        beyond = sum((Fraction(*row) for row in rows), Fraction(0))
    else:
        beyond = Fraction(sum((up << HELD_UP_BITS) // down for up, down in rows), 1 << HELD_UP_BITS)
    value = (least / cells + beyond) / Fraction(2) ** exponent - exact_dot(costs.weight, costs.counted)
    return value, {"rounded": instance.n > EXACT}
