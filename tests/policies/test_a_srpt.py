"""A-SRPT's dispatcher against a second one in plain Python, and its delay rule against what the schedules show."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.placements.heavy_edge import map_job
from optsched.policies.simulate import simulate
from optsched.policies.specification import specify
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.profile import Profile, Stage
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time
from policies.a_srpt_model import dispatched, srpt_points

CLOSE = 1 + 1e-9


def started(run: Run) -> list[float]:
    """S_j by job."""
    found = [0.0] * run.instance.n
    for j, start in zip(run.schedule.job.tolist(), run.schedule.start.tolist(), strict=True):
        found[j] = start
    return found


def nodes_of(run: Run) -> dict[int, list[int]]:
    """The nodes of every job's replicas, in their order."""
    return {s.job: [node for node, _ in s.gpus] for s in run.schedule.segments()}


def small_ddl(rng: random.Random, seed: int, jobs: int = 7) -> Instance:
    """Integer durations on every placement; crowded."""
    nodes, gpus = rng.choice([(2, 2), (4, 1), (4, 2), (2, 4)])
    return generate(
        "ddl-small", seed, jobs=jobs, nodes=nodes, gpus=gpus, heavy=0.8, rho=4, span=rng.choice([0.0, 0.3, 1.0])
    )


# -- the whole dispatcher ---------------------------------------------------------------------------------------------


def first_fit(free: list[int], gang: int) -> list[int]:
    """The first free GPUs in the order of the nodes."""
    return [node for node, count in enumerate(free) for _ in range(count)][:gang]


def replayed(
    instance: Instance, run: Run, place: str, tau: float, beta: float, threshold: float, eps: float, nominal: Any
) -> tuple[list[float], list[float], dict[int, list[int]]]:
    """Beta points, starts and nodes of every job by the second dispatcher."""
    network = Network.of(instance.cluster)
    fastest, slowest = paces(instance)
    profiles = [instance.profiles[name] for name in instance.table["profile"].to_list()]
    length = (instance.gpus * run.predicted * nominal / instance.cluster.gpus).tolist()
    point = srpt_points(instance.arrival.tolist(), length, beta)
    heavy = (slowest >= threshold * fastest) & (slowest > fastest)
    where: dict[int, list[int]] = {}

    def offer(j: int, running: list[tuple[float, int]]) -> float | None:
        free = network.gpus.tolist()
        for _, k in running:
            for node in where[k]:
                free[node] -= 1
        if sum(free) < instance.gpus[j]:
            return None
        if place == "first-fit":
            where[j] = first_fit(free, int(instance.gpus[j]))
        else:
            where[j] = map_job(profiles[j], network, free)[0].tolist()
        return iteration_time(profiles[j], network, where[j])

    patience = [tau * p if h else 0.0 for p, h in zip(length, heavy.tolist(), strict=True)]
    good = ((1 + eps) * fastest).tolist()
    times = dispatched(point, instance.work.tolist(), offer, patience, good)
    return point, [start for start, _ in times], where


@pytest.mark.parametrize("place", ["first-fit", "heavy-edge"])
def test_every_start_and_every_placement_is_that_of_a_second_dispatcher(place: str) -> None:
    rng = random.Random(1)
    waited = 0
    for seed in range(60):
        instance = small_ddl(rng, seed)
        tau, beta = rng.choice([0.0, 0.5, 2.0]), rng.choice([0.25, 0.5, 1.0])
        threshold, eps, variant = rng.choice([1.0, 1.5, 2.0]), rng.choice([0.0, 0.05, 0.5]), rng.choice(["min", "max"])
        error = rng.choice([1, 2])
        run = simulate(
            instance,
            f"a-srpt:tau={tau},beta={beta},heavy_threshold={threshold},eps={eps},virtual_alpha={variant},"
            f"predictor=noisy/error={error}+{place}",
        )
        nominal = paces(instance)[variant == "max"]
        point, start, where = replayed(instance, run, place, tau, beta, threshold, eps, nominal)
        assert run.notes["eligible"].tolist() == pytest.approx(point, rel=1e-12)
        assert started(run) == pytest.approx(start, rel=1e-12), (seed, run.policy)
        assert nodes_of(run) == where
        without = dispatched(
            point, instance.work.tolist(), lambda j, running: 1.0, [0.0] * instance.n, [0.0] * instance.n
        )
        waited += started(run) != [s for s, _ in without]
    assert waited > 30


# -- the delay rule ---------------------------------------------------------------------------------------------------


