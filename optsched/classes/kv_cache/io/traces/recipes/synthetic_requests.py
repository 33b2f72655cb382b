"""Synthetic requests: the settings of Jaillet et al. (``kv-paper``), and log-normal numbers of tokens (``kv-lognormal``)."""

from __future__ import annotations

import numpy as np

from optsched.classes.kv_cache.problem.requests import columns, worker
from optsched.io.traces.generate import Draw, Values, integer, non_negative, number, recipe, yes_or_no
from optsched.problem.arrays import Floats, Ints


def _draw(prompt: Ints, output: Ints, arrival: Floats, cells: int, *, affine: bool = False) -> Draw:
    return Draw(columns(prompt, output, arrival), worker(cells, affine=affine), "total_flow_time")


@recipe(
    "kv-paper",
    online=yes_or_no(False, "requests arrive in 40 to 60 rounds; else 40 to 60 of them at 0"),
    jobs=integer(0, "number of requests in place of 40 to 60 at 0; 0: drawn", least=0, most=10**6),
)
def kv_paper(rng: np.random.Generator, values: Values) -> Draw:
    """Requests with one prompt length, as in the two synthetic settings of Jaillet et al. (arXiv 2502.07115).

    M is uniform in 30..50, the prompt s of all requests in 1..5, answers in 1..M - s. All at 0: the number of requests is
    uniform in 40..60. Online: the number of rounds is, and a Poisson number of requests arrives in each, with a mean
    uniform in 0.5..1.5; at least one request arrives in all.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    cells, s = int(rng.integers(30, 51)), int(rng.integers(1, 6))
    if values["online"]:
        rounds, rate = int(rng.integers(40, 61)), float(rng.uniform(0.5, 1.5))
        arrival = np.repeat(np.arange(rounds), rng.poisson(rate, rounds)).astype(np.float64)
        arrival = arrival if arrival.size else np.zeros(1)
    else:
        drawn = int(rng.integers(40, 61))
        arrival = np.zeros(values["jobs"] or drawn)
    return _draw(np.full(arrival.size, s), rng.integers(1, cells - s + 1, arrival.size), arrival, cells)


@recipe(
    "kv-lognormal",
    jobs=integer(1000, "number of requests", most=10**7),
    cells=integer(16_492, "M, cells of the cache; larger answers are cut", least=2, most=10**9),
    prompt_mean=number(40.62, "mean of the tokens of a prompt"),
    prompt_median=number(11.0, "median of the tokens of a prompt"),
    output_mean=number(85.32, "mean of the tokens of an answer"),
    output_median=number(45.0, "median of the tokens of an answer"),
    rate=non_negative(0.0, "requests a round (a second, if rounds have affine length), a Poisson process; 0: all at 0"),
    affine=yes_or_no(False, "rounds of affine length"),
)
def kv_lognormal(rng: np.random.Generator, values: Values) -> Draw:
    """Requests with log-normal numbers of tokens; means and medians are those of LMSYS-Chat-1M by default.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
    n, cells = values["jobs"], values["cells"]

    def tokens(name: str, least: int) -> Ints:
        mean, median = values[f"{name}_mean"], values[f"{name}_median"]
        spread = np.sqrt(2 * max(np.log(mean / median), 0.0))
        return np.clip(np.rint(median * np.exp(spread * rng.standard_normal(n))), least, cells).astype(np.int64)

    prompt = np.minimum(tokens("prompt", 1), cells - 1)
    output = np.minimum(tokens("output", 1), cells - prompt)
    arrival = np.cumsum(rng.exponential(1 / values["rate"], n)) if values["rate"] else np.zeros(n)
    return _draw(prompt, output, arrival if values["affine"] else np.floor(arrival), cells, affine=values["affine"])
