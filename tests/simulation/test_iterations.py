"""The compiled task level against a second simulator in exact fractions, and what every run of it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few, studied

from optsched.check.referee import check_schedule
from optsched.classes.task_sharing.policies.task_orders import srsf
from optsched.classes.task_sharing.simulation.iterations import TaskRun, run_iterations
from optsched.classes.task_sharing.simulation.task_policy import LinkView
from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.simulation.next_event import new_tree, ringing, set_time
from simulation.task_instances import Mine, ran, random_task_instance
from simulation.task_reference import reference_run

RULES: dict[str, Any] = {
    "srsf:k=1": ("srsf", 1),
    "srsf:k=2": ("srsf", 2),
    "srsf:k=3": ("srsf", 3),
    "ada-srsf": "adadual",
    "k-way": "k-way",
}
PLACES: dict[str, Any] = {
    "lwf": ("lwf", 1),
    "lwf:kappa=2": ("lwf", 2),
    "list": ("lwf", math.inf),
    "first-fit": "first-fit",
}
ROUNDING = 1e-9


def told(made: TaskRun) -> list[tuple[float, int, int, float]]:
    """(end, job, worker, start) of every task."""
    log = made.schedule.tasks
    assert log is not None
    rows = zip(log.end.tolist(), log.job.tolist(), log.worker.tolist(), log.start.tolist(), strict=True)
    return sorted(rows, key=lambda row: (row[1], row[2], row[3], row[0]))


def check_against_reference(seed: int, spec: str, place: str) -> None:
    instance = random_task_instance(seed)
    cost = instance.contention
    assert cost is not None
    if spec in ("ada-srsf", "k-way") and (cost.measured or cost.penalty < 0):
        with pytest.raises(InputError, match=r"eta >= 0|linear model"):
            simulate(instance, f"{spec}+{place}")
        return
    made = ran(instance, f"{spec}+{place}")
    assert check_schedule(instance, made.schedule) == []
    segments, tasks = reference_run(instance, PLACES[place], RULES[spec])
    until = first_broken_tie(tasks)
    wanted = sorted(((float(e), j, w, float(s)) for j, w, s, e in tasks), key=lambda r: (r[1], r[2], r[3], r[0]))
    found, wanted = ([row for row in rows if row[0] < until] for rows in (told(made), wanted))
    assert [row[1:3] for row in found] == [row[1:3] for row in wanted]
    assert np.allclose([(r[0], r[3]) for r in found], [(r[0], r[3]) for r in wanted], rtol=ROUNDING, atol=ROUNDING)
    if until == math.inf:
        assert {s.job: s.gpus for s in made.schedule.segments()} == {job: gang for job, gang, *_ in segments}


def first_broken_tie(tasks: list[Any]) -> float:
    """The first instant at which tasks of two jobs end at once and that no float is: floats may order them either way."""
    ends: dict[Any, set[int]] = {}
    for job, _, _, end in tasks:
        ends.setdefault(end, set()).add(job)
    broken = [end for end, jobs in ends.items() if len(jobs) > 1 and Fraction(float(end)) != end]
    return float(min(broken)) * (1 - ROUNDING) if broken else math.inf


@pytest.mark.parametrize("seed", [*few(range(36), 12), *map(studied, range(36, 400))])
def test_it_does_what_the_exact_simulator_does(seed: int) -> None:
    for place in [list(PLACES)[seed % 4]] if seed < 36 else PLACES:
        for spec in RULES:
            check_against_reference(seed, spec, place)


# -- by hand ---------------------------------------------------------------------------------------------------------------

PAIR = Cluster((NodeGroup(gpus=1, count=2, gpu_memory=10),))


def of_pair(*jobs: Job, **contention: float) -> Instance:
    tasks = {"p": IterationTasks(1, 2, 4), "q": IterationTasks(0, 0, 2), "w": IterationTasks(1, 1)}
    return Instance(jobs, PAIR, tasks=tasks, contention=Contention(0.5, **contention))


def test_an_iteration_is_forward_backward_barrier_all_reduce() -> None:
    made = ran(of_pair(Job("a", arrival=1, gpus=2, iterations=2, profile="p")), "srsf")
    assert told(made) == [
        (6.0, 0, -1, 4.0),
        (11.0, 0, -1, 9.0),
        *((end, 0, w, start) for w in (0, 1) for end, start in ((2.0, 1.0), (4.0, 2.0), (7.0, 6.0), (9.0, 7.0))),
    ]
    assert made.schedule.completion.tolist() == [11.0]
    assert (made.events, made.transfers, made.contended, made.spanning) == (10, 2, 0, 1)
    assert made.gpu_busy.tolist() == [6.0, 6.0]
    assert made.nic_busy.tolist() == [4.0, 4.0]
    assert made.metrics["utilization"] == pytest.approx(12 / 20)  # from the first arrival on
    assert made.nic_share == pytest.approx(4 / 10)


def test_two_transfers_pay_for_contention_and_one_after_the_other_do_not() -> None:
    jobs = [Job(name, gpus=2, iterations=1, profile="q") for name in "ab"]
    two = ran(of_pair(*jobs, penalty=0.125), "srsf:k=2")
    assert two.schedule.completion.tolist() == [2 * (2 * 0.5 + 0.125)] * 2
    assert two.contended == 1
    one = ran(of_pair(*jobs, penalty=0.125), "srsf:k=1")
    assert one.schedule.completion.tolist() == [1.0, 2.0]


def test_a_latency_comes_before_the_bytes_and_slows_nobody() -> None:
    jobs = [Job("a", gpus=2, iterations=1, profile="q"), Job("b", arrival=0.25, gpus=2, iterations=1, profile="q")]
    made = ran(of_pair(*jobs, latency=1.0), "srsf:k=2")
    # a moves from 1 to 1.25 alone (half a byte), then both move at 1 s a byte: a's 1.5 bytes end at 2.75, b has half a byte
    assert made.schedule.completion.tolist() == [2.75, 3.0]


# -- policies of one's own -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_a_rule_in_plain_python_does_what_the_compiled_one_does(seed: int) -> None:
    """SRSF(2)."""
    instance, asked = random_task_instance(seed), []

    def communicate(view: LinkView) -> Iterable[int]:
        asked.append(view.now)
        for job in view.ready:
            beside = [view.running(node) for node in view.nodes(job)]
            for other in (o for on_node in beside for o in on_node):
                assert 0 <= view.bytes_left(other) <= view.message(other)
            assert view.bytes_left(job) == view.message(job)
            assert view.transfers_left(job) >= 1
            if max(map(len, beside)) < 2:
                view.start(job)
        return ()

    made = simulate(instance, Mine(None, communicate), "list")
    assert isinstance(made, TaskRun)
    assert told(made) == told(ran(instance, "srsf:k=2+list"))
    assert bool(asked) == (made.transfers > 0)


# -- in every run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_the_same_run_twice_and_without_a_log(seed: int) -> None:
    instance = random_task_instance(seed)
    first, second = ran(instance, "srsf:k=2+random:seed=3"), ran(instance, "srsf:k=2+random:seed=3")
    assert told(first) == told(second)
    from optsched.policies.simulate import specify

    chosen = specify("srsf:k=2+random:seed=3")
    bare = run_iterations(instance, srsf(2), chosen.placement, record=False)
    assert bare.schedule.completion.tolist() == first.schedule.completion.tolist()
    assert bare.schedule.tasks is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["fifo", "hadar-e", "a-srpt", "gavel"])
def test_policies_for_whole_jobs_are_told_apart(spec: str) -> None:
    with pytest.raises(InputError, match=r"schedules whole jobs, these have tasks.*ada-srsf"):
        simulate(of_pair(Job("a", iterations=1, profile="p")), spec)
    with pytest.raises(InputError, match="it schedules tasks, these jobs have none"):
        simulate(Instance([Job("a", duration=1)], "1x1"), "ada-srsf")
    with pytest.raises(InputError, match="whole GPUs only"):
        simulate(of_pair(Job("a", iterations=1, profile="p")), "ada-srsf+consolidated")


def test_the_tournament_of_clocks() -> None:
    rng = np.random.default_rng(4)
    for clocks in (1, 2, 3, 7, 64, 65):
        tree, known = new_tree(clocks), [math.inf] * clocks
        for _ in range(200):
            clock = int(rng.integers(clocks))
            known[clock] = math.inf if rng.random() < 0.3 else float(rng.integers(10))
            set_time(tree, clock, known[clock])
            assert tree[1] == min(known)
            if min(known) < math.inf:
                assert ringing(tree) == known.index(min(known))
