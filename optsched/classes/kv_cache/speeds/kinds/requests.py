"""Requests of a language model: a token a round, whose length depends on the GPU type.

A job is a request if it has no duration and its profile is ``prompt-S``; the model is described in
`optsched.classes.kv_cache.problem.requests`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from optsched.classes.kv_cache import MODEL
from optsched.classes.kv_cache.problem.requests import MOST_TOKENS, PROMPT, TICK, alone_ticks, is_affine
from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.job_speeds import JobSpeeds, Nodes
from optsched.problem.job_table import rows_that_are
from optsched.problem.speed_model import SPEED_MODELS, SpeedModel

_PATTERN = rf"^{PROMPT}\d{{1,15}}$"
_PROMPT = pl.col("profile").str.strip_prefix(PROMPT).cast(pl.Int64, strict=False)
_ONES = pl.col("duration").is_null() & pl.col("profile").str.contains(_PATTERN)


class RequestSpeeds(JobSpeeds):
    """A token takes a round: 1, or on average as long as it takes alone."""

    def paces(self) -> tuple[Floats, Floats]:
        tokens = self.instance.work[self.jobs].astype(np.int64)
        if not is_affine(self.instance.cluster):
            return np.ones(tokens.size), np.ones(tokens.size)
        prompt = np.array([int(name.removeprefix(PROMPT)) for name in self.names], dtype=np.int64)
        mean = alone_ticks(prompt, tokens) / (TICK * tokens)
        return mean, mean

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        """Return the seconds that a token takes alone, on average, f64[S].

        Parameters
        ----------
        jobs
            Positions of the jobs, i64[S].
        nodes
            Not used: there is one worker.
        """
        mean = np.ones(self.instance.n)
        mean[self.jobs] = self.paces()[0]
        return mean[jobs]


@SPEED_MODELS.register(MODEL)
class RequestModel(SpeedModel):
    """Requests, whose speed follows from their rounds; nothing is given of it."""

    name, noun = MODEL, "a prompt"
    formulas = RequestSpeeds

    def applies_to(self, table: pl.DataFrame) -> Bools:
        """Return which jobs are requests, bool[n].

        Parameters
        ----------
        table
            Normal, valid table of jobs.
        """
        return table.select(_ONES.fill_null(False)).to_series().to_numpy()

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """Return the invalid values of requests.

        Parameters
        ----------
        table
            Normal table of jobs.
        cluster
            Cluster of the instance.
        """
        if not table["profile"].str.starts_with(PROMPT).any():
            return []
        group, numbered = cluster.nodes[0], table.with_row_index("__row")
        if cluster.gpus > 1 or group.gpu_memory is None or group.gpu_memory != int(group.gpu_memory):
            legal = "one node with one GPU, and its cells, an integer, as gpu_memory"
            raise InputError("requests need one worker", field="cluster", value=cluster.spec, legal=legal)
        cells, tokens = int(group.gpu_memory), pl.col("iterations")
        rules = [
            ("profile", ~_ONES.fill_null(False), f"{PROMPT}S with S prompt tokens, as the other jobs", "no request"),
            ("iterations", tokens != tokens.floor(), "a whole number of output tokens", "invalid"),
            (
                "iterations",
                (tokens > MOST_TOKENS) | (_PROMPT > MOST_TOKENS),
                f"at most {MOST_TOKENS:g}",
                "too many tokens",
            ),
            (
                "iterations",
                (tokens >= 1) & (_PROMPT + tokens > cells),
                f"with the prompt at most {cells}, the cells of the cache",
                "the peak is larger than the cache",
            ),
        ]
        if not is_affine(cluster):
            whole = "a boundary between rounds: a whole number"
            rules.append(("arrival", pl.col("arrival") != pl.col("arrival").floor(), whole, "invalid"))
        return [
            problem
            for field, wrong, legal, message in rules
            for problem in rows_that_are(
                _ONES & wrong if field != "profile" else wrong, numbered, field, legal, message
            )
        ]
