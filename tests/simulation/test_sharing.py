"""The engine for jobs that share GPUs, and the policies built on it, against a second simulator in fractions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few, studied

from optsched.check.referee import check_schedule
from optsched.classes.gpu_sharing.policies.sharing_choice import best_sharing
from optsched.classes.gpu_sharing.simulation.shared_run import SharedRun
from optsched.compiled import without_interpreting
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.simulation.ordered import sharing_rule
from optsched.simulation.policy import Order, Start
from simulation.exact_sharing import ExactSharing, Rules
from simulation.plain_policies import OneByOne, Ordered

PUBLISHED = "sjf-bsbf:consolidated=false,joint=false,by=pair,outlook=0"
NOBODY = Fraction(0)
PAIRWISE = Rules(consolidated=False, joint=False, by="pair", outlook=NOBODY)
FIRST_FIT = dataclasses.replace(PAIRWISE, test=False, accumulate=False)
SPECS: dict[str, Rules] = {
    "sjf-bsbf": Rules(),
    "sjf-bsbf:outlook=4": Rules(outlook=Fraction(4)),
    "sjf-bsbf:outlook=0": Rules(outlook=NOBODY),
    "sjf-bsbf:consolidated=false": Rules(consolidated=False),
    "sjf-bsbf:joint=false": Rules(joint=False),
    "sjf-bsbf:by=saving": Rules(by="saving"),
    PUBLISHED + ",accumulate=false": dataclasses.replace(PAIRWISE, accumulate=False),
    "sjf-bsbf:width=true": Rules(width=True),
    PUBLISHED: PAIRWISE,
    "sjf-ffs": FIRST_FIT,
    "sjf-ffs:accumulate=true": dataclasses.replace(FIRST_FIT, accumulate=True),
    "sjf-ffs:consolidated=true": dataclasses.replace(FIRST_FIT, consolidated=True),
}
KINDS = ("lm", "resnet", "vgg")
MODELS = {
    "lm": Scaling(0.125, 0.03125, 0.0625, 0.03125, 0.5, 0.0625, memory=2.0, memory_per_sample=1.0),
    "resnet": Scaling(0.25, 0.0625, 0.03125, 0.0, 0.25, 0.125, memory=3.0, memory_per_sample=0.5),
}
CLUSTERS: tuple[Cluster | str, ...] = (
    "1x1",
    "2x2",
    "3x4",
    Cluster((NodeGroup(gpus=2, count=2, gpu="P100", gpu_memory=16.0), NodeGroup(gpus=3, gpu="V100", gpu_memory=24.0))),
)


def interference(rng: np.random.Generator) -> Interference:
    ratios = [[float(rng.choice([1.0, 1.125, 1.25, 1.5, 1.75, 2.5])) for _ in KINDS] for _ in KINDS]
    if rng.random() < 0.5:
        ratios[0][2] = None  # type: ignore[call-overload]
    return Interference(float(rng.choice([1.25, 1.5])), KINDS, tuple(map(tuple, ratios)))


def instance(seed: int, jobs: int = 14) -> Instance:
    """Crowded; jobs with durations and jobs at scaling profiles with sub-batches, kinds that never share, memory."""
    rng = np.random.default_rng([seed, 6])
    cluster = CLUSTERS[seed % len(CLUSTERS)]
    most = (Cluster.parse(cluster) if isinstance(cluster, str) else cluster).gpus
    rows = []
    for j in range(jobs):
        gang = int(rng.integers(1, min(most, 5) + 1))
        arrival = float(np.round(rng.random() * 12, 3))
        if rng.random() < 0.4:
            name = str(rng.choice(list(MODELS)))
            batch = gang * int(rng.choice([4, 6, 8]))
            work = float(rng.integers(2, 30))
            rows.append(Job(f"j{j}", arrival, gang, iterations=work, profile=name, batch_size=batch))
        else:
            model = str(rng.choice([*KINDS, "other"]))
            memory = float(rng.integers(0, 9)) if rng.random() < 0.5 else None
            rows.append(Job(f"j{j}", arrival, gang, float(rng.exponential(5) + 0.5), model=model, gpu_memory=memory))
    return Instance(rows, cluster, scalings=MODELS, interference=interference(rng))


def same(made: SharedRun, exact: dict[int, Any]) -> None:
    assert len(exact) == made.instance.n
    for segment, steps in zip(made.schedule.segments(), made.schedule.steps, strict=True):
        gpus, option, begun, ended = exact[segment.job]
        options = made.instance.sub_batches(segment.job)
        assert set(segment.gpus) == set(gpus), segment
        assert steps == (options[option].steps if options else 1)
        assert segment.start == pytest.approx(float(begun), rel=1e-9, abs=1e-9)
        assert segment.end == pytest.approx(float(ended), rel=1e-9, abs=1e-9)


@pytest.mark.filterwarnings("ignore:interference")
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    ("seed", "jobs"), [*((k, 14) for k in few(range(5), 2)), *(studied(k, 40) for k in range(100, 180))]
)
def test_engine_and_rules_equal_the_exact_simulator(spec: str, seed: int, jobs: int) -> None:
    made = simulate(instance(seed, jobs), spec)
    same(made, ExactSharing(made.instance, SPECS[spec]).play())
    assert check_schedule(made.instance, made.schedule) == []
    assert made.schedule_class == "gpu-sharing"
    assert not made.unfinished


@pytest.mark.release
def test_specs_differ() -> None:
    # Else the comparison above would not see a switch that does nothing.
    with pytest.warns(UserWarning, match="interference"):
        ends = {
            spec: [simulate(instance(seed), spec).schedule.completion.tolist() for seed in (0, 1, 2, 3, 5, 6, 11)]
            for spec in SPECS
        }
    assert len({str(each) for each in ends.values()}) == len(SPECS)


# -- policies in plain Python ----------------------------------------------------------------------------------------------
class FirstFit(OneByOne):
    """`sjf-ffs` written against the view."""

    def choose(self, view: Any, job: int) -> Start | None:
        gang, nodes = GANGS[0][job], {}
        for r in view.running:
            for m, _ in view.held(r):
                nodes[m] = nodes.get(m, 0) + 1
        order: Callable[[tuple[int, int]], Any] = lambda gpu: (nodes.get(gpu[0], 0), gpu)  # noqa: E731
        gpus = sorted(view.idle(job), key=order) + sorted(view.open(job), key=order)
        return Start(job, gpus=gpus[:gang]) if len(gpus) >= gang else None


GANGS: list[Any] = [None]


@pytest.mark.filterwarnings("ignore:interference")
@pytest.mark.parametrize("seed", range(5))
def test_a_policy_in_python_equals_the_compiled_one(seed: int) -> None:
    problem = instance(seed)
    GANGS[0] = problem.gpus
    mine, theirs = simulate(problem, FirstFit()), simulate(problem, "sjf-ffs")
    assert [*mine.schedule.segments()] == [*theirs.schedule.segments()]
    assert mine.events == theirs.events == 2 * problem.n


class Chooses(OneByOne):
    """Says whatever it is told to."""

    def __init__(self, what: Any, knowledge: str = "clairvoyant") -> None:
        self.what, self.knowledge = what, knowledge

    def key(self, view: Any, job: int) -> float:
        return float(view.arrival(job))

    def choose(self, view: Any, job: int) -> Any:
        return self.what(view, job)


def on(*gpus: Any, option: int = 0) -> Callable[[Any, int], Start]:
    return lambda view, job: Start(job, gpus=gpus, option=option)


def test_pairs_that_never_share_and_memory_are_kept() -> None:
    table = Interference(1.0, ("a", "b"), ((1.0, None), (1.0, 1.0)))
    jobs = [Job("x", duration=2, model="a", gpu_memory=9.0), Job("y", duration=2, model="b", gpu_memory=1.0)]
    small = Cluster((NodeGroup(gpus=1, gpu_memory=10.0),))
    with pytest.raises(SimulationError, match="puts job 'y'"):
        simulate(Instance(jobs, small, interference=table), Chooses(on((0, 0))))
    greedy = [Job("x", duration=2, gpu_memory=9.0), Job("y", duration=2, gpu_memory=2.0)]
    with pytest.raises(SimulationError, match="free memory"):
        simulate(Instance(greedy, small, interference=Interference(1.0)), Chooses(on((0, 0))))
    for spec in ("sjf-ffs", "sjf-bsbf"):
        for rows, costs in ((jobs, table), (greedy, Interference(1.0))):
            assert simulate(Instance(rows, small, interference=costs), spec).schedule.completion.tolist() == [2, 4]


def test_what_a_sub_batch_costs_is_known_without_clairvoyance() -> None:
    # An iteration of 8 samples takes 1 + 8 s at once, 2 (1 + 4) in two sub-steps, 4 (1 + 2) in four, 8 (1 + 1) in eight.
    scalings = {"net": Scaling(1.0, 1.0, memory=2, memory_per_sample=1)}
    cluster = Cluster((NodeGroup(gpus=1, gpu_memory=16),))
    jobs = [Job("a", 0, 1, iterations=10, profile="net", batch_size=8)]
    found: list[list[float]] = []

    def asks(view: Any, job: int) -> Start:
        found.append([view.stretch(job, option) for option in range(view.options(job))])
        return Start(job, gpus=((0, 0),))

    simulate(Instance(jobs, cluster, scalings=scalings, interference=Interference(1)), Chooses(asks, "non-clairvoyant"))
    assert found == [[1, pytest.approx(10 / 9), pytest.approx(12 / 9), pytest.approx(16 / 9)]]


def test_knowledge_is_enforced() -> None:
    problem = Instance([Job("a", duration=1)], "1x1", interference=Interference(1.25))
    with pytest.raises(KnowledgeError, match="a non-clairvoyant policy asked for the seconds alone"):
        simulate(problem, Chooses(lambda view, job: view.alone(job), "non-clairvoyant"))

    with pytest.raises(KnowledgeError, match="asked for durations"):
        simulate(problem, ruled(lambda jobs: Order(jobs.duration, rule=best_sharing), "non-clairvoyant"))


def test_interval_and_strict_order() -> None:
    # intervals begin with the first arrival
    jobs = [Job("first", gpus=2, duration=0.25), Job("a", 0.5, duration=2)]
    jobs += [Job("b", 1, gpus=2, duration=1), Job("c", 1.25, duration=1)]
    problem = Instance(jobs, "1x2", interference=Interference(1e6))
    made = simulate(problem, "sjf-bsbf:interval=2")
    assert {problem.ids[s.job]: s.start for s in made.schedule.segments()} == {"first": 0, "b": 2.0, "c": 4.0, "a": 4.0}

    class Strict(OneByOne):
        strict = True

        def key(self, view: Any, job: int) -> float:
            return float(view.arrival(job))

        def choose(self, view: Any, job: int) -> Start | None:
            free = view.idle(job)
            return Start(job, gpus=free[: problem.gpus[job]]) if len(free) >= problem.gpus[job] else None

    numbers = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)  # of `sjf-bsbf`, which shares where it pays: here never
    for policy in (Strict(), ruled(lambda jobs: Order(jobs.arrival, skip=False, rule=best_sharing, numbers=numbers))):
        made = simulate(problem, policy)
        starts = {problem.ids[s.job]: s.start for s in made.schedule.segments()}
        assert starts == {"first": 0, "a": 0.5, "b": 2.5, "c": 3.5}


def ruled(order: Callable[[Any], Any], knowledge: str = "clairvoyant") -> Any:
    return Ordered(order, knowledge, "ruled", ("sharing",))


def while_counts_are_right(state: Any, site: Any, job: int) -> int:
    gpus = site.colocation.neighbours.gpus
    for r in range(state.jobs.size):
        alone = 0
        for g in range(gpus.size):
            if gpus[g].jobs == 1 and (gpus[g].one == r or gpus[g].other == r):
                alone += 1
        if state.jobs[r].alone != alone or state.engine[0].alone != np.sum(gpus["jobs"] == 1):
            return -1  # nobody starts any more
    return int(best_sharing(state, site, job))


@pytest.mark.filterwarnings("ignore:interference")
@pytest.mark.parametrize("way", [nullcontext, pytest.param(without_interpreting, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("seed", few(range(4), 2))
def test_how_many_gpus_a_job_has_alone_is_always_known(seed: int, way: Any) -> None:
    """The rule allocates, as a user's may: also where numba's reference counts are off in the engine."""
    problem = instance(seed)
    plain = simulate(problem, "sjf-bsbf")
    numbers = (1.0, 1.0, 1.0, 2.0, 1.0, 0.5)
    rule = sharing_rule(while_counts_are_right)
    with way():
        made = simulate(problem, ruled(lambda jobs: Order(jobs.duration, rule=rule, numbers=numbers)))
    assert list(made.schedule.segments()) == list(plain.schedule.segments())


def never(state: Any, site: Any, job: int) -> int:
    return -1


def test_a_rule_that_lets_a_job_wait_in_an_idle_cluster_lets_it_wait_for_ever() -> None:
    problem = Instance([Job("a", duration=1)], "1x1", interference=Interference(1.25))
    with pytest.raises(SimulationError, match="ruled: job 'a' waits for ever"):
        simulate(problem, ruled(lambda jobs: Order(jobs.arrival, rule=sharing_rule(never))))


def test_what_is_wrong_is_said_in_one_line() -> None:
    plain = Instance([Job("a", duration=1)], "1x1")
    with pytest.raises(InputError, match="interference"):
        simulate(plain, "sjf-bsbf")
    problem = plain.replace(interference=Interference())
    with pytest.raises(InputError, match="by"):
        simulate(problem, "sjf-bsbf:by=luck")

    for order, text in (
        (Order(np.zeros(2), rule=best_sharing), "one number for each of 1 jobs"),
        (Order(np.array([np.nan]), rule=best_sharing), "one number for each of 1 jobs"),
        (Order(np.zeros(1), rule=best_sharing, round=-1.0), "round"),
        (Order(np.zeros(1), rule=len), "not compiled"),
        (Order(np.zeros(1)), "not compiled"),
        (None, "gives no order"),
    ):
        with pytest.raises(InputError, match=text):
            simulate(problem, ruled(lambda jobs, order=order: order))
