"""HadarE: no node idles that could be busy, and what follows for the time until everything is done.

**Utilisation.** In a round with J active jobs, at most x copies of each, all gangs of g GPUs, the most copies that fit are
a maximum b-matching of jobs (capacity x) and nodes (capacity floor(c_h/g)), a pair at most once: a maximum flow. Where every
job may run on every node and a copy fills it, that is min(n, x J) busy nodes: so all n are busy while x >= n/J, and as J
falls to 1 in the end, x = n is the smallest fixed number of copies that keeps all busy until the last round; more are
useless.

**Time.** Identical nodes (rate 1), a copy fills a node, all jobs there at 0, x >= n, rule ``work``, which ``lp`` is there,
s = L - o: C_max <= L ceil(S/n), S = sum_j ceil(p_j/s), and so C_max <= [L n ceil(S/n) / sum_j p_j] OPT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes.forking.simulation.forked_run import ForkedRun
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, all_of, instance_is, known_durations, policy_is
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import SHOWN_JOBS, TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placement import Placement
from optsched.simulation.run import Run


@dataclass(frozen=True)
class UtilisationAudit:
    """``rounds`` of a run, how many the theorem is about (``audited``: all gangs alike), and those that fell short."""

    rounds: int
    audited: int
    short: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if no round left a node idle that could have been busy."""
        return not self.short


