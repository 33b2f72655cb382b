"""Two transfers on one link: the theorems on AdaDUAL and SRSF(k), their limits, and the family without a constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from events import contended, played
from examples import studied
from simulation.transfer_reference import completions

from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.guarantees.adadual import (
    ADADUAL,
    SRSF,
    blocked_transfers,
    equal_pair,
    long_one_first,
)
from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance, transfers_of
from optsched.classes.task_sharing.solvers.transfer_search import two_transfer_optimum
from optsched.errors import InputError
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds, verified_bound
from optsched.evaluation.suite_ratios import ratios
from optsched.evaluation.suites import suite
from optsched.guarantees.judge import judge
from optsched.policies.simulate import simulate, specify
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.speeds.sharing_pair import adadual_ratio

PENALTIES = (Fraction(0), Fraction(2745, 10000), Fraction(1))
LINK = ((0,), (0,))


def theta(eta: Fraction) -> Fraction:
    return 1 / (2 * (1 + eta))


def limits(eta: Fraction) -> dict[str, Fraction]:
    return {"adadual": adadual_ratio(theta(eta)), "srsf:1": Fraction(2), "srsf:2": (4 + 2 * eta) / 3}


def worst_on_a_grid(eta: Fraction, rule: str) -> list[tuple[Fraction, Fraction]]:
    """For flow and for completion times: the largest exact ratio to the optimum, and at which release of the second one.

    Sizes 1 and m, b = 1.
    """
    edge = theta(eta)
    sizes = [edge * Fraction(k, 6) for k in (3, 6, 7)] + [Fraction(k, 6) for k in (1, 3, 6, 7)]
    releases = [Fraction(0), Fraction(1, 10**9), Fraction(1, 100), *(Fraction(k, 6) for k in (1, 3, 5, 7))]
    worst = [(Fraction(0), Fraction(0))] * 2
    for r in releases:
        for m in [*sizes, *((edge * (1 - r), 1 - r) if r < 1 else ())]:
            value = sum(completions([Fraction(0), r], [Fraction(1), m], LINK, Fraction(1), eta, rule))
            # the second one at once, or when the other has ended; the first one at once, or when the second has ended
            later = [t for t in (r, Fraction(1)) if t >= r]
            candidates = [[Fraction(0), t] for t in later] + [[r + m, r]]
            optimum = min(sum(played(start, [Fraction(1), m], LINK, contended(1, eta))) for start in candidates)
            worst = [max(known, ((value - s) / (optimum - s), r)) for known, s in zip(worst, (r, 0), strict=True)]
    return worst


@pytest.mark.parametrize("eta", PENALTIES)
def test_no_release_and_no_size_is_worse_than_the_theorems_say(eta: Fraction) -> None:
    """The theorems hold for flow times, the stronger form, at any release; the worst is always at 0 and 0+."""
    for rule, limit in limits(eta).items():
        for worst, release in worst_on_a_grid(eta, rule):
            assert worst <= limit
            assert release <= Fraction(1, 10**9)
            if rule != "srsf:1":  # reached for a small second one only, in the limit
                assert worst > limit * Fraction(999_999, 10**6)


def test_figures_of_the_sheet() -> None:
    found = [round(float(limits(eta)["adadual"]), 4) for eta in PENALTIES]
    assert found == [1.25, 1.3405, 1.5]
    assert [float(limits(eta)["srsf:2"]) for eta in PENALTIES] == pytest.approx([4 / 3, 1.5163, 2], abs=5e-5)
    # AdaDUAL's ratio is below both for every eta: (5 + 4 eta) / (4 + 2 eta) < (4 + 2 eta) / 3 and < 2
    for eta in (*PENALTIES, Fraction(10), Fraction(1000)):
        assert limits(eta)["adadual"] < min(limits(eta)["srsf:1"], limits(eta)["srsf:2"])


def just_after(k: int, halvings: int) -> TransferProblem:
    """The limit in which ``adadual`` reaches its ratio too: as `long_one_first`, the second transfer k e seconds later.

    e = 2^-``halvings``; the second one has 1 - e bytes, exactly theta times what is left of the first, so it waits. The
    ratio to SRPT is (2 k e + (1 - e) (2 k + 1)) / (2 k e + (1 - e) (k + 2)), for e -> 0 (2 + theta) / (1 + 2 theta).
    """
    late = 0.5**halvings
    return TransferProblem(np.array([0, k * late]), np.array([k, 1 - late]), Contention(1, k / 2 - 1))


@pytest.mark.parametrize("k", [2, 4, 16])
def test_adadual_itself_reaches_its_ratio_in_the_limit_only(k: int) -> None:
    limit = adadual_ratio(Fraction(1, k))
    before = Fraction(0)
    for halvings in (1, 4, 16, 30):
        problem, late = just_after(k, halvings), Fraction(1, 2**halvings)
        value = Fraction(simulate(transfer_instance(problem), "adadual").value("total_completion_time"))
        srpt = srpt_per_link(problem).value
        ratio = value / srpt
        assert ratio == (2 * k * late + (1 - late) * (2 * k + 1)) / (2 * k * late + (1 - late) * (k + 2))
        assert srpt <= two_transfer_optimum(problem) <= value
        assert before < ratio < limit
        before = ratio
    assert before > limit * Fraction(999_999, 10**6)
    # With equal releases AdaDUAL asks the smaller one first and is optimal; where the long one is ready first, it is not.
    at_once = dataclasses.replace(just_after(k, 1), release=[0, 0], size=[k, 1])
    assert simulate(transfer_instance(at_once), "adadual").value("total_completion_time") == k + 2
    assert simulate(long_one_first(k), "adadual").value("total_completion_time") == 2 * k + 1


@pytest.mark.parametrize("eta", PENALTIES)
def test_it_is_kept_whenever_it_applies(eta: Fraction) -> None:
    rng = np.random.default_rng(7)
    for trial in range(2):
        late = float(rng.choice([0, 1e-9, rng.random() * 2]))
        problem = TransferProblem([5, 5 + late], np.exp(rng.uniform(-2, 2, 2)), Contention(1, float(eta)))
        instance = transfer_instance(problem, in_order=trial % 2 == 0)
        for spec in ("adadual", "ada-srsf", "k-way", "srsf:k=1", "srsf:k=3+list")[trial:]:
            chosen = specify(spec)
            theorem = SRSF if spec.startswith("srsf") else ADADUAL
            assert theorem.applies(chosen.policy, chosen.placement, instance)
            run = refereed(instance, chosen)
            proven = OptimumBounds(instance, [run])
            found = judge(theorem, chosen.policy, run, proven)
            assert found.findings == ()
            assert found.holds is True
            lower = proven.lower("total_flow_time", "task-sharing")
            assert lower is not None
            assert lower + Fraction(5) + Fraction(5 + late) == proven.lower("total_completion_time")


def test_a_smaller_factor_is_violated() -> None:
    for theorem, instance in ((ADADUAL, long_one_first(4)), (SRSF, equal_pair(4))):
        assert theorem.tight.family is not None
        chosen = specify(theorem.tight.family.policy)
        run = refereed(instance, chosen)
        exact = Fraction(theorem.ratio(chosen.policy, run))
        less = dataclasses.replace(theorem, ratio=lambda policy, run, exact=exact: exact * Fraction(999_999, 10**6))
        assert judge(theorem, chosen.policy, run, OptimumBounds(instance, [run])).holds is True
        assert judge(less, chosen.policy, run, OptimumBounds(instance, [run])).holds is False


def pair(**changes: Any) -> Instance:
    said = {"release": [0, 1], "size": [2, 1], "contention": Contention(1, 0.5)}
    return transfer_instance(TransferProblem(**{**said, **changes}))


def with_tasks(
    *, iterations: int = 1, forward: float = 0, message: float | None = 2, gpus: int = 2, nodes: str = "2x1"
):
    jobs = [Job(name, gpus=gpus, iterations=iterations, profile="p") for name in "ab"]
    return Instance(jobs, nodes, tasks={"p": IterationTasks(forward, 0, message)}, contention=Contention(1, 0.5))


@pytest.mark.parametrize(
    ("make", "spec", "why"),
    [
        (lambda: pair(release=[0, 0, 0], size=[1, 1, 1]), "adadual", "not two"),
        (lambda: Instance([Job("a", duration=1), Job("b", duration=1)], "1x1"), "adadual", "not two"),
        (lambda: with_tasks(iterations=2), "adadual", "more than one transfer"),
        (lambda: with_tasks(forward=1), "ada-srsf", "computes"),
        (lambda: with_tasks(forward=1, message=None), "ada-srsf", "sends nothing"),
        (lambda: with_tasks(nodes="1x2"), "ada-srsf", "sends nothing"),
        (lambda: with_tasks(nodes="3x1"), "srsf", "leaves GPUs free"),
        (lambda: with_tasks(nodes="2x2"), "k-way", "leaves GPUs free"),
        (lambda: pair().replace(contention=Contention(1, -0.5)), "adadual", "eta < 0"),
        (lambda: pair().replace(contention=Contention(1, 0.5, 0.1)), "adadual", "latency"),
        (
            lambda: pair().replace(
                contention=Contention(1, kinds=("transfer-0", "transfer-1"), ratios=((1, 1), (1, 1)))
            ),
            "srsf",
            "measured",
        ),
        (pair, "adadual:theta=0.4", "by hand"),
        (pair, "ada-srsf:theta=0.4", "by hand"),
    ],
)
def test_what_it_assumes(make: Callable[[], Instance], spec: str, why: str) -> None:
    chosen = specify(spec)
    theorem = SRSF if spec.startswith("srsf") else ADADUAL
    assert any(why in told for told in theorem.assumptions(chosen.policy, chosen.placement, make()))
    assert not theorem.assumptions(specify(spec.partition(":")[0]).policy, chosen.placement, pair())


def test_jobs_that_cannot_be_resident_together() -> None:
    jobs = [Job(name, gpus=2, iterations=1, profile="p", gpu_memory=6) for name in "ab"]
    for memory, told in ((12, ()), (11, ("the jobs may not be resident at once on every GPU",))):
        instance = Instance(jobs, "2x1", tasks={"p": IterationTasks(0, 0, 1)}, contention=Contention(1))
        group = dataclasses.replace(instance.cluster.nodes[0], gpu_memory=memory)
        instance = instance.with_cluster(dataclasses.replace(instance.cluster, nodes=(group,)))
        chosen = specify("adadual")
        assert ADADUAL.assumptions(chosen.policy, chosen.placement, instance) == told


# --- more transfers: no constant ----------------------------------------------------------------------------------------

TABLE = {"adadual": (1.84, 3.82, 11.15, 34.86), "srsf:k=1": (1.91, 4.15, 12.44, 39.08)}


def flows(spec: str, **parameters: float) -> tuple[float, float, float]:
    """sum (C_j - r_j) of a rule on a member of the family, of the reference, and SRPT's bound."""
    made = blocked_transfers.make(**parameters)
    problem = transfers_of(made.instance)
    cost, numbers = problem.contention, (problem.release.tolist(), problem.size.tolist())
    rule = {"adadual": "adadual", "srsf:k=1": "srsf:1"}[spec]
    ends = completions(*numbers, problem.links, cost.seconds_per_byte, cost.penalty, rule)
    return (
        float(sum(ends) - problem.release.sum()),
        float(made.reference),
        float(srpt_per_link(problem).flow(problem)),
    )


