"""Small instances for the tests of bounds: integers, dyadic fractions, and floats that fit no grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from optsched.bounds import BOUNDS, Certificate
from optsched.problem.instance import Cluster, Instance, Job
from optsched.verifier.tick_machine import served

SUMS = (
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "total_weighted_flow_time",
    "total_weighted_tardiness",
)
OBJECTIVES = (*SUMS, "makespan", "max_flow_time", "max_fair_slowdown")
UGLY = (0.1, 1e-9, 1e9 + 0.3, 1 / 3, 2.5, 3.0, 7e4)

integer = st.integers(1, 13).map(float)
dyadic = st.integers(1, 100).map(lambda x: x / 8)
ugly = st.sampled_from(UGLY) | st.floats(0.01, 50.0)
kinds = {"integer": integer, "short": st.integers(1, 5).map(float), "dyadic": dyadic, "ugly": ugly}


def instance_of(rows: Iterable[tuple[float, ...]], gpus: int) -> Instance:
    """Jobs (arrival, gpus, duration[, weight[, due]]) on a cluster of one-GPU nodes."""
    jobs = []
    for j, (arrival, width, duration, *rest) in enumerate(rows):
        weight, due = [*rest, None, None][:2]
        jobs.append(Job(f"j{j}", arrival, int(width), duration, weight=1.0 if weight is None else weight, due=due))
    return Instance(jobs, Cluster.machines(gpus))


@st.composite
def instances(draw: st.DrawFn, most: int = 5, kind: str | None = None, gpus: int | None = None) -> Instance:
    """0 to ``most`` jobs on 1 to 8 GPUs, with weights (also 0) and due dates (also none, also past)."""
    number = kinds[kind or draw(st.sampled_from(sorted(kinds)))]
    total = gpus or draw(st.integers(1, 8))
    zero = st.just(0.0)
    row = st.tuples(
        zero | number, st.integers(1, total), number, zero | number, st.none() | number | number.map(lambda x: -x)
    )
    return instance_of(draw(st.lists(row, max_size=most)), total)


def random_gangs(rng: np.random.Generator) -> Instance:
    """Random gangs: 2-6 jobs, G in {2, 3, 4, 6, 8}."""
    total = int(rng.choice([2, 3, 4, 6, 8]))
    widest = int(rng.choice([1, max(1, total // 2), total]))
    latest = int(rng.choice([0, 3, 8, 20]))
    rows = [
        (
            float(rng.integers(0, latest + 1)),
            int(rng.integers(1, widest + 1)),
            float(rng.choice([1, 2, 3, 5, 8, 13])),
            float(rng.integers(0, 6)),
            float(rng.integers(0, 25)),
        )
        for _ in range(rng.integers(2, 7))
    ]
    return instance_of(rows, total)


def many(count: int, seed: int, kind: str = "integer", gpus: int = 8, load: float = 1.2) -> Instance:
    """Many jobs in one busy stretch, in no order of arrival: hundreds of them are interrupted."""
    rng = np.random.default_rng(seed)
    width = rng.integers(1, gpus + 1, count)
    scale = 1.0 if kind == "integer" else 0.1
    duration = scale * rng.geometric(0.02, count)
    arrival = rng.permutation(np.cumsum(rng.exponential(float(width @ duration) / count / gpus / load, count)))
    weight = scale * rng.integers(1, 9, count)
    if kind == "integer":
        arrival = np.floor(arrival)
    due = arrival + duration * rng.integers(1, 4, count)
    return instance_of(
        zip(arrival.tolist(), width.tolist(), duration.tolist(), weight.tolist(), due.tolist(), strict=True), gpus
    )


def queue(count: int = 30, scale: float = 1.0, epoch: float = 0.0) -> Instance:
    """Gangs of 1 to 3 on 4 GPUs, most of which wait; times in units of ``scale`` s, which is their weight, too."""
    rng = np.random.default_rng(1)
    rows = zip(rng.exponential(1.0, count).tolist(), rng.lognormal(0, 2, count).tolist(), strict=True)
    return instance_of([(epoch + r * scale, 1 + k % 3, d * scale, scale) for k, (r, d) in enumerate(rows)], 4)


def built(kind: str, instance: Instance, objective: str, schedule_class: str = "gang") -> Certificate | None:
    """The certificate of a kind, if there is one; proved again."""
    certificate = BOUNDS.get(kind).build(instance, objective, schedule_class)
    if certificate is not None:
        certificate.verify(instance)
    return certificate


def proved(kind: str, instance: Instance, objective: str, schedule_class: str = "gang") -> Certificate:
    """The same, where there must be one."""
    certificate = built(kind, instance, objective, schedule_class)
    assert certificate is not None
    return certificate


def certificates(
    instance: Instance, objective: str, schedule_class: str = "gang", names: Iterable[str] = ()
) -> list[Certificate]:
    """What every bound, of those with these names, says of the instance; none named: all that are not strong."""
    known = [BOUNDS.get(name) for name in names or [name for name in BOUNDS.names() if not BOUNDS.get(name).strong]]
    served = [each for each in known if objective in each.objectives and schedule_class in each.classes]
    built = [each.build(instance, objective, schedule_class) for each in served]
    return [certificate for certificate in built if certificate is not None]


def best_of_others(kind: str, instance: Instance, objective: str, schedule_class: str = "gang") -> Fraction:
    """The best of the bounds of other kinds."""
    return max(each.value for each in certificates(instance, objective, schedule_class) if each.kind != kind)


def busy_pieces(jobs: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The verifier's machine that serves the densest job: (end, twice the work x mean busy time) of (release, work, u)."""
    order = sorted(range(len(jobs)), key=lambda j: (Fraction(jobs[j][1], jobs[j][2]), jobs[j][0]))
    release, work, _ = map(list, zip(*jobs, strict=True))
    ends, gaps = served(release, work, order)
    return [(end, p * (2 * end - p) - gaps.get(j, 0)) for j, (end, p) in enumerate(zip(ends, work, strict=True))]
