"""Static pairing against brute force over all partitions into jobs and pairs, with completions from the event simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.models.shared_jobs import SharedJobs, shared_completions
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.solvers.pair_matching import best_pairs, shortest_turns, soonest_pairs


def static_jobs(seed: int, n: int, cluster: str = "1x8", gpus: int = 2, blocked: float = 0.2) -> Instance:
    """Whole seconds, slow-downs that are multiples of 1/8; some pairs never share."""
    rng = np.random.default_rng(seed)
    jobs = [Job(f"j{j}", 0, gpus, int(rng.integers(1, 12)), model=f"m{j}") for j in range(n)]
    xi = 1 + rng.integers(0, 14, (n, n)) / 8
    table = [[None if rng.random() < blocked / 2 else float(x) for x in row] for row in xi]
    kinds = tuple(job.model or "" for job in jobs)
    return Instance(jobs, cluster, interference=Interference(kinds=kinds, ratios=tuple(map(tuple, table))))


def groupings(jobs: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Every partition into single jobs and pairs."""
    if not jobs:
        yield []
        return
    first, rest = jobs[0], jobs[1:]
    for others in groupings(rest):
        yield [(first,), *others]
    for k in rest:
        for others in groupings(tuple(j for j in rest if j != k)):
            yield [(first, k), *others]


def ends_of(jobs: SharedJobs, group: tuple[int, ...]) -> list[list[Fraction]]:
    """Completions of a group on one set, for every sensible way to run it."""
    far = [Fraction(10**6 + 1000 * j) for j in range(jobs.n)]
    if len(group) == 1:
        return [[Fraction(jobs.seconds(group[0], 0, (0, 1)))]]
    found = []
    e, f = (Fraction(jobs.seconds(j, 0, (0, 1))) for j in group)
    for starts in ((0, 0), (0, e), (f, 0)):
        if starts == (0, 0) and not jobs.pairs(*group):
            continue
        start = list(far)
        start[group[0]], start[group[1]] = (Fraction(s) for s in starts)
        ends = shared_completions(jobs, start, [(0, 1)] * jobs.n, exact=True)
        found.append([ends[j] for j in group])
    return found


def brute_force(
    instance: Instance, sets: int | None, cost: Callable[[list[Fraction]], Fraction], total: bool
) -> Fraction:
    """The least sum, or the least maximum, of what the groups cost."""
    jobs = SharedJobs.of(instance)
    values = []
    for groups in groupings(tuple(range(jobs.n))):
        if sets is None or len(groups) <= sets:
            costs = [min(map(cost, ends_of(jobs, group))) for group in groups]
            values.append(sum(costs, Fraction(0)) if total else max(costs))
    return min(values)


@pytest.mark.parametrize(("n", "sets"), [(1, 4), (3, 2), (4, 4), (5, 3), (6, 3)])
def test_no_pairing_is_better(n: int, sets: int) -> None:
    for seed in range(4):
        instance = static_jobs(seed, n, f"1x{2 * sets}")
        total, last = best_pairs(instance), soonest_pairs(instance)
        assert total.value == brute_force(instance, sets, sum, total=True)
        assert last.value == brute_force(instance, sets, max, total=False)
        assert total.schedule.completion.sum() == pytest.approx(float(total.value), rel=1e-12)
        assert last.schedule.completion.max() == pytest.approx(float(last.value), rel=1e-12)
        assert len(total.turns) <= sets
        assert sorted(j for turn in total.turns for j in turn.group) == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_no_sequence_of_turns_is_shorter(n: int) -> None:
    for seed in range(4):
        instance = static_jobs(50 + seed, n, "1x2")
        found = shortest_turns(instance)
        assert found.value == brute_force(instance, None, max, total=True)
        assert found.schedule.completion.max() == pytest.approx(float(found.value), rel=1e-12)


def test_the_larger_saving_is_not_always_taken() -> None:
    # shares of (a, b) save most, but leave c and d, which never share: two smaller savings are more
    ratios = np.full((4, 4), 2.0)
    for j, k, xi in ((0, 1, 1.1), (0, 2, 1.2), (1, 3, 1.2)):
        ratios[j, k] = ratios[k, j] = xi
    kinds = ("a", "b", "c", "d")
    table = Interference(kinds=kinds, ratios=tuple(map(tuple, ratios.tolist())))
    instance = Instance([Job(x, 0, 1, 10, model=x) for x in kinds], "1x2", interference=table)
    assert [turn.group for turn in best_pairs(instance).turns] == [(0, 2), (1, 3)]
    assert best_pairs(instance).value == Fraction(4 * 10) * Fraction(1.2)


def test_sub_batches_are_chosen_to_fit() -> None:
    whole = Scaling(compute=0.0, per_sample=1.0, memory=1.0, memory_per_sample=1.0)  # 9 bytes at 8 samples, 5 at 4
    jobs = [Job(x, 0, 1, iterations=1, profile="net", batch_size=8) for x in ("a", "b")]

    def on(memory: float) -> Instance:
        cluster = Cluster((NodeGroup(gpus=1, gpu_memory=memory),))
        return Instance(jobs, cluster, scalings={"net": whole}, interference=Interference(1.25))

    small = on(14.0)
    found = best_pairs(small)
    assert found.value == 2 * 8 * Fraction(5, 4)
    assert sorted(small.sub_batches(0)[o].size for o in found.turns[0].options) == [4, 8]
    # with 4 and 2 samples at a time they need 5 + 3 bytes; where one sample each is too much, they take turns
    assert best_pairs(on(9.0)).value == 2 * 8 * Fraction(5, 4)
    assert best_pairs(on(3.0)).value == 8 + 16


def test_what_is_no_static_problem_is_refused() -> None:
    ready = static_jobs(1, 3, "1x2")
    with pytest.raises(InputError, match=r"n = 3.*at most 2"):
        best_pairs(ready)
    late = Instance([Job("a", 0, 1, 1), Job("b", 1, 1, 1)], "1x2", interference=Interference())
    wide = Instance([Job("a", 0, 1, 1), Job("b", 0, 2, 1)], "1x2", interference=Interference())
    for instance, word in ((late, "release"), (wide, "size"), (Instance([Job("a", duration=1)], "1x1"), "sharing")):
        with pytest.raises(InputError, match=word):
            soonest_pairs(instance)
