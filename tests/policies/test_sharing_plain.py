"""The choice of GPUs and partners next to its plain form, and compiled next to interpreted: the same schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import studied
from simulation.plain_policies import Ordered

from optsched.classes.gpu_sharing.policies.sharing_choice import best_sharing
from optsched.compiled import without_interpreting, without_machine_code
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.simulation.policy import Order
from optsched.simulation.run import Run
from policies.sharing_plain import plain_sharing

MODELS = ("lm", "resnet", "vgg")
SCALINGS = {
    "lm": Scaling(0.125, 0.03125, 0.0625, 0.03125, 0.5, 0.0625, memory=2.0, memory_per_sample=1.0),
    "resnet": Scaling(0.25, 0.0625, 0.03125, 0.0, 0.25, 0.125, memory=3.0, memory_per_sample=0.5),
}
MIXED = Cluster(
    (NodeGroup(2, count=3, gpu="P100", gpu_memory=16.0), NodeGroup(4, count=2, gpu="V100", gpu_memory=24.0))
)
CLUSTERS: tuple[Cluster | str, ...] = ("1x4", "4x2", "3x4", "2x8", "12x1", MIXED)
# test, consolidated, joint, order of the partners, accumulate, outlook
NUMBERS = [
    (1, 1, 1, 2, 1, 0.5),
    (1, 1, 1, 2, 1, 0),
    (1, 0, 1, 0, 1, 4),
    (1, 1, 0, 1, 1, 0.5),
    (1, 0, 0, 0, 1, 0),
    (0, 1, 1, 0, 1, 0.5),
]


def random_instance(seed: int, most: int) -> Instance:
    """More jobs than GPUs; often the same few jobs again and again, times that are equal, jobs that never share, memory."""
    rng = np.random.default_rng([seed, 55])
    cluster = CLUSTERS[seed % len(CLUSTERS)]
    gpus = (Cluster.parse(cluster) if isinstance(cluster, str) else cluster).gpus
    whole, kinds = bool(rng.random() < 0.5), int(rng.integers(2, 7)) if rng.random() < 0.6 else most
    templates: list[dict[str, Any]] = []
    for _ in range(kinds):
        gang = min(int(rng.choice([1, 1, 2, 3, 4, 6, 8])), gpus)
        if rng.random() < 0.4:
            batch, work = gang * int(rng.choice([4, 6, 8])), float(rng.integers(2, 40))
            name = str(rng.choice(list(SCALINGS)))
            templates.append({"gpus": gang, "iterations": work, "profile": name, "batch_size": batch})
        else:
            seconds = float(rng.integers(1, 20)) if whole else float(rng.exponential(8) + 0.5)
            fields: dict[str, Any] = {"gpus": gang, "duration": seconds, "model": str(rng.choice(MODELS))}
            if rng.random() < 0.4:
                fields["gpu_memory"] = float(rng.integers(1, 12))
            if cluster is MIXED and rng.random() < 0.3 and gang <= 6:
                fields["gpu_types"] = (str(rng.choice(["P100", "V100"])),)
            templates.append(fields)
    jobs, now, gap = [], 0.0, float(rng.choice([0.2, 1.0, 3.0]))
    for j in range(int(rng.integers(most // 2, most + 1))):
        now += float(rng.integers(0, 3)) * gap if whole else float(rng.exponential(gap))
        jobs.append(Job(f"j{j}", now, **templates[int(rng.integers(kinds))]))
    ratios: list[list[Any]] = [[float(rng.choice([1.0, 1.1, 1.25, 1.5, 2.5])) for _ in MODELS] for _ in MODELS]
    if rng.random() < 0.3:
        ratios[0][2] = None
    table = Interference(float(rng.choice([1.05, 1.25, 1.5])), MODELS, tuple(map(tuple, ratios)))
    return Instance(jobs, cluster, scalings=SCALINGS, interference=table)


def run(instance: Instance, rule: Any, numbers: tuple[float, ...]) -> Run:
    def order(jobs: Any) -> Order:
        return Order(jobs.duration, rule=rule, numbers=tuple(map(float, numbers)))

    return simulate(instance, Ordered(order, "clairvoyant", "ruled", ("sharing",)))


@pytest.mark.filterwarnings("ignore:interference")
@pytest.mark.parametrize(
    ("seed", "most"), [*((k, 14) for k in range(24)), *(studied(k, 240) for k in range(100, 1100))]
)
def test_what_is_kept_or_left_out_changes_nothing(seed: int, most: int) -> None:
    instance = random_instance(seed, most)
    numbers = NUMBERS[0] if seed % 2 else NUMBERS[seed // 2 % len(NUMBERS)]
    with without_interpreting() if most > 100 else without_machine_code():
        made, plain = run(instance, best_sharing, numbers), run(instance, plain_sharing, numbers)
    assert list(made.schedule.segments()) == list(plain.schedule.segments())


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:interference")
@pytest.mark.parametrize("seed", [*range(20), *(studied(k) for k in range(20, 1000))])
def test_compiled_and_interpreted_choose_the_same(seed: int) -> None:
    instance, numbers = random_instance(seed, 16), NUMBERS[seed // 6 % len(NUMBERS)]
    with without_machine_code():
        interpreted = run(instance, best_sharing, numbers)
    with without_interpreting():
        compiled = run(instance, best_sharing, numbers)
    assert list(compiled.schedule.segments()) == list(interpreted.schedule.segments())
