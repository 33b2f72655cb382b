"""Bounds where jobs share GPUs: below every schedule, never under the plain ones (charge 1 / S), and some known values."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from srpt import srpt

from bounds import cases
from bounds.cases import OBJECTIVES, busy_pieces, proved
from bounds.shared_cases import NAMES, best_at_events, small_shared
from bounds.task_cases import task_instance
from optsched.bounds import BOUNDS, Certificate, CertificateError, NoBoundError, bound
from optsched.bounds.certificate import EXCLUSIVE_CLASSES
from optsched.classes import classes_of
from optsched.classes.gpu_sharing.bounds.shared_machine import UNIT, charged_by_load, modes_of_shared
from optsched.classes.gpu_sharing.bounds.shared_pairs import PairRows, SharedPairs
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling

FLOW = "total_flow_time"
NAMED = (
    "critical-job",
    "fair-alone",
    "shared-fair-share",
    "shared-first-come",
    "release-plus-duration",
    "shared-busy-time",
    "shared-makespan",
    "shared-srpt",
)
ROUNDING = 1 + Fraction(1, 10**9)  # searches and engines add up floats


certificates = partial(cases.certificates, schedule_class="gpu-sharing", names=NAMED)


def plain_bounds(instance: Instance) -> float:
    """max(LB1, LB2, LB3) of `sharing_least` for the sum of flow times: S over all pairs, times on a grid of 2**-40 s."""
    kinds, xi = instance.kinds, instance.interference
    pairs = [(xi.slowdown(a, b), xi.slowdown(b, a)) for i, a in enumerate(kinds) for b in kinds[i + 1 :]]
    most = max([1.0, *(1 / x + 1 / y for x, y in pairs)])
    work = instance.gpus * instance.duration / (instance.cluster.gpus * most)
    jobs = [(int(r * 2**40), int(p * 2**40), 1) for r, p in zip(instance.arrival, work, strict=True)]
    lb1 = float(sum(srpt([(Fraction(r), Fraction(p)) for r, p, _ in jobs]))) / 2**40
    busy = sum(moment / (2 * p) for (_, p, _), (_, moment) in zip(jobs, busy_pieces(jobs), strict=True)) / 2**40
    release, alone = float(instance.arrival.sum()), float(instance.duration.sum())
    return max(lb1 - release, alone, busy + alone / 2 - release)


def small_ratios(xi: float | str, gpus: int, jobs: int, count: int) -> tuple[list[float], list[float]]:
    """OPT / bound of the plain bounds and of ours, on random instances (`small_shared`)."""
    rng = np.random.default_rng([gpus, jobs, 54])
    plain, ours = [], []
    for _ in range(count):
        instance = small_shared(rng, gpus, jobs, xi)
        best = best_at_events(instance, FLOW)
        values = [float(certificate.value) for certificate in certificates(instance, FLOW)]
        theirs = plain_bounds(instance)
        assert max(*values, theirs) <= best * float(ROUNDING)
        assert max(values) >= theirs * (1 - 1e-6)  # charges are rounded down
        plain.append(best / theirs)
        ours.append(best / max(values))
    return plain, ours


@pytest.mark.parametrize(("xi", "gpus"), [(1.5, 2), ("exp", 1)])
def test_margins_on_small_instances(xi: float | str, gpus: int) -> None:
    plain, ours = small_ratios(xi, gpus, 4, 8)
    assert np.mean(ours) <= np.mean(plain) < 1.4
    assert xi != "exp" or np.mean(ours) < np.mean(plain) - 0.02  # there the charges tell jobs apart


MODEL = {1.1: (1.06, 1.08, 1.10), 1.3: (1.12, 1.16, 1.16), 1.5: (1.17, 1.19, 1.21), 1.8: (1.11, 1.14, 1.14)}


@pytest.mark.study
@pytest.mark.parametrize("xi", [1.1, 1.3, 1.5, 1.8])
def test_margins_of_the_plain_bounds_on_one_gpu(xi: float) -> None:
    """Means of an independent model for n = 3, 4, 5 on one GPU: within four standard errors and rounding."""
    for (jobs, count), printed in zip(((3, 200), (4, 100), (5, 40)), MODEL[xi], strict=True):
        plain, ours = small_ratios(xi, 1, jobs, count)
        error = 4 * float(np.std(plain)) / count**0.5
        assert abs(float(np.mean(plain)) - printed) < error + 0.01, (xi, jobs, np.mean(plain), error)
        assert np.mean(ours) < np.mean(plain)


# --- what they are -------------------------------------------------------------------------------------------------------


def on_cluster(
    seed: int, physics: Interference | None, *, nodes: int = 2, jobs: int = 40, kinds: str = "ab"
) -> Instance:
    """Jobs of up to 8 GPUs with times in eighths of a second."""
    rng = np.random.default_rng(seed)
    rows = [
        Job(
            f"j{k}",
            float(rng.integers(0, 200)) / 8,
            int(rng.choice([1, 1, 2, 4, 8])),
            float(rng.integers(1, 99)) / 8,
            model=str(rng.choice(list(kinds))),
            weight=float(rng.integers(1, 4)),
        )
        for k in range(jobs)
    ]
    return Instance(rows, f"{nodes}x4", interference=physics)


def one_machine(instance: Instance, share: Fraction) -> Fraction:
    """The sum of flow times of SRPT for works ``share n_j e_j / G``, in fractions."""
    rows = zip(instance.arrival.tolist(), instance.gpus.tolist(), instance.duration.tolist(), strict=True)
    jobs = [(Fraction(r), g * Fraction(e) * share / instance.cluster.gpus) for r, g, e in rows]
    return sum(srpt(jobs), Fraction(0)) - sum(Fraction(r) for r in instance.arrival.tolist())


def test_without_interference_two_jobs_on_a_gpu_are_twice_the_gpus() -> None:
    instance = on_cluster(1, Interference(1.0))
    assert proved("shared-srpt", instance, FLOW, "gpu-sharing").value == one_machine(instance, Fraction(1, 2))
    twice = instance.with_cluster("4x4").replace(interference=None)
    lone = BOUNDS.get("critical-job").build(twice, "makespan", "gang").value
    volume = BOUNDS.get("volume").build(twice, "makespan", "gang").value  # all 16 GPUs can be filled
    assert bound(instance, "makespan").value >= max(lone, volume)


@pytest.mark.parametrize("xi", [2.0, 2.5, 1e6])
def test_where_sharing_never_pays_charges_are_full(xi: float) -> None:
    instance = on_cluster(2, Interference(xi))
    certificate = proved("shared-srpt", instance, FLOW, "gpu-sharing")
    assert certificate.data["charges"] == {"GPU": [UNIT]}
    assert certificate.value == one_machine(instance, Fraction(1))


@pytest.mark.parametrize("xi", [1.25, 1.5, 1.1])
def test_one_ratio_for_all_is_the_bound_of_the_sheet(xi: float) -> None:
    instance = on_cluster(3, Interference(xi))
    certificate = proved("shared-srpt", instance, FLOW, "gpu-sharing")
    (charge,) = certificate.data["charges"]["GPU"]
    assert 0 <= Fraction(xi) / 2 - Fraction(charge, UNIT) < Fraction(1, UNIT)
    value = one_machine(instance, Fraction(charge, UNIT))
    assert 0 <= value - certificate.value < Fraction(1, 10**6)  # the grid rounds works down


def charges(instance: Instance, load: list[float]) -> list[list[float]]:
    """The best charges for these loads, by class and type, in units of 1."""
    jobs = modes_of_shared(instance)
    return np.round(charged_by_load(jobs, np.array(load)).rounded().charge, 6).tolist()


def many_of(kinds: str, cluster: Cluster | str, physics: Interference, **fields: Any) -> Instance:
    """20 jobs, so that they are classes by kind."""
    rows = [Job(f"j{k}", 0.0, 1, 1.0, model=kinds[k % len(kinds)], **fields) for k in range(20)]
    return Instance(rows, cluster, interference=physics)


def test_charges_by_hand() -> None:
    # a beside b: xi 1.25 and 2; a beside a 1.25; b beside b 2
    physics = Interference(2.0, ("a", "b"), ((1.25, 1.25), (2.0, 2.0)))
    instance = many_of("ab", "1x4", physics)
    # 1.6 c_a <= 1, 0.8 c_a + 0.5 c_b <= 1, c_b <= 1
    assert charges(instance, [1, 1]) == [[0.625], [1.0]]
    assert modes_of_shared(instance).charge.tolist() == [[0.625], [0.625]]  # 1 / S
    # a pair that does not run, and one that the table does not know
    never = Interference(2.0, ("a", "b"), ((1.25, None), (1.5, 1.25)))
    assert charges(many_of("ab", "1x4", never), [1, 1]) == [[0.625], [0.625]]
    assert charges(many_of("ac", "1x4", physics), [1, 1]) == [[0.625], [1.0]]
    with_one = many_of("ab", "1x4", Interference(1.0)).replace(
        jobs=[Job("only", 0.0, 1, 1.0, model="a"), *(Job(f"j{k}", 0.0, 1, 1.0, model="b") for k in range(19))],
        interference=Interference(2.0, ("a", "b"), ((1.0, 2.0), (2.0, 4.0))),
    )
    assert charges(with_one, [1, 1]) == [[1.0], [1.0]]  # the only job of a kind is beside none of its own


def test_charges_of_few_jobs() -> None:
    # each is a class: one pays in full where the others hardly pay
    jobs = [Job(f"j{k}", 0.0, 1, 1.0) for k in range(3)]
    instance = Instance(jobs, "1x1", interference=Interference(1.25))
    assert charges(instance, [9, 1, 1]) == [[1.0], [0.25], [0.25]]
    assert charges(instance, [1, 1, 1]) == [[0.625]] * 3


def test_memory_and_types_part_jobs() -> None:
    cluster = Cluster((NodeGroup(2, 1, "V100", 16.0), NodeGroup(2, 1, "K80", 8.0)))
    physics = Interference(1.25)
    assert charges(many_of("a", cluster, physics, gpu_memory=4.0), [1]) == [[0.625, 0.625]]
    assert charges(many_of("a", cluster, physics, gpu_memory=5.0), [1]) == [[0.625, 1.0]]
    assert charges(many_of("a", cluster, physics, gpu_memory=9.0), [1]) == [[1.0, 1.0]]
    assert charges(many_of("a", cluster, physics, gpu_memory=4.0, gpu_types=("V100",)), [1]) == [[0.625, 1.0]]
    # rounding of sums of memory is forgiven, a byte in a million is not
    exact = Cluster((NodeGroup(2, 1, "V100", 0.3),))
    assert charges(many_of("a", exact, physics, gpu_memory=0.15000000000000002), [1]) == [[0.625]]
    assert charges(many_of("a", exact, physics, gpu_memory=0.1500002), [1]) == [[1.0]]


def test_smaller_sub_batches_slow_partners_down() -> None:
    # 8 samples need 9 bytes, 4 need 5, 2 need 3, 1 needs 2; an iteration takes (1 + m) s times 8 / m
    profile = Scaling(1.0, 1.0, memory=1.0, memory_per_sample=1.0)
    rows = [Job(f"j{k}", 0.0, 1, iterations=1.0, profile="m", batch_size=8) for k in range(20)]

    def charge(room: float) -> list[list[float]]:
        cluster = Cluster((NodeGroup(1, 1, "V100", room),))
        return charges(Instance(rows, cluster, scalings={"m": profile}, interference=Interference(1.0)), [1])

    assert charge(18.0) == [[0.5]]
    # one at 8 samples and one at 4: stretches 1 and 10/9
    assert charge(14.0) == [[np.round(1 / (1 + 9 / 10), 6)]]
    # 8 and 2 (12/9), or 4 and 4 (100/81 of work): the pair that does more counts
    assert charge(12.0) == [[np.round(1 / max(1 + 9 / 12, 2 * 9 / 10), 6)]]


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_rounded_charges_keep_every_inequality(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.triu_indices(classes)
    sides = np.maximum(rng.uniform(0.9, 3.0, (a.size, 4)), 1.0)
    exact = tuple(map(tuple, sides.tolist()))
    pairs = SharedPairs(
        np.zeros(0, dtype=np.int64),
        classes,
        (PairRows(a, b, 1 / (sides[:, 0] * sides[:, 1]), 1 / (sides[:, 2] * sides[:, 3]), exact),),
    )
    best = pairs.best_charges(rng.random((classes, 1)))
    whole = pairs.rounded(best, UNIT)[:, 0].tolist()
    assert all(0 <= charge <= UNIT for charge in whole)
    assert np.abs(np.array(whole) / UNIT - best[:, 0]).max() < 1e-5
    for i, j, (x, s, y, t) in zip(a.tolist(), b.tolist(), exact, strict=True):
        assert whole[i] / (Fraction(x) * Fraction(s)) + whole[j] / (Fraction(y) * Fraction(t)) <= UNIT


@pytest.mark.parametrize("kinds", ["a", "abcdef"])
def test_both_roads_agree_on_many_jobs(kinds: str) -> None:
    rng = np.random.default_rng(5)
    table = tuple(map(tuple, (1 + rng.exponential(0.5, (len(kinds), len(kinds)))).tolist()))
    instance = on_cluster(7, Interference(2.0, tuple(kinds), table), nodes=8, jobs=250, kinds=kinds)
    for objective in (FLOW, "total_weighted_tardiness", "makespan"):
        for certificate in certificates(instance, objective):
            certificate.verify(instance)
            assert json.loads(json.dumps(certificate.data)) == certificate.data


def test_very_many_kinds_of_memory_are_taken_together() -> None:
    cluster = Cluster((NodeGroup(4, 2, "V100", 100.0),))
    rows = [Job(f"j{k}", k / 8, 1, 2.0, model="ab"[k % 2], gpu_memory=20.0 + k) for k in range(60)]
    instance = Instance(rows, cluster, interference=Interference(1.5))
    assert max(proved("shared-srpt", instance, FLOW, "gpu-sharing").data["classes"]) == 0  # none of them is in a table
    known = instance.replace(interference=Interference(1.5, ("a", "b"), ((1.5, 1.25), (1.25, 1.5))))
    assert sorted(set(proved("shared-busy-time", known, FLOW, "gpu-sharing").data["classes"])) == [0, 1]


# --- classes of schedules, and who uses them -----------------------------------------------------------------------------


def test_classes_of_instances() -> None:
    shared, plain = on_cluster(0, Interference(1.5), jobs=5), on_cluster(0, None, jobs=5)
    tasks = task_instance(np.random.default_rng(0))
    assert classes_of(shared) == ("gpu-sharing", *EXCLUSIVE_CLASSES)
    assert classes_of(plain) == EXCLUSIVE_CLASSES
    assert classes_of(tasks) == ("task-sharing",)
    assert bound(shared).schedule_class == "gpu-sharing"
    assert bound(plain).schedule_class == "gang"
    for name in EXCLUSIVE_CLASSES:
        certificate = bound(shared, FLOW, name)
        certificate.verify(shared)
        assert certificate.value == bound(plain, FLOW, name).value
    with pytest.raises(NoBoundError, match="no interference") as error:
        bound(plain, FLOW, "gpu-sharing")
    assert "\n" not in str(error.value)
    for name in EXCLUSIVE_CLASSES:
        with pytest.raises(InputError, match=r"jobs of this instance share GPUs.*task-sharing") as refused:
            bound(tasks, FLOW, name)
        assert not isinstance(refused.value, NoBoundError)
    with pytest.raises(NoBoundError, match="have no tasks"):
        bound(plain, FLOW, "task-sharing")


def test_proofs_for_tasks_are_none_for_interference_and_back() -> None:
    shared, plain = on_cluster(0, Interference(1.5), jobs=5), on_cluster(0, None, jobs=5)
    tasks = task_instance(np.random.default_rng(0))
    for names, schedule_class, strangers in (
        (("task-srpt", "split-task-busy-time", "task-path"), "task-sharing", (shared, plain)),
        (("shared-srpt", "shared-busy-time"), "gpu-sharing", (tasks, plain)),
    ):
        for kind, stranger in product(names, strangers):
            assert BOUNDS.get(kind).build(stranger, FLOW, schedule_class) is None
            with pytest.raises(CertificateError, match="no class of schedules"):
                Certificate(stranger.digest, FLOW, schedule_class, kind, Fraction(0)).verify(stranger)
            with pytest.raises(CertificateError, match=f"holds for {schedule_class}"):
                Certificate(shared.digest, FLOW, "gang", kind, Fraction(0)).verify(shared)
    assert {certificate.kind for certificate in bounds_of(tasks)}.isdisjoint(NAMED)


def bounds_of(instance: Instance) -> list[Certificate]:
    return [bound(instance, objective) for objective in (FLOW, "makespan")]


def test_a_run_stands_beside_a_bound_of_its_class() -> None:
    instance = on_cluster(4, Interference(1.5, ("a",), ((1.2,),)), jobs=15, kinds="a")
    alone, shared = simulate(instance, "srtf"), simulate(instance, "sjf-ffs")
    proven = OptimumBounds(instance, [alone, shared])
    for objective in (FLOW, "makespan", "total_weighted_completion_time"):
        for run, named in ((alone, "gang"), (shared, "gpu-sharing")):
            beside = proven.bound_for(run, objective)
            assert beside.schedule_class == named
            assert beside.value <= run.value(objective) * float(ROUNDING)
        assert proven.certificate(objective) == proven.certificate(objective, "gpu-sharing")
        best = min(run.value(objective) for run in (alone, shared))
        assert float(proven.upper(objective, "gpu-sharing")) == pytest.approx(best)  # every gang schedule is one
        assert proven.lower(objective, "gpu-sharing") <= proven.lower(objective, "gang")


def test_a_stated_optimum_is_held_against_the_bound_of_its_class() -> None:
    # two jobs that run side by side at no cost: sharing halves the makespan, and that refutes nothing
    jobs = [Job("a", 0.0, 1, 4.0), Job("b", 0.0, 1, 4.0)]
    stated = {"objective": "makespan", "class": "gpu-sharing", "value": 4, "proved_by": ["by hand"]}
    instance = Instance(jobs, "1x1", optimum=stated, interference=Interference(1.0))
    OptimumBounds(instance).check_stated_optimum("makespan")
    assert bound(instance, "makespan", "gang").value == 8
    false = instance.replace(optimum={**stated, "value": 3})
    with pytest.raises(InputError, match="refuted"):
        OptimumBounds(false).check_stated_optimum("makespan")


@pytest.mark.study
@pytest.mark.parametrize("seed", range(6))
def test_never_above_the_policies_at_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = NAMES[:6]
    table = tuple(map(tuple, (1 + rng.exponential(0.5, (6, 6))).tolist()))
    instance = on_cluster(seed, Interference(2.0, tuple(kinds), table), nodes=16, jobs=480, kinds=kinds)
    runs = [simulate(instance, name) for name in ("sjf", "sjf-ffs", "sjf-bsbf", "srtf")]
    for objective in OBJECTIVES:
        certificate = bound(instance, objective)
        certificate.verify(instance)
        assert all(certificate.exact_float <= run.value(objective) * float(ROUNDING) for run in runs)
