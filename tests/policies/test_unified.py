"""`unified`: its knapsack and exchanges against other methods, rules by hand, copies, and runs beside everybody else's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from examples import few
from simulation.elastic_instances import elastic_instance
from simulation.forked_instances import gang_instance, table_instance

from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.classes.forking.simulation.forked_run import ForkedRun
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.policies.unified import Unified, deal
from optsched.policies.unified_copies import split
from optsched.policies.unified_places import Wish, exchange
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.policy import View
from optsched.simulation.run import Run
from policies.test_goodput import by_milp

SPEC = "unified:fork=true"


def wish(job: int, rate: dict[int, float], unit: float = 1.0) -> Wish:
    gpus = np.array(sorted(rate))
    rates = np.array([rate[r] for r in gpus.tolist()])
    return Wish(job, gpus, rates, {}, unit, 0.0, np.ones(gpus.size), ())


@pytest.mark.parametrize("seed", few(range(10), 3))
def test_gpus_are_dealt_as_an_integer_program_would(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    sizes = [rng.choice(np.arange(1, 13), int(rng.integers(1, 5)), replace=False).tolist() for _ in range(12)]
    wishes = [wish(j, {r: float(rng.random()) for r in each}, float(rng.random())) for j, each in enumerate(sizes)]
    deal(wishes, 20)
    values = [np.full(21, -np.inf) for _ in wishes]
    for each, value in zip(wishes, values, strict=True):
        value[0], value[each.gpus] = 0.0, each.value
    assert sum(each.dealt for each in wishes) <= 20
    assert sum(each.worth for each in wishes) == pytest.approx(by_milp(values, 20), rel=1e-6)


@pytest.mark.parametrize("seed", few(range(20), 6))
def test_exchanges_end_where_none_is_better(seed: int) -> None:
    rng = np.random.default_rng([seed, 6])
    jobs, types = 6, 3
    value, gpus = rng.random((jobs, types)), rng.integers(1, 4, jobs)
    value[rng.random(value.shape) < 0.15] = -np.inf
    value[:, 0] = rng.random(jobs)
    kind, capacity = np.zeros(jobs, dtype=np.int64), np.array([gpus.sum(), 4, 4])
    stock = capacity.copy()
    stock[0] = 0
    everyone = np.arange(jobs)

    def total(kinds: np.ndarray) -> float:
        used = np.bincount(kinds, weights=gpus, minlength=types)
        return float(value[everyone, kinds].sum()) if (used <= capacity).all() else -np.inf

    before = total(kind)
    exchange(value, gpus, kind, stock)
    assert (stock == capacity - np.bincount(kind, weights=gpus, minlength=types)).all()
    assert total(kind) >= before
    for a, b in itertools.product(range(jobs), repeat=2):
        other = kind.copy()
        other[a], other[b] = kind[b], kind[a]
        assert total(other) <= total(kind) + 1e-9
    for a, t in itertools.product(range(jobs), range(types)):
        other = kind.copy()
        other[a] = t
        assert total(other) <= total(kind) + 1e-9


class Dealt(Unified):
    """Keeps what everybody's GPUs were worth at first."""

    compiled = False

    def begin(self, view: View) -> None:
        super().begin(view)
        self.first: dict[str, float] = {}

    def _deal(self, view: View, jobs: list[int]) -> list[Wish]:
        found = super()._deal(view, jobs)
        if not self.first:
            names = ["n0", "n1", "n2", "n3", "gang"]
            self.first = {names[each.job]: float(each.value[0]) for each in found}
        return found


def gangs(run: Run, at: float = 0.0) -> dict[str, int]:
    """GPUs of every job that runs at a time."""
    rows = zip(run.schedule.job, run.schedule.start, run.schedule.end, run.schedule.gangs, strict=True)
    return {run.instance.ids[j]: int(g) for j, start, end, g in rows if start <= at < end}


