"""The digest of an instance: what decides feasibility and value, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING

from optsched.problem.speed_model import LAST

if TYPE_CHECKING:
    from optsched.problem.instance import Instance

NUMBERS = ("arrival", "duration", "iterations", "weight", "due", "gpu_memory")
IF_STATED = ("restart", "checkpoint")


def digest_of(instance: Instance) -> str:
    """sha256 (hex) of cluster, jobs' numbers, ids and types, and what gives them their speeds."""
    h = hashlib.sha256(b"optsched-instance/1\n")

    def add(document: object, name: bytes = b"") -> None:
        h.update(name + json.dumps(document).encode())

    h.update(json.dumps(instance.cluster.to_json(), sort_keys=True).encode())
    add(instance.ids)
    stated = [column for column in IF_STATED if instance.table[column].null_count() < instance.n]
    for column in (*NUMBERS, *stated):
        h.update(column.encode() + instance.floats(column, math.nan).astype("<f8").tobytes())
    h.update(b"gpus" + instance.gpus.astype("<i8").tobytes())
    for column in ("profile", "gpu_types"):
        if instance.table[column].null_count() < instance.n:
            add(instance.table[column].to_list())
    for model in instance.models:
        jobs = instance.jobs_at(model.name)
        if jobs.size and model.document is not None:
            names = sorted(set(instance.table["profile"].gather(jobs).drop_nulls().to_list()))
            for document in model.digest(instance, names):
                add(document, model.name.encode() if model.rank == LAST else b"")
    if instance.interference is not None:
        table = instance.interference.table(list(dict.fromkeys(instance.kinds)))
        add([instance.interference.ratio, instance.kinds, [row.tolist() for row in table]])
    if instance.contention is not None and any(speeds.communicates for speeds in instance.speeds):
        add(instance.contention.to_json(), b"contention")
    return h.hexdigest()
