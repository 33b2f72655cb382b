"""Policies in plain Python: they agree with the compiled ones, and the view and the engine enforce the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from examples import few

from optsched.errors import KnowledgeError, SimulationError
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Knowledge, Policy, Start, Stop, View, Wake
from optsched.simulation.run import Run
from simulation.instances import HOMOGENEOUS, MIXED, history, random_instance
from simulation.plain_policies import Asked


@dataclass
class Scan:
    """Every waiting job in order of ``key``; one that does not fit is passed over, or blocks."""

    key: Callable[[View, int], Any]
    skip: bool = True
    name: str = "scan"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT

    def decide(self, view: View) -> Iterator[Start]:
        for job in sorted(view.waiting, key=lambda job: (self.key(view, job), job)):
            if view.fits(job):
                yield Start(job)
            elif not self.skip:
                return


@dataclass
class PlainSrtf:
    """Shortest remaining time first by counting GPUs."""

    restart: float = 0.0
    name: str = "plain-srtf"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT

    def decide(self, view: View) -> Iterator[Start | Stop]:
        running = view.running
        left, served = view.free_gpus + sum(view.gpus(job) for job in running), []
        for job in sorted(running + view.waiting, key=lambda job: (view.remaining(job), job)):
            if view.gpus(job) <= left:
                left -= view.gpus(job)
                served.append(job)
        yield from (Stop(job) for job in running if job not in served)
        yield from (Start(job) for job in served if job not in running)


def run(instance: Instance, policy: Any, placement: str = "count") -> Run:
    return run_policy(instance, policy, PLACEMENTS.get(placement)())


def greedy(view: View) -> Iterator[Start]:
    yield from (Start(job) for job in view.waiting if view.fits(job))


THREE = Instance(
    [
        Job("a", gpus=2, duration=4, weight=3, due=9),
        Job("b", arrival=1, duration=2),
        Job("c", arrival=6, gpus=3, duration=1),
    ],
    "1x3",
)


# -- the same as compiled -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", PLACEMENTS.names())
@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ("fifo", Scan(lambda view, job: view.arrival(job), skip=False)),
        ("fifo:skip=true", Scan(lambda view, job: view.arrival(job), knowledge=Knowledge.NON_CLAIRVOYANT)),
        ("sjf", Scan(lambda view, job: view.duration(job))),
        ("list:by=widest", Scan(lambda view, job: -view.gpus(job))),
        ("list:by=due", Scan(lambda view, job: view.due(job))),
    ],
)
def test_a_scan_in_python_is_the_compiled_order(spec: str, policy: Policy, placement: str) -> None:
    for seed in few(range(12), 4):
        instance = random_instance(400 + seed, MIXED if seed % 2 else HOMOGENEOUS[seed % 5])
        mine, compiled = run(instance, policy, placement), run(instance, specify(spec).policy, placement)
        assert history(mine, nodes=True) == history(compiled, nodes=True), instance.name
        assert mine.events == compiled.events
        assert mine.schedule_class == compiled.schedule_class == "gang-nonpreemptive"


@pytest.mark.parametrize("restart", [0.0, 2.0])
def test_srtf_in_python_is_the_compiled_one(restart: float) -> None:
    preemptions = 0
    for seed in range(30):
        instance = random_instance(500 + seed, HOMOGENEOUS[seed % 5])
        mine = run(instance, PlainSrtf(restart))
        compiled = run(instance, specify(f"srtf:restart={restart}").policy)
        assert history(mine, nodes=False) == history(compiled, nodes=False), instance.name
        assert mine.preemptions == compiled.preemptions
        assert mine.schedule_class == ("gang" if mine.preemptions else "gang-nonpreemptive")
        preemptions += mine.preemptions
    assert preemptions > 20


def test_asking_whether_a_job_fits_changes_nothing() -> None:
    def curious(view: View) -> Iterator[Start]:
        for job in view.waiting:
            for other in view.waiting + view.running:
                view.fits(other)
            if view.fits(job):
                yield Start(job)

    for seed in range(5):
        instance = random_instance(600 + seed, "2x4")
        plain, asked = run(instance, Asked(greedy), "random"), run(instance, Asked(curious), "random")
        assert history(plain, nodes=True) == history(asked, nodes=True)


# -- the view -------------------------------------------------------------------------------------------------------------


def test_the_view_shows_what_has_been_revealed_and_is_always_current() -> None:
    seen: dict[float, Any] = {}

    def look(view: View) -> Iterator[Start]:
        before = (view.waiting, view.running, view.free_gpus)
        for job in view.waiting:
            if view.fits(job):
                yield Start(job)
        jobs = view.running + view.waiting
        numbers = [(view.arrival(j), view.gpus(j), view.weight(j), view.due(j), view.duration(j)) for j in jobs]
        progress = [(view.remaining(j), view.attained(j)) for j in jobs]
        seen[view.now] = (before, (view.waiting, view.running, view.free_gpus), numbers, progress)

    run(THREE, Asked(look))
    assert list(seen) == [0, 1, 3, 4, 6, 7]
    assert seen[0] == (([0], [], 3), ([], [0], 1), [(0, 2, 3, 9, 4)], [(4, 0)])
    assert seen[1] == (([1], [0], 1), ([], [0, 1], 0), [(0, 2, 3, 9, 4), (1, 1, 1, math.inf, 2)], [(3, 2), (2, 0)])
    assert seen[3] == (([], [0], 1), ([], [0], 1), [(0, 2, 3, 9, 4)], [(1, 6)])
    assert seen[6][:2] == (([2], [], 3), ([], [2], 0))
    assert seen[7] == (([], [], 3), ([], [], 3), [], [])


def test_lists_are_in_order_of_arrival_then_index() -> None:
    jobs = [Job("late", arrival=2, duration=9), Job("x", arrival=1, duration=9), Job("y", arrival=1, duration=9)]
    orders = []
    run(Instance(jobs, "1x3"), Asked(lambda view: orders.append((view.waiting, view.running)) or greedy(view)))
    assert orders[1] == ([0], [1, 2])
    assert orders[0] == ([1, 2], [])


def test_overhead_is_attained_but_does_no_work() -> None:
    # b preempts a at 1; a resumes at 3 and pays 2 s; at 4, when c arrives, one of them is paid.
    seen = []

    def policy(view: View) -> Iterator[Any]:
        if 1 in view.waiting:
            yield Stop(0)
            yield Start(1)
        elif 0 in view.waiting:
            yield Start(0)
        if view.now == 4:
            seen.append((view.remaining(0), view.attained(0)))

    jobs = [Job("a", gpus=2, duration=4), Job("b", arrival=1, gpus=2, duration=2), Job("c", arrival=4, duration=1)]
    made = run(Instance(jobs, "1x2"), Asked(policy, restart=2))
    assert seen == [(3, 4)]
    assert made.schedule.completion[:2].tolist() == [8, 3]
    assert made.unfinished == ["c"]


# -- knowledge ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("knowledge", [Knowledge.NON_CLAIRVOYANT, "non-clairvoyant", Knowledge.PREDICTED])
@pytest.mark.parametrize("question", ["duration", "remaining"])
def test_who_may_not_know_durations_cannot_ask_for_them(knowledge: Knowledge, question: str) -> None:
    policy = Asked(lambda view: [getattr(view, question)(0)], knowledge)
    with pytest.raises(KnowledgeError, match=f"a {knowledge} policy asked for the (duration|remaining work) of a job"):
        run(THREE, policy)


@pytest.mark.parametrize("question", ["arrival", "gpus", "weight", "due", "attained", "duration", "remaining", "fits"])
@pytest.mark.parametrize("job", [2, 3, -1])
def test_nobody_sees_a_job_before_it_arrives(question: str, job: int) -> None:
    with pytest.raises(KnowledgeError, match=f"there is no job {job} at 0 s: not arrived yet, or never"):
        run(THREE, Asked(lambda view: [getattr(view, question)(job)]))


def test_a_non_clairvoyant_policy_sees_everything_else() -> None:
    def look(view: View) -> Iterator[Start]:
        for job in view.waiting:
            assert (view.arrival(job), view.attained(job)) == (view.now, 0)
            assert view.gpus(job) > 0 and view.weight(job) > 0 and view.due(job) > 0  # noqa: PT018
            yield Start(job)

    assert run(THREE, Asked(look, Knowledge.NON_CLAIRVOYANT)).unfinished == []


# -- decisions that are not possible: see `test_decisions` -----------------------------------------------------------------


def test_a_finished_job_cannot_be_started_again() -> None:
    with pytest.raises(SimulationError, match="policy asked at 4 s: job 'a' is started but does not wait"):
        run(THREE, Asked(lambda view: [Start(0)] if view.now in (0, 4) else []))


@pytest.mark.parametrize("restart", [-1.0, math.nan, math.inf])
def test_an_illegal_restart_is_refused(restart: float) -> None:
    with pytest.raises(
        Exception, match=r"plain-srtf: restart = .*: invalid \(expected: a finite number of seconds >= 0\)"
    ):
        run(THREE, PlainSrtf(restart))


# -- doing nothing, changing one's mind, waking up ------------------------------------------------------------------------


def test_a_policy_that_idles_for_ever_leaves_its_jobs_unfinished_and_named() -> None:
    lazy = Asked(lambda view: [])
    made = run(THREE, lazy)
    assert made.unfinished == ["a", "b", "c"]
    assert lazy.times == [0, 1, 6]
    assert (len(made.schedule), made.metrics["unfinished"], made.metrics["makespan"]) == (0, 3, 0)


def test_starting_and_stopping_at_one_instant_is_nothing_at_all() -> None:
    def dither(view: View) -> Iterator[Any]:
        for job in view.waiting:
            yield Start(job)
            yield Stop(job)
            yield Start(job)

    made = run(THREE, Asked(dither, restart=5))  # not due: nothing was ever preempted
    assert made.schedule.completion.tolist() == [4, 3, 7]
    assert (made.preemptions, len(made.schedule), made.schedule_class) == (0, 3, "gang-nonpreemptive")


def test_stopping_and_starting_at_one_instant_on_the_same_gpus_is_no_preemption_and_costs_nothing() -> None:
    def hiccup(view: View) -> Iterator[Any]:
        yield from (Start(job) for job in view.waiting)
        if view.now == 1:
            yield Stop(0)
            yield Start(0)

    made = run(THREE.head(2), Asked(hiccup, restart=0.5))
    assert made.preemptions == 0
    assert history(made, nodes=False)[0] == [(0, 4, 4, 2)]


def test_wake_asks_again_at_every_time_named_and_other_events_do_not_cancel_it() -> None:
    def sleepy(view: View) -> Iterator[Any]:
        if view.now == 0:
            yield Wake(2.5)
            yield Wake(5)
            yield Wake(2.5)
            yield Wake(6)
        if view.now >= 5:
            yield from greedy(view)

    policy = Asked(sleepy)
    made = run(THREE, policy)
    assert policy.times == [0, 1, 2.5, 5, 6, 7, 9, 10]  # 1, 6: arrivals; 7, 9: b and a are done; 10: c is, and all are
    assert made.schedule.start.tolist() == [5, 5, 9]
    assert made.events == 6 + 3  # at 6 an arrival and the policy's own clock


def test_waking_never_is_allowed() -> None:
    assert run(THREE, Asked(lambda view: [*greedy(view), Wake(math.inf)])).unfinished == []


def test_no_jobs_no_questions() -> None:
    policy = Asked(greedy)
    assert run(THREE.head(0), policy).events == 0
    assert policy.times == []


def test_progress_is_reported() -> None:
    jobs = [Job(str(j), arrival=j, duration=0.5) for j in range(1500)]
    seen: list[tuple[int, int]] = []
    run_policy(
        Instance(jobs, "1x1"), Asked(greedy), PLACEMENTS.get("count")(), progress=lambda done, n: seen.append((done, n))
    )
    assert len(seen) == 2
    assert all(n == 1500 and 0 < done <= 1500 for done, n in seen)


# -- Policies see seconds since the first arrival; what people read is on the log's clock ---------------------------------


UNIX = 1.7e9
JOBS = [Job("a", arrival=UNIX, duration=3), Job("b", arrival=UNIX + 2, duration=1, due=UNIX + 5)]


def test_a_view_counts_from_the_first_arrival_and_says_when_that_was() -> None:
    seen: list[tuple[float, ...]] = []

    def look(view: View) -> Iterator[Start]:
        seen.extend((view.now, view.epoch, view.arrival(j), view.due(j)) for j in view.arrived)
        return greedy(view)

    made = simulate(Instance(JOBS, "1x1"), Asked(look))
    assert seen == [(0.0, UNIX, 0.0, float("inf")), (2.0, UNIX, 2.0, 5.0)]
    assert (made.schedule.start - UNIX).tolist() == [0.0, 3.0]


def test_an_error_of_a_policy_is_told_on_the_clock_of_the_log() -> None:
    with pytest.raises(SimulationError, match="at 1700000003 s: job 'b' is stopped but does not run"):
        simulate(Instance(JOBS, "1x1"), Asked(lambda view: [*([Stop(1)] if view.now > 2 else []), *greedy(view)]))