def test_one_gang_or_many_jobs() -> None:
    # By hand: a second of the gang is worth its weight 1.8, and 4 GPUs times 4/4 while four jobs are behind it; one of the
    # others 1, and 1/4 for each that is behind.
    narrow = [Job(f"n{k}", 0, 1, duration=3600 + k) for k in range(4)]
    for seconds, worth, first in ((600, 5.8, {"gang": 4}), (20_000, 1.8, {f"n{k}": 1 for k in range(4)})):
        instance = Instance([*narrow, Job("gang", 0, 4, duration=seconds, weight=1.8)], "1x4")
        policy = Dealt()
        run = simulate(instance, policy)
        assert gangs(run) == first
        assert policy.first["gang"] == pytest.approx(worth)
        assert [policy.first[f"n{k}"] for k in range(4)] == pytest.approx(
            [1.75, 1.5, 1.25, 1.0] if seconds == 600 else [1 + (4.8 - k) / 4 for k in range(4)]
        )


def scaled(*jobs: Job) -> Instance:
    return Instance(jobs, "1x8", scalings={"good": Scaling(0.0, 0.1), "flat": Scaling(10.0, 0.0)})


def test_gpus_go_where_they_help() -> None:
    jobs = [Job(name, 0, 1, iterations=50, profile=name, batch_size=840) for name in ("flat", "good")]
    assert gangs(simulate(scaled(*jobs), "unified")) == {"flat": 1, "good": 7}
    assert gangs(simulate(scaled(*jobs), "unified:resize=false")) == {"flat": 1, "good": 1}


def test_the_type_goes_to_who_gains_most_and_not_to_who_comes_first() -> None:
    # "short" is worth more and 5 % faster on a V100, "long" twice as fast; alone each of them takes the V100.
    rates = {("even", "V100"): 2.1, ("even", "K80"): 2.0, ("picky", "V100"): 2.0, ("picky", "K80"): 1.0}
    table = Throughputs({(*key, 1): Throughput(rate) for key, rate in rates.items()})
    jobs = [Job("short", 0, 1, iterations=100, profile="even"), Job("long", 0, 1, iterations=1000, profile="picky")]
    types = {}
    for some in ([jobs[0]], [jobs[1]], jobs):
        run = simulate(Instance(some, "1x1:V100+1x1:K80", throughputs=table), "unified")
        types[len(types)] = {run.instance.ids[s.job]: s.gpus[0][0] for s in run.schedule.segments() if s.start == 0}
    assert types == {0: {"short": 0}, 1: {"long": 0}, 2: {"short": 1, "long": 0}}


def test_restarts_are_weighed() -> None:
    # By hand: the shorter job is worth 2 a second (it delays one behind it), the running one 1, times 1 + restart / h,
    # h = 90 s, the time for which it has run; with 150 s, no less than a restart and no more than the 110 s left.
    jobs = [Job("long", 0, 1, duration=200), Job("short", 90, 1, duration=100)]
    instance = Instance(jobs, "1x1")
    assert simulate(instance, "unified:restart=0").preemptions == 1
    assert simulate(instance, "unified:restart=80").preemptions == 1
    assert simulate(instance, "unified:restart=150").preemptions == 0
    dear = Instance([Job("long", 0, 1, duration=200, restart=150), jobs[1]], "1x1")
    assert simulate(dear, "unified:restart=0").preemptions == 0  # what the job itself says counts


def test_nobody_is_moved_for_nothing() -> None:
    jobs = [Job(f"j{k}", 5 * k, 1, duration=50) for k in range(8)]
    run = simulate(Instance(jobs, "2x4"), "unified:restart=0")
    assert run.preemptions == 0
    assert run.value("total_flow_time") == 8 * 50


class Watched(Unified):
    """Keeps what it expected to be left."""

    compiled = False

    def begin(self, view: View) -> None:
        super().begin(view)
        self.seen: list[tuple[float, list[float]]] = []

    def _left(self, view: View, jobs: list[int]) -> np.ndarray:
        found = super()._left(view, jobs)
        self.seen.append((view.now, found.tolist()))
        return found