def most_copies(instance: Instance, jobs: tuple[int, ...], copies: int) -> int | None:
    """Return the largest number of copies of ``jobs`` that run at once on different nodes.

    The number is a maximum flow over classes of alike jobs and groups of alike nodes. A flow between a class and a
    group spreads evenly over their members, and the flow of single jobs and nodes is integral.

    Parameters
    ----------
    instance
        The instance.
    jobs
        Rows of the active jobs.
    copies
        Largest number of copies of each job.

    Returns
    -------
    int or None
        The number of copies. None if the gangs differ in size or some job fits on no node: copies are then packed,
        and the theorem does not apply.
    """
    import networkx as nx  # imported where it is used: it takes longer than most runs

    kinds, counts = np.unique(instance.job_class[list(jobs)], return_counts=True)
    gangs = set(instance.class_gpus[kinds].tolist())
    if len(gangs) != 1:
        return None
    gang, cluster = gangs.pop(), instance.cluster
    first = np.searchsorted(cluster.node_group, np.arange(len(cluster.nodes)))
    flow = nx.DiGraph()
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        flow.add_edge("jobs", ("job", kind), capacity=count * copies)
        hosts = [m for m, v in enumerate(first) if instance.class_eligible[kind, v] and cluster.nodes[m].gpus >= gang]
        if not hosts:
            return None
        for m in hosts:
            flow.add_edge(("job", kind), ("node", m), capacity=count * cluster.nodes[m].count)
    for m, group in enumerate(cluster.nodes):
        flow.add_edge(("node", m), "nodes", capacity=group.count * (group.gpus // gang))
    return int(nx.maximum_flow_value(flow, "jobs", "nodes"))


def utilisation_audit(run: ForkedRun) -> UtilisationAudit:
    """Compare the copies of every round with the most that fit.

    Parameters
    ----------
    run
        Run whose rounds are compared.

    Notes
    -----
    Complexity: one small maximum flow for every different set of active classes, and O(S) for S segments.
    """
    known: dict[bytes, int | None] = {}
    short, audited = [], 0
    for k, each in enumerate(run.rounds):
        key = np.sort(run.instance.job_class[list(each.active)]).tobytes()
        if key not in known:
            known[key] = most_copies(run.instance, each.active, run.copies)
        most = known[key]
        if most is None:
            continue
        audited += 1
        if len(each.segments) != most:
            jobs = len(each.active)
            short.append(f"round {k} at {each.start:g} s has {len(each.segments)} copies of {jobs} jobs; {most} fit")
    return UtilisationAudit(len(run.rounds), audited, tuple(short))


def node_rounds(run: ForkedRun) -> int:
    """Return S = sum_j ceil(p_j / (L - o)), exact.

    Parameters
    ----------
    run
        Run with the round length L, the overhead o (both in seconds) and the instance with the processing times
        p_j.
    """
    seconds = Fraction(run.round) - Fraction(run.overhead)
    return sum(math.ceil(Fraction(work) / seconds) for work in run.instance.work.tolist())


def _as_many_copies_as_nodes(policy: Any, placement: Placement, instance: Instance) -> str | None:
    nodes = instance.cluster.node_count
    return None if policy.copies == 0 or policy.copies >= nodes else f"fewer copies than the {nodes} nodes"


def _no_dearer_restart(policy: Any, placement: Placement, instance: Instance) -> str | None:
    dear = bool((np.nan_to_num(instance.restart) > policy.overhead).any())
    return "it costs more than the overhead of a copy to resume some job" if dear else None


def _ratio(policy: Any, run: Run) -> Fraction:
    assert isinstance(run, ForkedRun)
    nodes = run.instance.cluster.node_count
    work = sum(map(Fraction, run.instance.work.tolist()), Fraction(0))
    return Fraction(run.round) * nodes * math.ceil(Fraction(node_rounds(run), nodes)) / work


def _audit(policy: Any, run: Run) -> list[str]:
    assert isinstance(run, ForkedRun)
    return list(utilisation_audit(run).short[:SHOWN_JOBS])


@family(
    "as many jobs of 350 s as one-GPU nodes, rounds of 360 s with 10 s of overhead",
    policy="hadar-e",
    objective="makespan",
    ratio=lambda nodes: Fraction(360, 350),
    limit="L / (L - o) = 36/35",
)
def one_round(nodes: int = 4) -> Instance:
    """Build an instance that is done after one round of 360 s, 10 s of which are overhead.

    It has as many jobs of 350 s as one-GPU nodes.

    Parameters
    ----------
    nodes
        Number of nodes and of jobs.
    """
    check_legal(nodes >= 1, "nodes", nodes, "an integer >= 1")
    jobs = [Job(f"{j}", duration=350) for j in range(nodes)]
    optimum = stating(350, "makespan", "gang", "volume")
    return Instance(jobs, f"{nodes}x1", f"one-round-{nodes}", "makespan", optimum=optimum)


HADAR_E = guarantee(
    id="hadar-e",
    statement="min(n, x J) nodes are busy in every round; with x >= n on identical nodes, all jobs there at 0: "
    "C_max <= L ceil(sum_j ceil(p_j/(L-o)) / n)",
    notation="P | r_j = 0, forking | C_max",
    knowledge="clairvoyant",
    source="utilisation: claimed in arXiv 2503.10918; both proved in this module",
    status="proved",
    proof=(
        "A job with p left fills ceil(p / s) node-rounds, s = L - o. While every node has planned work the sum of these "
        "falls by n a round; the first round in which some node has none is the last. OPT >= sum p / n, even with forking."
    ),
    objective="makespan",
    policies=("hadar-e",),
    assumptions=all_of(
        all_at_once,
        known_durations,
        instance_is(lambda instance: instance.unrestricted, "some jobs may not use every node"),
        instance_is(
            lambda instance: np.unique([*instance.cluster.node_gpus, *instance.gpus]).size == 1,
            "a gang does not fill a node",
        ),
        _as_many_copies_as_nodes,
        _no_dearer_restart,
        policy_is(lambda policy: policy.rule != "payoff", "the rule is payoff"),  # lp is work on alike nodes
        policy_is(lambda policy: policy.estimate == "true", "throughputs are estimated"),
        instance_is(lambda instance: instance.n, "no jobs"),
    ),
    ratio=_ratio,
    tight=TightFamily("n jobs of L - o seconds on n nodes: L against L - o", one_round),
    audit=_audit,
    schedule_class="forking",
)
