"""The law of random transfers: what it says of sizes, releases and links."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.random_transfers import random_transfers


def test_the_same_arguments_give_the_same_problem() -> None:
    one, two, other = (random_transfers(5, seed, links=3) for seed in (4, 4, 5))
    assert one.size.tolist() == two.size.tolist()
    assert (one.release.tolist(), one.links) == (two.release.tolist(), two.links)
    assert one.size.tolist() != other.size.tolist()


def test_sizes_are_log_uniform_and_releases_follow_the_work() -> None:
    problem = random_transfers(20_000, 1)
    log = (np.log(problem.size) - np.log(0.01)) / np.log(1000)
    assert log.min() >= 0
    assert log.max() <= 1
    # uniform: mean 1/2, variance 1/12; five standard errors
    assert abs(log.mean() - 0.5) < 5 * np.sqrt(1 / 12 / problem.n)
    assert abs(np.mean(log < 0.25) - 0.25) < 5 * np.sqrt(0.25 * 0.75 / problem.n)
    late = problem.release[problem.release > 0]
    assert abs(late.size / problem.n - 0.7) < 5 * np.sqrt(0.21 / problem.n)
    share = late / (0.7 * problem.size.sum())
    assert share.max() <= 1
    assert abs(share.mean() - 0.5) < 5 * np.sqrt(1 / 12 / late.size)


def test_units_and_penalty() -> None:
    plain, real = random_transfers(6, 2), random_transfers(6, 2, 0.5, seconds_per_byte=1e-9, unit=1e8)
    assert np.allclose(real.size, 1e8 * plain.size)
    assert np.allclose(real.release, 0.1 * plain.release)
    assert real.contention.penalty == 0.5e-9


def test_every_set_of_links_occurs() -> None:
    problem = random_transfers(2_000, 3, links=2)
    assert set(problem.links) == {(0,), (1,), (0, 1)}
    assert abs(problem.links.count((0, 1)) / problem.n - 1 / 3) < 5 * np.sqrt(2 / 9 / problem.n)


@pytest.mark.parametrize(("arguments", "name"), [((0, 1), "n = 0"), ((2, -1), "seed = -1"), ((True, 1), "n = True")])
def test_what_is_not_legal_is_named(arguments: tuple[int, int], name: str) -> None:
    with pytest.raises(InputError, match=name):
        random_transfers(*arguments)
    with pytest.raises(InputError, match="links = 0"):
        random_transfers(2, 1, links=0)
    with pytest.raises(InputError, match=r"contention\.penalty"):
        random_transfers(2, 1, -0.5)
