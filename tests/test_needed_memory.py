"""The memory of jobs at scaling profiles: of the largest sub-batch that the gang has room for, anew on every cluster."""

from __future__ import annotations

import pytest

from optsched.errors import RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling

NET = {"net": Scaling(1, 1, memory=10, memory_per_sample=1)}  # sub-batch m needs 10 + m bytes


def cluster(*groups: tuple[int, float | None, str]) -> Cluster:
    return Cluster(tuple(NodeGroup(gpus=1, count=count, gpu_memory=memory, gpu=gpu) for count, memory, gpu in groups))


def job(gpus: int = 1, **more: object) -> Job:
    return Job("a", gpus=gpus, iterations=1, profile="net", batch_size=64 * gpus, **more)


def needs(where: Cluster, one: Job) -> float:
    return float(Instance([one], where, scalings=NET).gpu_memory[0])


def test_the_room_is_that_of_the_gang() -> None:
    mixed = cluster((2, 80.0, "A100"), (4, 30.0, "P100"))
    assert needs(mixed, job(2)) == 74
    assert needs(mixed, job(3)) == 10 + 16  # two GPUs of 80 bytes do not hold three replicas
    assert needs(mixed, job(1, gpu_types=("p100",))) == 26
    assert needs(mixed, job(2, gpu_memory=70.0)) == 70
    assert needs(cluster((1, None, "A100"), (4, 30.0, "P100")), job()) == 74


def test_what_no_gang_has_room_for_is_refused() -> None:
    mixed = cluster((2, 80.0, "A100"), (4, 10.5, "P100"))
    with pytest.raises(RowErrors, match=r"net does not fit.*the 10.5 bytes that 3 GPUs of 2x1:A100\+4x1:P100 have"):
        needs(mixed, job(3))
    with pytest.raises(RowErrors, match="the gang is larger than the cluster"):
        needs(mixed, job(7))
    with pytest.raises(RowErrors, match="the gang is larger than the cluster"):
        needs(mixed, job(3, gpu_types=("A100",)))


def test_another_cluster_or_profile_decides_anew() -> None:
    small = Instance([job()], cluster((1, 30.0, "P100")), scalings=NET)
    assert [each.size for each in small.sub_batches(0)] == [16, 8, 4, 2, 1]
    large = small.with_cluster(cluster((1, 80.0, "A100")))
    assert [each.size for each in large.sub_batches(0)] == [64, 32, 16, 8, 4, 2, 1]
    assert large.with_cluster(small.cluster).digest == small.digest != large.digest
    leaner = small.replace(scalings={"net": Scaling(1, 1, memory=5, memory_per_sample=0.25)})
    assert leaner.gpu_memory.tolist() == [21]
    assert small.job(0).gpu_memory is None  # stated by nobody, written to no file
    assert small.to_json()["jobs"][0].get("gpu_memory") is None
