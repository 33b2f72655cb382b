"""Laws: sampled moments and quantiles against formulas worked out apart from the code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from optsched.errors import InputError
from optsched.io.traces.laws import duration_law, gang_law

N = 200_000
DURATIONS = [
    "lognormal:mean=100,sigma=1",
    "lognormal:mean=5,sigma=0",
    "exponential:mean=40",
    "bounded-pareto:low=2,high=1000,alpha=1.5",
    "bounded-pareto:low=2,high=1000,alpha=1",
    "bounded-pareto:low=1,high=50,alpha=0.5",
    "log-uniform:low=3,high=3000",
    "uniform:low=1,high=9",
    "constant:value=7",
    "gavel",
]


def sample(text: str) -> np.ndarray:
    return duration_law(text).draw(np.random.Generator(np.random.PCG64(11)), N)


@pytest.mark.parametrize("text", DURATIONS)
def test_the_stated_mean_is_the_sample_s(text: str) -> None:
    drawn = sample(text)
    assert drawn.shape == (N,)
    assert (drawn > 0).all()
    error = 5 * drawn.std() / math.sqrt(N)  # five standard errors; the seed is fixed
    assert drawn.mean() == pytest.approx(duration_law(text).mean, abs=error + 1e-9)


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("lognormal:mean=100,sigma=0.8", stats.lognorm(0.8, scale=100 * math.exp(-0.32))),
        ("exponential:mean=40", stats.expon(scale=40)),
        ("bounded-pareto:low=2,high=1000,alpha=1.5", stats.truncpareto(1.5, 500, scale=2)),
        ("bounded-pareto:low=1,high=50,alpha=0.5", stats.truncpareto(0.5, 50)),
        ("log-uniform:low=3,high=3000", stats.loguniform(3, 3000)),
        ("uniform:low=1,high=9", stats.uniform(1, 8)),
    ],
)
def test_the_whole_distribution_is_scipy_s(text: str, law: stats.rv_continuous) -> None:
    assert stats.kstest(sample(text), law.cdf).pvalue > 0.01
    assert duration_law(text).mean == pytest.approx(law.mean(), rel=1e-9)


def test_gavel_s_two_decades() -> None:
    drawn = sample("gavel") / 60
    assert drawn.min() >= 10**1.5
    assert drawn.max() <= 10**4
    assert np.mean(drawn < 1000) == pytest.approx(0.8, abs=0.005)
    short, _ = integrate.quad(lambda x: 10**x / 1.5, 1.5, 3)
    long, _ = integrate.quad(lambda x: 10**x, 3, 4)
    assert duration_law("gavel").mean == pytest.approx(60 * (0.8 * short + 0.2 * long))


def test_a_law_writes_itself_with_all_its_numbers() -> None:
    assert duration_law("lognormal:sigma=2").text == "lognormal:mean=3600,sigma=2"
    for text in DURATIONS:
        assert duration_law(duration_law(text).text).text == duration_law(text).text


@given(st.dictionaries(st.integers(1, 500), st.floats(0.01, 100), min_size=1, max_size=6))
def test_weights_are_probabilities_in_the_order_of_the_counts(weights: dict[int, float]) -> None:
    law = gang_law("weights:" + ",".join(f"{count}={weight!r}" for count, weight in weights.items()))
    assert law.counts.tolist() == sorted(weights)
    total = sum(weights.values())
    assert law.shares.tolist() == pytest.approx([weights[count] / total for count in sorted(weights)])
    assert law.mean == pytest.approx(sum(count * weight for count, weight in weights.items()) / total)
    assert gang_law(law.text).shares.tolist() == law.shares.tolist()


@pytest.mark.parametrize("text", ["adadual", "philly", "gavel", "a-srpt", "uniform:high=8", "weights:1=1,3=0,5=2"])
def test_counts_come_as_often_as_their_weights_say(text: str) -> None:
    law = gang_law(text)
    drawn = law.draw(np.random.Generator(np.random.PCG64(5)), N)
    for count, share in zip(law.counts, law.shares, strict=True):
        error = 5 * math.sqrt(share * (1 - share) / N)
        assert np.mean(drawn == count) == pytest.approx(share, abs=error)
    assert set(drawn.tolist()) <= set(law.counts.tolist())


def test_a_law_cut_to_a_cluster_keeps_proportions() -> None:
    law = gang_law("adadual").at_most(8)
    assert law.counts.tolist() == [1, 2, 4, 8]
    assert law.shares.tolist() == pytest.approx([80 / 150, 14 / 150, 26 / 150, 30 / 150])
    with pytest.raises(InputError, match=r"no gang fits.*counts <= 3"):
        gang_law("constant:value=4").at_most(3)


DURATIONS_REFUSED = [
    ("lognorml", r"no law named 'lognorml'.*did you mean lognormal"),
    ("lognormal:men=3", r"no key 'men'.*did you mean mean"),
    ("lognormal:mean", "NAME:key=value"),
    ("lognormal:mean=1,mean=2", "each key once"),
    ("lognormal:mean=x", "mean=NUMBER"),
    ("lognormal:mean=inf", "mean=NUMBER"),
    ("lognormal:mean=0", "mean > 0"),
    ("exponential:mean=-1", "mean > 0"),
    ("bounded-pareto:low=5,high=5", "0 < low < high"),
    ("bounded-pareto:alpha=0", "alpha > 0"),
    ("uniform:low=0,high=3", "0 < low <= high"),
    ("uniform", "high is missing"),
    ("constant", "value is missing"),
    ("gavel:mean=3", "no keys"),
]
GANGS_REFUSED = [
    ("phily", r"no law named 'phily'.*did you mean philly"),
    ("weights", "COUNT=WEIGHT"),
    ("weights:0=1", "integers >= 1"),
    ("weights:1.5=1", "integers >= 1"),
    ("weights:x=1", "law of GPU counts"),
    ("weights:1=-1", "weights >= 0"),
    ("weights:1=0", "not all 0"),
    ("uniform:low=3,high=2", "1 <= low <= high"),
    ("adadual:low=3", "no keys"),
]


@pytest.mark.parametrize(
    ("law", "text", "message"),
    [*((duration_law, *each) for each in DURATIONS_REFUSED), *((gang_law, *each) for each in GANGS_REFUSED)],
)
def test_what_is_no_law(law: Callable[[str], Any], text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        law(text)


@pytest.mark.parametrize("text", ["lognormal", "exponential", "log-uniform"])
def test_the_last_bit_of_a_processor_changes_no_duration(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy's exponentials with and without 512-bit vectors differ in the last bit: the same seed, the same instance."""
    law = duration_law(text)
    drawn = law.draw(np.random.default_rng(3), 2000)
    for name in ("exp", "log1p"):
        exact = getattr(np, name)
        monkeypatch.setattr(np, name, lambda x, exact=exact: np.nextafter(exact(x), np.inf))
    assert law.draw(np.random.default_rng(3), 2000).tolist() == drawn.tolist()
    assert drawn.min() > 0
