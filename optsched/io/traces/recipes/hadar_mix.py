"""Recipe ``hadar-mix``: the mixes M-1 to M-12 of HadarE's experiments, J one-GPU jobs on a few unlike one-GPU nodes.

The five models are those generally attributed to the paper: ResNet-18/CIFAR-10, LSTM/Wikitext-2, Transformer/Multi30k, an
autoencoder/ML-20M and a weather model; so are the nodes: a lab's Titan RTX, T4, T400, RTX 3090 and RTX A2000 (`LAB`), and on
AWS V100, K80 and T4 (`AWS`: one of each; how many there were is not known). Its measured throughputs are not public, and
what a mix consists of is not known. This project's own choice:

* Job k trains model k modulo five, in the order above; all jobs are there at 0.
* Rates: of the built-in table where it has the GPU type, else scaled by FP32 peak from the type nearest in peak; the
  weather model, of which nothing is known, 1 step/s on a V100, scaled by FP32 peak. Rates that are not measured are
  multiplied by a factor of their own, uniform in [1 - uneven, 1 + uneven]: the peak is a poor guide to real ones.
* A job lasts U(``shortest``, ``longest``) seconds on its fastest node (600 to 6000 s: as in the sheet's fork table).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.recipe import Draw, Values, cluster, integer, named, non_negative, number, recipe
from optsched.io.traces.recipes.gavel import model_names
from optsched.problem.cluster import Cluster
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.throughput_table import built_in, completed

LAB = "1x1:Titan RTX+1x1:T4+1x1:T400+1x1:RTX 3090+1x1:RTX A2000"
AWS = "1x1:V100+1x1:K80+1x1:T4"
WEATHER = "weather model"
MODELS = (
    "ResNet-18 (batch size 128)",
    "LM (batch size 80)",
    "Transformer (batch size 128)",
    "Recommendation (batch size 2048)",
    WEATHER,
)


@recipe(
    "hadar-mix",
    jobs=integer(5, "number of jobs", most=10**4),
    cluster=cluster(LAB, "one-GPU nodes"),
    uneven=non_negative(0.2, "relative error of rates that are not measured, below 1"),
    shortest=number(600, "least seconds on the fastest node"),
    longest=number(6000, "most seconds on the fastest node"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """HadarE's mixes: a few jobs of five models on unlike one-GPU nodes, all there at the beginning."""
    jobs, where, uneven = values["jobs"], values["cluster"], values["uneven"]
    for field, value, legal in (
        ("uneven", uneven, uneven < 1),
        ("longest", values["longest"], values["longest"] >= values["shortest"]),
    ):
        if not legal:
            raise InputError("invalid for recipe hadar-mix", field=field, value=value)
    table = _speeds(rng, where, uneven)
    job_type = [MODELS[k % len(MODELS)] for k in range(jobs)]
    fastest = {name: max(table.entries[name, gpu, 1].together for gpu in where.gpu_types) for name in MODELS}
    seconds = rng.uniform(values["shortest"], values["longest"], jobs)
    iterations = np.ceil(seconds * np.array([fastest[name] for name in job_type]))
    jobs_table = pl.DataFrame(
        {
            "id": named(jobs),
            "gpus": np.ones(jobs, dtype=np.int64),
            "iterations": iterations,
            "profile": job_type,
            "model": model_names(job_type),
        }
    )
    return Draw(jobs_table, where, "makespan", throughputs=table.restricted(set(job_type)))


def _speeds(rng: np.random.Generator, where: Cluster, uneven: float) -> Throughputs:
    known = built_in().restricted(set(MODELS))
    weather = {(WEATHER, "V100", 1): Throughput(1.0, measured=False)}
    every = completed(Throughputs({**known.entries, **weather}), [(name, 1) for name in MODELS], where.gpu_types)
    factors = rng.uniform(1 - uneven, 1 + uneven, (len(MODELS), len(where.gpu_types)))
    rows = {}
    for m, name in enumerate(MODELS):
        for t, gpu in enumerate(where.gpu_types):
            found = every.get(name, gpu, 1)
            assert found is not None
            rate = found.together if found.measured else found.together * float(factors[m, t])
            rows[name, gpu, 1] = Throughput(rate, measured=found.measured)
    return Throughputs(rows)
