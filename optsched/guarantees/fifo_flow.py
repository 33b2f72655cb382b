"""First come, first served on m machines: the largest flow time within 3 - 2/m, the sum of them within n times that.

**Theorem** P | r_j: max (C_j - r_j) <= (3 - 2/m) OPT, even against preemption; optimal for m = 1. Proof: let t be the last
time before j starts at s_j when some machine becomes busy that was idle. Nobody waited then, so what is done in [t, s_j) is
left of at most m - 1 jobs, or of jobs that came in [t, r_j], of volume V without j: s_j - t <= ((m - 1) p_max + V) / m. Any
schedule with largest flow time F has done these and j by r_j + F: V + p_j <= m (r_j + F - t). Together
C_j - r_j <= F + (1 - 1/m) (p_max + p_j) (the audit, with the best such F), and p_max <= OPT.

So each of the n flow times is at most 3 - 2/m times the largest one of any schedule, which is at most their sum:
sum (C_j - r_j) <= n (3 - 2/m) OPT.

`convoy`: n unit jobs come, one a second, while one of n seconds runs; each waits for as long as the long one still took.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, parallel_machines_over_time
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late, told
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(*parallel_machines_over_time(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return max(1, run.instance.n) * (3 - Fraction(2, run.instance.cluster.gpus))


def least_largest_flow(instance: Instance) -> float:
    """No schedule of an instance on identical machines has a smaller max (C_j - r_j): seconds.

    The longest job, and for all t <= r_j what comes in [t, r_j] / m less r_j - t. O(n log n).
    """
    order = np.lexsort((np.arange(instance.n), instance.arrival))
    r, p = instance.arrival[order], instance.duration[order]
    volume = np.cumsum(p) / instance.cluster.gpus
    before = np.minimum.accumulate(volume - p / instance.cluster.gpus - r)
    return float(max(p.max(initial=0.0), (volume - r - before).max(initial=0.0)))


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    instance, p = run.instance, run.instance.duration
    apart = 1 - 1 / instance.cluster.gpus
    limit = instance.arrival + least_largest_flow(instance) + apart * (p.max(initial=0.0) + p)
    return told(run, late(run, limit), limit)


@of_a_theorem
def convoy(n: int = 10) -> Instance:
    """In half seconds: a job of 2 n at 0, n jobs of 2 at 1, 3, 5, ...: first come, first served has a flow of 2 n + 1 each.

    Shortest remaining time first serves them at once, 2 each, and the long one in between: it is done at 4 n.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    jobs = [Job("long", duration=2 * n), *(Job(f"{i}", arrival=2 * i + 1, duration=2) for i in range(n))]
    optimum = stating(_best(n), "total_flow_time", "gang", "shortest remaining time first")
    return Instance(jobs, "1x1", f"convoy-{n}", "total_flow_time", optimum=optimum)


def _best(n: int) -> int:
    # With one job nothing is gained by stopping the long one, which has less left than the short one is long.
    return 6 * n if n > 1 else 2 * n + 2 * n + 1


CONVOY = family(
    name="convoy",
    summary="a job of n seconds, and n unit jobs that come while it runs, one a second",
    policy="fifo",
    objective="total_flow_time",
    make=convoy,
    ratio=lambda n: Fraction(2 * n + n * (2 * n + 1), _best(n)),
    limit="(n + 3/2) / 3",
    theorem="fifo-flow",
    sizes=(2, 10, 100),
)

FIFO = guarantee(
    id="fifo-flow",
    statement="P | r_j | max F_j: first come, first served <= (3 - 2/m) OPT; hence sum F_j <= n (3 - 2/m) OPT",
    notation="P | r_j, online-r_j | sum (C_j - r_j)",
    knowledge="non-clairvoyant",
    source="Bender, Chakrabarti and Muthukrishnan 1998, from recollection; Mastrolilli 2003",
    status="proved",
    proof=(
        "Since a machine became busy last before j starts, the machines worked at what was left of m - 1 jobs and at jobs "
        "that came since then, no later than j. Any schedule with largest flow time F has done the latter within F of j's "
        "coming, so that j's flow time is at most F + (1 - 1/m) (p_max + p_j). Each of n flow times is within 3 - 2/m of "
        "the largest one of any schedule, and that is at most their sum."
    ),
    objective="total_flow_time",
    policies=("fifo",),
    assumptions=_assumptions,
    ratio=_ratio,
    audit=_audit,
    tight=TightFamily("one machine, short jobs that come while a long one runs: a third of n", CONVOY, exact=False),
)
