"""Runs of jobs whose speed depends on their placement: work is conserved, and the referee accepts no forgery of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from examples import few

from optsched.check.referee import check_schedule
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.problem.schedule import Schedule, Segment
from optsched.simulation.run import Run
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_max, alpha_min, iteration_time

PLACES = ["first-fit", "consolidated", "random", "heavy-edge"]
POLICIES = ["srtf:restart=3", "srtf", "fifo", "a-srpt:overtake=0", "wcs-duration", "tiresias:restart=1,threshold=16"]


def by_job(run: Run) -> dict[int, list[Segment]]:
    """Segments of every job in order of time."""
    found: dict[int, list[Segment]] = {}
    for segment in sorted(run.schedule.segments(), key=lambda s: s.start):
        found.setdefault(segment.job, []).append(segment)
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_iteration_is_done_at_the_speed_of_its_placement(policy: str, place: str) -> None:
    restart = {"srtf:restart=3": 3.0, "tiresias:restart=1,threshold=16": 1.0}.get(policy, 0.0)
    preempted, moved, paces = 0, 0, set()
    for seed in few(range(8), 3):
        instance = generate("ddl-small", seed, jobs=12, nodes=3, gpus=2, heavy=1.0, rho=4, span=0.6)
        run = simulate(instance, f"{policy}+{place}")
        assert check_schedule(instance, run.schedule, preemptive=run.preemptive) == []
        network, names = Network.of(instance.cluster), instance.table["profile"].to_list()
        assert run.unfinished == []
        for j, segments in by_job(run).items():
            profile = instance.profiles[names[j]]
            assert sum(s.work for s in segments) == pytest.approx(instance.iterations[j], rel=1e-12)
            preempted += len(segments) > 1
            own = set()
            for k, s in enumerate(segments):
                alpha = iteration_time(profile, network, [node for node, _ in s.gpus])
                assert alpha_min(profile, network) <= alpha <= alpha_max(profile, network) * (1 + 1e-12)
                overhead = restart if k > 0 else 0.0
                busy = max(0.0, s.end - s.start - overhead)  # stopped before its restart was over: no work
                assert s.work * alpha == pytest.approx(busy, rel=1e-9, abs=1e-9)
                own.add(alpha)
                paces.add(round(alpha / alpha_min(profile, network), 6))
            moved += len(own) > 1
    assert max(paces) > 1.2  # some were placed badly
    assert bool(preempted) == policy.startswith(("srtf", "tiresias"))
    assert moved or not preempted or place != "random"  # some went on at another speed


# -- forgeries --------------------------------------------------------------------------------------------------------

PAIRS = Profile.of_stages([Stage(2, 0.5, 0.5, parameters=8.0), Stage(2, 0.5, 0.5, parameters=8.0)])
CLUSTER = Cluster((NodeGroup(gpus=2, count=2, nic_bandwidth=2.0, intra_bandwidth=8.0),))
INSTANCE = Instance([Job("a", gpus=4, iterations=10, profile="pairs")], CLUSTER, profiles={"pairs": PAIRS})


def forged(change: Callable[[Segment], Segment]) -> list[str]:
    """The rules that the run breaks when its only segment is changed."""
    run = simulate(INSTANCE, "wcs-subtime")
    (segment,) = run.schedule.segments()
    assert [node for node, _ in segment.gpus] in ([0, 0, 1, 1], [1, 1, 0, 0])  # each ring inside a node: 2 s
    assert segment.end - segment.start == 20
    found = check_schedule(INSTANCE, Schedule.from_segments(INSTANCE, [change(segment)]), preemptive=False)
    return [violation.rule for violation in found]


def test_the_referee_reads_the_order_of_the_gpus() -> None:
    assert forged(lambda s: s) == []
    # the same four GPUs, but one replica of each ring on each node: 9 s an iteration
    assert forged(lambda s: dataclasses.replace(s, gpus=tuple(s.gpus[k] for k in (0, 2, 1, 3)))) == ["rate"]
    # within a ring, and of the two rings as a whole, the order does not matter
    assert forged(lambda s: dataclasses.replace(s, gpus=tuple(s.gpus[k] for k in (1, 0, 3, 2)))) == []
    assert forged(lambda s: dataclasses.replace(s, gpus=tuple(s.gpus[k] for k in (2, 3, 0, 1)))) == []
    # slow, but honest
    slow = {"gpus": lambda s: tuple(s.gpus[k] for k in (0, 2, 1, 3)), "end": lambda s: s.start + 90}
    assert forged(lambda s: dataclasses.replace(s, **{key: value(s) for key, value in slow.items()})) == []


@pytest.mark.parametrize(
    ("changes", "rules"),
    [({"work": 11.0}, ["rate", "work"]), ({"work": 9.0}, ["work"]), ({"end": 24.0}, ["rate"]), ({"end": 26.0}, [])],
)
def test_iterations_and_seconds_must_agree(changes: dict[str, float], rules: list[str]) -> None:
    assert forged(lambda s: dataclasses.replace(s, start=5.0, **{"end": 25.0, **changes})) == rules
