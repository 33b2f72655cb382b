"""Jobs at scaling profiles in the engine: compiled rates against readable ones, bounds of the pace, the referee."""

from __future__ import annotations

import dataclasses
import itertools
import random

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

import optsched as osd
from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.duration import fixed_durations, paces, seconds_alone, segment_paces
from optsched.speeds.iteration_times import iteration_seconds
from optsched.speeds.kinds.scaling_speeds import ScalingSpeeds
from optsched.speeds.speed_tables import pace, speed_tables
from optsched.speeds.type_speeds import type_speeds

# -- measured scalings, and one more way to read them: by the definitions -------------------------------------------------


LOCALS = (2, 5, 8)


def measured(seed: int, most: int = 3, nodes: int = 3, share: float = 0.7) -> Scaling:
    """A share of all placements of at most ``most`` replicas on each of at most ``nodes`` nodes, and a formula."""
    rng = random.Random(seed)
    rows = []
    for k in range(1, nodes + 1):
        for counts in itertools.product(range(1, most + 1), repeat=k):
            smallest = min(counts[i:] + counts[:i] for i in range(k))
            if counts == smallest and rng.random() < share:
                # as written in a file: any rotation must do
                turned = counts[1:] + counts[:1] if rng.random() < 0.3 else counts
                name = int("".join(map(str, turned)))
                rows += [(name, local, 0.1 + rng.random() + 0.05 * local, 0.1 * rng.random()) for local in LOCALS]
    grid = [(n, r, local) for n, r in ((1, 9), (4, 4), (4, 12), (6, 6), (6, 18)) for local in LOCALS]
    scalability = tuple((n, r, local, 1.5 + rng.random(), 0.2) for n, r, local in grid)
    return Scaling(0.3, 0.02, 0.1, 0.01, 0.4, 0.02, 1.5, measured=MeasuredSteps(tuple(rows), scalability))


def by_hand(scaling: Scaling, size: int, steps: int, counts: list[int]) -> float | None:
    """Seconds of an iteration where this placement was measured on both sides of ``size``; else None."""
    assert scaling.measured is not None
    turns = {"".join(map(str, counts[i:] + counts[:i])) for i in range(len(counts))}
    rows = sorted(row[1:] for row in scaling.measured.placements if str(row[0]) in turns)
    below, above = [row for row in rows if row[0] <= size], [row for row in rows if row[0] >= size]
    if not below or not above:
        return None
    (m0, t0, y0), (m1, t1, y1) = below[-1], above[0]
    part = 0.0 if m1 == m0 else (size - m0) / (m1 - m0)
    step, sync = t0 + part * (t1 - t0), y0 + part * (y1 - y0)
    return step + (steps - 1) * (step - sync)


# -- the engine -----------------------------------------------------------------------------------------------------------


PLAIN = Scaling(0.5, 0.125, 0.25, 0.0625, 1.0, 0.5)  # gamma 1: everything adds up, exactly
CASES = {seed: measured(seed, share=share) for seed, share in enumerate((1.0, 0.7, 0.4))}


def cluster_of(sizes: list[int]) -> Cluster:
    return Cluster(tuple(NodeGroup(gpus, 1, "AB"[v % 2]) for v, gpus in enumerate(sizes)))


def on(instance: Instance, *counts: tuple[int, int]) -> float:
    """Seconds an iteration of job 0 takes on these (node, GPUs), as the engine has it."""
    node, held = np.array(counts, dtype=np.int64).T.copy()
    return float(pace(speed_tables(instance), 0, int(instance.gpus[0]), node, held))


def test_a_formula_has_one_number_on_a_node_and_one_over_several() -> None:
    instance = Instance([Job("a", gpus=4, iterations=10, profile="p", batch_size=16)], "3x4", scalings={"p": PLAIN})
    together = 0.5 + 4 * 0.125 + 0.25 + 2 * 0.0625  # 4 samples on each; two replicas beyond two
    apart = 0.5 + 4 * 0.125 + 1.0 + 2 * 0.5
    assert on(instance, (1, 4)) == on(instance, (1, 2), (1, 2)) == together
    assert on(instance, (0, 1), (2, 3)) == on(instance, (2, 3), (0, 1)) == apart
    assert [x[0] for x in paces(instance)] == [together, apart]
    assert seconds_alone(instance)[0] == 10 * together
    with pytest.raises(InputError, match="depends on its placement"):
        fixed_durations(instance)
    one = instance.replace(cluster="4x1")  # one-GPU nodes: here the placement is known
    assert [x[0] for x in paces(one)] == [apart, apart]
    assert fixed_durations(one)[0] == 10 * apart
    assert type_speeds(one).rate(0, range(4)) == 1 / apart


