"""Dual solutions for weighted flow time on unrelated machines: lower bounds on the optimum that any run may propose.

**Problem** R | r_j, pmtn | sum w_j (C_j - r_j), p_ij seconds of job j on machine i alone; jobs may migrate.
**Program** x_ij(t) >= 0, the share of machine i that j has at time t; for any fixed theta in [0, 1]

    min sum_ij int w_j ((1 - theta) (t - r_j) / p_ij + theta) x_ij(t) dt
    sum_i int x_ij(t) / p_ij dt >= 1 for all j,   sum_j x_ij(t) <= 1 for all i, t,   x_ij(t) = 0 for t < r_j.

Of any schedule the first part is (1 - theta) w_j times how late its work is done on average, the second theta w_j times how
long j runs; neither exceeds its flow time, so no schedule costs less than this program.
**Dual** alpha_j >= 0 and functions beta_i(t) >= 0 with alpha_j <= p_ij beta_i(t) + w_j ((1 - theta) (t - r_j) + theta p_ij)
for all i, j, t >= r_j prove that the optimum is at least sum_j alpha_j - sum_i int beta_i(t) dt.

Where every beta_i is a step function the right side is least at r_j or at a later step; so the best alpha is found by
looking at all of them. Every term there is >= 0, so its float is right but for `ROUNDINGS` roundings, and a little less than
it is feasible for certain; sums are fractions. **Complexity** O(n S) with n jobs and S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.guarantees.unrelated_machines import UnrelatedMachines
from optsched.problem.arrays import Floats, Ints

# relative, rounded up: a quotient, three products, a difference, two sums, and their constants
ROUNDINGS = 16 * 2.0**-53
AT_ONCE = 4_000_000  # terms in memory


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function of time: ``value[k]`` from ``time[k]`` on; times rise, the last value is 0, as it is before the first."""

    time: Floats
    value: Floats

    @property
    def integral(self) -> Fraction:
        """Over all time, exact."""
        t, v = (list(map(Fraction, each.tolist())) for each in (self.time, self.value))
        return sum((v[k] * (t[k + 1] - t[k]) for k in range(len(t) - 1)), Fraction(0))

    def times(self, factor: float) -> StepFunction:
        """The same function, ``factor`` >= 0 times as large."""
        return StepFunction(self.time, self.value * factor)


@dataclass(frozen=True, eq=False)
class FlowDual:
    """A dual solution: ``theta``, ``alpha`` f64[n], and ``beta``, a function for every machine."""

    theta: float
    alpha: Floats
    beta: tuple[StepFunction, ...]

    @property
    def value(self) -> Fraction:
        """No schedule costs less, if it is feasible (`prove`)."""
        earned = sum(map(Fraction, self.alpha.tolist()), Fraction(0))
        return earned - sum((each.integral for each in self.beta), Fraction(0))


def best_dual(machines: UnrelatedMachines, beta: Sequence[StepFunction], theta: float) -> FlowDual:
    """The largest alpha for ``beta``, rounded down so that it is feasible in exact arithmetic."""
    least = np.full(machines.release.size, np.inf)
    for i, steps in enumerate(beta):
        may = np.flatnonzero(machines.rate[i] > 0)
        for some in np.array_split(may, 1 + may.size * steps.time.size // AT_ONCE):
            least[some] = np.minimum(least[some], _least(machines, i, some, steps, theta))
    return FlowDual(theta, np.where(np.isfinite(least), least, 0.0) * (1 - ROUNDINGS), tuple(beta))


def _least(machines: UnrelatedMachines, i: int, jobs: Ints, steps: StepFunction, theta: float) -> Floats:
    """The least right side of machine i, f64[jobs]."""
    r, w, p = machines.release[jobs], machines.weight[jobs], machines.work[jobs] / machines.rate[i, jobs]
    now = np.searchsorted(steps.time, r, side="right") - 1
    here = p * np.where(now >= 0, np.append(steps.value, 0.0)[now], 0.0)
    if steps.time.size:
        wait = steps.time[None, :] - r[:, None]
        later = p[:, None] * steps.value[None, :] + ((1 - theta) * w)[:, None] * wait
        here = np.minimum(here, np.where(wait > 0, later, np.inf).min(axis=1))
    return np.asarray(here + theta * w * p)


def prove(machines: UnrelatedMachines, dual: FlowDual) -> Fraction:
    """The value of a feasible dual solution, every constraint looked at in fractions: O(n S) of them.

    Raises `InputError` naming the first that fails, or a function that is no legal one.
    """
    theta = Fraction(dual.theta)
    check_legal(0 <= theta <= 1, "theta", dual.theta, "a number in [0, 1]")
    check_legal(len(dual.beta) == machines.rate.shape[0], "beta", len(dual.beta), "a function for every machine")
    if min(dual.alpha, default=0) < 0:
        raise InputError("some alpha is negative")
    for i, steps in enumerate(dual.beta):
        _check(i, steps)
        times, values = (list(map(Fraction, each.tolist())) for each in (steps.time, steps.value))
        for j, (release, weight, alpha) in enumerate(_jobs(machines, dual)):
            p = machines.seconds(i, j)
            if p is None:
                continue
            begun = [v for t, v in zip(times, values, strict=True) if t <= release]
            looked = [(release, begun[-1] if begun else Fraction(0))]
            looked += [(t, v) for t, v in zip(times, values, strict=True) if t > release]
            for t, v in looked:
                if alpha > p * v + weight * ((1 - theta) * (t - release) + theta * p):
                    raise InputError(f"alpha of job {j} is too large on machine {i} at {float(t):.12g} s")
    return dual.value


def _jobs(machines: UnrelatedMachines, dual: FlowDual) -> list[tuple[Fraction, Fraction, Fraction]]:
    columns = (machines.release, machines.weight, dual.alpha)
    return [(Fraction(r), Fraction(w), Fraction(a)) for r, w, a in zip(*map(np.ndarray.tolist, columns), strict=True)]


def _check(i: int, steps: StepFunction) -> None:
    rising = bool((np.diff(steps.time) > 0).all()) and steps.time.size == steps.value.size
    ends = not steps.value.size or (float(steps.value[-1]) == 0 and float(steps.value.min()) >= 0)
    if not (rising and ends and np.isfinite(steps.time).all() and np.isfinite(steps.value).all()):
        raise InputError(f"beta of machine {i} is no step function >= 0 that ends")
