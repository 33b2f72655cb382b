"""A search that leaves out ratios which do not matter finds the same as one that computes all of them."""

from __future__ import annotations

import random

import pytest

from adversary.test_attack_search import MACHINES, on
from optsched.adversary.attack_method import Found
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.methods.search import COLD, DRAWN, HOT, STALE, crossed, island, moved
from optsched.adversary.space import Candidate
from optsched.policies.simulate import Specification, simulated_value
from optsched.problem.instance import Instance

ATTACKS = [
    ("sjf", "total_flow_time", "", 5, 60),
    ("srtf", "total_flow_time", "", 4, 60),
    ("wspt", "total_weighted_completion_time", MACHINES, 4, 40),
    ("list", "makespan", "", 4, 40),
    ("hadar", "makespan", "typed", 3, 15),
]


def plain_island(evaluation: Evaluation, seed: int, tries: int) -> Found:
    """Return what simulated annealing finds when it computes every ratio before it draws its luck."""
    rng, found, space = random.Random(seed), Found(), evaluation.space

    def tried(candidate: Candidate) -> tuple[float, bool]:
        found.tries += 1
        ratio = evaluation.ratio(candidate)
        return ratio, found.offer(ratio, candidate)

    while found.tries < max(2, int(DRAWN * tries)):
        tried(space.drawn(rng))
    (ratio, here), stale = found.elites[0], 0
    child: Candidate | None = None
    while found.tries < tries:
        temperature = HOT * (COLD / HOT) ** (found.tries / tries)
        candidate, child = child or moved(here, space, rng), None
        value, best = tried(candidate)
        stale = 0 if best else stale + 1
        if value > 0 and (value >= ratio or rng.random() < (value / ratio) ** (1 / temperature)):
            ratio, here = value, candidate
        if stale >= STALE:
            (ratio, here), stale = rng.choice(found.elites), 0
            if rng.random() < 0.5:
                child, ratio = crossed(here, rng.choice(found.elites)[1], space, rng), 0.0
    return found


@pytest.mark.parametrize(("policy", "objective", "space", "jobs", "tries"), ATTACKS)
def test_the_search_computes_no_ratio_in_vain(policy: str, objective: str, space: str, jobs: int, tries: int) -> None:
    evaluation = on(policy, objective, space, jobs=jobs)
    found, expected = island(left_out := evaluation.fresh(), 1, tries), plain_island(evaluation, 1, tries)
    assert (found.elites, found.tries) == (expected.elites, expected.tries)
    assert all(evaluation.ratio(candidate) < least for candidate, least in left_out._below.items())
    assert left_out._below or policy != "sjf"  # the others have small optima, or a short and hot walk


def test_a_ratio_that_is_left_out_is_below_the_number() -> None:
    evaluation, rng = on("sjf", "total_flow_time", "", jobs=4), random.Random(4)
    for _ in range(25):
        candidate = evaluation.space.drawn(rng)
        ratio = evaluation.ratio(candidate)
        for least in (0.9 * ratio, ratio, 1.1 * ratio):
            quick = evaluation.fresh().ratio_above(candidate, least)
            assert quick == ratio or (quick is None and least > ratio)


@pytest.mark.parametrize(("policy", "runs"), [("srtf", 1), ("srtf-gpu", 2)])
def test_srtf_runs_once_for_a_candidate(policy: str, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # It is both the policy and the reference with preemption.
    evaluation, ran = on(policy, "total_flow_time", "", jobs=4), list[str]()

    def counted(instance: Instance, specification: Specification, objective: str) -> tuple[float, str]:
        ran.append(specification.text)
        return simulated_value(instance, specification, objective)

    for module in ("evaluation", "spaces.whole_jobs"):
        monkeypatch.setattr(f"optsched.adversary.{module}.simulated_value", counted)
    candidate = evaluation.space.drawn(random.Random(61))
    ratio = evaluation.ratio(candidate)
    assert len(ran) == runs
    monkeypatch.setattr("optsched.adversary.spaces.whole_jobs.WholeJobs.has_run", lambda *_: None)
    assert evaluation.fresh().ratio(candidate) == ratio
    assert len(ran) == runs + 2
