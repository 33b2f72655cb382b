"""Decisions in one compiled call or one by one: the same schedules, the same words for what is not possible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.compiled import without_interpreting
from optsched.errors import SimulationError
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Decision, Moves, Start, Stop, View, Wake
from simulation.plain_policies import Asked


class Shuffles:
    """Every 3 s all running jobs stop, and the active ones start in a random order on random free GPUs."""

    name, knowledge, uses, restart = "shuffles", "clairvoyant", ("nodes",), 0.5

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def begin(self, view: View) -> None:
        self._draw = np.random.default_rng(self.seed)
        self._next = 0.0

    def decide(self, view: View) -> list[Decision]:
        if view.now < self._next or not view.active.size:
            return []
        self._next = view.now + 3
        decisions: list[Decision] = [Stop(j) for j in view.running]
        free = view.free
        for j in view.running:
            for node, count in view.held(j):
                free[node] += count
        for j in self._draw.permutation(view.active).tolist():
            gang, on = view.gpus(j), {}
            while gang and free.sum() >= gang:
                node = int(self._draw.choice(np.flatnonzero(free)))
                on[node] = on.get(node, 0) + 1
                free[node] -= 1
                gang -= 1
            if gang == 0:
                decisions.append(Start(j, on=tuple(on.items())))
        return [*decisions, Wake(self._next)]


class OneByOne(Shuffles):
    def decide(self, view: View) -> Iterator[Decision]:  # type: ignore[override]
        yield from super().decide(view)


def in_arrays(decisions: list[Any]) -> Moves:
    """The stops, then the starts."""
    stops, starts = ([each for each in decisions if isinstance(each, kind)] for kind in (Stop, Start))
    places = np.array([place for start in starts for place in start.on], dtype=np.int64).reshape(-1, 2)
    return Moves(
        stop=np.array([stop.job for stop in stops], dtype=np.int64),
        start=np.array([start.job for start in starts], dtype=np.int64),
        first=np.cumsum([0, *(len(start.on) for start in starts)]),
        node=places[:, 0],
        count=places[:, 1],
    )


class InArrays(Shuffles):
    def decide(self, view: View) -> list[Decision]:
        decisions = super().decide(view)
        return [in_arrays(decisions), *(each for each in decisions if isinstance(each, Wake))]


class Free(InArrays):
    """A job that goes on where it was on other GPUs of the node pays nothing."""

    restart = 0.0


class BesideSharing(Free):
    """Where GPUs have names the moves are made one by one."""

    uses = ("nodes", "sharing")  # type: ignore[assignment]


def crowd(seed: int, **more: Any) -> Instance:
    """25 jobs that come within 20 s."""
    draw = np.random.default_rng(seed)
    columns = [(float(draw.integers(0, 20)), int(draw.integers(1, 5)), float(draw.integers(1, 9))) for _ in range(25)]
    return Instance([Job(str(j), *row) for j, row in enumerate(columns)], "3x2+1x3", **more)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_many_at_a_time_and_one_by_one_give_the_same_schedule(seed: int) -> None:
    instance = crowd(seed)
    one = simulate(instance, OneByOne(seed))
    with without_interpreting():  # compiled code reads arrays as they lie in memory
        compiled = simulate(instance, InArrays(seed))
    for many in (compiled, *(simulate(instance, kind(seed)) for kind in (Shuffles, InArrays))):
        assert many.schedule.completion.tolist() == one.schedule.completion.tolist()
        assert many.schedule.gpu_node.tolist() == one.schedule.gpu_node.tolist()
        assert many.preemptions == one.preemptions > 10


@pytest.mark.compiled
def test_moves_in_arrays_where_jobs_share_gpus() -> None:
    instance = crowd(0, interference=1.5)
    alone, beside = (simulate(instance, kind(0)) for kind in (Free, BesideSharing))
    assert alone.schedule.completion.tolist() == beside.schedule.completion.tolist()


def refused(instance: Instance, policy: Asked) -> str:
    """The one short line that says what is wrong with the decisions of a policy."""
    with pytest.raises(SimulationError) as caught:
        simulate(instance, policy)
    said = str(caught.value)
    assert said.startswith("policy asked at 0 s: ")
    assert "\n" not in said
    assert len(said) < 400
    return said


def says(*decisions: Any, uses: tuple[str, ...] = ("nodes",)) -> Asked:
    return Asked(lambda view: list(decisions) if view.now == 0 else [], uses=uses)


GOOD = Start(0, ((0, 2),))
THREE = Instance([Job("a", duration=1, gpus=2), Job("b", duration=1, gpus=2), Job("c", duration=1)], "2x2")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Stop(1), "job 'b' is stopped but does not run"),
        (Start(0, ((1, 2),)), "job 'a' is started but does not wait"),
        (Start(1, ((0, 1), (1, 1))), "job 'b' is started on 1 GPUs of node 0, 1 in all: 0 are free"),
        (Start(1, ((1, 1),)), "job 'b' is started on 1 GPUs; its gang has 2"),
        (Start(1, ((1, 2), (2, 1))), "there is no such node"),
        (Start(1, ((1, -2),)), "no GPU is meant"),
        (Start(1, ((1, 1), (1, 2))), "node 1, 3 in all: 2 are free"),
        (Start(1, ((1.0, 2),)), "names no GPUs"),  # type: ignore[arg-type]
        (Start(1, ()), "names no GPUs"),
        (Start(9, ((1, 2),)), "there is no job 9"),
        (Start(-1, ((1, 2),)), "there is no job -1"),
        (Start("b", ((1, 2),)), "there is no job 'b'"),  # type: ignore[arg-type]
        (Stop(None), "there is no job None"),  # type: ignore[arg-type]
        ("b", "'b' is not a decision"),
        (Wake(0), "not later than now"),
    ],
)
def test_what_is_not_possible_is_named_wherever_it_stands(wrong: Any, words: str) -> None:
    for decisions in ([GOOD, wrong], [GOOD, Start(2, ((1, 1),)), Stop(2), wrong], [Wake(5), GOOD, wrong, Stop(0)]):
        assert words in refused(THREE, says(*decisions))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (in_arrays([Stop(1)]), "job 'b' is stopped but does not run"),
        (in_arrays([Stop(0), Start(0, ((0, 2),)), Start(1, ((0, 1),))]), "1 GPUs of node 0, 1 in all: 0 are free"),
        (in_arrays([Start(1, ((1, 3),))]), "node 1, 3 in all: 2 are free"),
        (in_arrays([Start(1, ())]), "names no GPUs"),
        (in_arrays([Start(9, ((1, 2),))]), "there is no job 9"),
        (Moves(stop=np.array([0]), at=np.array([0.0])), "job 'a' is to be stopped at 0.0"),
        (Moves(stop=np.array([2]), at=np.array([5.0])), "job 'c' is stopped but does not run"),
        (Moves(stop=[0]), "is invalid"),  # type: ignore[arg-type]
        (Moves(stop=np.array([0.0])), "is invalid"),  # type: ignore[arg-type]
        (Moves(stop=np.array([[0]])), "is invalid"),
        (Moves(stop=np.array([0]), at=np.array([3])), "is invalid"),  # type: ignore[arg-type]
        (Moves(stop=np.array([0]), at=np.array([3.0, 4.0])), "is invalid"),
        (Moves(start=np.array([1])), "is invalid"),
        (Moves(start=np.array([1]), first=np.array([0, 1])), "is invalid"),
        (Moves(start=np.array([1]), first=np.array([1, 0]), node=np.array([1])), "is invalid"),
    ],
)
def test_moves_that_are_not_possible_are_named(wrong: Moves, words: str) -> None:
    assert words in refused(THREE, says(GOOD, wrong))


def test_moves_of_nobody_change_nothing() -> None:
    instance = Instance([Job("a", duration=1, gpus=2)], "2x2")
    nobody = Moves(stop=np.zeros(0, dtype=np.int64), at=np.zeros(0))
    assert simulate(instance, says(Moves(), GOOD, nobody)).schedule.completion.tolist() == [1]


def test_a_policy_that_names_nodes_says_so() -> None:
    instance = Instance([Job("a", duration=1, gpus=3)], "2x2")
    for decisions in ([Start(0, ((0, 2), (1, 1)))], [Start(0, ((0, 2), (1, 1))), Stop(0)]):
        assert "says so" in refused(instance, says(*decisions, uses=()))


# -- What a policy yields that is no decision, or an order with values that are none, is one line that names it -----------


TWO = osd.Instance([osd.Job("a", duration=100), osd.Job("b", arrival=3, duration=50)], "1x2")


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (iter([Start(0), Start(True)]), "Start: there is no job True"),
        (iter([Start(0), Stop(False)]), "Stop: there is no job False"),
        (iter([Start(0), Start(10**5000)]), "there is no job a int"),
        (iter([Start(0), Start(0)]), "job 'a' is started but does not wait"),
        ([Start(1)], "job 'b' is started but does not wait"),  # it has not arrived
        ([Stop(0.0)], "Stop: there is no job 0.0"),  # type: ignore[arg-type]
        ([Wake(10**400)], " is at no time (expected: a number of seconds"),  # type: ignore[arg-type]
        ([Wake(10**5000)], "a Wake is at no time"),  # type: ignore[arg-type]
        ([Wake(True)], "is at no time"),
        ([Wake("soon")], "Wake(time='soon') is at no time"),  # type: ignore[arg-type]
        ([Wake(0)], "Wake(time=0) is not later than now"),
        ([Wake(-1)], "Wake(time=-1) is not later than now"),
        ([Wake(math.nan)], "Wake(time=nan) is not later than now"),
        (iter([Start(0), Stop(0, at=10**400)]), "is to be stopped at 10000"),
        ([0], ": 0 is not a decision (expected: Start, Stop, Wake, Moves)"),
        (iter([nested(5000)]), "a list is not a decision"),
        (nested(5000), "a list is not a decision"),
        ([[Start(0)]], "[Start(job=0, on=None, gpus=None, option=0, work=None)] is not a decision"),
        (iter([Start(0), [[Start(1)]]]), "[Start(job=1, on=None, gpus=None, option=0, work=None)] is not a decision"),
        (None, ": decide returned None (expected: an iterable of decisions)"),
        (Start(0), "option=0, work=None) (expected: an iterable of decisions)"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_what_is_no_decision(answer: Any, said: str) -> None:
    assert said in refused(TWO, Asked(lambda view: answer))


def test_gpus_that_do_not_fit() -> None:
    whole = "job 'b' is started but its 2 GPUs do not fit (ask view.fits first)"
    assert whole in refused(THREE.replace(cluster="1x3"), Asked(lambda view: [Start(0), Start(1)]))


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ([Start(True, on=[(0, 1)]), Start(0, on=[(0, 1)])], "Start: there is no job True"),
        ([Start(0, on=[(0, 1)]), Start(np.True_, on=[(0, 1)])], "Start: there is no job"),  # type: ignore[arg-type]
        ([Start(0, on=[(False, True)]), Start(1, on=[(0, 1)])], "names no GPUs"),
        ([Start(0, on=[(0, 1)]), Stop(False), Stop(0)], "Stop: there is no job False"),
        ([Start(0, on=[(0, 1)]), Stop(False, at=5.0), Stop(0, at=6.0)], "Stop: there is no job False"),
        ([Start(0, on=[(0, 1)]), Stop(0, at=True), Stop(0, at=6.0)], "is to be stopped at True"),
    ],
)
def test_a_truth_value_among_numbers_of_a_list_is_no_number(decisions: list[Any], said: str) -> None:
    assert said in refused(osd.Instance([osd.Job("a", duration=9), osd.Job("b", duration=5)], "1x2"), says(*decisions))


@pytest.mark.parametrize("hook", ["order", "accelerator"])
def test_who_asks_too_much_before_the_run_is_named(hook: str) -> None:
    curious = Asked(lambda view: (), knowledge="non-clairvoyant")
    setattr(curious, hook, lambda jobs: jobs.duration)
    with pytest.raises(osd.KnowledgeError, match=r"^policy asked at 0 s: a non-clairvoyant policy asked for durations"):
        osd.simulate(TWO, curious)
