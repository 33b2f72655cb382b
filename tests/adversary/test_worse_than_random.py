"""A search finds much worse instances than drawing as many at random does; overtaking without a budget has no worst one."""

from __future__ import annotations

import random

import pytest

import optsched as osd
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.method import Budget
from optsched.adversary.methods.search import search
from optsched.adversary.space import space_of
from optsched.policies.simulate import specify

TIMES = 1.3


@pytest.mark.study
@pytest.mark.parametrize("policy", ["a-srpt", "hadar", "tiresias:threshold=8", "sjf-bsbf", "leader-first"])
def test_a_search_beats_as_many_random_instances(policy: str) -> None:
    chosen = specify(policy)
    evaluation = Evaluation(space_of(chosen.policy, weights=False), chosen, None, "total_flow_time")
    found, rng = search(evaluation.fresh(), Budget(tries=1200)), random.Random(0)
    assert found.tries == 1200
    drawn = max(evaluation.ratio(evaluation.space.drawn(rng)) for _ in range(found.tries))
    assert found.elites[0][0] >= TIMES * drawn


@pytest.mark.study
def test_overtaking_without_a_budget_grows_with_the_number_of_jobs() -> None:
    ratios = [
        osd.attack("a-srpt:overtake=inf", space="whole-jobs:latest=40", jobs=n, tries=2400, workers=1).ratio
        for n in (4, 7, 10)
    ]
    assert ratios[0] * 1.1 < ratios[1] < ratios[2] / 1.1
