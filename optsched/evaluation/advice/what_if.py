"""Changes of the cluster, as ``--what-if`` states them: more or fewer GPUs, or another shape, and a policy there."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from optsched.errors import InputError, RowErrors
from optsched.evaluation.advice.candidate_runs import runs_of
from optsched.evaluation.advice.savings import Saving, queued_by_job, savings
from optsched.evaluation.report import queued_hours
from optsched.io.cluster_files import cluster_of
from optsched.policies.simulate import Specification
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.job_table import REPORTED
from optsched.simulation.run import Run

LEGAL = "gpus=+10%, gpus=-10%, gpus=+2 nodes, gpus=-1 node, or cluster=NODESxGPUS[:TYPE][+...]"
DEFAULT = ("gpus=+10%", "gpus=-10%")
_CHANGE = re.compile(r"gpus\s*=\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%|nodes?)", re.IGNORECASE)


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster.

    Parameters
    ----------
    text
        The change as the user states it.
    cluster
        The cluster after it.
    """

    text: str
    cluster: Cluster


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
    """

    change: ClusterChange
    run: Run
    saving: Saving | None
    misfits: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``advise --json``."""
        cluster = self.change.cluster
        return {
            "change": self.change.text,
            "cluster": cluster.spec,
            "gpus": cluster.gpus,
            "policy": self.run.policy,
            "misfits": self.misfits,
            "queued_gpu_hours": queued_hours(self.run),
            "saving": None if self.saving is None else asdict(self.saving),
            "metrics": self.run.metrics,
        }


def change_of(text: str, cluster: Cluster) -> ClusterChange:
    """Return the cluster that a change makes.

    Parameters
    ----------
    text
        ``gpus=+10%``, ``gpus=-1 node`` or ``cluster=SPEC``.
    cluster
        The cluster before.

    Raises
    ------
    InputError
        The text is none of these, or leaves no GPU.
    """
    name, _, spec = text.partition("=")
    if name.strip().lower() == "cluster":
        return ClusterChange(text, cluster_of(spec.strip()))
    match = _CHANGE.fullmatch(text.strip())
    if match is None:
        raise InputError("not a change of the cluster", field="what-if", value=text, legal=LEGAL)
    sign, amount = 1 if match[1] == "+" else -1, float(match[2])
    groups = _by_share(cluster, sign * amount / 100) if match[3] == "%" else _by_nodes(cluster, sign * amount, text)
    if not groups:
        raise InputError("no GPU is left", field="what-if", value=text, legal=LEGAL)
    return ClusterChange(text, Cluster(groups))


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


def _by_nodes(cluster: Cluster, nodes: float, text: str) -> tuple[NodeGroup, ...]:
    """Return the node groups with some nodes more or fewer of the most frequent shape."""
    if nodes != int(nodes):
        raise InputError("not a whole number of nodes", field="what-if", value=text, legal=LEGAL)
    largest = max(cluster.nodes, key=lambda group: group.count)
    changed = [(group, group.count + int(nodes) * (group is largest)) for group in cluster.nodes]
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
    instance = base.instance
    fits, tasks = [], []
    for change in changes:
        fit = np.ones(instance.n, dtype=np.bool_)
        try:
            changed = instance.with_cluster(change.cluster)
        except RowErrors as error:
            fit[[problem.row - 1 for problem in error.problems]] = False
            if len(error.problems) >= REPORTED or not fit.any():
                legal = f"a cluster on which all but {REPORTED:,} jobs fit"
                raise InputError("jobs do not fit", field="what-if", value=change.text, legal=legal) from None
            changed = instance.replace(jobs=instance.table.filter(fit), cluster=change.cluster)
        fits.append(fit)
        tasks.append((changed, best))
    before, arrival, entries = queued_by_job(base.schedule), instance.relative.arrival, []
    for change, fit, run in zip(changes, fits, runs_of(tasks, workers), strict=True):
        [saving] = savings(before[fit], [queued_by_job(run.schedule)], arrival[fit], draws, seed)
        complete = not run.unfinished and not base.unfinished
        entries.append(WhatIf(change, run, saving if complete else None, int((~fit).sum())))
    return tuple(entries)
