"""First come, first served on m machines: the largest flow time within 3 - 2/m, the sum of them within n times that.

**Theorem** P | r_j: max (C_j - r_j) <= (3 - 2/m) OPT, even against preemption; optimal for m = 1. Proof: let t be the last
time before j starts at s_j when some machine becomes busy that was idle. Nobody waited then, so what is done in [t, s_j) is
left of at most m - 1 jobs, or of jobs that came in [t, r_j], of volume V without j: s_j - t <= ((m - 1) p_max + V) / m. Any
schedule with largest flow time F has done these and j by r_j + F: V + p_j <= m (r_j + F - t). Together
C_j - r_j <= F + (1 - 1/m) (p_max + p_j) (the audit, with the best such F), and p_max <= OPT.

`lagging_bursts`: bursts of small jobs, then m - 1 long ones, a long job's length apart. Serving the long ones first ends
every burst when the next comes; first come, first served has a lag x on m - 1 machines, in that length, which becomes
x (1 - 1/m) + 1/m with every burst and tends to 1. The long job that ends a last burst starts when the lag and the small jobs
are done: its flow is 1 + (1 - 1/m) (1 + x) lengths, 3 - 2/m in the limit, so that the factor is the least.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.bounds.best_bound import bound
from optsched.errors import check_legal
from optsched.guarantees.assumptions import parallel_machines_over_time
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late_findings
from optsched.guarantees.optimum import stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def _ratio(policy: Any, run: Run) -> Fraction:
    return 3 - Fraction(2, run.instance.cluster.gpus)


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    instance, p = run.instance, run.instance.duration
    least, apart = bound(instance, "max_flow_time", "gang").exact_float, 1 - 1 / instance.cluster.gpus
    limit = instance.arrival + least + apart * (p.max(initial=0.0) + p)
    return late_findings(run, limit)


@family(
    "bursts of unit jobs, then m - 1 long ones, as far apart as these are long; at last unit jobs and one long one",
    policy="fifo",
    objective="max_flow_time",
    ratio=lambda bursts, m: 1 + (1 - Fraction(1, m)) * (2 - (1 - Fraction(1, m)) ** bursts),
    limit="3 - 2/m for many bursts",
    theorem="fifo-flow",
    sizes=(0, 1, 2, 4, 6),
)
def lagging_bursts(bursts: int = 4, m: int = 2) -> Instance:
    """``bursts`` times m^(bursts + 1) unit jobs and m - 1 jobs of that length L, L apart; at last (m - 1) L and one."""
    check_legal(bursts >= 0, "bursts", bursts, "an integer >= 0")
    check_legal(m >= 2, "m", m, "an integer >= 2")
    length, jobs = m ** (bursts + 1), list[Job]()
    for burst in range(bursts + 1):
        small, long = (length, m - 1) if burst < bursts else ((m - 1) * length, 1)
        at = burst * length
        jobs += [Job(f"small-{burst}-{i}", arrival=at, duration=1) for i in range(small)]
        jobs += [Job(f"long-{burst}-{i}", arrival=at, duration=length) for i in range(long)]
    optimum = stating(length, "max_flow_time", "gang", "critical-job")
    return Instance(jobs, f"{m}x1", f"lagging-bursts-{bursts}-{m}", "max_flow_time", optimum=optimum)


@family(
    "a job of n seconds, and n unit jobs that come while it runs, one a second",
    policy="fifo",
    objective="total_flow_time",
    ratio=lambda n: Fraction(2 * n + n * (2 * n + 1), _best(n)),
    limit="(n + 3/2) / 3",
    theorem="fifo-total-flow",
    sizes=(2, 10, 100),
)
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


ABOUT: dict[str, Any] = {
    "knowledge": "non-clairvoyant",
    "source": "Bender, Chakrabarti and Muthukrishnan 1998, from recollection; Mastrolilli 2003",
    "status": "proved",
    "policies": ("fifo",),
    "assumptions": parallel_machines_over_time,
    "audit": _audit,
}

FIFO = guarantee(
    id="fifo-flow",
    statement="P | r_j | max F_j: first come, first served <= (3 - 2/m) OPT, even against preemption",
    notation="P | r_j, online-r_j | F_max",
    proof=(
        "Since a machine became busy last before j starts, the machines worked at what was left of m - 1 jobs and at jobs "
        "that came since then, no later than j. Any schedule with largest flow time F has done the latter within F of j's "
        "coming, so that j's flow time is at most F + (1 - 1/m) (p_max + p_j), and no job is longer than F."
    ),
    objective="max_flow_time",
    ratio=_ratio,
    tight=TightFamily("bursts in which the long jobs come last, so that it lags behind", lagging_bursts, exact=False),
    **ABOUT,
)

FIFO_SUM = guarantee(
    id="fifo-total-flow",
    statement="P | r_j | sum F_j: first come, first served <= n (3 - 2/m) OPT, even against preemption",
    notation="P | r_j, online-r_j | sum (C_j - r_j)",
    proof=(
        "Each of n flow times is within 3 - 2/m of the largest one of any schedule (fifo-flow), which is at most the sum of "
        "all its flow times."
    ),
    objective="total_flow_time",
    ratio=lambda policy, run: max(1, run.instance.n) * _ratio(policy, run),
    tight=TightFamily("one machine, short jobs that come while a long one runs: a third of n", convoy, exact=False),
    **ABOUT,
)
