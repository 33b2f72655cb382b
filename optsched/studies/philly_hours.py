"""`philly_hours`: workloads of Hadar's kind from Microsoft's Philly trace, where its file is at hand.

The file is ``philly/philly.csv`` in the folder that OPTSCHED_DATA names (dialect ``philly``). Seed k takes the k-th busiest
block of ``hours`` hours: blocks are counted from the first submission of the file, and busy is how many jobs of at most 100
GPU-hours are submitted in it (ties: the earlier). Of these submissions ``jobs`` are drawn without replacement; their times
are the arrivals, counted from the first.

* ``classes=philly``: each arrival is the job that was submitted then, with its GPUs and GPU-hours.
* ``classes=even``: what arrives is drawn instead from all jobs of the file, a quarter of each class S, M, L, XL (rounded
  down; the rest S), in random order. In busy hours nearly all jobs are short: equal parts load the cluster more.

Models, gangs and iterations follow from GPUs and GPU-hours by the rules of `optsched.io.traces.recipes.hadar_recipes`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import DIALECTS
from optsched.io.traces.recipes.gavel_recipes import largest_type, speeds_on
from optsched.io.traces.recipes.hadar_recipes import CLUSTER, MOST, NAMES, classes_of, even_classes, modelled
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance

FILE = Path("philly", "philly.csv")
HOUR = 3600.0


def philly_file() -> Path | None:
    """The trace, or None where OPTSCHED_DATA does not lead to it."""
    place = os.environ.get("OPTSCHED_DATA", "")
    path = Path(place) / FILE
    return path if place and path.is_file() else None


def philly_hours(seed: int, *, jobs: int, classes: str, cluster: str = CLUSTER, hours: float = 8.0) -> Instance:
    """Return the instance of a seed.

    Parameters
    ----------
    seed
        Rank of the block among the busiest, from 1; also the seed of the random draws.
    jobs
        Number of jobs.
    classes
        ``philly``: the jobs as submitted; ``even``: drawn from all jobs of the file, a quarter of each size class.
    cluster
        Cluster in text form.
    hours
        Length of a block in hours.

    Raises
    ------
    InputError
        If the file is missing, or no such block has that number of jobs.
    """
    path = philly_file()
    if path is None:
        raise InputError("no file", file=FILE, legal="OPTSCHED_DATA names the folder of public traces")
    submitted, gpus, gpu_hours = _jobs(path)
    where, rng = Cluster.parse(cluster), np.random.default_rng(seed)
    drawn = _busy(submitted, jobs, hours * HOUR, seed, rng)
    content = drawn
    if classes != "philly":  # as many jobs of each class, in random order
        of_class, wanted = classes_of(gpu_hours), np.bincount(even_classes(jobs), minlength=len(NAMES)).tolist()
        each = [rng.choice(np.flatnonzero(of_class == k), size=n, replace=False) for k, n in enumerate(wanted)]
        content = rng.permutation(np.concatenate(each))
    columns = modelled(rng, gpus[content], gpu_hours[content], largest_type(where))
    columns |= {
        "id": [str(k + 1) for k in range(jobs)],
        "arrival": submitted[drawn] - submitted[drawn[0]],
        "group": [NAMES[k] for k in classes_of(gpu_hours[content])],
    }
    speeds = speeds_on(where, columns["profile"], columns["gpus"])
    return Instance(pl.DataFrame(columns), where, f"philly-hours-{classes}-{seed}", throughputs=speeds)


@lru_cache(maxsize=1)
def _jobs(path: Path) -> tuple[Floats, Ints, Floats]:
    """(submission in seconds from the first, GPUs, GPU-hours) of the jobs of at most `MOST` GPU-hours, by submission."""
    table = DIALECTS.get("philly").read(path, skip_bad=True).table
    kept = table.with_columns((pl.col("duration") * pl.col("gpus") / HOUR).alias("gpu_hours"))
    kept = kept.filter(pl.col("gpu_hours") <= MOST).sort("arrival", maintain_order=True)
    return tuple(kept[name].to_numpy() for name in ("arrival", "gpus", "gpu_hours"))  # type: ignore[return-value]


def _busy(submitted: Floats, jobs: int, seconds: float, rank: int, rng: np.random.Generator) -> Ints:
    """``jobs`` of the submissions in the ``rank``-th busiest block, in order."""
    block = (submitted // seconds).astype(np.int64)
    count = np.bincount(block)
    if not 1 <= rank <= int((count >= jobs).sum()):
        legal = f"1 to {int((count >= jobs).sum())}, the blocks with {jobs} jobs"
        raise InputError("no such block", file=FILE, field="seed", value=rank, legal=legal)
    chosen = int(np.argsort(-count, kind="stable")[rank - 1])
    return np.sort(rng.choice(np.flatnonzero(block == chosen), size=jobs, replace=False))
