"""Which node groups may serve a job: its GPU types, its memory, and the types on which a table says that it runs at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.problem.cluster import Cluster

if TYPE_CHECKING:
    from optsched.problem.throughputs import Throughputs

_KEY = ("gpu_types", "gpu_memory", "__job_type", "__gang")


def suited_groups(
    table: pl.DataFrame, cluster: Cluster, throughputs: Throughputs | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(pattern of every job i64[n], the node groups that suit it bool[K, groups]).

    A job that runs at the speeds of a table may use a type only where the table knows its gang and no rate is zero, whether
    together or spread: where a gang may stand must not decide whether it runs at all. Jobs
    with the same pattern may use the same nodes. O(n) in polars plus one look for each distinct combination.
    """
    if throughputs is None and table["gpu_types"].null_count() == table["gpu_memory"].null_count() == table.height:
        return np.zeros(table.height, dtype=np.int64), np.ones((1, len(cluster.nodes)), dtype=bool)
    rows = _keyed(table, throughputs)
    limits = rows.unique(maintain_order=True)
    masks = np.array(
        [
            [group.suits(types, memory) and _runs(throughputs, job_type, group.gpu, gang) for group in cluster.nodes]
            for types, memory, job_type, gang in limits.iter_rows()
        ],
        dtype=bool,
    ).reshape(limits.height, len(cluster.nodes))
    patterns, pattern_of = np.unique(masks, axis=0, return_inverse=True)
    numbered = limits.with_columns(pl.Series("__pattern", pattern_of.reshape(-1).astype(np.int64)))
    found = rows.join(numbered, on=list(_KEY), how="left", nulls_equal=True, maintain_order="left")["__pattern"]
    return found.to_numpy().astype(np.int64), patterns


def _keyed(table: pl.DataFrame, throughputs: Throughputs | None) -> pl.DataFrame:
    job_type: pl.Expr = pl.lit(None, dtype=pl.String)
    if throughputs is not None:
        at_table = pl.col("duration").is_null() & pl.col("profile").is_in(list(throughputs.job_types))
        job_type = pl.when(at_table).then(pl.col("profile"))
    gang = pl.when(pl.col("__job_type").is_not_null()).then(pl.col("gpus"))
    return table.with_columns(job_type.alias("__job_type")).with_columns(gang.alias("__gang")).select(*_KEY)


def _runs(throughputs: Throughputs | None, job_type: str | None, gpu: str, gang: int | None) -> bool:
    if throughputs is None or job_type is None or gang is None:
        return True
    found = throughputs.get(job_type, gpu, gang)
    return found is not None and found.together > 0 and (found.spread is None or found.spread > 0)