def test_a_gang_accumulates_gradients_where_its_batch_is_more_than_a_gpu_takes() -> None:
    limited = dataclasses.replace(PLAIN, most_local=3)
    instance = Instance([Job("a", gpus=2, iterations=1, profile="p", batch_size=14)], "1x2", scalings={"p": limited})
    kind = ScalingSpeeds(instance, np.array([0]), instance.scalings).sub_batches(0)[0]
    assert (kind.size, kind.steps) == (3, 3)  # 7 samples on each
    assert on(instance, (0, 2)) == 3 * (0.5 + 3 * 0.125) + 0.25


@settings(max_examples=examples(80))
@given(
    seed=st.sampled_from(sorted(CASES)),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    batch=st.integers(1, 40),
    most=st.sampled_from([None, 4, 8]),
    data=st.data(),
)
def test_compiled_readable_and_by_hand_are_equal_and_between_the_bounds(
    seed: int, sizes: list[int], batch: int, most: int | None, data: st.DataObject
) -> None:
    gang = data.draw(st.integers(1, sum(sizes)))
    scaling = dataclasses.replace(CASES[seed], most_local=most)
    job = Job("a", gpus=gang, iterations=1, profile="p", batch_size=batch)
    instance = Instance([job], cluster_of(sizes), scalings={"p": scaling})
    picked = data.draw(st.permutations([v for v, gpus in enumerate(sizes) for _ in range(gpus)]))[:gang]
    # entries in any order, some nodes in two parts
    parts: list[tuple[int, int]] = []
    for v in picked:
        if parts and parts[-1][0] == v:
            parts[-1] = v, parts[-1][1] + 1
        else:
            parts.append((v, 1))
    found = on(instance, *parts)
    held = [picked.count(v) for v in sorted(set(picked))]
    first = scaling.sub_batches(batch, gang)[0]
    expected = by_hand(scaling, first.size, first.steps, held)
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-12)
    elif not 2 <= first.size <= 8:  # outside of all measurements
        assert found == iteration_seconds(scaling, first.size, first.steps, gang, len(held) > 1)
    offset, nodes = np.array([0, gang]), np.array(picked)
    assert segment_paces(instance, np.zeros(1, dtype=np.int64), offset, nodes)[0] == pytest.approx(found, rel=1e-12)
    fastest, slowest = paces(instance)
    assert fastest[0] <= found * (1 + 1e-12)
    assert found <= slowest[0] * (1 + 1e-12)
    speeds = type_speeds(instance)
    assert 1 / speeds.rate(0, picked) <= found * (1 + 1e-12)  # of the fastest placement


def test_the_fastest_pace_is_that_of_a_placement_where_all_were_measured() -> None:
    scaling = measured(5, share=1.0)
    jobs = [Job(f"{gang}", gpus=gang, iterations=1, profile="p", batch_size=5 * gang) for gang in range(1, 7)]
    instance = Instance(jobs, "3x2", scalings={"p": scaling})
    fastest, slowest = paces(instance)
    ways = {g: [(a, b, c) for a in range(3) for b in range(3) for c in range(3) if a + b + c == g] for g in range(1, 7)}
    for j, gang in enumerate(range(1, 7)):
        times = [by_hand(scaling, 5, 1, [x for x in way if x]) for way in ways[gang]]
        assert None not in times
        assert (fastest[j], slowest[j]) == pytest.approx((min(times), max(times)), rel=1e-12)  # type: ignore[type-var]


def test_nodes_with_more_gpus_or_gangs_with_more_digits_than_were_measured_run_by_formula() -> None:
    scaling = CASES[0]
    for sizes, gang in (([12, 12], 10), ([1] * 20, 20), ([10, 1], 11)):
        job = Job("a", gpus=gang, iterations=1, profile="p", batch_size=40 * gang)
        instance = Instance([job], cluster_of(sizes), scalings={"p": scaling})
        nodes = [(v, min(size, gang)) for v, size in enumerate(sizes)] if sum(sizes) == gang else [(0, gang)]
        assert on(instance, *nodes) == iteration_seconds(scaling, 40, 1, gang, len(nodes) > 1)


def test_measurements_alone_say_where_they_end() -> None:
    alone = Scaling(0, 0, measured=MeasuredSteps(((1, 2.0, 0.5, 0.0), (1, 4.0, 0.9, 0.0))))
    job = Job("a", iterations=1, profile="p", batch_size=3)
    assert on(Instance([job], "1x1", scalings={"p": alone}), (0, 1)) == pytest.approx(0.7)
    for change, where in (({"batch_size": 5}, "one node"), ({"gpus": 2, "batch_size": 6}, "several nodes")):
        far = Instance([dataclasses.replace(job, **change)], "2x1", scalings={"p": alone})
        with pytest.raises(InputError, match=f"nothing was measured near .* on {where}"):
            osd.simulate(far, "fifo")
