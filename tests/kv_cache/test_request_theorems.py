"""Theorems about policies for requests, their families, and the best batches of sorted-f."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import optsched as osd
from optsched.bounds.best_bound import BOUNDS
from optsched.classes.kv_cache.guarantees.serving_families import in_step, wide_intervals
from optsched.classes.kv_cache.guarantees.serving_theorems import (
    EQUAL_PROMPTS,
    LEAST_VOLUME,
    PAPER,
    SHORTEST_FIRST,
    SORTED_F,
    believed_lengths,
)
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.classes.kv_cache.simulation.best_batches import best_batch
from optsched.errors import InputError
from optsched.guarantees.family import FAMILIES
from optsched.guarantees.guarantee import Guarantee
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance

THEOREMS = (LEAST_VOLUME, SHORTEST_FIRST, EQUAL_PROMPTS, PAPER, SORTED_F)
EQUAL = ("mc-sf", "least-volume", "a-max:share=1.5", "a-max:predictor=user-limit,share=1", "sorted-f:exact=true")
MIXED = ("least-volume", "least-volume:predictor=user-limit", "sorted-f:exact=true")


def two_instances(seed: int) -> tuple[Instance, Instance]:
    """Return requests with equal prompts, and with other prompts and weights; some have peaks that fill the cache."""
    rng = np.random.default_rng(seed)
    cells, n = int(rng.integers(4, 40)), int(rng.integers(1, 25))
    most = cells // int(rng.integers(1, 3))
    same, prompts = int(rng.integers(0, most)), rng.integers(0, most, n)
    output, more = rng.integers(1, most, n), rng.integers(0, 4, n)

    def made(prompt: np.ndarray, weight: np.ndarray) -> Instance:
        length = np.minimum(output, most - prompt)
        return request_instance(prompt, length, cells, weight=weight, limit=np.minimum(length + more, cells - prompt))

    return made(np.full(n, same), np.ones(n)), made(prompts, rng.integers(1, 5, n))


def check_theorems(seeds: range) -> dict[str, int]:
    """Compare runs with each theorem, with the bound by mean busy times for the optimum; return how many it is about."""
    met = dict[str, int]()
    for seed in seeds:
        for instance, policies in zip(two_instances(seed), (EQUAL, MIXED), strict=True):
            requests = requests_of(instance)
            alone = int((requests.output * requests.weight).sum())
            objective = "total_flow_time" if policies is EQUAL else "total_weighted_flow_time"
            low = BOUNDS.get("kv-mean-busy-time").build(instance, objective, "kv-cache")
            assert low is not None
            most = max(low.value, alone)  # the proofs need no more of the optimum than these two bounds
            for text in policies:
                chosen, run = specify(text), osd.simulate(instance, text)
                for theorem in THEOREMS:
                    if not theorem.applies(chosen.policy, chosen.placement, instance):
                        continue
                    met[theorem.id] = met.get(theorem.id, 0) + 1
                    assert theorem.audit(chosen.policy, run) == []
                    if theorem is not SORTED_F or policies is EQUAL:
                        value = Fraction(run.value(objective))
                        assert value <= theorem.ratio(chosen.policy, run) * most, (seed, theorem.id)
    return met


def test_theorems_hold() -> None:
    met = check_theorems(range(25))
    assert set(met) == {theorem.id for theorem in THEOREMS}
    assert min(met.values()) >= 5


@pytest.mark.study
def test_theorems_hold_of_5000() -> None:
    check_theorems(range(1000, 6000))


@pytest.mark.parametrize("theorem", [LEAST_VOLUME, SHORTEST_FIRST, EQUAL_PROMPTS, PAPER], ids=lambda each: each.id)
def test_audits_can_fail(theorem: Guarantee) -> None:
    """A run that starts far too late breaks the inequality of each theorem."""
    policy = specify(theorem.policies[0]).policy
    kept, late = (osd.simulate(request_instance([0, 0], [1, 1], 10), policy) for _ in range(2))
    late.schedule.end[:] += 5000
    late.schedule.start[:] += 5000
    assert theorem.audit(policy, kept) == []
    assert theorem.audit(policy, late)


@pytest.mark.parametrize(
    ("theorem", "text", "prompt", "output", "reason"),
    [
        (LEAST_VOLUME, "least-volume:predictor=user-limit", [0, 0], [3, 2], "some answers are longer than predicted"),
        (LEAST_VOLUME, "least-volume:predictor=noisy", [0, 0], [3, 2], "lengths are predicted"),
        (LEAST_VOLUME, "least-volume:skip=true", [0, 0], [3, 2], "it passes over requests that do not fit"),
        (LEAST_VOLUME, "least-volume", [0, 0], [10, 2], "a peak fills the cache"),
        (SHORTEST_FIRST, "a-max:share=5", [0, 0], [3, 2], "a peak fills the cache"),
        (SHORTEST_FIRST, "a-max", [1, 0], [3, 2], "prompts differ"),
        (EQUAL_PROMPTS, "mc-sf:predictor=user-limit", [0, 0], [3, 2], "lengths are predicted"),
        (PAPER, "mc-sf", [0, 0], [6, 2], "a peak is above half the cache"),
        (SORTED_F, "sorted-f", [0, 0], [3, 2], "batches are not the best ones: exact=true"),
    ],
)
def test_assumptions_that_do_not_hold_are_named(
    theorem: Guarantee, text: str, prompt: list[int], output: list[int], reason: str
) -> None:
    chosen = specify(text)
    instance = request_instance(prompt, output, 10, limit=[2] * len(prompt))
    assert theorem.assumptions(chosen.policy, chosen.placement, instance) == (reason,)


@pytest.mark.parametrize("text", ["mc-sf", "a-max", "a-max:share=1,predictor=user-limit", "a-min:share=0.3"])
def test_believed_lengths_are_those_of_the_run(text: str) -> None:
    """The engine believes the prediction times the share, within the cache."""
    chosen, instance = specify(text), two_instances(3)[1]
    run, requests = osd.simulate(instance, text), requests_of(instance)
    believed = believed_lengths(chosen.policy, instance)
    assert believed is not None
    assert run.predicted is not None
    length = np.ceil(chosen.policy.share * run.predicted)
    assert believed.tolist() == np.clip(length, 1, requests.cells - requests.prompt).tolist()


@pytest.mark.parametrize("name", ["behind-long", "large-prompts", "alternating", "arriving-behind", "in-step"])
def test_references_of_families_are_reached(name: str) -> None:
    """Their stated values are at least the optimum, and the policy's ratio grows."""
    family = FAMILIES.get(name)
    ratios = []
    for size in family.sizes[:2]:
        challenge = family.make(size)
        value = osd.simulate(challenge.instance, family.policy).value()
        ratios.append(Fraction(value) / challenge.reference)
        if challenge.better is not None:
            better = float(challenge.reference)
            assert osd.check_schedule(challenge.instance, challenge.better, value=better) == []
    assert ratios[0] < ratios[1]
    smallest = family.make(family.sizes[0])
    if requests_of(smallest.instance).n < 12:
        best = osd.solve(smallest.instance)
        assert best.status == "optimal"
        assert best.value is not None
        assert best.value <= smallest.reference


