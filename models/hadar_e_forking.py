"""HadarE's makespan LPs: how fast n nodes finish J jobs when a job may be forked into copies, and when it may not.

Data: v_j steps; X_jh steps/s of job j on node h, 0 where it does not run. A copy occupies a node; all jobs are there from
the beginning; work is divisible and preemption free.

    fork:     min T  s.t.  sum_h X_jh y_jh >= v_j,  sum_j y_jh <= T,  y >= 0
    no fork:  additionally  sum_h y_jh <= T          (a job is on one node at a time)

Both are `makespan_modes` with a mode for every (job, node). Both optima are attained: forked copies run whenever they
like, and without forking the times y are those of a preemptive open shop, which fits in T when no job and no node
has more than T (Gonzalez and Sahni). **Their ratio is the most that any forking scheme can gain in total time.** With
at least as many jobs as nodes it tends to 1; with one job it is sum_h X_h / max_h X_h.
With at most x copies a job (parameter ``copies`` of `hadar-e`) the optimum lies between the two.

Reference: Sultana et al., arXiv 2503.10918 (HadarE); Lawler and Labetoulle, J. ACM 25 (1978), 612-619; Gonzalez and Sahni,
Open shop scheduling to minimize finish time, J. ACM 23 (1976), 665-679.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models import makespan_modes
from optsched.models.makespan_modes import ModeJobs, WorkMode
from optsched.models.program import add_program
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


def fork_jobs(steps: Any, speed: Any, *, fork: bool = True) -> ModeJobs:
    """Return the jobs of the LP; build it with `makespan_modes.build`.

    Parameters
    ----------
    steps
        Steps v of every job, f64[n] > 0.
    speed
        Steps a second X on every node, f64[n, H].
    fork
        If false, the LP is the one without forking.

    Raises
    ------
    InfeasibleError
        If a job runs on no node.
    """
    v, X = np.asarray(steps, dtype=np.float64), np.asarray(speed, dtype=np.float64)
    modes = tuple(tuple(WorkMode(x, ((h, 1),)) for h, x in enumerate(row) if x > 0) for row in X.tolist())
    return ModeJobs(tuple(v.tolist()), modes, (1,) * X.shape[1], one_mode=not fork)


def fork_jobs_of(instance: Instance, fork: bool = True) -> ModeJobs:
    """Return the jobs of the LP of an instance whose nodes hold one gang each, of any job that may use the node.

    Parameters
    ----------
    instance
        The instance.
    fork
        If false, the LP is the one without forking.

    Raises
    ------
    InputError
        If the gang of a job is not all of a node.
    """
    nodes = instance.cluster.node_gpus
    if instance.n and not (instance.gpus[:, None] == nodes[None, :]).all():
        raise InputError(
            "the fork LP is of gangs that are whole nodes", field="gpus", legal="jobs and nodes of one size"
        )
    speeds = type_speeds(instance)
    return fork_jobs(instance.work, speeds.together[:, speeds.node_type], fork=fork)


def _named(model: Any, jobs: ModeJobs, instance: Instance) -> dict[str, float]:
    resource, job = makespan_modes.prices(model, jobs)
    named = {f"price of node {h}": float(k) for h, k in enumerate(resource.tolist())}
    return named | {f"price of the time of {instance.ids[j]}": float(job[j]) for j in np.flatnonzero(job).tolist()}


add_program(
    "hadar-e-forking",
    "R | pmtn, forking | C_max: copies of a job on several nodes at once",
    "seconds, the makespan of jobs that are all there and may be in as many copies as there are nodes",
    "forking",
    fork_jobs_of,
    makespan_modes.build,
    _named,
)
