"""The reference rules on transfers: AdaDUAL's threshold to the last digit, what each rule looks at, the k-way formula."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.io.traces.random_transfers import random_transfers
from optsched.models.event_completions import transfer_completions
from optsched.problem.contention import Contention
from optsched.problem.transfers import TransferProblem
from simulation.transfer_reference import RULES, completions, drain, now_is_better

F = Fraction
ONE = [(0,)] * 9
TINY = F(1, 10**12)
B, ETA = F(856), F(235)
THETA = B / (2 * (B + ETA))


def ends(release: list, size: list, rule: str, links: list | None = None, b: F = B, eta: F = ETA) -> list:
    return completions(release, size, (links or ONE)[: len(size)], b, eta, rule)


@pytest.mark.parametrize("rule", ["adadual", "k-way"])
def test_the_threshold_is_strict_and_exact(rule: str) -> None:
    left = 1 - TINY / B  # of the first, which started a moment before
    for off, joins in ((-TINY, True), (F(0), False), (TINY, False)):
        size = THETA * left + off
        found = ends([0, TINY], [F(1), size], rule)
        beside = [B + size * (B + ETA), TINY + size * (2 * B + ETA)]
        assert found == (beside if joins else [B, B + B * size])


def test_what_is_left_counts_and_not_the_size() -> None:
    # 0.3 / 1 is below theta, but when it comes only half of the first is left
    assert ends([0, B / 2], [F(1), F(3, 10)], "adadual") == [B, B + B * F(3, 10)]
    assert ends([0, B / 2], [F(1), THETA / 2 - TINY], "adadual")[1] < B


def test_every_running_transfer_on_every_link_is_asked() -> None:
    # transfer 2 fits beside one of 9 or 10 bytes, not beside one of 2: then it waits for the end of that one
    release, links = [0, 0, 1], [(0,), (1,), (0, 1)]
    beside = 2 * B + ETA
    assert ends(release, [F(10), F(9), F(1)], "adadual", links)[2] == 1 + beside
    assert ends(release, [F(10), F(2), F(1)], "adadual", links)[2] == 2 * B + beside
    assert ends(release, [F(2), F(10), F(1)], "adadual", links)[2] == 2 * B + beside


def test_adadual_never_makes_three() -> None:
    size = [F(100), F(10), F(1)]
    assert ends([0, 1, 2], size, "adadual")[2] == 1 + 10 * (2 * B + ETA) + (2 * B + ETA)
    assert ends([0, 1, 2], size, "k-way") == ends([0, 1, 2], size, "srsf:3")


def test_srsf_1_takes_turns_and_the_shortest_first() -> None:
    assert ends([0, 1, 1], [F(3), F(2), F(1)], "srsf:1") == [3 * B, 6 * B, 4 * B]
    assert ends([0, 1], [F(3), F(2)], "srsf:1", [(0,), (1,)]) == [3 * B, 1 + 2 * B]


def test_one_that_starts_is_seen_by_the_next() -> None:
    # both fit beside the first alone; the smaller one starts, and makes two
    found = ends([0, 1, 1], [F(100), F(2), F(1)], "adadual")
    assert found[2] == 1 + (2 * B + ETA)
    assert found[1] == found[2] + 2 * (2 * B + ETA)


numbers = st.integers(1, 50).map(lambda x: F(x, 7))


@given(st.lists(numbers, min_size=1, max_size=4), numbers, st.sampled_from([F(0), F(1, 4), F(2)]))
def test_the_k_way_rule_has_the_form_of_the_sheet_for_small_ones(running: list, new: F, eta: F) -> None:
    x = sorted(running)
    k = len(x)
    if new <= x[0] and (k == 1 or new <= x[1] - x[0]):
        assert now_is_better(running, new, F(1), eta) == (new / x[0] < (k + (k - 1) * eta) / (2 * (1 + eta)))


@given(st.lists(numbers, min_size=1, max_size=4), numbers, st.sampled_from([0.0, 0.25, 2.0]))
def test_now_or_at_the_next_completion_is_what_the_referee_says(running: list, new: F, eta: float) -> None:
    problem = TransferProblem([0.0] * (len(running) + 1), [float(x) for x in [*running, new]], Contention(1.0, eta))
    b, penalty = F(1), F(eta)
    exact = [F(x) for x in problem.size.tolist()]
    alone = drain(exact[:-1], b, penalty)[0]
    begin = [F(0)] * len(running)
    now = sum(transfer_completions(problem, [*begin, F(0)], exact=True))
    later = sum(transfer_completions(problem, [*begin, alone], exact=True))
    assert now_is_better(exact[:-1], exact[-1], b, penalty) == (now < later)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("links", [1, 3])
def test_floats_and_fractions_agree_and_links_carry_no_more_than_they_can(rule: str, links: int) -> None:
    for seed in range(10):
        problem = random_transfers(6, seed, links=links)
        b, eta = problem.contention.seconds_per_byte, problem.contention.penalty
        release, size = problem.release.tolist(), problem.size.tolist()
        found = completions(release, size, problem.links, b, eta, rule)
        exact = completions([*map(F, release)], [*map(F, size)], problem.links, F(b), F(eta), rule)
        assert found == pytest.approx([float(x) for x in exact], rel=1e-9)
        assert all(end >= r + b * M - 1e-9 for end, r, M in zip(found, release, size, strict=True))
        for link in problem.link_numbers:
            users = list(problem.users(link))
            assert max(found[j] for j in users) >= b * problem.size[users].sum() * (1 - 1e-9)


@pytest.mark.parametrize("eta", [F(0), F(2745, 10000), F(1)])
def test_the_ratio_of_two_is_attained_at_theta_and_not_exceeded_on_a_grid(eta: F) -> None:
    theta = 1 / (2 * (1 + eta))
    worst = (2 + theta) / (1 + 2 * theta)
    found = []
    for size in (theta, *(F(k, 8) for k in range(1, 13))):
        for second in (TINY, *(F(k, 5) for k in range(7))):
            value = sum(ends([F(0), second], [F(1), size], "adadual", b=F(1), eta=eta))
            found.append(value / best_of_two(second, size, eta))
    assert worst * (1 - 4 * TINY) <= max(found) <= worst


def best_of_two(second: F, size: F, eta: F) -> F:
    """b = 1, sizes 1 and ``size``, releases 0 and ``second``: in turn, in both orders, or overlapping from there."""
    left = max(1 - second, F(0))
    values = [1 + max(F(1), second) + size, 2 * second + 2 * size + 1]
    if left and size <= left:
        values.append(2 * second + left + size * (3 + 2 * eta))
    if left and size >= 1:
        values.append(2 * second + size + 3 + 2 * eta)
    return min(values)


@pytest.mark.parametrize(("m", "adadual", "srsf"), [(1, 1.84, 1.91), (5, 3.82, 4.15), (20, 11.15, 12.44)])
def test_many_small_ones_behind_two(m: int, adadual: float, srsf: float) -> None:
    """The family of 5.3: both are far from SRPT, by a factor that grows with m. Flow times."""
    eta = 0.2745
    size = np.array([1.0, 0.99 * 0.5 / 1.2745, *[1e-4] * m])
    release = np.array([0.0, 1e-6, *[2e-6] * m])
    problem = TransferProblem(release, size, Contention(1.0, eta))
    srpt = float(srpt_per_link(problem).flow(problem))
    links = problem.links
    for rule, expected in (("adadual", adadual), ("srsf:1", srsf)):
        value = sum(completions(release.tolist(), size.tolist(), links, 1.0, eta, rule)) - release.sum()
        assert value / srpt == pytest.approx(expected, abs=0.006)
