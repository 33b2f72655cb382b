"""SRPT per link: below every optimum, equal to the preemptive optimum it claims to be, and proved again exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from brute_force import preemptive_optimum
from hypothesis import given, strategies as st
from random_transfers import random_transfers

from bounds.cases import instance_of
from optsched.bounds.certificate import CertificateError
from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.classes.task_sharing.solvers.transfer_search import transfer_optimum
from optsched.problem.contention import Contention

UNIT = Contention(1.0, 0.5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_on_one_link_it_is_the_preemptive_optimum(jobs: list[tuple[int, int]]) -> None:
    problem = TransferProblem([r for r, _ in jobs], [p for _, p in jobs], UNIT)
    bound = srpt_per_link(problem)
    bound.verify(problem)
    machine = instance_of([(float(r), 1, float(p)) for r, p in jobs], 1)
    assert bound.value == preemptive_optimum(machine, "total_completion_time")
    assert bound.flow(problem) == bound.value - sum(r for r, _ in jobs)


@pytest.mark.parametrize("eta_ratio", [0.0, 0.2745, 1.0])
def test_on_several_links_it_is_below_the_optimum(eta_ratio: float) -> None:
    better = 0
    for seed in range(25):
        problem = random_transfers(5, seed, eta_ratio, links=3)
        bound = srpt_per_link(problem)
        bound.verify(problem)
        optimum = transfer_optimum(problem).value
        assert bound.value <= Fraction(optimum) * (1 + Fraction(1, 10**12))
        singles = [single_link(problem, link) for link in problem.link_numbers]
        assert bound.value >= max(singles) * (1 - Fraction(1, 10**12))  # float gains choose, in case of near ties
        better += bound.value > max(singles) * (1 + Fraction(1, 10**9))
    assert better > 0  # partitions do give more than the best link


def single_link(problem: TransferProblem, link: int) -> Fraction:
    """SRPT of one link, the transfers on others alone."""
    users = list(problem.users(link))
    others = sorted(set(range(problem.n)) - set(users))
    part = TransferProblem(problem.release[users], problem.size[users], problem.contention)
    b = Fraction(problem.contention.seconds_per_byte)
    alone = sum(Fraction(problem.release[j]) + b * Fraction(problem.size[j]) for j in others)
    return srpt_per_link(part).value + alone


def test_the_best_partition_of_all_is_seldom_better_than_the_greedy_one() -> None:
    same = 0
    for seed in range(30):
        problem = random_transfers(4, seed, links=3)
        values = [partition_value(problem, group) for group in product(*problem.links)]
        found = srpt_per_link(problem).value
        assert found in values
        same += found == max(values)
    assert same >= 27


def partition_value(problem: TransferProblem, group: tuple[int, ...]) -> Fraction:
    alone = replace(problem, links=tuple((link,) for link in group))
    return srpt_per_link(alone).value


def test_groups_that_are_disjoint_are_all_counted() -> None:
    problem = TransferProblem([0, 0, 0, 0], [1, 2, 3, 4], UNIT, ((0,), (0,), (1,), (1,)))
    assert srpt_per_link(problem).value == 1 + 3 + 3 + 7


def test_gains_are_looked_at_again_once_transfers_are_taken() -> None:
    # link 0 is taken first; then link 1, which gained 10, has only transfer 3 left, and link 2 gains 3
    links = ((0, 1), (0, 1), (0,), (1, 2), (2,))
    problem = TransferProblem([0] * 5, [4, 4, 4, 3, 5], UNIT, links)
    bound = srpt_per_link(problem)
    assert (bound.value, bound.group) == (4 + 8 + 12 + 3 + 8, (0, 0, 0, 2, 2))


def test_it_is_tight_without_contention() -> None:
    problem = TransferProblem([0, 0.5, 4], [1, 2, 3], Contention(0.5))
    assert srpt_per_link(problem).value == Fraction(transfer_optimum(problem, exact=True).value)


def test_decimal_constants_are_taken_as_the_floats_they_are() -> None:
    problem = TransferProblem([0.1, 0.3], [0.7, 0.9], Contention(0.856e-9, 0.235e-9))
    b = Fraction(0.856e-9)
    expected = Fraction(0.1) + b * Fraction(0.7) + Fraction(0.3) + b * Fraction(0.9)
    assert srpt_per_link(problem).value == expected
    assert Fraction(srpt_per_link(problem).exact_float) <= expected


def test_a_certificate_that_says_more_is_refused() -> None:
    problem = random_transfers(6, 1, links=2)
    bound = srpt_per_link(problem)
    for wrong, rule in (
        (replace(bound, value=bound.value + Fraction(1, 10**30)), "value"),
        (replace(bound, value=bound.value - 1), "value"),
        (replace(bound, group=bound.group[:-1]), "dual-feasibility"),
        (replace(bound, group=(99, *bound.group[1:])), "dual-feasibility"),
    ):
        with pytest.raises(CertificateError) as error:
            wrong.verify(problem)
        assert error.value.rule == rule


def test_ten_thousand_transfers_on_sixteen_links() -> None:
    rng = np.random.default_rng(1)
    links = tuple(tuple(rng.choice(16, size=rng.integers(1, 4), replace=False).tolist()) for _ in range(10_000))
    plain = random_transfers(10_000, 1, seconds_per_byte=0.856e-9, unit=1e8)
    problem = replace(plain, links=links)
    bound = srpt_per_link(problem)
    bound.verify(problem)
    assert bound.value > sum(map(Fraction, (problem.release + problem.alone).tolist()))