def test_equal_answers_in_step_cost_up_to_twice_the_optimum() -> None:
    """The ratio is p (g + 1) / (2 p + q g - 1) with g groups, which goes to (2 q - 1) / q; mc-sf does the same."""
    for q in (2, 3, 5):
        challenge = in_step.make(q, groups=30)
        values = {osd.simulate(challenge.instance, name).value() for name in ("mc-sf", "least-volume")}
        length = 2 * q - 1
        assert {Fraction(value) / challenge.reference for value in values} == {
            Fraction(length * 31, 2 * length + q * 30 - 1)
        }
    assert in_step.make(2, groups=2).reference >= (osd.solve(in_step(2, groups=2)).value or 0)


def test_the_optimum_of_wide_intervals_is_proved() -> None:
    member = wide_intervals(k=3, groups=2)
    best = osd.solve(member.replace(optimum=None))
    assert member.optimum is not None
    assert (best.status, best.value) == ("optimal", member.optimum["value"])


@pytest.mark.parametrize("model", ["cache-states", "kv-time-indexed"])
@pytest.mark.parametrize("name", ["worst-mc-sf", "worst-least-volume"])
def test_optima_of_worst_cases_are_proved_again(name: str, model: str) -> None:
    """By two methods that do not know them; `test_families` compares the ratio of the policy with its formula."""
    for case in FAMILIES.get(name).sizes:
        member = FAMILIES.get(name).of_size(case).instance
        best = osd.solve(member.replace(optimum=None), model=model)
        assert member.optimum is not None
        assert (best.status, best.value) == ("optimal", member.optimum["value"])


def test_the_best_batch_is_that_of_all_subsets() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        n, cells = int(rng.integers(1, 8)), int(rng.integers(5, 30))
        peak = rng.integers(1, cells + 1, n)
        length = rng.integers(1, peak + 1)
        batch = best_batch(peak, length, cells)
        assert peak[batch].sum() <= cells
        subsets = [list(s) for k in range(1, n + 1) for s in combinations(range(n), k) if peak[list(s)].sum() <= cells]
        least = min(Fraction(int(length[s].sum()), len(s) ** 2) for s in subsets)
        assert Fraction(int(length[batch].sum()), batch.size**2) == least


def test_best_batches_are_served_one_after_another() -> None:
    """Three answers of two tokens go before one of a token with a large prompt; a later request is a batch of its own."""
    instance = request_instance([4, 0, 0, 0, 5], [1, 2, 2, 2, 1], 6, arrival=[0, 0, 0, 0, 9])
    schedule = osd.simulate(instance, "sorted-f:exact=true").schedule
    assert schedule.start[np.argsort(schedule.job)].tolist() == [2, 0, 0, 0, 9]
    with pytest.raises(InputError, match="the best batches take too long"):
        osd.simulate(request_instance([1] * 300, [5] * 300, 30_000), "sorted-f:exact=true")
