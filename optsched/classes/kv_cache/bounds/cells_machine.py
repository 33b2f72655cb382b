"""All cells as one machine: requests need their volume of it. Rounds of length 1, and of affine length.

**Machine.** In a round, a request holds s + j cells, all requests together at most M. A machine of M units serves it for its
volume v = s o + o (o + 1) / 2 from its arrival on. Executions that are thrown out only add volume. If rounds have affine
length, a round with requests i lasts R + sum_i (B + C (s_i + j)) + D (new prompts): at least D (new prompts) and the sum of
B + C (s_i + j) + R (s_i + j) / M. So a machine of one unit serves a request for B o + C v + D s + R v / M seconds.

**Mean moment.** Let x_j be what a request needs in its j-th round, spread evenly over it, and a the least length of a round
with the request (1; R + B + C (s + 1)). Then the mean moment of what it needs is at least a (o - mu) before its end, mu =
sum_j x_j (j - 1/2) / sum_j x_j. Twice that is its reach (`optsched.bounds.relaxation.FastMachine`), rounded down to a float.
Hence sum w_i C_i >= sum w_i (M_i + a (o_i - mu_i)), with the least mean busy times M_i: preemptive WSPT by volume.

**Complexity** O(n). **Reference** derived here; mean busy times: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import rounded_down
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Value, relaxation
from optsched.bounds.sum_costs import LARGEST_FLOW, MAKESPAN, SUMS, UTILITY
from optsched.classes.kv_cache.problem.requests import CELL, NEW, REQUEST, ROUND, TICK, requests_of
from optsched.problem.instance import Instance

LARGEST = 2**53  # of what a request needs: an exact float


class _Cells(Relaxed):
    mean_beside = True

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        r = requests_of(self.instance)
        s, o, m = r.prompt.astype(object), r.output.astype(object), r.cells
        needs: Any = s * o + o * (o + 1) // 2
        moments: Any = s * o * o + o * (o + 1) * (4 * o - 1) // 6  # sum over j of (2 j - 1) (s + j)
        unit, least = 1, s * 0 + 1
        if r.affine:
            unit, least = TICK, ROUND + REQUEST + CELL * (s + 1)
            needs, moments = (
                m * (REQUEST * first + CELL * x + NEW * s) + ROUND * x for first, x in ((o, needs), (o * o, moments))
            )
        if max(needs) < LARGEST:
            rows = zip(unit * needs, least * (2 * o * needs - moments), strict=True)
            reach = np.array([rounded_down(Fraction(up, down)) for down, up in rows])
            ones, arrival = np.ones(r.n, dtype=np.int64), self.instance.arrival
            yield (FastMachine(arrival, needs.astype(np.float64), ones, m * unit, dict, reach),)


def _cells(instance: Instance, schedule_class: str) -> _Cells:
    r = requests_of(instance)
    unit = TICK if r.affine else 1
    return _Cells(instance, np.array([rounded_down(Fraction(x, unit)) for x in r.alone.tolist()]))


NAMES = {"alone": {"kv-alone": (*SUMS, MAKESPAN, LARGEST_FLOW, UTILITY)}, "fair-share": {}}
relaxation(Relaxation("kv", ("kv-cache",), _cells, "requests by volume, on all cells", NAMES))