def delays(instance: Instance, run: Run) -> Iterator[tuple[int, float]]:
    """(job, seconds between the first moment at which it is the head and fits, and its start), in queue order.

    Nothing overtakes, so free GPUs only grow while the head waits: the clock runs exactly in these seconds.
    """
    start, eligible = started(run), run.notes["eligible"]
    end = run.schedule.completion
    order = sorted(range(instance.n), key=lambda j: (eligible[j], j))
    before: list[int] = []
    clock = 0.0
    for j in order:
        assert start[j] >= clock, "the order of the queue has changed"
        clock = max(clock, eligible[j])
        for moment in sorted({clock, *(float(end[k]) for k in before if end[k] > clock)}):
            used = sum(int(instance.gpus[k]) for k in before if end[k] > moment)
            if used + instance.gpus[j] <= instance.cluster.gpus:
                yield j, start[j] - moment
                break
        clock = start[j]
        before.append(j)


def test_no_job_is_delayed_for_more_than_tau_p_nor_without_being_heavy_nor_before_a_good_place() -> None:
    rng = random.Random(4)
    longest, whole_budget = 0.0, 0
    for seed in range(100, 170):
        instance = small_ddl(rng, seed, jobs=8)
        tau, threshold, eps = rng.choice([0.25, 1.0, 2.0]), rng.choice([1.2, 1.5, 2.0]), rng.choice([0.0, 0.05])
        place = rng.choice(["first-fit", "heavy-edge", "random"])
        run = simulate(instance, f"a-srpt:tau={tau},heavy_threshold={threshold},eps={eps}+{place}")
        fastest, slowest = paces(instance)
        network, nodes = Network.of(instance.cluster), nodes_of(run)
        names = instance.table["profile"].to_list()
        for j, delay in delays(instance, run):
            budget = tau * run.notes["virtual_length"][j]
            heavy = slowest[j] >= threshold * fastest[j] and slowest[j] > fastest[j]
            assert -1e-9 <= delay <= (budget if heavy else 0.0) * CLOSE + 1e-9
            pace = iteration_time(instance.profiles[names[j]], network, nodes[j])
            start, end = started(run), run.schedule.completion
            idle = not any(start[k] < start[j] < end[k] for k in range(instance.n))  # nothing better could come
            if heavy and not idle and pace > (1 + eps) * fastest[j] * CLOSE:  # it has waited as long as it may
                assert delay == pytest.approx(budget, rel=1e-9)
                whole_budget += 1
            longest = max(longest, delay)
    assert longest > 1
    assert whole_budget > 20


@pytest.mark.parametrize("place", ["first-fit", "heavy-edge"])
def test_without_tau_it_is_a_plain_queue_of_virtual_completions(place: str) -> None:
    rng = random.Random(6)
    for seed in range(200, 225):
        instance = small_ddl(rng, seed)
        run = simulate(instance, f"a-srpt:tau=0,heavy_threshold=1+{place}")
        assert all(delay == 0 for _, delay in delays(instance, run))
        # thresholds and tolerances mean nothing then
        other = simulate(instance, f"a-srpt:tau=0,heavy_threshold=3,eps=2+{place}")
        assert started(other) == started(run)


class Said:
    """A predictor that says what it was told to say."""

    name = "said"

    def __init__(self, lengths: list[float]) -> None:
        self.lengths = lengths

    def begin(self, jobs: Any) -> None:
        pass

    def predict(self, job: int, now: float) -> float:
        return self.lengths[job]

    def observe(self, job: int, now: float, length: float) -> None:
        pass


def with_one_heavy_job(policy: str, second: int, late: int) -> Run:
    """Two nodes of two GPUs, first-fit. ``wide`` takes 15/8 s an iteration on one node and 8 s on two; virtual length 15.

    first 1..41 and second 2..2+``second`` on node 0, third 3..103 on node 1; wide is eligible at 18, late at ``late`` + 1.
    """
    cluster = Cluster((NodeGroup(gpus=2, count=2, nic_bandwidth=2.0, intra_bandwidth=8.0),))
    pair = Profile.of_stages([Stage(2, 0.5, 0.5, parameters=7.0)])  # a ring of 7 bytes: 7/8 s inside, 7 s across
    alone = Profile.of_stages([Stage(1, 0.5, 0.5)])
    jobs = [
        Job("first", iterations=40, profile="alone"),
        Job("second", iterations=second, profile="alone"),
        Job("third", iterations=100, profile="alone"),
        Job("wide", gpus=2, iterations=16, profile="pair", arrival=3),
        Job("late", iterations=10, profile="alone", arrival=late),
    ]
    chosen: Any = specify(f"{policy}+first-fit")
    chosen.policy.predictor = Said([4, 4, 4, 16, 4])
    run = simulate(Instance(jobs, cluster, profiles={"pair": pair, "alone": alone}), chosen)
    assert run.notes["eligible"].tolist() == [1, 2, 3, 18, late + 1]
    return run


