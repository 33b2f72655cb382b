"""Total time (makespan) of gangs on several GPU types: Gavel's LP, and the LP of allocations that mix types.

Data: v_j = E_j N_j iterations, W_j GPUs of the gang, X_jr iterations/s of one task on type r, c_r GPUs of type r. Three sets
of modes of `makespan_modes`, of which the first is the program here:

    fluid   (j, r) with X_jr > 0: rate W_j X_jr, W_j GPUs of type r. **Gavel's makespan LP.**
    single  of these only where W_j <= c_r: what a schedule of one type a job and moment can do.
    mixed   every (n_r)_r with sum n_r = W_j, n_r <= c_r: rate W_j min X_jr over the types used. What Hadar can do.

fluid <= mixed <= single. The first since a mixed allocation may be replaced by n_r / W_j of its time on each
single type, in the same time on the same GPUs, with at least as much work. So fluid is a lower bound on the total
time of **every** schedule that does not fork, and where every gang fits every type (W_j <= min_r c_r) all three are equal:
mixing types gains nothing in the fluid limit. It gains where a gang does not fit one type: W = 4 on 2 + 2 GPUs runs
mixed at 4 min X, and no single type has GPUs enough (`InfeasibleError`).

Arrivals are left out; the bound then counts from the first one.
Size: at most n R modes, mixed: sum_j of the number of splits of W_j over the types.
Reference: Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia, Heterogeneity-aware cluster
scheduling policies for deep learning workloads (Gavel), OSDI 2020.
"""

from __future__ import annotations

import numpy as np

from optsched.models import makespan_modes
from optsched.models.makespan_modes import ModeJobs, WorkMode
from optsched.models.program import add_program, by_type
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


def fluid_jobs_of(instance: Instance) -> ModeJobs:
    """Return the modes of the fluid LP of an instance: on each type the better of the rates together and spread.

    A gang of several types runs at the slowest of their rates, so the proof above holds.

    Parameters
    ----------
    instance
        The instance.

    Raises
    ------
    InfeasibleError
        If a job runs nowhere.
    """
    speeds = type_speeds(instance)
    modes = tuple(
        tuple(WorkMode(x, ((r, W),)) for r, (x, c) in enumerate(zip(row, speeds.capacity, strict=True)) if c and x > 0)
        for W, row in zip(instance.gpus.tolist(), np.maximum(*speeds.reachable).tolist(), strict=True)
    )
    return ModeJobs(tuple(instance.work.tolist()), modes, tuple(speeds.capacity.tolist()))


add_program(
    "hadar-makespan",
    "R | size_j, pmtn | C_max, the fluid LP: jobs in any parts on each type",
    "seconds, a lower bound on the makespan of jobs that are all there",
    "forking",
    fluid_jobs_of,
    makespan_modes.build,
    lambda model, jobs, instance: by_type(instance, makespan_modes.prices(model, jobs)[0]),
)
