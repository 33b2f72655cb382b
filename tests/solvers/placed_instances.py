"""Small instances whose speed depends on the placement, as the tests of several methods need them."""

from __future__ import annotations

from hypothesis import assume, strategies as st

from optsched.io.traces.generate import generate
from optsched.models.mapped_modes import speed_depends_on_placement
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage

# compute 1/2 s and a ring of 4 bytes a replica: 1 s an iteration inside a node of `two_types`, 2 s across
PAIR = Profile.of_stages([Stage(2, 0.25, 0.25, 4.0)])
SHAPES = ((2, 4), (2, 3), (2, 2), (3, 2))  # nodes x GPUs


def two_types() -> Cluster:
    """Two nodes of two GPUs with names of their own: 8 bytes/s inside, 8/3 a GPU across."""
    return Cluster(
        tuple(NodeGroup(2, 1, name, nic_bandwidth=16 / 3, intra_bandwidth=8.0) for name in ("left", "right"))
    )


def beside_two_others(others: float) -> Instance:
    """A pair that comes at 1 s, 4 s long on one node and 8 s across, and a one-GPU job of ``others`` s for each node."""
    jobs = [
        Job("left", 0, 1, others, gpu_types=("left",)),
        Job("right", 0, 1, others, gpu_types=("right",)),
        Job("pair", 1, 2, iterations=4, profile="pair"),
    ]
    return Instance(jobs, two_types(), profiles={"pair": PAIR}, objective="total_completion_time")


@st.composite
def placed_instances(
    draw: st.DrawFn, *, least: int = 2, most: int = 6, widest: int = 6, shapes: tuple[tuple[int, int], ...] = SHAPES
) -> Instance:
    """Recipe ``ddl-small`` on two or three nodes, with weights and due dates; some job's speed depends on its nodes."""
    nodes, gpus = draw(st.sampled_from(shapes))
    drawn = generate(
        "ddl-small",
        draw(st.integers(0, 10**6)),
        jobs=draw(st.integers(least, most)),
        nodes=nodes,
        gpus=gpus,
        widest=widest,
        span=draw(st.sampled_from([0.0, 0.5])),
        heavy=draw(st.sampled_from([0.3, 1.0])),
    )
    jobs = [
        Job(
            **{name: getattr(job, name) for name in ("id", "arrival", "gpus", "iterations", "profile")},
            weight=draw(st.integers(0, 4)),
            due=draw(st.none() | st.integers(0, 100)),
        )
        for job in drawn.jobs
    ]
    instance = drawn.replace(jobs=jobs)
    assume(speed_depends_on_placement(instance))
    return instance
