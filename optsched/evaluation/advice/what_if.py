"""Changes of the cluster, as ``--what-if`` states them: more or fewer GPUs, or another shape, and a policy there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from optsched.errors import InputError, RowErrors
from optsched.evaluation.advice.candidate_runs import runs_of
from optsched.evaluation.advice.savings import Saving, queued_by_job, savings
from optsched.evaluation.report import queued_hours
from optsched.io.cluster_files import cluster_of
from optsched.io.traces.log_reading import unit_of
from optsched.policies.simulate import Specification
from optsched.problem.arrays import Bools
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance
from optsched.problem.job_table import REPORTED
from optsched.simulation.run import Run

FEW = 10  # nodes, of which one is more than 10 %
NODES = "nodes"
_CHANGE = re.compile(r"(\w+)\s*=\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%?)")


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster.

    Parameters
    ----------
    text
        The change as the user states it.
    cluster
        The cluster after it.
    before
        Number of GPUs before it.
    """

    text: str
    cluster: Cluster
    before: int

    @property
    def share(self) -> float:
        """The change of the number of GPUs, as a share of the number before."""
        return self.cluster.gpus / self.before - 1

    @property
    def label(self) -> str:
        """The change in a table, with the true percentage if rounding to whole nodes or GPUs makes it another one."""
        match = _CHANGE.fullmatch(self.text.strip())
        if match is None or not match[4] or abs(float(f"{match[2]}{match[3]}") - 100 * self.share) < 1:
            return self.text
        return f"{self.text} (rounded: {100 * self.share:+.3g} %)"


