"""Branching over orders and modes: against exhaustion, against the program, and what it says at its limits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from brute_force import placed_optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.referee import check_schedule
from optsched.deadline import Deadline
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.profile import Profile, Stage
from optsched.solvers.method import METHODS
from optsched.solvers.methods import mode_branching
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from solvers.placed_instances import beside_two_others, placed_instances

OBJECTIVES = (
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "total_weighted_tardiness",
    "makespan",
    "max_flow_time",
)


@given(placed_instances(most=3, widest=4), st.sampled_from((*OBJECTIVES, "max_fair_slowdown")))
@settings(max_examples=20)
def test_against_exhaustion_without_pruning(instance: Instance, objective: str) -> None:
    solution = solve(instance, objective, model="mode-branching")
    assert (solution.status, solution.value_exact) == ("optimal", placed_optimum(instance, objective))
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False, objective=objective) == []


@given(placed_instances(least=3, most=4, shapes=((2, 2), (2, 3))), st.sampled_from(OBJECTIVES))
@settings(max_examples=2)
def test_two_methods_agree(instance: Instance, objective: str) -> None:
    branched = solve(instance, objective, model="mode-branching")
    assert branched.status == "optimal"
    programmed = solve(instance, objective, model="gang-modes")
    assert (programmed.status, programmed.value_exact) == ("optimal", branched.value_exact)
    for solution in (branched, programmed):
        assert solution.certificate is None or solution.certificate.value <= branched.value_exact


@pytest.mark.study
@given(placed_instances(least=3, most=5), st.sampled_from(OBJECTIVES))
@settings(max_examples=examples(200))
def test_two_methods_agree_on_many(instance: Instance, objective: str) -> None:
    values = {solve(instance, objective, model=model).value_exact for model in ("mode-branching", "gang-modes")}
    assert len(values) == 1


@pytest.mark.parametrize("model", [None, "mode-branching", "gang-modes"])
def test_a_slow_placement_at_once_or_a_fast_one_later(model: str | None) -> None:
    # others of 10 s: across at once ends at 9, on one node not before 14
    at_once = solve(beside_two_others(10), model=model)
    assert (at_once.status, at_once.value) == ("optimal", 10 + 10 + 9)
    # others of 3 s: across ends at 9, waiting for a node at 7
    waits = solve(beside_two_others(3), model=model)
    assert (waits.status, waits.value) == ("optimal", 3 + 3 + 7)
    for solution, nodes in ((at_once, 2), (waits, 1)):
        assert solution.schedule is not None
        assert check_schedule(solution.schedule.instance, solution.schedule, preemptive=False) == []
        pair = next(segment for segment in solution.schedule.segments() if segment.job == 2)
        assert len({node for node, _ in pair.gpus}) == nodes


def test_replicas_are_put_where_the_traffic_wants_them() -> None:
    # two rings of two on two nodes that have two GPUs each: a ring a node, and the GPUs in the order of the replicas
    rings = Profile.of_stages([Stage(2, 0.5, 0.5, 8.0, 1.0), Stage(2, 0.5, 0.5, 8.0)])
    cluster = Cluster((NodeGroup(2, 2, nic_bandwidth=2.0, intra_bandwidth=8.0),))
    instance = Instance([Job("a", gpus=4, iterations=1, profile="r")], cluster, profiles={"r": rings})
    solution = solve(instance, "makespan")
    assert solution.schedule is not None
    nodes = [node for node, _ in next(iter(solution.schedule.segments())).gpus]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    assert solution.value == 1.0 + 2 * (0.5 / 1.0) + 8.0 / 8.0


def test_times_on_no_grid() -> None:
    odd = {name: Profile.of_stages([Stage(2, 0.1, seconds, 0.7e9)]) for name, seconds in (("p", 0.23), ("q", 0.37))}
    cluster = generate("ddl-small", 1, jobs=1, nodes=2, gpus=2).cluster
    jobs = [
        Job("a", 0.3, 2, iterations=7, profile="p"),
        Job("b", 0.1, 2, iterations=5, profile="q"),
        Job("c", 0.2, 1, 1.7),
    ]
    instance = Instance(jobs, cluster, profiles=odd)
    for objective in OBJECTIVES:
        solution = solve(instance, objective)
        assert (solution.model, solution.status) in {("mode-branching", "optimal"), ("list", "optimal")}
        assert solution.value == pytest.approx(float(placed_optimum(instance, objective)), rel=1e-9)
    with pytest.raises(InputError, match="multiples of no unit"):
        solve(instance, model="gang-modes")


def test_what_it_refuses_and_what_it_says_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="depends on its placement: other models know more"):
        solve(Instance([Job("a", gpus=2, duration=1), Job("b", duration=3)], "1x2"), model="mode-branching")
    small = generate("ddl-small", 3, jobs=5)
    with pytest.raises(InputError, match="it knows no horizon"):
        solve(small, model="mode-branching", horizon=1e6)
    with pytest.raises(InputError, match="at most 12 jobs, not for 13"):
        solve(generate("ddl-small", 1, jobs=13), model="mode-branching")
    monkeypatch.setattr(mode_branching, "NODES", 1)
    # looks at the clock after every node: the time is up at once, and nothing is called optimal
    instance = generate("ddl-small", 2, jobs=9, nodes=3)
    limited = SolveState(instance, get_objective("total_completion_time"), deadline=Deadline(0.0))
    limited.search(0)
    limited.combinatorial()
    assert "the time limit came after" in METHODS.get("mode-branching").run(limited).note
    assert not limited.closed
    assert limited.bound is not None
    assert limited.value is not None
    assert limited.bound < limited.value
    # and resumed node by node it comes to the same end
    whole = solve(small, model="mode-branching")
    assert (whole.status, whole.value) == ("optimal", float(Fraction(whole.bound_exact or 0)))
