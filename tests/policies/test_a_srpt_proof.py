"""Every step of the proof of `optsched.guarantees.a_srpt_theorem`, and the theorem, against brute-force optima at alpha_min.

Two ways to schedules: a model in plain Python with placements, delays and overtaking as bad as the proof allows, often;
and the policy in the engine on profiles whose speed depends on their placement. Last, families that show what it cannot do.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from examples import explored, few

from optsched.bounds import BOUNDS
from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees import a_srpt_theorem
from optsched.guarantees.a_srpt_theorem import A_SRPT, a_srpt_factors, a_srpt_limits, kappa, starvation
from optsched.guarantees.family import Challenge, Family
from optsched.guarantees.judge import judge
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from policies.a_srpt_model import Turns, srpt_points

GOAL = "total_completion_time"
DURATIONS, LATEST = (1, 2, 3, 5, 8, 13), (0, 3, 8, 20)
CLOSE = 1 + 1e-9
INSTANCES = 600 if explored() else 200


@dataclasses.dataclass
class Case:
    """A run of A-SRPT, whoever made it, and the fastest and slowest paces of its jobs, f64[n]."""

    run: Run
    fastest: Any
    slowest: Any
    overtaken: int = 0

    def claims(self) -> Iterator[tuple[str, float, float]]:
        """(name, what is measured, what it must not exceed)."""
        run, made = self.run, self.run.instance
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(a_srpt_theorem, "paces", lambda _: (self.fastest, self.slowest))
            factors, limits, audit = (
                a_srpt_factors(run),
                a_srpt_limits(run),
                A_SRPT.audit(specify(run.policy).policy, run),
            )
        assert audit == []
        release, at_best, length = made.arrival, made.work * self.fastest, run.notes["virtual_length"]
        jobs = zip(map(str, range(made.n)), release.tolist(), made.gpus.tolist(), at_best.tolist(), strict=True)
        best = float(optimum(Instance([Job(*each) for each in jobs], f"1x{made.cluster.gpus}"), GOAL))
        exact = length * made.work / run.predicted
        yield "V", sum(srpt_points(release.tolist(), exact.tolist())), factors.rho_1 * best
        yield "V, predicted", sum(srpt_points(release.tolist(), length.tolist())), factors.over * factors.rho_1 * best
        yield "T", float((release + at_best).sum()), best
        for completion, limit in zip(run.schedule.completion.tolist(), limits.tolist(), strict=True):
            yield "J", completion, limit
        yield "theorem", float(run.schedule.completion.sum()), factors.ratio * best


def made_up(
    total: int,
    rows: Sequence[tuple[float, int, float, float, float, float]],
    times: Callable[..., Turns],
    *,
    tau: float = 0.0,
    beta: float = 1.0,
    overtake: float = 0.0,
) -> Case:
    """Jobs (release, gang, seconds at alpha_min, alpha_max, alpha~, predicted / true) as somebody takes turns."""
    release, gpus, seconds, slowest, nominal, error = (np.array(each) for each in zip(*rows, strict=True))
    instance = Instance([Job(f"{j}", float(r), int(g), float(p)) for j, (r, g, p, *_) in enumerate(rows)], f"1x{total}")
    length = gpus * seconds * nominal * error / total
    turns = times(release.tolist(), gpus.tolist(), seconds.tolist(), (seconds * error).tolist(), length.tolist())
    start, end = np.array([turns.times[j] for j in range(instance.n)]).T
    schedule = Schedule.from_starts(instance, start.tolist(), duration=end - start)
    text = f"a-srpt:virtual_alpha=heavy-edge,tau={tau},beta={beta},overtake={overtake}"
    notes = {"virtual_length": length}
    run = Run(schedule, text, Knowledge.PREDICTED, False, 0, 0, 0.0, predicted=seconds * error, notes=notes)
    return Case(run, np.ones(instance.n), slowest, len(turns.charge))


def drawn(rng: random.Random) -> Case:
    """Random gangs, placements and delays adversarial."""
    total, jobs = rng.choice([2, 3, 4, 6, 8]), rng.randint(2, 6)
    latest, widest = rng.choice(LATEST), rng.choice([1, max(1, total // 2), total])
    limit, error = rng.choice([1.0, 1.5, 3.0]), rng.choice([1.0, 2.0])
    release = [rng.randint(0, latest) for _ in range(jobs)]
    slow = [rng.choice([1.0, limit]) for _ in range(jobs)]
    variant = rng.choice(["min", "max", "between"])
    rows = [
        (
            float(release[j] - min(release)),
            rng.randint(1, widest),
            float(rng.choice(DURATIONS)),
            slow[j],
            {"min": 1.0, "max": slow[j], "between": 1 + (slow[j] - 1) * rng.random()}[variant],
            rng.choice([1.0, error, 1 / error]),
        )
        for j in range(jobs)
    ]
    tau, beta = rng.choice([0.0, 0.5, 2.0]), rng.choice([0.1, 0.25, 0.5, 1.0])
    overtake = rng.choice([0.0, 0.2, 2.0])
    worst = rng.random() < 0.5  # every placement and every delay as bad as it may be
    pace = [s if worst else rng.choice([1.0, s]) for s in slow]
    reluctant = rng.random() < 0.5  # the head waits as long as it may, while others overtake

    def times(release: Any, gpus: Any, seconds: Any, predicted: Any, length: Any) -> Turns:
        point = srpt_points(release, length, beta)
        delay_budget = [tau * p * (1.0 if worst else rng.choice([0.0, 0.5, 1.0])) for p in length]
        turns = Turns(total, release, gpus, seconds, predicted, point, delay_budget, overtake)

        def decide() -> None:
            # Anybody may overtake, the head does so when it has to, and when it does not depends on nothing.
            some = True
            while some:
                some = False
                for j in rng.sample(turns.waiting(), len(turns.waiting())):
                    if gpus[j] > turns.free:
                        continue
                    if j == turns.head():
                        some = not (reluctant and turns.delay_budget[j] > 0) or not turns.running()
                    else:
                        some = rng.random() < 0.8 and turns.affordable(gpus[j] * predicted[j] * pace[j])
                    if some:
                        turns.start(j, pace[j])
                        break

        turns.run(decide, lambda: [t for t in point if t > turns.now])
        return turns

    return made_up(total, rows, times, tau=tau, beta=beta, overtake=overtake)


def test_lemmas_and_theorem_on_hundreds_of_adversarial_runs() -> None:
    cases = [drawn(random.Random(seed)) for seed in range(INSTANCES)]
    assert sum(case.overtaken > 0 for case in cases) > 0.25 * INSTANCES
    worst: dict[str, float] = {}  # measured / bound
    needed = {"rho_1": 0, "n alpha_max": 0}
    for case in cases:
        claims = list(case.claims())
        for name, measured, bound in claims:
            assert measured <= bound * CLOSE, (name, case)
            worst[name] = max(worst.get(name, 0.0), measured / bound)
        # no term can be left out
        first, best = claims[0][1], claims[2][2]
        needed["rho_1"] += first > best * CLOSE
        point = srpt_points(case.run.instance.arrival.tolist(), case.run.notes["virtual_length"].tolist())
        needed["n alpha_max"] += bool((case.run.schedule.completion > np.array(point) * CLOSE).any())
    # one machine, one job: nothing smaller would hold
    assert worst["V"] > 1 - (1e-6 if explored() else 0.05)
    assert worst["T"] == pytest.approx(1)
    assert 0.4 < worst["J"] <= 1
    assert 0.4 < worst["theorem"] < 0.75
    assert min(needed.values()) > 5


def test_nor_can_what_overtakes_be_left_out() -> None:
    # One GPU, sigma = 2: just before the turn of the first job, at 8, one of 15 s may still overtake it.
    def times(release: Any, gpus: Any, seconds: Any, predicted: Any, length: Any) -> Turns:
        turns = Turns(1, release, gpus, seconds, predicted, [8, 23], [0, 0], 2)

        def decide() -> None:
            for j in (1, 0):
                may = j in turns.waiting() and turns.free and turns.now >= 7.5
                if may and (j == turns.head() or turns.affordable(15)):
                    turns.start(j, 1)

        turns.run(decide, lambda: [8])
        return turns

    case = made_up(1, [(0.0, 1, 8.0, 1.0, 1.0, 1.0), (7.5, 1, 15.0, 1.0, 1.0, 1.0)], times, overtake=2.0)
    assert case.run.schedule.start.tolist() == [22.5, 7.5]
    _, completion, limit = next(claim for claim in case.claims() if claim[0] == "J")
    assert limit - 2 * 8 < completion <= limit == 8 * (1 + 1 + 2) + 8


@pytest.mark.parametrize("rho", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("error", [1.0, 2.0])
def test_the_factors_of_lemma_v_are_reached_by_one_job_as_wide_as_the_cluster(rho: float, error: float) -> None:
    def times(release: Any, gpus: Any, seconds: Any, predicted: Any, length: Any) -> Turns:
        turns = Turns(4, release, gpus, seconds, predicted, length, [0], 0)
        turns.run(lambda: turns.start(0, rho) if turns.head() == 0 else None, lambda: length)
        return turns

    case = made_up(4, [(0.0, 4, 5.0, rho, rho, error)], times, tau=0.5)
    claims = {name: (measured, bound) for name, measured, bound in case.claims()}
    assert claims["V"] == (rho * 5.0, rho * 5.0)
    assert claims["V, predicted"] == (error * rho * 5.0, error * rho * 5.0)


# -- the policy in the engine ---------------------------------------------------------------------------------------------


def engine_runs(count: int) -> Iterator[tuple[Instance, Run, Case]]:
    """Small instances with profiles and without, all variants in turn."""
    rng = random.Random(11)
    variants = itertools.cycle(["min", "max", "heavy-edge"])
    for seed in range(count):
        beta, tau, error = rng.choice([0.1, 0.25, 0.5, 1.0]), rng.choice([0.0, 0.5, 2.0]), rng.choice([1, 2])
        if seed % 4 == 3:
            gpus = rng.choice([2, 3, 4, 6, 8])
            widest = rng.choice([1, gpus // 2, gpus])
            latest = rng.choice(LATEST)
            instance = generate("a-srpt-small", seed, gpus=gpus, jobs=rng.randint(2, 6), latest=latest, widest=widest)
        else:
            nodes, gpus = rng.choice([(2, 2), (4, 1), (4, 2), (3, 2)])
            rho, span = rng.choice([1.5, 3.0]), rng.choice([0.0, 0.5, 1.0])
            instance = generate(
                "ddl-small", seed, jobs=rng.randint(2, 6), nodes=nodes, gpus=gpus, rho=rho, span=span, heavy=1.0
            )
        overtake = rng.choice([0.0, 0.3, 2.0])
        parameters = f"virtual_alpha={next(variants)},beta={beta},tau={tau},overtake={overtake}"
        place = rng.choice(["heavy-edge", "random", "first-fit"])
        run = simulate(instance, f"a-srpt:{parameters},predictor=noisy/error={error}/seed={seed}+{place}")
        yield instance, run, Case(run, *paces(instance))


def test_lemmas_and_theorem_for_the_policy_in_the_engine() -> None:
    seen, slower = [], 0
    for instance, run, case in engine_runs(160 if explored() else 50):
        assert check_schedule(instance, run.schedule, preemptive=False) == []
        for name, measured, limit in case.claims():
            assert measured <= limit * CLOSE, (name, run.policy)
        # virtual lengths are those of their definition
        nominal = run.notes["virtual_length"] * instance.cluster.gpus / (instance.gpus * run.predicted)
        assert (nominal >= case.fastest * (1 - 1e-12)).all()
        assert (nominal <= case.slowest * (1 + 1e-12)).all()
        seen.append(float((case.slowest / case.fastest).max()))
        at_best = (instance.work * case.fastest)[run.schedule.job]
        slower += bool((run.schedule.end - run.schedule.start > at_best * CLOSE).any())
    assert max(seen) > 2  # speeds did depend on placements,
    assert slower > 12  # and many jobs did not run at alpha_min


# -- completion times count from time 0 -----------------------------------------------------------------------------------


def test_the_theorem_is_about_completion_times_and_false_for_flow_times() -> None:
    # A long job that A-SRPT starts when its virtual copy is done, and short ones that come while it runs.
    tiny = 40
    instance = Instance(
        [Job("long", duration=100), *(Job(f"{k}", arrival=101, duration=0.001) for k in range(tiny))],
        "1x1",
        objective="total_completion_time",
    )
    policy = specify("a-srpt:tau=0,overtake=0").policy
    run = simulate(instance, policy)
    ratio = A_SRPT.ratio(policy, run)
    assert ratio == pytest.approx(3)
    completion = run.schedule.completion
    judged = judge(A_SRPT, policy, run, OptimumBounds(instance, [run]))
    assert judged.holds is True
    assert judged.objective == "total_completion_time"
    assert judged.value == pytest.approx(completion.sum())
    assert run.metrics["mean_jct"] == pytest.approx((completion - instance.arrival).mean())
    # Without the delay by the virtual machine: the long job at once, the others one by one after it.
    best = [100.0, *(101 + 0.001 * (k + 1) for k in range(tiny))]
    assert completion.sum() <= 3 * sum(best)
    flow, best_flow = (completion - instance.arrival).sum(), (np.array(best) - instance.arrival).sum()
    assert flow > 3 * best_flow * 5


# -- what it cannot do: families on which strict order, and overtaking without a budget, lose much ------------------------


def challenge(family: Family, *parameters: int) -> Challenge:
    found = family.make(*parameters)
    assert isinstance(found, Challenge)
    return found


LOST: list[
    tuple[str, Family, tuple[int, ...], float, float]
] = [  # policy, member, ratio to another schedule, to within
    # strict order loses about half the cluster when gangs are as wide as it, and overtaking on the budget makes up for it
    ("a-srpt:overtake=0", kappa, (4, 400), 2.50, 0.005),
    ("a-srpt:overtake=0", kappa, (8, 400), 4.49, 0.005),
    ("a-srpt:overtake=0", kappa, (16, 400), 8.43, 0.005),
    ("a-srpt:overtake=0", kappa, (32, 400), 16.2, 0.05),
    ("a-srpt", kappa, (4, 400), 1.002, 0.001),
    ("a-srpt", kappa, (8, 400), 1.007, 0.001),
    ("a-srpt", kappa, (16, 400), 1.047, 0.001),
    ("a-srpt", kappa, (32, 400), 1.115, 0.001),
    # in the order of predicted durations the wide jobs come first: harmless; by workload they alternate
    ("spjf", kappa, (16, 100), 1.0, 0.3),
    ("spwf", kappa, (16, 100), 8.2, 0.3),
    # overtaking without a budget starves wide jobs
    ("a-srpt:overtake=inf", starvation, (10,), 10.34, 0.05),
    *few([("a-srpt:overtake=inf", starvation, (n,), ratio, 0.05) for n, ratio in ((20, 19.86), (40, 38.9))], 0),
    *((policy, starvation, (10,), 10.3, 0.1) for policy in ("wcs-duration", "wcs-workload", "wcs-subtime")),
    *((f"a-srpt:overtake={overtake}", starvation, (10,), 1.9, 1.0) for overtake in (0, 1, 2)),
]


@pytest.mark.parametrize(("policy", "family", "size", "ratio", "within"), LOST)
def test_what_policies_lose_on_the_families(
    policy: str, family: Family, size: tuple[int, ...], ratio: float, within: float
) -> None:
    member = challenge(family, *size)
    instance, better, reference = member.instance, member.better, float(member.reference)
    assert better is not None
    assert check_schedule(instance, better, preemptive=False, value=reference) == []
    bounds = [BOUNDS.get(name).build(instance, GOAL, "gang") for name in ("srpt", "release-plus-duration")]
    # so the ratio to the optimum of the second family is known within a fifth
    assert max(bound.value for bound in bounds if bound) <= reference * (1 + 1e-9)
    assert family is kappa or reference <= 1.2 * max(bound.value for bound in bounds if bound)
    assert simulate(instance, policy).value(GOAL) / reference == pytest.approx(ratio, abs=within)


@pytest.mark.parametrize(("policy", "factor"), [("a-srpt:overtake=0", 2 + 2 + 8), ("a-srpt", 3 * 8 + 4)])
def test_they_stay_within_the_theorem(policy: str, factor: float) -> None:
    # The factor is 2 + tau + kappa in strict order: kappa = G, rho = 1, and tau is never spent; a budget is paid for twice.
    run = simulate(challenge(kappa, 8, 400).instance, policy)
    assert A_SRPT.ratio(specify(policy).policy, run) == pytest.approx(factor)
    assert A_SRPT.audit(specify(policy).policy, run) == []


def test_with_gangs_of_at_most_half_the_cluster_the_same_jobs_are_harmless() -> None:
    wider = challenge(kappa, 8, 100).instance.with_cluster("1x16")
    proven = BOUNDS.get("srpt").build(wider, GOAL, "gang")
    assert proven is not None
    assert simulate(wider, "a-srpt").value(GOAL) < 3 * proven.value


def test_the_families_by_hand() -> None:
    pairs = challenge(kappa, 2, 2)
    assert pairs.instance.gpus.tolist() == [1, 2, 1, 2]
    assert pairs.instance.duration.tolist() == pytest.approx([1, 0.5, 1, 0.5], abs=1e-5)
    assert pairs.reference == pytest.approx(0.5 + 1 + 2 + 2, abs=1e-4)
    starved = challenge(starvation, 2)
    assert starved.instance.n == 42
    assert starved.reference == pytest.approx(40 * 1.0001 + 2 * 3.0001, abs=1e-4)
    assert np.unique(starved.instance.arrival).tolist() == [0, 1, 1.0001]
    for broken in (lambda: kappa.make(1), lambda: kappa.make(2, 0), lambda: starvation.make(1)):
        with pytest.raises(InputError, match="an integer >="):
            broken()
