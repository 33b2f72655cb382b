"""Distributions that recipes draw from, written ``NAME[:key=value,...]``: durations and numbers of GPUs.

Durations (seconds)

* ``lognormal:mean=3600,sigma=1.5``: X = exp(N(mu, sigma^2)) with mu = ln mean - sigma^2 / 2, so that E X = mean.
* ``exponential:mean=3600``.
* ``bounded-pareto:low=60,high=1000000,alpha=1.1``: density proportional to x^(-alpha-1) on [low, high].
* ``log-uniform:low=60,high=36000``: the logarithm is uniform.
* ``uniform:low=1,high=20`` and ``constant:value=60``.
* ``gavel``: 60 x 10^U(1.5, 3) s with probability 0.8, else 60 x 10^U(3, 4) s; the continuous traces of Gavel's
  generator (stanford-futuredata/gavel, MIT).

Numbers of GPUs

* ``weights:1=80,2=14,4=26``: each count with a probability proportional to its weight.
* ``uniform:low=1,high=8`` and ``constant:value=4``.
* ``philly``: counts of the 82,247 jobs of the Philly trace (see `optsched.io.traces.recipes.open_cluster`).
* ``adadual``: 1, 2, 4, 8, 16, 32 GPUs in 80, 14, 26, 30, 8, 2 of 160 jobs: the published simulator of
  "Communication Contention Aware Scheduling of Multiple Deep Learning Training Jobs" (arXiv 2002.10105).
* ``gavel``: 1, 2, 4, 8 with 0.70, 0.10, 0.15, 0.05: Gavel's generator.
* ``a-srpt``: 1, 2, 4, 8, 16, equally likely: the sizes of this project's A-SRPT protocol.

Durations that come from exponentials, logarithms or powers are whole microseconds: those functions differ between
processors in the last bit, and a seed is to give the same instance everywhere.

A law of GPUs is cut to what the cluster holds; the weights of the counts left are scaled up alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.registry import near_matches

Sampler = Callable[[np.random.Generator, int], Floats]
MeanAndDraw = tuple[float, Sampler]

DURATION = "law of durations"  # names of the two kinds in messages
GANG = "law of GPU counts"

PHILLY_GPUS = {1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}
ADADUAL_GPUS = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
GAVEL_GPUS = {1: 70, 2: 10, 4: 15, 8: 5}
A_SRPT_GPUS = {1: 1, 2: 1, 4: 1, 8: 1, 16: 1}


@dataclass(frozen=True)
class DurationLaw:
    """A distribution of durations: its text, its exact mean in seconds, and ``draw(rng, n) -> f64[n]``."""

    text: str
    mean: float
    draw: Sampler


@dataclass(frozen=True)
class GangLaw:
    """A distribution of GPU counts: rising ``counts`` i64[k] with probabilities ``shares`` f64[k]."""

    text: str
    counts: Ints
    shares: Floats

    @property
    def mean(self) -> float:
        """Expected number of GPUs of a job."""
        return float(self.counts @ self.shares)

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """Draw independent counts, i64[n].

        Parameters
        ----------
        rng
            Random generator.
        n
            Number of counts.
        """
        upper = np.cumsum(self.shares)
        return self.counts[np.searchsorted(upper / upper[-1], rng.random(n), side="right")]

    def at_most(self, gpus: int) -> GangLaw:
        """Return the law under the condition that the gang fits.

        Parameters
        ----------
        gpus
            Number of GPUs.

        Raises
        ------
        InputError
            If no gang fits.
        """
        fits = self.counts <= gpus
        if not fits.any():
            legal = f"a law with counts <= {gpus}, the cluster's GPUs"
            raise InputError("no gang fits", field=GANG, value=self.text, legal=legal)
        return GangLaw(self.text, self.counts[fits], self.shares[fits] / self.shares[fits].sum())


def duration_law(text: str) -> DurationLaw:
    """Return the law of durations that ``text`` names.

    Parameters
    ----------
    text
        The law, ``NAME[:key=value,...]``.

    Raises
    ------
    InputError
        If there is no such law; the message has near matches.
    """
    name, given = _parse(text, DURATION, list(_DURATIONS))
    keys, build = _DURATIONS[name]
    values = _values(text, DURATION, keys, given)
    mean, draw = build(text, **values)
    if name in ("uniform", "constant"):
        return DurationLaw(_text(name, values), mean, draw)
    # whole microseconds; none becomes 0
    return DurationLaw(_text(name, values), mean, lambda rng, n: np.maximum(np.round(draw(rng, n), 6), 1e-6))


def gang_law(text: str) -> GangLaw:
    """Return the law of GPU counts that ``text`` names.

    Parameters
    ----------
    text
        The law, ``NAME[:key=value,...]``.

    Raises
    ------
    InputError
        If there is no such law; the message has near matches.
    """
    name, given = _parse(text, GANG, ["weights", "uniform", "constant", *_NAMED_GANGS])
    if name in _NAMED_GANGS:
        _values(text, GANG, {}, given)
        return _gangs(name, _NAMED_GANGS[name])
    if name == "weights":
        weights = {_count(text, key): _number(text, GANG, key, value) for key, value in given.items()}
        if not weights or min(weights.values()) < 0 or sum(weights.values()) <= 0:
            raise _illegal(text, GANG, "weights:COUNT=WEIGHT,... with weights >= 0, not all 0")
        return _gangs(_text(name, {str(count): weights[count] for count in sorted(weights)}), weights)
    if name == "constant":
        values = _values(text, GANG, {"value": None}, given)
        return _gangs(_text(name, values), {_count(text, values["value"]): 1.0})
    values = _values(text, GANG, {"low": 1.0, "high": None}, given)
    low, high = _count(text, values["low"]), _count(text, values["high"])
    if high < low:
        raise _illegal(text, GANG, "integers 1 <= low <= high")
    return _gangs(_text(name, values), dict.fromkeys(range(low, high + 1), 1.0))


def _gangs(text: str, weights: Mapping[int, float]) -> GangLaw:
    counts = np.array(sorted(weights), dtype=np.int64)
    shares = np.array([weights[int(count)] for count in counts], dtype=np.float64)
    return GangLaw(text, counts, shares / shares.sum())


def _lognormal(text: str, mean: float, sigma: float) -> MeanAndDraw:
    _demand(text, mean > 0 and sigma >= 0, "mean > 0 and sigma >= 0")
    mu = math.log(mean) - sigma * sigma / 2
    return mean, lambda rng, n: np.exp(mu + sigma * rng.standard_normal(n))


def _exponential(text: str, mean: float) -> MeanAndDraw:
    _demand(text, mean > 0, "mean > 0")
    # uniform on (0, 1), because a duration must not be 0
    return mean, lambda rng, n: -mean * np.log1p(-np.maximum(rng.random(n), 2.0**-54))


def _bounded_pareto(text: str, low: float, high: float, alpha: float) -> MeanAndDraw:
    _demand(text, 0 < low < high and alpha > 0, "0 < low < high and alpha > 0")
    cut = 1.0 - (low / high) ** alpha  # probability that an unbounded Pareto variable stays below high
    if alpha == 1.0:
        mean = low * math.log(high / low) / cut
    else:
        mean = low * alpha / (alpha - 1.0) * (1.0 - (low / high) ** (alpha - 1.0)) / cut
    return mean, lambda rng, n: np.minimum(low * (1.0 - cut * rng.random(n)) ** (-1.0 / alpha), high)


def _log_uniform(text: str, low: float, high: float) -> MeanAndDraw:
    _demand(text, 0 < low < high, "0 < low < high")
    span = math.log(high / low)
    return (high - low) / span, lambda rng, n: low * np.exp(span * rng.random(n))


def _uniform(text: str, low: float, high: float) -> MeanAndDraw:
    _demand(text, 0 < low <= high, "0 < low <= high")
    return (low + high) / 2, lambda rng, n: low + (high - low) * rng.random(n)


def _constant(text: str, value: float) -> MeanAndDraw:
    _demand(text, value > 0, "value > 0")
    return value, lambda rng, n: np.full(n, value)


def _gavel(text: str) -> MeanAndDraw:
    short_mean = 60.0 * (10**3.0 - 10**1.5) / (1.5 * math.log(10.0))
    long_mean = 60.0 * (10**4.0 - 10**3.0) / math.log(10.0)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        short = rng.random(n) < 0.8
        u = rng.random(n)
        return 60.0 * 10.0 ** np.where(short, 1.5 + 1.5 * u, 3.0 + u)

    return 0.8 * short_mean + 0.2 * long_mean, draw


_DURATIONS: dict[str, tuple[dict[str, float | None], Callable[..., MeanAndDraw]]] = {
    "lognormal": ({"mean": 3600.0, "sigma": 1.5}, _lognormal),
    "exponential": ({"mean": 3600.0}, _exponential),
    "bounded-pareto": ({"low": 60.0, "high": 1e6, "alpha": 1.1}, _bounded_pareto),
    "log-uniform": ({"low": 60.0, "high": 36000.0}, _log_uniform),
    "uniform": ({"low": 1.0, "high": None}, _uniform),
    "constant": ({"value": None}, _constant),
    "gavel": ({}, _gavel),
}
_NAMED_GANGS: dict[str, Mapping[int, float]] = {
    "philly": PHILLY_GPUS,
    "adadual": ADADUAL_GPUS,
    "gavel": GAVEL_GPUS,
    "a-srpt": A_SRPT_GPUS,
}


def _parse(text: str, field: str, names: list[str]) -> tuple[str, dict[str, str]]:
    name, _, rest = str(text).strip().partition(":")
    if name not in names:
        raise _illegal(text, field, near_matches(name, names, kind="law"), f"there is no law named {name!r}")
    given: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key in given:
            raise _illegal(text, field, "NAME:key=value,... with each key once")
        given[key] = value
    return name, given


def _values(text: str, field: str, keys: dict[str, float | None], given: dict[str, str]) -> dict[str, float]:
    for key in given:
        if key not in keys:
            legal = near_matches(key, list(keys), kind="key") if keys else "no keys"
            raise _illegal(text, field, legal, f"the law has no key {key!r}")
    return {key: _number(text, field, key, given.get(key, default)) for key, default in keys.items()}


def _number(text: str, field: str, key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise _illegal(text, field, f"{key}=NUMBER", f"{key} is missing" if value is None else "invalid")
    return number


def _count(text: str, value: Any) -> int:
    number = _number(text, GANG, "count", value)
    if number < 1 or number != math.floor(number) or number > 1e9:
        raise _illegal(text, GANG, "integers >= 1 as GPU counts")
    return int(number)


def _text(name: str, values: Mapping[str, float]) -> str:
    pairs = ",".join(f"{key}={int(value) if value.is_integer() else value!r}" for key, value in values.items())
    return f"{name}:{pairs}" if pairs else name


def _demand(text: str, holds: bool, legal: str) -> None:
    if not holds:
        raise _illegal(text, DURATION, legal)


def _illegal(text: str, field: str, legal: str, message: str = "invalid") -> InputError:
    return InputError(message, field=field, value=text, legal=legal)
