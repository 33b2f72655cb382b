"""A-SRPT's dispatcher against a second one in plain Python, its rule of waiting and its notes by hand."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from examples import explored

from optsched.io.traces.generate import generate
from optsched.policies.placements.heavy_edge import map_job
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.profile import Profile, Stage
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time
from policies.a_srpt_model import Turns, srpt_points

CLOSE = 1 + 1e-9


def started(run: Run) -> list[float]:
    """S_j by job."""
    found = [0.0] * run.instance.n
    for j, start in zip(run.schedule.job.tolist(), run.schedule.start.tolist(), strict=True):
        found[j] = start
    return found


# -- the whole dispatcher ---------------------------------------------------------------------------------------------


class Second:
    """The rule a second time: who starts, and where, is found anew at every moment by sorting and scanning."""

    def __init__(self, instance: Instance, run: Run, place: str, parameters: dict[str, Any]) -> None:
        self.instance, self.place, self.network = instance, place, Network.of(instance.cluster)
        self.profiles = [instance.profiles[name] for name in instance.table["profile"].to_list()]
        self.fastest, self.slowest = (each.tolist() for each in paces(instance))
        self.predicted = run.predicted.tolist()  # type: ignore[union-attr]
        self.gpus, self.beta = instance.gpus.tolist(), parameters["beta"]
        sizes = self.network.gpus.tolist()
        self.idle = [iteration_time(self.profiles[j], self.network, self.placed(j, sizes)) for j in range(instance.n)]
        nominal = {"min": self.fastest, "max": self.slowest, "heavy-edge": self.idle}[parameters["virtual_alpha"]]
        total = instance.cluster.gpus
        self.length = [g * n * a / total for g, n, a in zip(self.gpus, self.predicted, nominal, strict=True)]
        self.zero = float(instance.arrival.min())  # budgets count from the first arrival, and so do all clocks here
        release = [t - self.zero for t in instance.arrival.tolist()]
        exact = srpt_points(list(map(Fraction, release)), list(map(Fraction, self.length)), Fraction(self.beta))
        point = list(map(float, exact))  # ties are ties
        assert run.notes["eligible"] - self.zero == pytest.approx(point, rel=1e-12, abs=1e-9)
        delay_budget = [parameters["tau"] * p if self.varies(j) else 0.0 for j, p in enumerate(self.length)]
        work, overtake = instance.work.tolist(), parameters["overtake"]
        self.turns = Turns(total, release, self.gpus, work, self.predicted, point, delay_budget, overtake)
        self.where: dict[int, list[int]] = {}
        self.pace: dict[int, float] = {}
        self.waited = 0

    def run(self) -> list[float]:
        """Starts."""
        return [self.zero + start for start, _ in self.turns.run(self.decide, self.until)]

    def varies(self, j: int) -> bool:
        """Its speed depends on its place."""
        return bool(self.slowest[j] > self.fastest[j])

    def placed(self, j: int, free: list[int]) -> list[int]:
        """Nodes of its replicas."""
        if self.place == "first-fit":
            return [node for node, count in enumerate(free) for _ in range(count)][: self.gpus[j]]
        return map_job(self.profiles[j], self.network, free)[0].tolist()

    def room(self, without: list[int]) -> list[int]:
        """GPUs of every node that would be free if these had ended."""
        free = self.network.gpus.tolist()
        for k in self.turns.running():
            for node in self.where[k] if k not in without else []:
                free[node] -= 1
        return free

    def seconds_to_a_place(self, j: int) -> float:
        """Until it fits on as few nodes as in an idle cluster, as far as is predicted."""
        size = max(self.network.gpus.tolist())
        nodes, now, gone = -(-self.gpus[j] // size), self.turns.now, list[int]()
        expected = []
        for k in self.turns.running():
            start, guess = self.turns.times[k][0], self.predicted[k] * self.pace[k]
            while start + guess <= now:
                guess *= 2
            expected.append((start + guess, k))
        for end, k in [(now, -1), *sorted(expected)]:
            gone.append(k)
            if sum(sorted(self.room(gone))[-nodes:]) >= self.gpus[j]:
                return float(end - now)
        raise AssertionError("an empty cluster has room")

    def takes(self, j: int, pace: float) -> bool:
        """Or does it wait for a better place?"""
        turns = self.turns
        if not self.varies(j) or turns.free == turns.total:
            return True
        wait = self.seconds_to_a_place(j)
        one = self.gpus[j] <= max(self.network.gpus.tolist())
        if wait == 0 or (one and self.predicted[j] * (pace - self.idle[j]) <= wait):
            return True
        return j == turns.head() and turns.delay_budget[j] == 0

    def begin(self, j: int) -> bool | None:
        """Started; None: not wanted or no room; False: it may not overtake."""
        turns, free = self.turns, self.room([])
        if self.gpus[j] > sum(free):
            return None
        nodes = self.placed(j, free)
        pace = iteration_time(self.profiles[j], self.network, nodes)
        if not self.takes(j, pace):
            self.waited += 1
            return None
        if j != turns.head() and not turns.affordable(self.gpus[j] * self.predicted[j] * pace):
            return False
        self.where[j], self.pace[j] = nodes, pace
        turns.start(j, pace)
        return True

    def kind(self, j: int) -> tuple[Any, ...]:
        """What is refused to one is not offered to others like it."""
        return self.gpus[j], self.fastest[j], self.slowest[j]

    def decide(self) -> None:
        """As long as somebody starts."""
        turns, never = self.turns, set()
        while turns.waiting() and turns.free:
            head, not_yet = turns.head(), set()
            for j in sorted(turns.waiting(), key=lambda j: (f"{1e9 + self.predicted[j] * self.fastest[j]:.6f}", j)):
                if self.kind(j) in never | not_yet:
                    continue
                found = self.begin(j)
                if found is None:
                    never.add(self.kind(j))
                elif not found:
                    not_yet.add(self.kind(j))
                elif j == head:
                    break
            else:
                if turns.head() is None or not self.begin(turns.head()):
                    return

    def until(self) -> list[float]:
        """When the virtual machine reaches something, as far as is known."""
        turns, here = self.turns, self.turns.arrived()
        rows = [turns.release[j] for j in here], [self.length[j] for j in here]
        return [*srpt_points(*rows, self.beta), *srpt_points(*rows), *(turns.point[j] for j in here)]


@pytest.mark.parametrize("place", ["first-fit", "heavy-edge"])
def test_every_start_and_every_placement_is_that_of_a_second_dispatcher(place: str) -> None:
    rng = random.Random(1)
    overtaken, waited, strict = 0, 0, 0
    for seed in range(80 if explored() else 15):
        # integer durations on every placement; crowded
        nodes, gpus = rng.choice([(2, 2), (3, 2), (4, 2), (2, 4)])
        span = rng.choice([0.0, 0.3, 1.0])
        instance = generate("ddl-small", seed, jobs=12, nodes=nodes, gpus=gpus, heavy=0.8, rho=4, span=span)
        parameters: dict[str, Any] = {
            "tau": rng.choice([0.0, 0.5, 2.0]),
            "beta": rng.choice([0.25, 0.5, 1.0]),
            "overtake": rng.choice([0.0, 0.1, 2.0, math.inf]),
            "virtual_alpha": rng.choice(["min", "max", "heavy-edge"]),
            "predictor": f"noisy/error={rng.choice([1, 2])}",
        }
        text = ",".join(f"{name}={value}" for name, value in parameters.items())
        run = simulate(instance, f"a-srpt:{text}+{place}")
        second = Second(instance, run, place, parameters)
        assert started(run) == pytest.approx(second.run(), rel=1e-12), (seed, run.policy)
        assert {s.job: [node for node, _ in s.gpus] for s in run.schedule.segments()} == second.where
        overtaken, waited = overtaken + bool(second.turns.charge), waited + bool(second.waited)
        strict += not second.turns.charge
    assert overtaken > 5
    assert waited > 1
    assert strict > 3


# -- waiting for a better place, by hand ----------------------------------------------------------------------------------


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


def start_of_wide(tau: float, second: int, said: int, late: int, late_gpus: int = 4) -> float:
    """Two nodes of two GPUs, first-fit, no budget. ``wide`` takes 15/8 s an iteration on one node and 8 s on two: 98 s more.

    first 0..40 and second 0..``second``, predicted ``said``, are on node 0, third on node 1 all the time. Wide arrives at 3,
    has its turn before 40, and p_j = 15: as gangs have at most two GPUs, 2 busy ones of 3 let a third of a second count.
    """
    cluster = Cluster((NodeGroup(gpus=2, count=2, nic_bandwidth=2.0, intra_bandwidth=8.0),))
    profiles = {
        "pair": Profile.of_stages([Stage(2, 0.5, 0.5, parameters=7.0)]),  # a ring of 7 bytes: 7/8 s inside, 7 s across
        "alone": Profile.of_stages([Stage(1, 0.5, 0.5)]),
        "late": Profile.of_stages([Stage(late_gpus, 0.5, 0.5)]),
    }
    jobs = [
        Job("first", iterations=40, profile="alone"),
        Job("second", iterations=second, profile="alone"),
        Job("third", iterations=1000, profile="alone"),
        Job("wide", gpus=2, iterations=16, profile="pair", arrival=3),
        Job("late", gpus=late_gpus, iterations=10, profile="late", arrival=late),
    ]
    chosen: Any = specify(f"a-srpt:tau={tau},overtake=inf+first-fit")
    chosen.policy.predictor = Said([40, said, 1000, 16, 10])
    run = simulate(Instance(jobs, cluster, profiles=profiles), chosen)
    assert run.notes["virtual_length"][3] == 15
    assert run.notes["eligible"][3] < 40
    start = started(run)[3]
    assert run.schedule.completion[3] == start + 16 * (15 / 8 if start == second else 8)
    return start


@pytest.mark.parametrize(
    ("tau", "second", "said", "late", "start"),
    [
        (5, 40, 40, 900, 40),  # node 0 is free at once
        (5, 100, 100, 900, 100),  # it is expected to be free in 60 s, sooner than the 98 that two nodes cost
        (5, 137, 137, 900, 137),
        (5, 138, 138, 900, 40),  # in 98 s: not worth it
        (1, 100, 100, 900, 85),  # 15 s of delay last for 45
        (0, 100, 100, 900, 40),
        (5, 150, 30, 900, 150),  # said to end at 30; at 40 it still runs: expected at 60, and nobody asks again
        (5, 150, 30, 61, 150),  # at 61 somebody comes: expected at 120
        (5, 150, 30, 121, 121),  # at 121: expected at 240, and not worth it any more
    ],
)
def test_a_head_waits_where_a_better_place_is_expected_soon(
    tau: float, second: int, said: int, late: int, start: float
) -> None:
    assert start_of_wide(tau, second, said, late) == pytest.approx(start, rel=1e-12)


def test_the_clock_stands_while_there_is_no_room() -> None:
    # 15 s of delay, from 40 on; from 44 to 54 late has a GPU. With a gang of four here no idle GPU counts at all.
    assert start_of_wide(1, 100, 100, late=44, late_gpus=1) == pytest.approx(95, rel=1e-12)
    assert start_of_wide(1, 100, 100, late=44, late_gpus=4) == 100


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
    for overtake in (0, 1, math.inf):
        run = simulate(instance, f"a-srpt:overtake={overtake}")
        assert run.unfinished == []
        assert run.schedule.completion.tolist() == pytest.approx([1e9, 1e9], rel=1e-15)
