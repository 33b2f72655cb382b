"""Total time (makespan) of gangs on several GPU types: Gavel's LP, and the LP of allocations that mix types.

Data: v_j = E_j N_j iterations, W_j GPUs of the gang, X_jr iterations/s of one task on type r, c_r GPUs of type r. Three sets
of modes of `makespan_modes`:

    fluid   (j, r) with X_jr > 0: rate W_j X_jr, W_j GPUs of type r. **4.2 of the sheet, Gavel's makespan LP.**
    single  of these only where W_j <= c_r: what a schedule of one type a job and moment can do.
    mixed   every (n_r)_r with sum n_r = W_j, n_r <= c_r: rate W_j min X_jr over the types used. What Hadar can do.

fluid <= mixed <= single. The first is proved in 4.2: a mixed allocation may be replaced by n_r / W_j of its time on each
single type, in the same time on the same GPUs, with at least as much work. So fluid is a lower bound on the total
time of **every** schedule that does not fork, and where every gang fits every type (W_j <= min_r c_r) all three are equal:
mixing types gains nothing in the fluid limit. It gains where a gang does not fit one type: W = 4 on 2 + 2 GPUs runs
mixed at 4 min X, and no single type has room for it (`InfeasibleError`).

Arrivals are left out; the bound then counts from the first one.
Size: at most n R modes, mixed: sum_j of the number of splits of W_j over the types.
Reference: 4.2 of the Hadar sheet; Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia, Heterogeneity-aware cluster
scheduling policies for deep learning workloads (Gavel), OSDI 2020.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models import makespan_modes
from optsched.models.makespan_modes import ModeJobs, WorkMode
from optsched.models.program import add_program, by_type
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


def fluid_jobs(work: Any, tasks: Any, speed: Any, capacity: Any) -> ModeJobs:
    """The modes of the fluid LP: ``work`` f64[n], ``tasks`` i64[n], ``speed`` f64[n, R] a task, ``capacity`` i64[R].

    Raises `InputError` for shapes and numbers that are invalid, `InfeasibleError` for a job that runs nowhere.
    """
    v, W, X, c = _arrays(work, tasks, speed, capacity)
    return _one_type(v, W, X * W[:, None], c, np.broadcast_to(c > 0, X.shape))


def single_jobs(work: Any, tasks: Any, speed: Any, capacity: Any) -> ModeJobs:
    """As `fluid_jobs`, but a gang runs on a type only where all of it fits."""
    v, W, X, c = _arrays(work, tasks, speed, capacity)
    return _one_type(v, W, X * W[:, None], c, W[:, None] <= c[None, :])


def mixed_jobs(work: Any, tasks: Any, speed: Any, capacity: Any) -> ModeJobs:
    """The modes of the mixed LP; exponential in the number of types."""
    v, W, X, c = _arrays(work, tasks, speed, capacity)
    modes = []
    for gang, row in zip(W.tolist(), X.tolist(), strict=True):
        ranges = [range(min(gang, room) + 1) if x > 0 else range(1) for x, room in zip(row, c.tolist(), strict=True)]
        splits = (counts for counts in itertools.product(*ranges) if sum(counts) == gang)
        uses = (tuple((r, count) for r, count in enumerate(counts) if count) for counts in splits)
        modes.append(tuple(WorkMode(gang * min(row[r] for r, _ in use), use) for use in uses))
    return ModeJobs(tuple(v.tolist()), tuple(modes), tuple(c.tolist()))


def fluid_jobs_of(instance: Instance) -> ModeJobs:
    """The modes of the fluid LP of an instance: on each type the better of the rates together and spread.

    A gang of several types runs at the slowest of their rates, so the proof of 4.2 holds as it stands.
    """
    speeds = type_speeds(instance)
    rate = np.maximum(*speeds.reachable)
    allowed = np.broadcast_to(speeds.capacity > 0, rate.shape)
    return _one_type(instance.work, instance.gpus, rate, speeds.capacity, allowed)


def _one_type(work: Floats, gang: Ints, rate: Floats, capacity: Ints, allowed: Bools) -> ModeJobs:
    modes = tuple(
        tuple(WorkMode(x, ((r, W),)) for r, (x, may) in enumerate(zip(row, fits, strict=True)) if may and x > 0)
        for W, row, fits in zip(gang.tolist(), rate.tolist(), allowed.tolist(), strict=True)
    )
    return ModeJobs(tuple(work.tolist()), modes, tuple(capacity.tolist()))


def _arrays(work: Any, tasks: Any, speed: Any, capacity: Any) -> tuple[Floats, Ints, Floats, Ints]:
    v, X = np.asarray(work, dtype=np.float64), np.asarray(speed, dtype=np.float64)
    W, c = np.asarray(tasks, dtype=np.int64), np.asarray(capacity, dtype=np.int64)
    for name, array, shape in (("tasks", W, (v.size,)), ("speed", X, (v.size, c.size)), ("capacity", c, (c.size,))):
        if array.shape != shape:
            raise InputError("invalid", field=name, value=array.shape, legal=f"shape {shape}")
    if np.any(W < 1) or np.any(c < 0):
        raise InputError("invalid", field="tasks, capacity", legal="gangs of at least 1, capacities of at least 0")
    if not np.all(np.isfinite(X) & (X >= 0)):
        raise InputError("invalid", field="speed", legal="finite and >= 0")
    return v, W, X, c


add_program(
    "hadar-makespan",
    "R | size_j, pmtn | C_max, the fluid LP: jobs in any parts on each type",
    "seconds, a lower bound on the makespan of jobs that are all there",
    "forking",
    fluid_jobs_of,
    makespan_modes.build,
    lambda model, jobs, instance: by_type(instance, makespan_modes.prices(model, jobs)[0]),
)
