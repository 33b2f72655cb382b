"""Transfers alone: the compiled simulation against exact fractions, the task engine, closed forms and bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.errors import InputError, SimulationError
from optsched.io.traces.random_transfers import random_transfers
from optsched.policies.simulate import simulate
from optsched.policies.specification import specify
from optsched.policies.task_orders import shortest_service
from optsched.problem.contention import Contention
from optsched.problem.transfer_instance import transfer_instance
from optsched.problem.transfers import TransferProblem
from optsched.simulation.admission import admission
from optsched.simulation.transfers import simulate_transfers
from simulation.transfer_reference import completions

RULES = {
    "srsf:k=1": "srsf:1",
    "srsf:k=2": "srsf:2",
    "srsf:k=3": "srsf:3",
    "adadual": "adadual",
    "ada-srsf": "adadual",
    "k-way": "k-way",
    "k-way:by_size=true": "k-way",
}
PENALTIES = (0.0, 0.2745, 1.0)


def by_rule(problem: TransferProblem, spec: str) -> np.ndarray:
    policy: Any = specify(spec).policy
    return simulate_transfers(problem, policy)


def by_engine(problem: TransferProblem, spec: str) -> np.ndarray:
    """The same through the task engine: jobs without compute."""
    instance = transfer_instance(problem)
    found = np.empty(problem.n)
    found[[int(j) for j in instance.ids]] = simulate(instance, spec).schedule.completion
    return found


@pytest.mark.parametrize("links", [1, 3])
@pytest.mark.parametrize("spec", RULES)
def test_it_is_the_exact_reference_and_bit_for_bit_the_engine(spec: str, links: int) -> None:
    for seed in few(range(8), 3):
        problem = random_transfers(2 + seed % 6, seed, PENALTIES[seed % 3], links=links)
        exact = [list(map(Fraction, numbers.tolist())) for numbers in (problem.release, problem.size)]
        b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
        found = by_rule(problem, spec)
        expected = completions(*exact, problem.links, b, eta, RULES[spec])
        assert found.tolist() == pytest.approx([float(end) for end in expected], rel=1e-12)
        assert float(srpt_per_link(problem).value) <= found.sum() * (1 + 1e-12)
        if links == 1:
            assert found.tolist() == by_engine(problem, spec).tolist()
            last = problem.release.max() + problem.contention.seconds_per_byte * problem.size.sum()
            if PENALTIES[seed % 3] == 0:  # contention without a penalty wastes nothing
                assert found.max() <= last * (1 + 1e-12)


def test_releases_and_ends_of_one_moment_come_together() -> None:
    problem = TransferProblem([0, 1, 4], [4, 3, 1], Contention(1))
    assert by_rule(problem, "srsf:k=1").tolist() == [4, 8, 5]
    # In the engine a job computes, even for no time at all, before its transfer is ready: who waits is asked first.
    assert by_engine(problem, "srsf:k=1").tolist() == [4, 7, 8]


def pairs(count: int, seed: int) -> tuple[TransferProblem, np.ndarray, np.ndarray, np.ndarray]:
    """``count`` links with two transfers each, the second released while the first is under way."""
    rng = np.random.default_rng(seed)
    b, eta = float(rng.uniform(0.2, 2)), float(rng.choice([0, 0.1, 0.2745, 0.5, 1, 5]))
    old, new = np.exp(rng.uniform(-3, 3, (2, count)))
    tau = rng.random(count) * b * old
    links = tuple((i,) for i in range(count)) * 2
    problem = TransferProblem(
        np.concatenate([np.zeros(count), tau]), np.concatenate([old, new]), Contention(b, eta * b), links
    )
    return problem, old, new, tau


@admission
def never(job: Any, links: Any, numbers: Any) -> bool:
    return False


class Stubborn:
    name, knowledge, rule = "stubborn", "clairvoyant", never

    def tasks(self, jobs: Any) -> Any:
        return shortest_service(jobs, type(self).rule)


class Undecided(Stubborn):
    rule = None


def test_what_it_refuses() -> None:
    problem = TransferProblem([0, 1], [2, 1], Contention(1), ((0,), (1,)))
    stubborn: Any = Stubborn()
    undecided: Any = Undecided()
    with pytest.raises(SimulationError, match="transfer 0 waits for ever"):
        simulate_transfers(problem, stubborn)
    with pytest.raises(InputError, match="it decides in plain Python"):
        simulate_transfers(problem, undecided)
    with pytest.raises(InputError, match="different links"):
        transfer_instance(problem)
    assert simulate_transfers(TransferProblem([], [], Contention(1)), stubborn).size == 0
