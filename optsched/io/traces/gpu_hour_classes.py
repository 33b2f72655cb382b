"""Models for jobs of which only GPUs and GPU-hours are known: the four classes of Hadar's simulations.

======  ==========  ==================================================================
class   GPU-hours   model
======  ==========  ==================================================================
S       below 1     ResNet-18 (batch size 128)
M       1 to 10     CycleGAN
L       10 to 50    LM (batch size 80) or Transformer (batch size 128), equally likely
XL      50 to 100   ResNet-50 (batch size 64)
======  ==========  ==================================================================

Classes and models are those generally attributed to the paper (not confirmed; there XL begins at 60). This project's own
choice are:

* the batch sizes, and which of the two models a job of class L trains;
* that jobs from 50 to 60 GPU-hours are XL, and that jobs of more than 100 are left out;
* that a GPU-hour is meant on one V100: a job has 3600 x GPU-hours x (rate on one V100) iterations, rounded up;
* that a gang is cut to the largest of 1, 2, 4, 8 GPUs (what was measured) that it holds and that one GPU type of the cluster
  has, its GPU-hours unchanged;
* that a gang of N GPUs trains CycleGAN, which was measured on one GPU only, N times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.speeds.throughput_table import built_in

NAMES = ("S", "M", "L", "XL")
FROM = np.array([0.0, 1.0, 10.0, 50.0])  # GPU-hours
MOST = 100.0
GANGS = (1, 2, 4, 8)
MODELS = (
    ("ResNet-18 (batch size 128)",),
    ("CycleGAN",),
    ("LM (batch size 80)", "Transformer (batch size 128)"),
    ("ResNet-50 (batch size 64)",),
)
REFERENCE = "V100"


@dataclass(frozen=True, eq=False)
class Modelled:
    """Job types of n jobs, their ``gpus`` i64[n] and ``iterations`` f64[n]."""

    job_type: list[str]
    gpus: Ints
    iterations: Floats


def classes_of(gpu_hours: Floats) -> Ints:
    """The class of every job, an index into `NAMES`, i64[n]."""
    return np.searchsorted(FROM, gpu_hours, side="right") - 1


def modelled(rng: np.random.Generator, gpus: Ints, gpu_hours: Floats, widest: int) -> Modelled:
    """Models, gangs and iterations of jobs; ``widest``: GPUs of the GPU type of which the cluster has most."""
    u = rng.random(gpus.size).tolist()
    possible = [MODELS[k] for k in classes_of(gpu_hours).tolist()]
    job_type = [names[int(x * len(names))] for names, x in zip(possible, u, strict=True)]
    rate = {name: _rate(name) for name in set(job_type)}
    iterations = np.ceil(3600.0 * gpu_hours * np.array([rate[name] for name in job_type]))
    legal = np.array([count for count in GANGS if count <= widest])
    cut = legal[np.searchsorted(legal, gpus, side="right") - 1]
    return Modelled(job_type, cut, np.maximum(1.0, iterations))


def _rate(job_type: str) -> float:
    found = built_in().get(job_type, REFERENCE, 1)
    assert found is not None
    return found.together
