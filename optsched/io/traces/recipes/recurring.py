"""Recipe ``recurring``: a cluster where most jobs are runs of a script that ran before.

The synthetic workload of this project's A-SRPT protocol, fixed before any policy or predictor was measured on it. Its
constants are this project's own choice in the style of what Alibaba published of its PAI cluster (groups of repeated
runs, few of them very popular; most jobs with one GPU); they are fitted to no trace.

* ``groups`` scripts; a recurring job is a run of script k with probability proportional to k^-zipf, independently of all
  else. One job in ten (``one_off``) is the only run of a script of its own.
* A script has one owner, one model, one gang size (law ``gpus``) and one kind of parallelism. Owners are drawn uniformly
  from max(1, groups // 5) users, and so are the users of one-off jobs.
* Run r of script k lasts exp(mu_k + x_kr + sigma_k z_kr) seconds: mu_k normal with standard deviation ``BETWEEN`` (1.2),
  sigma_k uniform in 0.1..0.6 (``WITHIN``), z_kr standard normal.
* Drift x_kr: an autoregressive walk over the script's runs, x_k0 normal with standard deviation ``DRIFT`` (0.3), then
  x_k,r+1 = phi x_kr + sqrt(1 - phi^2) DRIFT e, phi = exp(-1 / ``MEMORY``), memory 50 runs: slow (0.06 a run), and it
  forgets, so that the mean does not depend on how long the workload is.
* A one-off job lasts log-normally with mean ``seconds`` and standard deviation 1.25 (``ONE_OFF``) of the logarithm.
* All mu_k are shifted together so that the expected duration of a recurring job, given the scripts drawn, is ``seconds``;
  arrivals are Poisson with gap = E[GPU-seconds of a job] / (G load), the expectation again given the scripts.

With ``plain`` durations are the jobs' lengths. Otherwise a script trains a model with a kind of parallelism (uniform over
``MODELS``; probabilities ``PARALLELISM``; profiles of `optsched.speeds.model_zoo`; data parallelism on one GPU, mixed where
a pipeline would have more stages than the model has blocks), its duration is meant at alpha_min of its profile on this
cluster, and the job asks for n = ceil(duration / alpha_min) iterations. Jobs, scripts and durations are the same with and
without profiles. Bandwidths are those of a 25 Gbit/s NIC and of NVLink unless given.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.io.traces.generate import Draw, Values, cluster, gangs, integer, non_negative, number, recipe, yes_or_no
from optsched.io.traces.laws import GangLaw
from optsched.io.traces.recipes.ddl import best_paces
from optsched.io.traces.recipes.open_cluster import arrivals
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.profile import Profile
from optsched.speeds.model_zoo import MODELS as ZOO, zoo_profile
from optsched.speeds.network import Network

BETWEEN = 1.2
WITHIN = (0.1, 0.6)
DRIFT, MEMORY = 0.3, 50.0
ONE_OFF = 1.25
GROUPS_PER_USER = 5
PARALLELISM = {"data": 0.5, "pipeline": 0.25, "mixed": 0.25}
KINDS = tuple(PARALLELISM)
# six models of the zoo, listed here so that the workload stays the same when the zoo grows
MODELS = ("vgg19", "resnet152", "inception-v3", "bert-large", "xlnet-large", "gpt")


@recipe(
    "recurring",
    jobs=integer(2000, "number of jobs"),
    cluster=cluster("8x8"),
    nic_bandwidth=number(3.125e9, "bytes/s of a node's NIC"),
    intra_bandwidth=number(150e9, "bytes/s between two GPUs of a node"),
    load=number(0.8, "offered load"),
    seconds=number(3600, "mean seconds of a job alone"),
    gpus=gangs("weights:1=60,2=12,4=12,8=12,16=4", "law of the scripts' gang sizes"),
    groups=integer(200, "scripts that recur", most=10**6),
    zipf=non_negative(1.1, "exponent of the scripts' popularity"),
    one_off=non_negative(0.1, "share of jobs that never recur, at most 1"),
    plain=yes_or_no(False, "durations in seconds, no profiles"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Recurring training jobs: scripts with Zipf popularity, log-normal lengths that drift, and one-off jobs.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    links = {name: values[name] for name in ("nic_bandwidth", "intra_bandwidth")}
    where = Cluster(tuple(dataclasses.replace(group, **links) for group in values["cluster"].nodes))
    law, jobs, one_off = values["gpus"].at_most(where.gpus), values["jobs"], values["one_off"]
    if one_off > 1:
        raise InputError("recipe recurring", field="one_off", value=one_off, legal="a share, at most 1")
    runs = _Runs.draw(rng, values["groups"], values["zipf"], values["seconds"])
    scripts = _scripts(rng, law, runs.count, values["groups"])
    work = (1 - one_off) * runs.mean(scripts["gpus"]) + one_off * law.mean * values["seconds"]  # GPU-seconds a job
    gap = work / (where.gpus * values["load"])
    arrival = arrivals(rng, "poisson", jobs, gap)
    script = runs.scripts(rng, jobs, one_off)
    recurs = script < runs.count
    of_runs = runs.durations(rng, script)
    once = values["seconds"] * np.exp(ONE_OFF * rng.standard_normal(jobs) - ONE_OFF**2 / 2)
    duration = np.where(recurs, of_runs, once)
    alone = _scripts(rng, law, int((~recurs).sum()), values["groups"])
    of = {name: np.append(column, alone[name])[script] for name, column in scripts.items()}
    table = {
        "arrival": arrival,
        "gpus": of["gpus"],
        "user": [f"u{user + 1}" for user in of["user"]],
        "group": [f"g{k + 1}" for k in script],
        "model": [MODELS[model] for model in of["model"]],
    }
    if values["plain"]:
        return Draw(table | {"duration": duration}, where, "total_completion_time", {"gap": gap})
    columns, profiles = _profiled(table, [KINDS[k] for k in of["kind"]], duration, where)
    return Draw(table | columns, where, "total_completion_time", {"gap": gap}, profiles=profiles)


@dataclass(frozen=True)
class _Runs:
    """Frequency and duration of the recurring scripts: arrays over these scripts."""

    share: Floats  # of the recurring jobs
    centre: Floats  # exp(mu_k), seconds
    sigma: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int, zipf: float, seconds: float) -> _Runs:
        weight = np.arange(1, count + 1, dtype=np.float64) ** -zipf
        drawn = cls(weight / weight.sum(), np.exp(BETWEEN * rng.standard_normal(count)), rng.uniform(*WITHIN, count))
        return dataclasses.replace(drawn, centre=drawn.centre * (seconds / drawn.mean(np.ones(count))))

    @property
    def count(self) -> int:
        return self.share.size

    def mean(self, weights: npt.NDArray[Any]) -> float:
        """Return E[weight x seconds] of a recurring job; E exp(x + sigma z) = exp((DRIFT^2 + sigma^2) / 2)."""
        return float(self.share @ (weights * self.centre * np.exp((DRIFT**2 + self.sigma**2) / 2)))

    def scripts(self, rng: np.random.Generator, jobs: int, one_off: float) -> Ints:
        """Return the script of every job, i64[jobs]; one-off jobs have scripts of their own, from ``count`` on."""
        upper = np.cumsum(self.share)
        script = np.searchsorted(upper / upper[-1], rng.random(jobs), side="right").astype(np.int64)
        alone = rng.random(jobs) < one_off
        script[alone] = self.count + np.arange(int(alone.sum()))
        return script

    def durations(self, rng: np.random.Generator, script: Ints) -> Floats:
        """Return the seconds of every run of a recurring script, f64[jobs]; arbitrary numbers for the others."""
        noise, steps = rng.standard_normal(script.size), rng.standard_normal(script.size).tolist()
        phi = math.exp(-1 / MEMORY)
        step, now = math.sqrt(1 - phi * phi) * DRIFT, [math.nan] * self.count
        drift = np.zeros(script.size)
        for j, k in enumerate(script.tolist()):
            if k < self.count:
                now[k] = DRIFT * steps[j] if math.isnan(now[k]) else phi * now[k] + step * steps[j]
                drift[j] = now[k]
        which = np.minimum(script, self.count - 1)
        return np.asarray(self.centre[which] * np.exp(drift + self.sigma[which] * noise))


def _scripts(rng: np.random.Generator, law: GangLaw, count: int, groups: int) -> dict[str, Ints]:
    """Return common data of all runs of a script, i64[count]: gpus, and numbers of user, model and kind of parallelism."""
    upper = np.cumsum(list(PARALLELISM.values()))[:-1]
    return {
        "gpus": law.draw(rng, count),
        "user": rng.integers(0, max(1, groups // GROUPS_PER_USER), count),
        "model": (rng.random(count) * len(MODELS)).astype(np.int64),
        "kind": np.searchsorted(upper, rng.random(count), side="right"),
    }


def _profiled(
    table: dict[str, Any], kinds: list[str], duration: Floats, where: Cluster
) -> tuple[dict[str, Any], dict[str, Profile]]:
    # iterations of a profile for every job, such that it lasts its duration where the profile runs best
    profiles: dict[str, Profile] = {}
    names = []
    for model, gpus, kind in zip(table["model"], table["gpus"].tolist(), kinds, strict=True):
        # one GPU leaves nothing to divide; a pipeline has a block for every stage
        long = kind == "pipeline" and gpus > len(ZOO[model].blocks)
        possible = "data" if gpus == 1 else "mixed" if long else kind
        names.append(f"{model}-{gpus}-{possible}")
        if names[-1] not in profiles:
            profiles[names[-1]] = zoo_profile(model, gpus, possible)
    iterations = np.ceil(duration / best_paces(names, profiles, Network.of(where)))
    return {"iterations": iterations, "profile": names}, profiles
