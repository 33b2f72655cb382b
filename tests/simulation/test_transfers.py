"""Transfers alone on the task level, jobs without compute: exact fractions of plain Python, and bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import few

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.errors import InputError
from optsched.io.traces.random_transfers import random_transfers
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.transfers import TransferProblem, transfer_instance
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


def on_links(problem: TransferProblem) -> Instance:
    """A job for each transfer, by (size, index): a gang on the nodes whose interfaces are its links, and one of its own."""
    order = sorted(range(problem.n), key=lambda j: (problem.size[j], j))
    jobs = [
        Job(
            str(j),
            problem.release[j],
            len(problem.links[j]) + 1,
            iterations=1,
            profile=f"{j}",
            gpu_types=(f"own-{j}", *(f"link-{link}" for link in problem.links[j])),
        )
        for j in order
    ]
    names = [f"own-{j}" for j in order] + [f"link-{link}" for link in problem.link_numbers]
    return Instance(
        jobs,
        Cluster(tuple(NodeGroup(1, gpu=name) for name in names)),
        tasks={f"{j}": IterationTasks(0, 0, problem.size[j]) for j in order},
        contention=problem.contention,
    )


def by_engine(instance: Instance, spec: str) -> np.ndarray:
    found = np.empty(instance.n)
    found[[int(j) for j in instance.ids]] = simulate(instance, spec).schedule.completion
    return found


@pytest.mark.parametrize("links", [1, 3])
@pytest.mark.parametrize("spec", RULES)
def test_it_is_the_exact_reference(spec: str, links: int) -> None:
    for seed in few(range(8), 3):
        problem = random_transfers(2 + seed % 6, seed, PENALTIES[seed % 3], links=links)
        exact = [list(map(Fraction, numbers.tolist())) for numbers in (problem.release, problem.size)]
        b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
        found = by_engine(on_links(problem), spec)
        expected = completions(*exact, problem.links, b, eta, RULES[spec])
        assert found.tolist() == pytest.approx([float(end) for end in expected], rel=1e-12)
        assert float(srpt_per_link(problem).value) <= found.sum() * (1 + 1e-12)
        if links == 1:
            assert found.tolist() == by_engine(transfer_instance(problem), spec).tolist()
            last = problem.release.max() + problem.contention.seconds_per_byte * problem.size.sum()
            if PENALTIES[seed % 3] == 0:  # contention without a penalty wastes nothing
                assert found.max() <= last * (1 + 1e-12)


def test_who_waits_is_asked_before_what_is_released_in_the_moment_of_an_end() -> None:
    problem = TransferProblem([0, 1, 4], [4, 3, 1], Contention(1))
    # a job computes, even for no time at all, before its transfer is ready
    assert by_engine(transfer_instance(problem), "srsf:k=1").tolist() == [4, 7, 8]


def test_transfers_on_different_links_are_no_instance_of_two_nodes() -> None:
    with pytest.raises(InputError, match="different links"):
        transfer_instance(TransferProblem([0, 1], [2, 1], Contention(1), ((0,), (1,))))
