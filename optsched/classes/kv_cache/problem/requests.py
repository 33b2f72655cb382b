"""`Requests`: the requests of an instance as arrays, and instances made of arrays.

**Model.** Time is cut into rounds (one forward pass each). Request i has the arrival a_i (a boundary between rounds), s_i
prompt tokens and o_i output tokens. Started at the boundary k >= a_i, it makes one token in each of the rounds k + 1 to
k + o_i and holds s_i + j cells of the cache in the j-th of them: its **peak** is s_i + o_i. Then all its cells are free.
One worker has M cells: in every round the running requests hold at most M. C_i = k + o_i. A request that is thrown out
loses its tokens and starts again. Its **volume** is the sum of its cells over its rounds, s o + o (o + 1) / 2.

**Instance.** A request is a job with ``iterations`` o_i and the ``profile`` ``"prompt-S"`` for s_i = S. ``arrival`` counts
rounds, ``weight`` is the weight, and ``walltime`` a number of tokens that the user states (the predictor ``user-limit``
reads it). The cluster is one node with one GPU, whose ``gpu_memory`` is M (cells in place of bytes). Its GPU type decides
the length of a round: with `AFFINE` it is in seconds what Jaillet et al. (arXiv 2502.07115, 2025) measured, and arrivals
are in seconds; with any other type it is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl

from optsched.classes.kv_cache import is_served
from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance

PROMPT = "prompt-"  # a profile is this and the number of prompt tokens
AFFINE = "2xA100-70B"  # GPU type with rounds of affine length
# Ticks (1e-7 s) of such a round: at all, a request in it, a cell of these, a token of a new prompt.
TICK, ROUND, REQUEST, CELL, NEW = 10**7, 446_000, 5_200, 27, 3_780
MOST_TOKENS = 10**7  # of a prompt or an answer


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of an instance, in its order.

    ``cells`` is M, ``arrival`` a_i f64[n] in rounds (in seconds if rounds are ``affine``), ``prompt`` s_i and ``output`` o_i
    i64[n], ``weight`` f64[n].
    """

    cells: int
    arrival: Floats
    prompt: Ints
    output: Ints
    weight: Floats
    affine: bool

    @property
    def n(self) -> int:
        """Number of requests."""
        return self.prompt.size

    @cached_property
    def volume(self) -> Ints:
        """v_i = s_i o_i + o_i (o_i + 1) / 2, i64[n]: cells times rounds."""
        return volumes(self.prompt, self.output)

    @cached_property
    def alone(self) -> Ints:
        """Rounds that requests take alone, i64[n], or ticks of rounds of affine length."""
        if not self.affine:
            return self.output
        return (ROUND + REQUEST) * self.output + CELL * self.volume + NEW * self.prompt


def volumes(prompt: Ints, output: Ints) -> Ints:
    """Return s o + o (o + 1) / 2, i64[n]: cells times rounds that requests hold.

    Parameters
    ----------
    prompt
        Prompt tokens s, i64[n].
    output
        Output tokens o, i64[n].
    """
    return prompt * output + output * (output + 1) // 2


@lru_cache(maxsize=8)
def requests_of(instance: Instance) -> Requests:
    """Return the requests of an instance of the class ``kv-cache``.

    Parameters
    ----------
    instance
        Jobs and one worker.

    Raises
    ------
    InputError
        Its jobs are no requests.
    """
    if not is_served(instance):
        raise InputError("these jobs are no requests", field="profile", legal="prompt-S, with S prompt tokens")
    (group,) = instance.cluster.nodes
    prompt = instance.table["profile"].str.strip_prefix(PROMPT).cast(pl.Int64).to_numpy().copy()
    output, cells = instance.iterations.astype(np.int64), int(group.gpu_memory or 0)
    return Requests(cells, instance.arrival, prompt, output, instance.weight, is_affine(instance.cluster))


def is_affine(cluster: Cluster) -> bool:
    """Return True if rounds on a cluster have affine length.

    Parameters
    ----------
    cluster
        One worker.
    """
    return cluster.nodes[0].gpu.casefold() == AFFINE.casefold()


def worker(cells: int, *, affine: bool = False) -> Cluster:
    """Return the cluster of one worker.

    Parameters
    ----------
    cells
        M, the cells of the cache.
    affine
        True for rounds of affine length.
    """
    return Cluster((NodeGroup(1, gpu=AFFINE if affine else "GPU", gpu_memory=cells),))


def columns(prompt: Ints, output: Ints, arrival: Floats) -> dict[str, Any]:
    """Return columns of the table of the jobs that are requests.

    Parameters
    ----------
    prompt
        Prompt tokens, i64[n].
    output
        Output tokens, [n].
    arrival
        Arrivals, f64[n].
    """
    profile = [f"{PROMPT}{s}" for s in np.asarray(prompt).tolist()]
    return {"arrival": arrival, "iterations": np.asarray(output, dtype=np.float64), "profile": profile}


def request_instance(
    prompt: Sequence[int] | Ints,
    output: Sequence[int] | Ints,
    cells: int,
    *,
    arrival: Sequence[float] | Floats | None = None,
    weight: Sequence[float] | Floats | None = None,
    limit: Sequence[int] | Ints | None = None,
    affine: bool = False,
    **parts: Any,
) -> Instance:
    """Return an instance of requests.

    Parameters
    ----------
    prompt
        Prompt tokens s_i.
    output
        Output tokens o_i.
    cells
        M, the cells of the cache.
    arrival
        Arrivals in rounds, or in seconds if rounds have affine length; None: all at 0.
    weight
        Weights; None: all 1.
    limit
        Output tokens that the users state, which the predictor ``user-limit`` reads; None: not stated.
    affine
        True for rounds of affine length.
    **parts
        Further arguments of `Instance`: ``name``, ``recipe``, ``objective``.

    Examples
    --------
    >>> import optsched as osd
    >>> from optsched.classes.kv_cache.problem.requests import request_instance
    >>> instance = request_instance([2, 1, 3, 1], [4, 7, 2, 5], 12, arrival=[0, 1, 2, 3])
    >>> osd.simulate(instance, "mc-sf").value()
    23.0
    """
    begin = np.zeros(len(prompt)) if arrival is None else np.asarray(arrival, dtype=np.float64)
    jobs = columns(np.asarray(prompt), np.asarray(output), begin)
    more = {"weight": weight, "walltime": limit}
    jobs |= {name: np.asarray(values, dtype=np.float64) for name, values in more.items() if values is not None}
    return Instance(pl.DataFrame(jobs), worker(cells, affine=affine), **{"objective": "total_flow_time", **parts})
