"""The suite ``sharing-small``: few jobs that may share one GPU, with their optimum."""

from __future__ import annotations

from functools import cache

from optsched.errors import OptschedError
from optsched.evaluation.suites import AGREE, MADE, Suite
from optsched.guarantees.optimum import proved_here, stating
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance

SLOW_DOWNS = ("1.1", "1.3", "1.5", "1.8", "exp")
# members of every slow-down, by the number of jobs; seeds differ, since xi does not change what is drawn
EACH = {3: 2, 4: 1}
SHARING = tuple(
    f"sharing-{xi}-{n}-{count * k + seed}"
    for k, xi in enumerate(SLOW_DOWNS)
    for n, count in EACH.items()
    for seed in range(1, count + 1)
)


@cache
def small_sharing(member: str) -> Instance:
    """Return ``sharing-XI-N-S``: recipe ``sharing-small`` with N jobs, one GPU, seed S and slow-down XI of every pair.

    The stated optimum is that of the class ``gpu-sharing``, which may also preempt. Where a schedule without preemption is
    no worse, both enumerations of orders agree. Four jobs take about a second. The objective is the sum of flow times; the
    stated optimum is of sum C_j, which is larger by sum r_j.

    Parameters
    ----------
    member
        The name, ``sharing-XI-N-S``; XI is a number or ``exp``.

    Raises
    ------
    OptschedError
        Preemption seems to hurt: one of the two methods is wrong.
    """
    # Imported here because they come with a solver, which judging a run does without.
    from optsched.classes.gpu_sharing.solvers.sharing_orders import best_shared_order
    from optsched.classes.gpu_sharing.solvers.sharing_preemptive import preemptive_sharing_optimum

    _, xi, n, seed = member.split("-")
    instance = generate("sharing-small", int(seed), jobs=int(n), gpus=1, xi=xi)
    value = preemptive_sharing_optimum(instance).value
    kept = best_shared_order(instance).value
    if value > kept * (1 + AGREE):
        raise OptschedError(f"{member}: the optimum without preemption, {kept:.9g}, is below that with it, {value:.9g}")
    proofs = ["sharing-preemptive", *(["sharing-orders"] if value >= kept * (1 - AGREE) else [])]
    optimum = stating(value, "total_completion_time", "gpu-sharing", *proofs)
    return proved_here(instance.replace(name=member, optimum=optimum))


MADE.register(
    "gpu-sharing",
    (
        Suite(
            "sharing-small",
            SHARING,
            f"{len(SHARING)} instances: three or four jobs that may share one GPU, r_j | sum C_j - r_j",
            make=small_sharing,
        ),
    ),
)
