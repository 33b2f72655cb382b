"""The offline problem of A-SRPT and its single machine A_1, tied together: Lemma V and the bounds on exact optima.

A_1 gives job j the length g_j n_j alpha_j / G. With alpha_min its optimum (SRPT) is at most OPT; with alpha_max at most
rho OPT, rho = max alpha_max / alpha_min. SRPT is run here in fractions, apart from everything in `optsched.bounds`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest
from examples import examples, few
from hypothesis import given, settings
from speeds.random_profiles import exact_alpha, placements
from srpt import srpt

from optsched.bounds import BOUNDS
from optsched.io.index import shipped
from optsched.io.sources import load
from optsched.models import FORMULATIONS
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session
from optsched.solvers.solve import solve
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from solvers.placed_instances import placed_instances

OBJECTIVE = "total_completion_time"
DDL = [each.name for each in shipped() if each.recipe == "ddl-small"]


def machine(instance: Instance, pace: Sequence[float]) -> Fraction:
    """The optimum of A_1 with these nominal iteration times."""
    lengths = [
        Fraction(work) * g * Fraction(a) / instance.cluster.gpus
        for work, g, a in zip(instance.work.tolist(), instance.gpus.tolist(), pace, strict=True)
    ]
    return sum(srpt(list(zip(instance.arrival.tolist(), lengths, strict=True))), Fraction(0))


def check(instance: Instance, optimum: Fraction) -> None:
    """Lemma V in both variants, every certificate, and the relaxations that are formulations."""
    fastest, slowest = paces(instance)
    rho = max(Fraction(b) / Fraction(a) for a, b in zip(fastest.tolist(), slowest.tolist(), strict=True))
    assert machine(instance, fastest.tolist()) <= optimum
    assert machine(instance, slowest.tolist()) <= rho * optimum
    assert machine(instance, slowest.tolist()) <= rho * machine(instance, fastest.tolist())
    kinds = set()
    for schedule_class in ("gang", "gang-nonpreemptive"):
        for name in BOUNDS.names():
            known = BOUNDS.get(name)
            if OBJECTIVE in known.objectives and schedule_class in known.classes and not known.strong:
                certificate = BOUNDS.get(name).build(instance, OBJECTIVE, schedule_class)
                if certificate is not None:
                    certificate.verify(instance)
                    assert certificate.value <= optimum, name
                    kinds.add(name)
    assert len(kinds) >= 3  # SRPT, release plus duration and mean busy times at least


@pytest.mark.parametrize("name", few(DDL, 8))
def test_on_the_shipped_instances(name: str) -> None:
    instance = load(name)
    assert instance.optimum is not None
    check(instance, Fraction(instance.optimum["value"]))


@given(placed_instances(most=5, widest=5))
@settings(max_examples=examples(25))
def test_on_random_instances(instance: Instance) -> None:
    solution = solve(instance, OBJECTIVE)
    assert solution.status == "optimal"
    assert solution.value_exact is not None
    check(instance, solution.value_exact)
    # the fastest of all placements, by exhaustion, is what the bounds may count on, and none is slower than alpha_max
    fastest, slowest = paces(instance)
    network = Network.of(instance.cluster)
    for j, job in enumerate(instance.jobs[:2]):
        profile = instance.profiles[str(job.profile)]
        every = [
            exact_alpha(profile, network, nodes)
            for nodes in itertools.islice(placements(profile, instance.cluster), 40)
        ]
        assert Fraction(fastest[j]) <= min(every)
        assert max(every) <= Fraction(slowest[j])


def test_the_mean_busy_time_program_is_between_machine_and_optimum() -> None:
    for name in DDL[:6]:
        instance = load(name)
        assert instance.optimum is not None
        if FORMULATIONS.get("srpt-mean-busy-time").applies(instance, OBJECTIVE) is not None:
            continue  # alpha_min of a gang that must spread lies a rounding off every grid
        session = Session(compile(FORMULATIONS.get("srpt-mean-busy-time").build(instance, OBJECTIVE)))
        bound = session.solve().bound
        assert bound is not None
        assert bound <= instance.optimum["value"] + 1e-6


def test_the_machine_of_slow_placements_is_longer_by_rho_where_all_jobs_are_alike() -> None:
    ring = Profile.of_stages([Stage(2, 0.5, 0.5, 4.0)])
    one_node = Cluster((NodeGroup(2, 1, nic_bandwidth=4.0, intra_bandwidth=4.0),))
    spread = Cluster((NodeGroup(2, 2, nic_bandwidth=4.0, intra_bandwidth=4.0),))
    job = Job("a", gpus=2, iterations=6, profile="ring")
    alone = Instance([job], one_node, profiles={"ring": ring})
    assert machine(alone, paces(alone)[0].tolist()) == solve(alone, OBJECTIVE).value == 12
    two = Instance([job, Job("b", gpus=2, iterations=6, profile="ring")], spread, profiles={"ring": ring})
    fastest, slowest = paces(two)
    assert (slowest / fastest).tolist() == [1.5, 1.5]
    assert machine(two, slowest.tolist()) == Fraction(3, 2) * machine(two, fastest.tolist())
    assert solve(two, OBJECTIVE).value == 24
