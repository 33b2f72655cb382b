"""Which node groups may serve a job: its GPU types, its memory, and the types on which it runs at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.problem.cluster import Cluster

if TYPE_CHECKING:
    from optsched.problem.speed_model import SpeedModel

_KEY = ("gpu_types", "gpu_memory", "__profile", "__gang")


def suited_groups(
    table: pl.DataFrame, cluster: Cluster, models: Sequence[SpeedModel]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(pattern of every job i64[n], the node groups that suit it bool[K, groups]).

    A job may use a type only where the model that gives it its speed says that its gang runs there, together and spread:
    where a gang may be placed must not decide whether it runs at all. Jobs with the same pattern may use the same nodes.
    O(n) in polars plus one look for each distinct combination.
    """
    model_of = {name: model for model in models if model.limits_types for name in model.names}
    if not model_of and table["gpu_types"].null_count() == table["gpu_memory"].null_count() == table.height:
        return np.zeros(table.height, dtype=np.int64), np.ones((1, len(cluster.nodes)), dtype=bool)
    rows = _keyed(table, list(model_of))
    limits = rows.unique(maintain_order=True)
    masks = np.array(
        [
            [
                group.suits(types, memory) and (profile is None or model_of[profile].runs_on(profile, group.gpu, gang))
                for group in cluster.nodes
            ]
            for types, memory, profile, gang in limits.iter_rows()
        ],
        dtype=bool,
    ).reshape(limits.height, len(cluster.nodes))
    patterns, pattern_of = np.unique(masks, axis=0, return_inverse=True)
    numbered = limits.with_columns(pl.Series("__pattern", pattern_of.reshape(-1).astype(np.int64)))
    found = rows.join(numbered, on=list(_KEY), how="left", nulls_equal=True, maintain_order="left")["__pattern"]
    return found.to_numpy().astype(np.int64), patterns


def _keyed(table: pl.DataFrame, limited: list[str]) -> pl.DataFrame:
    profile: pl.Expr = pl.lit(None, dtype=pl.String)
    if limited:
        profile = pl.when(pl.col("duration").is_null() & pl.col("profile").is_in(limited)).then(pl.col("profile"))
    gang = pl.when(pl.col("__profile").is_not_null()).then(pl.col("gpus"))
    return table.with_columns(profile.alias("__profile")).with_columns(gang.alias("__gang")).select(*_KEY)