def test_who_outlives_a_prediction_is_expected_to_take_twice_as_long() -> None:
    # The mean of the first job's group is 10 s; the second one takes 100 s. Others come at 30 s and 65 s to look at it.
    jobs = [
        Job("a", 0, 1, duration=10, group="g"),
        Job("b", 10, 1, duration=100, group="g"),
        *(Job(f"c{k}", at, 1, duration=1, group="h") for k, at in enumerate((13, 25, 45))),
    ]
    policy = Watched(predictor="group-mean")
    simulate(Instance(jobs, "1x2"), policy)
    left = {now: each[0] for now, each in policy.seen}
    assert {now: left[now] for now in (10, 13, 25, 45)} == pytest.approx({10: 10, 13: 7, 25: 5, 45: 5})


@pytest.mark.parametrize("spec", ["unified:restart=2", SPEC])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_follows_from_the_future(seed: int, spec: str) -> None:
    instance = gang_instance(seed) if spec == SPEC else elastic_instance(seed, jobs=10)
    cut = float(np.median(instance.arrival))
    early = instance.replace(jobs=[job for job in instance.jobs if job.arrival <= cut])
    limit = min(job.arrival for job in instance.jobs if job.arrival > cut)

    def until_then(made: Instance) -> set[tuple[str, float, tuple[int, ...]]]:
        rows = simulate(made, spec).schedule.segments()
        return {(made.ids[s.job], s.start, tuple(node for node, _ in s.gpus)) for s in rows if s.start < limit}

    assert until_then(instance) == until_then(early)


@pytest.mark.release
@pytest.mark.parametrize(
    ("spec", "part", "rivals"),
    [
        ("unified", 0.98, ["makespan-rounds:round=120", "goodput", "srtf-gpu+consolidated", "sjf-bsbf", "a-srpt"]),
        (SPEC, 0.9, ["unified", "hadar-e"]),
    ],
)
def test_better_than_its_rivals_on_the_instance_of_all_four(spec: str, part: float, rivals: list[str]) -> None:
    """Seeds 41 and 42, not used for its rules; `docs/unified.md` has twenty seeds and every registered policy."""
    for seed, load in few(((41, 0.6), (42, 1.2)), 1):
        made = generate("all-four", seed, load=load)
        mine = simulate(made, spec).value("total_flow_time")
        assert mine < part * min(simulate(made, rival).value("total_flow_time") for rival in rivals)


@pytest.mark.parametrize("weights", [(0, 0, 0, 0), (0, 1, 0, 2), (0.1, 0, 0.2, 1e-18)])
def test_who_weighs_nothing_runs_where_gpus_are_left(weights: tuple[float, ...]) -> None:
    jobs = [Job(f"j{k}", 0, 1, duration=10, weight=w) for k, w in enumerate(weights)]
    for cluster in ("1x4", "1x1"):
        run = simulate(Instance(jobs, cluster), "unified")
        assert run.unfinished == []
    order = np.argsort(run.schedule.completion)
    assert [weights[j] > 1e-9 for j in order] == sorted((w > 1e-9 for w in weights), reverse=True)


def test_a_job_at_the_very_end_of_its_prediction_is_like_one_just_before_and_behind_it() -> None:
    found = []
    for at in (19.5, 20.0, 20.5):
        jobs = [Job("z", 0, 1, duration=10, group="g"), Job("a", 10, 1, duration=1000, group="g")]
        jobs += [Job(f"e{k}", at, 1, iterations=50, profile="good", batch_size=840, group="e") for k in range(3)]
        made = Instance(jobs, "1x8", scalings={"good": Scaling(0.5, 0.1)})
        run = simulate(made, "unified:predictor=group-mean")
        found.append((gangs(run, at), run.preemptions))
    assert found[0] == found[1] == found[2]


# -- copies ---------------------------------------------------------------------------------------------------------------


def forked(instance: Instance, spec: str = SPEC) -> ForkedRun:
    run = simulate(instance, spec)
    assert isinstance(run, ForkedRun)
    assert run.schedule_class == "forking"
    return run


