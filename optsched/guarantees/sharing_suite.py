"""The suite ``sharing-small``: a few jobs that may share one GPU, made when they are asked for, with their proven optimum.

Members ``sharing-XI-N-S``: recipe ``sharing-small`` with N = 3 or 4 jobs, one GPU, seed S, XI the slow-down of every pair or
``exp``. The optimum is that of the class ``gpu-sharing``, which may also preempt; where a schedule without preemption is no
worse, both enumerations of orders agree. Objective: sum of flow times, the stated sum C_j less sum r_j.
"""

from __future__ import annotations

from functools import cache

from optsched.errors import OptschedError
from optsched.guarantees.optimum import proved_here, stating
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.solvers.sharing_orders import best_shared_order
from optsched.solvers.sharing_preemptive import preemptive_sharing_optimum

SLOW_DOWNS = ("1.1", "1.3", "1.5", "1.8", "exp")
EACH = {
    3: 2,
    4: 1,
}  # members of every slow-down, by the number of jobs; seeds differ, since xi does not change what is drawn
AGREE = 1e-7  # relative: what a linear program may miss
MEMBERS = tuple(
    f"sharing-{xi}-{n}-{each * k + seed}"
    for k, xi in enumerate(SLOW_DOWNS)
    for n, each in EACH.items()
    for seed in range(1, each + 1)
)


@cache
def small_sharing(member: str) -> Instance:
    """The instance of that name with its optimum; about a second for four jobs.

    Raises `OptschedError` when preemption seems to hurt: one of the two methods is wrong.
    """
    _, xi, n, seed = member.split("-")
    instance = generate("sharing-small", int(seed), jobs=int(n), gpus=1, xi=xi)
    value = preemptive_sharing_optimum(instance).value
    kept = best_shared_order(instance).value
    if value > kept * (1 + AGREE):
        raise OptschedError(f"{member}: the optimum without preemption, {kept:.9g}, is below that with it, {value:.9g}")
    proofs = ["sharing-preemptive", *(["sharing-orders"] if value >= kept * (1 - AGREE) else [])]
    optimum = stating(value, "total_completion_time", "gpu-sharing", *proofs)
    return proved_here(instance.replace(name=member, optimum=optimum))