@pytest.mark.parametrize("spec", TABLE)
def test_the_table_of_the_family(spec: str) -> None:
    for small, expected in zip((1, 5, 20, 80), TABLE[spec], strict=True):
        found, reference, srpt = flows(spec, small=small, size=1e-4)
        assert found / srpt == pytest.approx(expected, abs=0.005)
        # the optimum without preemption is hardly larger: the short ones first, after two millionths of idling
        assert srpt <= reference <= srpt * 1.001 + 1e-3


@pytest.mark.parametrize("eta", [0.2745, *map(studied, (0.0, 1.0))])
def test_the_ratio_grows_with_the_number_of_transfers(eta: float) -> None:
    counts = (10, 100, 400)
    for spec in TABLE:
        ways, references, _ = zip(*(flows(spec, small=small, eta=eta) for small in counts), strict=True)
        assert max(references) < 5
        found = [way / best for way, best in zip(ways, references, strict=True)]
        assert all(ratio >= small / 11 for ratio, small in zip(found, counts, strict=True))
        assert 7 < found[1] / found[0] < 12
        assert 3.7 < found[2] / found[1] < 4.3


@pytest.mark.release
def test_short_ones_of_a_fixed_size_bound_it_again() -> None:
    """With short ones of 1e-4 bytes each the ratio falls again when they are many."""
    rows = [flows("adadual", small=small, size=1e-4) for small in (80, 250, 700)]
    found = [way / srpt for way, _, srpt in rows]
    assert found[1] > found[0] > found[2]


