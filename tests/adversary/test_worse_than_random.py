"""A search finds much worse instances than drawing as many at random does; overtaking without a budget has no worst one."""

from __future__ import annotations

import pytest

import optsched as osd
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.search import random_search, search
from optsched.adversary.space import space_of
from optsched.policies.specification import specify

TIMES = 1.3


@pytest.mark.study
@pytest.mark.parametrize("policy", ["a-srpt", "hadar", "tiresias:threshold=8", "sjf-bsbf", "leader-first"])
def test_a_search_beats_as_many_random_instances(policy: str) -> None:
    chosen = specify(policy)
    evaluation = Evaluation(space_of(chosen.policy, weights=False), chosen, None, "total_flow_time")
    found, drawn = search(evaluation.fresh(), tries=1200), random_search(evaluation.fresh(), tries=1200)
    assert found.tries == drawn.tries
    assert found.elites[0][0] >= TIMES * drawn.elites[0][0]


@pytest.mark.study
def test_overtaking_without_a_budget_grows_with_the_number_of_jobs() -> None:
    ratios = [
        osd.attack("a-srpt:overtake=inf", space="whole-jobs:latest=40", jobs=n, tries=2400, workers=1).ratio
        for n in (4, 7, 10)
    ]
    assert ratios[0] * 1.1 < ratios[1] < ratios[2] / 1.1
