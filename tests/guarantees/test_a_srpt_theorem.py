"""The A-SRPT guarantee by hand; `policies.test_a_srpt_proof` holds it against adversarial runs and exhaustive optima."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from srpt import served

from optsched.evaluation.evaluate import evaluate
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees import a_srpt_theorem
from optsched.guarantees.a_srpt_theorem import A_SRPT, factors, virtual_srpt
from optsched.guarantees.judge import judge
from optsched.io.sources import load
from optsched.policies.simulate import simulate, specify
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run


def policy(**changes: Any) -> SimpleNamespace:
    """The parameters of A-SRPT that the theorem reads."""
    return SimpleNamespace(**{"virtual_alpha": "min", "beta": 1.0, "tau": 0.0, "overtake": 0.0, **changes})


def made_run(schedule: Schedule, predicted: Any) -> Run:
    """A run of A-SRPT, whoever made the schedule."""
    seconds = np.asarray(predicted, dtype=np.float64)
    return Run(schedule, "a-srpt", Knowledge.PREDICTED, False, 0, 0, 0.0, predicted=seconds)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), min_size=1, max_size=6),
    st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 4)]),
)
def test_the_virtual_machine(rows: list[tuple[int, int]], beta: Fraction) -> None:
    arrival, length = [r for r, _ in rows], [p for _, p in rows]
    found = virtual_srpt(np.array(arrival, dtype=float), np.array(length, dtype=float), float(beta))
    assert found.tolist() == served(rows, lambda _, left: left, beta)[0]


def test_the_virtual_machine_preempts_only_for_less() -> None:
    found = virtual_srpt(np.array([0.0, 2.0, 2.0]), np.array([4.0, 2.0, 1.5]))
    assert found.tolist() == [5.5, 7.5, 3.5]  # at 2 job 0 has 2 left: job 2 goes before it, its equal job 1 does not


def test_the_factors_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance([Job("a", gpus=2, duration=10), Job("b", gpus=3, duration=8)], "1x4")
    fastest, slowest = np.array([1.0, 2.0]), np.array([3.0, 8.0])
    monkeypatch.setattr(a_srpt_theorem, "paces", lambda _: (fastest, slowest))
    run = made_run(Schedule.from_starts(instance, [0, 10]), [5, 12])
    low = factors(policy(tau=0.5, beta=0.5), run)
    assert (low.rho, low.rho_1, low.rho_2) == (4, 1, 4)
    assert (low.kappa, low.over, low.under) == (2, 1.5, 2)
    assert low.ratio == 1.5 * 1 * (1 + (0.5 + 2 * 4 * 2) / 0.5) + 4
    # What is charged may last lam_u times as long, and kappa of it is idle: 2 x 0.75 x 2.
    assert factors(policy(tau=0.5, beta=0.5, overtake=0.75), run).ratio == low.ratio + 1.5 * 1 * 3
    high = factors(policy(virtual_alpha="max"), run)
    assert (high.rho, high.rho_1, high.rho_2) == (4, 4, 1)
    assert high.ratio == 1.5 * 4 * (1 + 2 * 1 * 2) + 4
    noted = dataclasses.replace(run, notes={"virtual_length": run.instance.gpus * run.predicted * [2, 4] / 4})
    between = factors(policy(virtual_alpha="heavy-edge"), noted)
    assert (between.rho, between.rho_1, between.rho_2) == (4, 2, 2)
    # For exact predictions and beta = 1 the theorem reads 1 + tau + rho kappa + rho, and rho (2 + tau + kappa).
    exact = dataclasses.replace(run, predicted=instance.work)
    assert factors(policy(tau=0.5), exact).ratio == 1 + 0.5 + 4 * 2 + 4
    assert factors(policy(tau=0.5, virtual_alpha="max"), exact).ratio == 4 * (2 + 0.5 + 2)


def test_a_job_that_starts_too_late_is_named() -> None:
    instance = Instance([Job("a", duration=4), Job("b", duration=6), Job("c", duration=8)], "1x2")
    # Virtual lengths 2, 3, 4; points 2, 5, 9; kappa = 1, so that c must be done by 2 x 9 + 8 = 26.
    kept, broken = (
        A_SRPT.audit(policy(), made_run(Schedule.from_starts(instance, [2, 5, late]), instance.work))
        for late in (18, 18.5)
    )
    assert kept == []
    assert broken == ["job 'c' completes at 26.5 s after the first arrival, 0.5 s after 26"]


def test_a_tie_may_be_broken_either_way() -> None:
    # Equal jobs: whichever the dispatcher served last may be as late as the last of the machine; not the later by far.
    instance = Instance([Job("a", duration=4), Job("b", duration=4)], "1x1")  # points 4 and 8, limits 12 and 20
    swapped, later = (made_run(Schedule.from_starts(instance, [late, 4]), instance.work) for late in (16, 16.5))
    assert A_SRPT.audit(policy(), swapped) == []
    assert A_SRPT.audit(policy(), later) == ["job 'a' completes at 20.5 s after the first arrival, 0.5 s after 20"]


def test_many_late_jobs_are_summed_up() -> None:
    instance = Instance([Job(f"{j}", duration=1) for j in range(30)], "1x30")
    run = made_run(Schedule.from_starts(instance, [1000.0] * 30), instance.work)
    found = A_SRPT.audit(policy(), run)
    assert len(found) == 21
    assert found[-1] == "and 10 more jobs"


def test_assumptions() -> None:
    instance = Instance([Job("a", gpus=2, duration=4)], "2x2")

    def broken(spec: str = "fifo", where: Instance = instance, **changes: Any) -> str:
        return " and ".join(A_SRPT.assumptions(policy(**changes), specify(spec).placement, where))

    assert broken() == ""
    assert broken(overtake=2.0) == ""
    assert broken(virtual_alpha="max") == ""
    assert "overtake=inf" in broken(overtake=math.inf)
    assert broken(virtual_alpha="heavy-edge") == ""
    assert "consolidated" in broken("fifo+consolidated")
    assert "2 types" in broken(where=instance.with_cluster("1x2:V100+1x2:P100"))
    assert broken(where=instance.replace(contention=Contention(1e-9))) == ""  # no communication is declared
    assert "contend" in broken(where=load("all-four"))


def test_a_run_without_predictions_is_refused() -> None:
    instance = Instance([Job("a", duration=4)], "1x1")
    run = Run(Schedule.from_starts(instance, [4]), "a-srpt", Knowledge.PREDICTED, False, 0, 0, 0.0)
    with pytest.raises(ValueError, match="predicted"):
        A_SRPT.ratio(policy(), run)


@pytest.mark.parametrize("name", ["rigid-12-1", "wide-gangs-08-1", "single-12-1"])
@pytest.mark.parametrize(
    "parameters", ["", ":beta=0.5,tau=2", ":virtual_alpha=max", ":virtual_alpha=heavy-edge", ":overtake=0"]
)
def test_the_policy_keeps_it_and_its_virtual_machine_is_the_one_here(name: str, parameters: str) -> None:
    instance = load(name)
    chosen = specify(f"a-srpt{parameters}")
    assert A_SRPT.applies(chosen.policy, chosen.placement, instance)
    run = simulate(instance, chosen)
    assert judge(A_SRPT, chosen.policy, run, OptimumBounds(instance, [run])).holds is True
    assert run.predicted is not None
    length = instance.gpus * run.predicted / instance.cluster.gpus
    beta = 0.5 if "beta" in parameters else 1.0
    assert np.allclose(run.notes["eligible"], virtual_srpt(instance.arrival, length, beta), rtol=1e-9, atol=0)


def test_no_guarantee_for_overtaking_without_a_budget() -> None:
    instance = load("rigid-06-1")
    assert evaluate(instance, ["a-srpt:overtake=inf", "spjf"]).lines[0].to_json()["guarantee"] is None
    assert [line.guarantee is None for line in evaluate(instance, ["a-srpt", "spjf"]).lines] == [False, True]