# --- jobs with tasks among suites and proofs ------------------------------------------------------------------------------


def test_the_class_of_jobs_with_tasks_is_sharing() -> None:
    instance = pair(release=[0, 0.5])
    run = refereed(instance, specify("srsf:k=2"))
    proven = OptimumBounds(instance, [run])
    certificate = proven.certificate("total_completion_time")
    assert certificate is not None
    assert (
        certificate
        == verified_bound(instance, "total_completion_time")
        == proven.certificate("total_completion_time", "gang")
    )
    shown = proven.bound_for(run, "total_completion_time")
    assert shown is not None
    assert (shown.schedule_class, run.schedule_class) == ("task-sharing", "task-sharing")
    value, upper = Fraction(run.value("total_completion_time")), proven.upper("total_completion_time", "task-sharing")
    assert upper is not None
    assert value <= upper <= value * (1 + Fraction(1, 10**5))  # beyond what the referee forgives tasks and transfers
    assert proven.upper("total_completion_time", "gang") is None  # what shares proves nothing of what does not
    stated = {"objective": "total_completion_time", "class": "task-sharing", "value": 1, "proved_by": ["nobody"]}
    with pytest.raises(InputError, match="refuted"):
        OptimumBounds(instance.replace(optimum=stated), [run]).check_stated_optimum("total_flow_time")


def test_the_suite_of_transfers() -> None:
    members = [
        name for name in suite("transfers-small").members if name.split("-")[1] == "2" or name[-2:] in ("-1", "-5")
    ]
    some = dataclasses.replace(suite("transfers-small"), members=tuple(members))
    table = ratios(some, ["adadual", "srsf:k=1"])
    assert table.violations == []
    assert table.objective == "total_flow_time"
    for row in table.policies:
        verdict = row.guarantee()
        assert verdict is not None
        assert (verdict["applies"], verdict["kept"]) == (9, 9)
        assert all(each.bound is not None and each.bound.exact for each in row.measured)
        assert row.worst is not None
    adadual, one = (row.mean for row in table.policies)
    assert adadual is not None
    assert one is not None
    assert 1 <= adadual < one
