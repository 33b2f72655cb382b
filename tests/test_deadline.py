"""A deadline is one moment: whoever is handed it sees the time that remains, on a clock that may jump."""

from __future__ import annotations

import math
import pickle

import pytest

import optsched as osd
from optsched import deadline
from optsched.adversary.attack_method import Budget
from optsched.adversary.attack_search import shrunk
from optsched.adversary.evaluation import Evaluation, confirmed
from optsched.adversary.methods.search import ISLANDS, search
from optsched.adversary.space import Candidate, space_of
from optsched.deadline import NEVER, Deadline
from optsched.policies.simulate import specify
from optsched.solvers.session import Session


class Clock:
    """Seconds that pass only when somebody looks, so many at each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 1000.0, step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(0.0)
    monkeypatch.setattr(deadline, "time", found)
    return found


def test_what_is_left_and_a_share_of_it(clock: Clock) -> None:
    due = Deadline.after(10)
    clock.now += 4
    assert (due.left, due.passed, due.share(0.5).left) == (6, False, 3)
    clock.now += 60
    assert (due.left, due.passed, due.share(0.5).passed) == (0, True, True)
    assert (NEVER.left, NEVER.passed, NEVER.share(0.1)) == (math.inf, False, NEVER)
    assert pickle.loads(pickle.dumps(due)) == due


def test_no_solver_gets_more_than_what_remains(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    run = Session.solve

    def heard(session: Session, *, time_limit: float | None = None, **more: object) -> object:
        assert time_limit is not None
        given.append(time_limit)
        clock.now += 7
        return run(session, time_limit=60.0, **more)

    monkeypatch.setattr(Session, "solve", heard)
    found = osd.solve("rigid-12-1", model="reduced-cost-fixing", time_limit=10)
    assert given == [10, 3]
    assert found.value is not None
    assert found.bound is not None


def test_a_limit_that_start_up_has_used_up_still_gives_an_interval(clock: Clock) -> None:
    clock.step = 100.0
    found = osd.solve("cluster-week", time_limit=5)
    assert found.status == "limit"
    assert found.schedule is not None
    assert found.bound is not None
    assert found.bound <= 9_839_107 <= found.value


def test_search_and_shrinking_end_at_the_deadline(clock: Clock) -> None:
    policy = specify("sjf")
    evaluation = Evaluation(space_of(policy.policy, "whole-jobs:arrivals=false"), policy, None, "makespan")
    clock.step = 1.0
    found = search(evaluation, Budget(Deadline.after(30)))
    assert 0 < found.tries <= 30 + ISLANDS  # each island of a round tries one
    before = evaluation.runs
    assert shrunk(evaluation, found.elites[0][1], deadline=Deadline(0.0)) == found.elites[0][1]
    assert evaluation.runs == before


def test_without_time_for_a_proof_the_ratio_is_to_a_schedule_that_solve_finds() -> None:
    policy = specify("sjf")
    evaluation = Evaluation(space_of(policy.policy, "whole-jobs:gpus=1"), policy, None, "total_flow_time")
    # one long job before many short ones
    late = Candidate(((20, 1, 0, 1), *(((1, 1, 1, 1),) * 6)))
    found = confirmed(evaluation, late, "late", Deadline(0.0))
    assert found.ratio == pytest.approx(evaluation.ratio(late))
    assert found.ratio > 2


def test_an_attack_tells_of_larger_and_larger_ratios() -> None:
    heard: list[tuple[float, osd.Instance]] = []
    found = osd.attack("sjf", tries=40, workers=1, best=lambda ratio, instance: heard.append((ratio, instance)))
    ratios = [ratio for ratio, _ in heard]
    assert ratios == sorted(set(ratios))
    assert ratios[-1] == found.searched
