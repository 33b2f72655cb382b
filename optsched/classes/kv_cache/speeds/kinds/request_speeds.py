"""Requests of a language model: a token a round, whose length depends on the GPU type.

A job is a request if it has no duration and its profile is ``prompt-S``; the model is described in
`optsched.classes.kv_cache.problem.requests`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from optsched.classes.kv_cache import MODEL
from optsched.classes.kv_cache.problem.requests import (
    CELL,
    MOST_TOKENS,
    NEW,
    PROMPT,
    REQUEST,
    ROUND,
    TICK,
    is_affine,
    volumes,
)
from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.job_speeds import JobSpeeds, Nodes
from optsched.problem.job_table import rows_that_are
from optsched.problem.speed_model import SPEED_MODELS, SpeedModel

_PROMPT = pl.col("profile").str.strip_prefix(PROMPT).cast(pl.Int64, strict=False)
_ONES = pl.col("duration").is_null() & pl.col("profile").str.contains(rf"^{PROMPT}\d{{1,15}}$")


class _RequestSpeeds(JobSpeeds):
    """A token takes a round: 1, or on average as long as in a run alone."""

    def paces(self) -> tuple[Floats, Floats]:
        tokens = self.instance.work[self.jobs].astype(np.int64)
        if not is_affine(self.instance.cluster):
            return np.ones(tokens.size), np.ones(tokens.size)
        prompt = np.array([int(name.removeprefix(PROMPT)) for name in self.names], dtype=np.int64)
        ticks = (ROUND + REQUEST) * tokens + CELL * volumes(prompt, tokens) + NEW * prompt
        return (ticks / (TICK * tokens),) * 2

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        mean = np.ones(self.instance.n)
        mean[self.jobs] = self.paces()[0]
        return mean[jobs]


@SPEED_MODELS.register(MODEL)
class _RequestModel(SpeedModel):
    """Requests, whose speed follows from their rounds; nothing is given of it."""

    name, noun = MODEL, "a prompt"
    formulas = _RequestSpeeds

    def applies_to(self, table: pl.DataFrame) -> Bools:
        return table.select(_ONES.fill_null(False)).to_series().to_numpy()

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        profile = table["profile"]
        if profile.null_count() == table.height or not profile.str.starts_with(PROMPT).any():
            return []
        memory = cluster.nodes[0].gpu_memory
        if cluster.gpus > 1 or memory is None or memory != int(memory):
            legal = "one node with one GPU, and its cells, an integer, as gpu_memory"
            raise InputError("requests need one worker", field="cluster", value=cluster.spec, legal=legal)
        tokens, arrival, numbered = pl.col("iterations"), pl.col("arrival"), table.with_row_index("__row")
        largest, between = (tokens >= 1) & (_PROMPT + tokens > memory), not is_affine(cluster)
        peak = f"with the prompt at most {memory:g}, the cells of the cache"
        rules = [
            ("iterations", tokens != tokens.floor(), "a whole number of output tokens", "invalid"),
            (
                "iterations",
                (tokens > MOST_TOKENS) | (_PROMPT > MOST_TOKENS),
                f"at most {MOST_TOKENS:g}",
                "too many tokens",
            ),
            ("iterations", largest, peak, "the peak is larger than the cache"),
            ("arrival", (arrival != arrival.floor()) & between, "a boundary between rounds: a whole number", "invalid"),
        ]
        legal = f"{PROMPT}S with S prompt tokens, as the other jobs"
        found = rows_that_are(~_ONES.fill_null(False), numbered, "profile", legal, "no request")
        for field, wrong, expected, message in rules:
            found += rows_that_are(_ONES & wrong, numbered, field, expected, message)
        return found