@pytest.mark.parametrize(
    ("tau", "second", "start", "alpha", "late"),
    [
        (0, 100, 41, 8, 102),  # it fits at 41, apart
        (2, 100, 71, 8, 102),  # 30 s of patience are not enough: second is done at 102
        (4, 100, 101, 8, 102),
        (5, 100, 102, 15 / 8, 102),  # 75 s are: on node 0 as soon as it is free
        (5, 39, 41, 15 / 8, 45),  # node 0 is free at once: no reason to wait
    ],
)
def test_a_head_waits_for_a_better_place_while_its_patience_lasts(
    tau: float, second: int, start: float, alpha: float, late: float
) -> None:
    run = with_one_heavy_job(f"a-srpt:tau={tau}", second, late=44)
    assert started(run)[3] == start
    assert run.schedule.completion[3] == start + 16 * alpha
    assert started(run)[4] == late  # strict: nothing overtakes the head, whatever is free


def test_an_offer_within_eps_and_a_job_below_the_threshold_do_not_wait() -> None:
    assert started(with_one_heavy_job("a-srpt:tau=5,eps=3.3", 100, late=44))[3] == 41  # 8 <= 4.3 x 15/8
    assert started(with_one_heavy_job("a-srpt:tau=5,heavy_threshold=4.3", 100, late=44))[3] == 41
    assert started(with_one_heavy_job("a-srpt:tau=5,eps=3.2,heavy_threshold=4.2", 100, late=44))[3] == 102


def test_the_clock_stands_while_there_is_no_room() -> None:
    # 15 s of patience from 41; at 45 late overtakes and takes a GPU for 10 s; the 11 s that are left run from 55.
    run = with_one_heavy_job("a-srpt:tau=1,backfill=unrestricted", 100, late=44)
    assert started(run)[4] == 45
    assert started(run)[3] == 66
    # Shadow backfilling lets it through too: wide is not due before 41 + 15.
    run = with_one_heavy_job("a-srpt:tau=1,backfill=shadow", 100, late=44)
    assert started(run)[4] == 45
    assert started(run)[3] == 56


# -- what it is told and what it tells --------------------------------------------------------------------------------


def test_the_notes_are_virtual_lengths_and_beta_points_in_the_order_of_the_instance() -> None:
    jobs = [Job("b", arrival=4, gpus=2, duration=6), Job("a", duration=8), Job("c", arrival=4, gpus=4, duration=1)]
    run = simulate(Instance(jobs, "1x4"), "a-srpt:beta=0.5")
    assert run.notes["virtual_length"].tolist() == [3, 2, 1]
    assert run.notes["eligible"].tolist() == [6.5, 1, 4.5]
    assert run.predicted is not None
    assert run.predicted.tolist() == [6, 8, 1]


def test_jobs_shorter_than_the_clock_can_tell_are_not_forgotten() -> None:
    # p < ulp(now): no later event would ever report them.
    instance = Instance([Job("a", arrival=1e9, duration=1e-8), Job("b", arrival=1e9, duration=1e-8)], "1x1")
    for backfill in ("none", "shadow", "unrestricted"):
        run = simulate(instance, f"a-srpt:backfill={backfill}")
        assert run.unfinished == []
        assert run.schedule.completion.tolist() == pytest.approx([1e9, 1e9], rel=1e-15)


def test_the_nominal_alpha_of_heavy_edge_is_that_of_an_idle_cluster() -> None:
    rng = random.Random(8)
    for seed in range(300, 312):
        instance = small_ddl(rng, seed)
        run = simulate(instance, "a-srpt:virtual_alpha=heavy-edge")
        network = Network.of(instance.cluster)
        names = instance.table["profile"].to_list()
        idle = [map_job(instance.profiles[name], network, network.gpus.tolist())[1] for name in names]
        expected = instance.gpus * instance.work * np.array(idle) / instance.cluster.gpus
        assert run.notes["virtual_length"].tolist() == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("beta=0", "beta"),
        ("beta=1.5", "beta"),
        ("tau=-1", "tau"),
        ("tau=inf", "tau"),
        ("eps=-0.1", "eps"),
        ("heavy_threshold=0.5", "heavy_threshold"),
        ("virtual_alpha=mean", "virtual_alpha"),
        ("backfill=shadw", "shadow"),
        ("predictor=forrest", "forest"),
    ],
)
def test_what_is_not_legal_is_said_in_a_line(parameters: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        simulate(Instance([Job("a", duration=1)], "1x1"), f"a-srpt:{parameters}")
    assert "\n" not in str(error.value)