@dataclass(frozen=True)
class WhatIf:
    """The best policy on another cluster.

    Parameters
    ----------
    change
        The change and the cluster.
    run
        The run of the jobs that fit there.
    saving
        Queued GPU-hours of these jobs in the first row, minus those on the other cluster; None if jobs are unfinished.
    misfits
        Number of jobs whose gang does not fit, which are left out.
    queued_before
        Queued GPU-hours of the jobs that fit in the first row; nan if jobs are unfinished.
    """

    change: ClusterChange
    run: Run
    saving: Saving | None
    misfits: int = 0
    queued_before: float = np.nan

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``advise --json``."""
        cluster = self.change.cluster
        return {
            "change": self.change.text,
            "cluster": cluster.spec,
            "gpus": cluster.gpus,
            "share": self.change.share,
            "policy": self.run.policy,
            "misfits": self.misfits,
            "queued_gpu_hours": queued_hours(self.run),
            "queued_gpu_hours_before": None if np.isnan(self.queued_before) else self.queued_before,
            "saving": None if self.saving is None else asdict(self.saving),
            "metrics": self.run.metrics,
        }


def change_of(text: str, cluster: Cluster, unit: str = "GPU") -> ClusterChange:
    """Return the cluster that a change makes.

    Parameters
    ----------
    text
        ``gpus=+10%``, ``nodes=-1`` or ``cluster=SPEC``.
    cluster
        The cluster before.
    unit
        What gangs count, in the singular: ``CPU`` makes the first form ``cpus=+10%``.

    Raises
    ------
    InputError
        The text is none of these, or leaves no GPU.
    """
    name, _, spec = text.partition("=")
    if name.strip().lower() == "cluster":
        return ClusterChange(text, cluster_of(spec.strip()), cluster.gpus)
    match, counted = _CHANGE.fullmatch(text.strip()), f"{unit.lower()}s"
    legal = f"{counted}=+10%, {counted}=-10%, nodes=+2, nodes=-1, or cluster=NODESxGPUS[:TYPE][+...]"
    if match is None or match[1].lower() not in (NODES, *[counted] * bool(match[4])):
        raise InputError("not a change of the cluster", field="what-if", value=text, legal=legal)
    amount = float(f"{match[2]}{match[3]}")
    if not match[4] and amount != int(amount):
        raise InputError("not a whole number of nodes", field="what-if", value=text, legal=legal)
    groups = _by_share(cluster, amount / 100) if match[4] else _by_nodes(cluster, int(amount), text)
    if not groups:
        raise InputError(f"no {unit} is left", field="what-if", value=text, legal=legal)
    return ClusterChange(text, Cluster(groups), cluster.gpus)


def default_changes(instance: Instance) -> list[ClusterChange]:
    """Return 10 % more and fewer GPUs, or a node more and fewer on a cluster of few nodes.

    A change that leaves no GPU, or on which hardly any job fits, is left out.

    Parameters
    ----------
    instance
        Jobs and the cluster before.
    """
    unit, changes = unit_of(instance), []
    for sign in "+-":
        text = f"nodes={sign}1" if 1 < instance.cluster.node_count < FEW else f"{unit.lower()}s={sign}10%"
        try:
            change = change_of(text, instance.cluster, unit)
            on_cluster(instance, change)
        except InputError:
            continue
        changes.append(change)
    return changes


def changes_of(instance: Instance, what_if: str | Iterable[str] | None) -> list[ClusterChange]:
    """Return the changes that a user states, or the default ones.

    Parameters
    ----------
    instance
        Jobs and the cluster before.
    what_if
        One change, several, or None for `default_changes`.

    Raises
    ------
    InputError
        A text states no change, or one that leaves no GPU.
    """
    if what_if is None:
        return default_changes(instance)
    texts, unit = [what_if] if isinstance(what_if, str) else what_if, unit_of(instance)
    return [change_of(text, instance.cluster, unit) for text in texts]


def on_cluster(instance: Instance, change: ClusterChange) -> tuple[Instance, Bools]:
    """Return the jobs that fit on a changed cluster, with that cluster, and which jobs these are, bool[n].

    Parameters
    ----------
    instance
        Jobs and the cluster before.
    change
        The change.

    Raises
    ------
    InputError
        Hardly any job fits.
    """
    fit = np.ones(instance.n, dtype=np.bool_)
    try:
        return instance.with_cluster(change.cluster), fit
    except RowErrors as error:
        fit[[problem.row - 1 for problem in error.problems]] = False
        if len(error.problems) >= REPORTED or not fit.any():
            legal = f"a cluster on which all but {REPORTED:,} jobs fit"
            raise InputError("jobs do not fit", field="what-if", value=change.text, legal=legal) from None
    return instance.replace(jobs=instance.table.filter(fit), cluster=change.cluster), fit


def _by_share(cluster: Cluster, share: float) -> tuple[NodeGroup, ...]:
    """Return the node groups with more or fewer nodes each; a single node has more or fewer GPUs."""
    if cluster.node_count == 1:
        [node] = cluster.nodes
        gpus = _moved(node.gpus, share)
        return (replace(node, gpus=gpus),) if gpus > 0 else ()
    nodes = _moved(cluster.node_count, share)
    counts = [int(group.count * nodes / cluster.node_count) for group in cluster.nodes]
    missing = [
        group.count * nodes / cluster.node_count - count for group, count in zip(cluster.nodes, counts, strict=True)
    ]
    for k in sorted(range(len(counts)), key=lambda k: -missing[k])[: nodes - sum(counts)]:  # the largest remainders
        counts[k] += 1
    pairs = zip(cluster.nodes, counts, strict=True)
    return tuple(replace(group, count=count) for group, count in pairs if count > 0)


def _moved(count: int, share: float) -> int:
    moved = round(count * (1 + share))
    return count + int(math.copysign(1, share)) if moved == count and share != 0 else moved


def _by_nodes(cluster: Cluster, nodes: int, text: str) -> tuple[NodeGroup, ...]:
    """Return the node groups with some nodes more or fewer of the most frequent shape."""
    largest = max(cluster.nodes, key=lambda group: group.count)
    changed = [(group, group.count + nodes * (group is largest)) for group in cluster.nodes]
    if any(count < 0 for _, count in changed):
        raise InputError("there are not that many nodes", field="what-if", value=text, legal=f"at most {largest.count}")
    return tuple(replace(group, count=count) for group, count in changed if count > 0)


def on_changed(
    base: Run, changes: Sequence[ClusterChange], best: Specification, workers: int | None, draws: int, seed: int
) -> tuple[WhatIf, ...]:
    """Return the best policy on every changed cluster, compared with the first row job by job.

    Parameters
    ----------
    base
        The run of the first row.
    changes
        The changes.
    best
        The policy.
    workers
        Number of processes, as for `runs_of`.
    draws, seed
        Number and seed of the draws for the intervals.

    Raises
    ------
    InputError
        Hardly any job fits on a cluster.
    """
    placed = [on_cluster(base.instance, change) for change in changes]
    runs = runs_of([(instance, best) for instance, _ in placed], workers)
    before, arrival, entries = queued_by_job(base.schedule), base.instance.relative.arrival, []
    for change, (_, fit), run in zip(changes, placed, runs, strict=True):
        [saving] = savings(before[fit], [queued_by_job(run.schedule)], arrival[fit], draws, seed)
        complete = not run.unfinished and not base.unfinished
        misfits, queued = int((~fit).sum()), float(before[fit].sum())
        entries.append(WhatIf(change, run, saving if complete else None, misfits, queued))
    return tuple(entries)