def test_one_job_takes_every_node_and_its_copies_end_together() -> None:
    # By hand: 10, 6 and 4 steps a second, 30 s to load every copy but the first: 10 T + 6 (T - 30) + 4 (T - 30) = 1700.
    run = forked(table_instance([[10, 6, 4]], [1700]))
    assert run.schedule.end.tolist() == pytest.approx([100, 100, 100])
    assert sorted(run.schedule.work.tolist()) == pytest.approx([280, 420, 1000])


def test_a_copy_that_would_load_until_the_end_is_not_started() -> None:
    # 2 T = 50 without the second node, which would be ready at 30 s.
    run = forked(table_instance([[2, 2]], [50]))
    assert (run.schedule.end.tolist(), len(run.schedule)) == ([25], 1)


def test_where_not_every_number_of_copies_is_tried_all_nodes_are_still_taken() -> None:
    # Numbers above 16 in steps of a quarter, and 40, all of them: T + 39 (T - 30) = 4000.
    run = forked(table_instance([[1] * 40], [4000]))
    assert run.schedule.end.tolist() == pytest.approx([129.25] * 40)


@pytest.mark.parametrize("seed", range(20))
def test_work_is_split_as_by_bisection(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    rate, load = rng.uniform(0.1, 5, 6), rng.uniform(0, 50, 6) * (rng.random(6) < 0.8)
    left = float(rng.uniform(1, 500))
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((rate * np.maximum(middle - load, 0)).sum()) < left else (low, middle)
    assert split(left, rate, load) == pytest.approx(rate * np.maximum(low - load, 0), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("cluster", "spec", "of"), [("1x1", "unified", "gang"), ("4x1", SPEC, "forking")])
@pytest.mark.parametrize("seed", range(6))
def test_on_alike_nodes_of_one_gpu_it_is_srpt_which_is_optimal(seed: int, cluster: str, spec: str, of: str) -> None:
    rng = np.random.default_rng([seed, 8])
    jobs = [
        Job(f"j{k}", int(a), 1, duration=int(p))
        for k, (a, p) in enumerate(zip(rng.integers(0, 60, 15), rng.integers(8, 90, 15), strict=True))
    ]
    run = simulate(
        Instance(jobs, cluster, objective="total_flow_time"), f"{spec}{',' if ':' in spec else ':'}restart=0"
    )
    best = bound(run.instance, "total_flow_time", schedule_class=of)
    assert run.value("total_flow_time") == pytest.approx(float(best.value), rel=1e-9)


@pytest.mark.parametrize("seed", few(range(12), 3))
@pytest.mark.parametrize("restart", [0, 30, 4000])
def test_the_referee_accepts_copies_of_all_gangs_and_types(seed: int, restart: float) -> None:
    run = forked(gang_instance(seed), f"{SPEC},restart={restart}")
    assert run.unfinished == []
    assert check_schedule(run.instance, run.schedule, schedule_class="forking", value=run.value()) == []
    assert run.value("total_flow_time") >= float(bound(run.instance, "total_flow_time", schedule_class="forking").value)


def test_copies_of_two_jobs_divide_the_nodes_where_each_is_faster() -> None:
    # Each job is four times as fast on its own two nodes; nobody takes the other's, and nobody moves.
    run = forked(table_instance([[4, 4, 1, 1], [1, 1, 4, 4]], [8000, 8100]))
    on = {(int(j), int(node)) for j, node in zip(run.schedule.job, run.schedule.gpu_node, strict=True)}
    assert {(0, 0), (0, 1), (1, 2), (1, 3)} <= on
    assert run.schedule.completion[0] == pytest.approx((8000 + 4 * 30) / 8)
    assert run.preemptions == 0


def test_copies_need_to_know_what_is_left() -> None:
    with pytest.raises(
        InputError, match=r"unified: predictor = 'shrinkage': invalid \(expected: perfect, where fork=true"
    ):
        simulate(gang_instance(0), f"{SPEC},predictor=shrinkage")
