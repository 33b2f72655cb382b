"""A-SRPT's single machine: the whole cluster as one machine of unit speed, the relaxation behind the SRPT bounds.

Job j becomes p_j = g_j d_j / G seconds of work, released at r_j. In any schedule of gangs on G GPUs, preemptive or not,
on whatever nodes, give job j the share g_j / G of the machine while it runs: the shares add up to at most 1 and all
p_j is done by C_j. So every value of ``1 | r_j, pmtn | sum w_j C_j`` with these p_j is a bound for the class ``gang``.
Reference: the virtual single machine of Luo et al., INFOCOM 2025, arXiv 2501.05563.

The formulations cut time into slots of ``unit`` seconds, the gcd of all r_j - r_min and all p_j. No machine is idle while
work is left (that would only delay), so job j is served between r_j and e_j, the end of the busy period in which it
is released; busy periods do not depend on the order of service.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.errors import InfeasibleError
from optsched.models.formulation import WEIGHTED_COMPLETION, inapplicable
from optsched.models.time_grid import TimeGrid, on_common_unit, releases
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.duration import seconds_alone


@dataclass(frozen=True)
class UnitMachine:
    """Jobs on the machine: ``grid`` (release and p_j in slots), ``end`` i64[n] = e_j, weights and constant in seconds.

    The objective is ``constant + sum_j weight_j unit (completion of j in slots)``.
    """

    grid: TimeGrid
    end: Ints
    weight: Floats
    constant: float

    @classmethod
    def of(
        cls, instance: Instance, objective: str, horizon: float | Floats | None = None, cut: bool = True
    ) -> UnitMachine:
        """Return the machine of an instance.

        Parameters
        ----------
        instance
            Jobs and cluster.
        objective
            Name of the objective.
        horizon
            Latest completion allowed, in seconds: one number, or f64[n] with one for each job. None: a horizon that
            provably keeps an optimal schedule.
        cut
            End work at the busy period; without it the work may end as late as all work done after the last
            release.

        Raises
        ------
        InputError
            If the times have no common unit.
        InfeasibleError
            If a job cannot complete by the horizon.
        """
        (origin, release), total = releases(instance), instance.cluster.gpus
        jobs = zip(instance.gpus.tolist(), seconds_alone(instance).tolist(), strict=True)
        grid = TimeGrid(origin, *on_common_unit(release, [Fraction(d) * g / total for g, d in jobs]))
        end = busy_period_ends(grid.release, grid.duration)
        if not cut:  # all work after the last release; your own constraints may make the machine wait
            end = np.full_like(end, grid.release.max() + grid.duration.sum())
        if horizon is not None:
            latest = np.minimum(horizon, grid.seconds(end)) if cut else np.full(end.shape, horizon, dtype=np.float64)
            end = grid.slots(latest)
        if np.any(end < grid.release + grid.duration):
            raise InfeasibleError("a job cannot complete by the horizon")
        goal = get_objective(objective)
        weight = instance.weight if goal.weighted else np.ones(instance.n)
        counted_from = instance.arrival if goal.completion_form else np.zeros(instance.n)
        return cls(grid, end, weight, float(weight @ (origin - counted_from)))

    @cached_property
    def job(self) -> Ints:
        """Job of every column (j, t), r_j <= t < e_j, jobs in order."""
        return np.repeat(np.arange(self.end.size), self.end - self.grid.release)

    @cached_property
    def offset(self) -> Ints:
        """First column of every job, and the number of columns: i64[n + 1]."""
        return np.concatenate([[0], np.cumsum(self.end - self.grid.release)]).astype(np.int64)

    @cached_property
    def slot(self) -> Ints:
        """Slot of every column."""
        return np.arange(self.job.size) - self.offset[self.job] + self.grid.release[self.job]

    @property
    def cost(self) -> Floats:
        """Cost of a slot of work when w_j M_j is charged: w_j unit (t + 1/2) / p_j, M_j the mean busy time."""
        middle = float(self.grid.unit) * (self.slot + 0.5)
        return self.weight[self.job] * middle / self.grid.duration[self.job]

    @property
    def half(self) -> float:
        """Constant of the mean-busy-time objective: that of the machine plus sum_j w_j p_j / 2."""
        return self.constant + float(self.weight @ self.grid.duration) * float(self.grid.unit) / 2


SETS = {"work": "jt", "late": "jt", "done": "j", "share": "t", "unfinished": "jt"}


def slot_model(name: str, machine: UnitMachine, most: float | None = None) -> tuple[pyo.ConcreteModel, list[Any]]:
    """Build the model with ``model.work[j, t]``, slots of work on j in slot t, and rows (1) and (2).

    (1) ``done``: sum_t work[j, t] = p_j. (2) ``share``: sum_j work[j, t] <= 1.

    Parameters
    ----------
    name
        Name of the model.
    machine
        The jobs on the machine.
    most
        Upper bound of ``work[j, t]``; None: no bound.

    Returns
    -------
    model
        The model.
    work
        Its columns, in the order of `UnitMachine.job`.
    """
    model = pyo.ConcreteModel(name)
    model.machine, model.grid = machine, machine.grid
    keys = list(zip(machine.job.tolist(), machine.slot.tolist(), strict=True))
    model.work = pyo.Var(keys, bounds=(0, most))
    work, offset, work_of = list(model.work.values()), machine.offset.tolist(), machine.grid.duration.tolist()
    in_slot: dict[int, list[Any]] = {}
    for (_, t), variable in zip(keys, work, strict=True):
        in_slot.setdefault(t, []).append(variable)
    jobs, slots = range(len(work_of)), sorted(in_slot)
    model.done = pyo.Constraint(
        jobs, expr={j: LinearExpression(work[offset[j] : offset[j + 1]]) == work_of[j] for j in jobs}
    )
    model.share = pyo.Constraint(slots, expr={t: LinearExpression(in_slot[t]) <= 1 for t in slots})
    return model, work


def busy_period_ends(release: Ints, work: Ints) -> Ints:
    """Return the end of the busy period in which each job is released, i64[n], on a machine that never idles with work left.

    Parameters
    ----------
    release
        Releases in slots, i64[n].
    work
        Work in slots, i64[n].
    """
    order = np.argsort(release, kind="stable")
    # work conserving: free after job k = max over i <= k of r_i + work of i..k
    before = np.cumsum(work[order]) - work[order]
    free = np.maximum.accumulate(release[order] - before) + before + work[order]
    last = np.append(release[order][1:] >= free[:-1], True)
    ends = np.empty_like(release)
    ends[order] = free[np.flatnonzero(last)][np.cumsum(last) - last]
    return ends


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: no completion times in the objective, no common unit, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return inapplicable(instance, objective, WEIGHTED_COMPLETION, size)


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros of the mean-busy-time LP: every column is in two rows.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    machine = UnitMachine.of(instance, objective)
    return 2 * int(np.sum((machine.end - machine.grid.release).astype(np.float64)))
