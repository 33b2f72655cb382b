"""`optsched warm-up`: what it is told to use is everything there is; what it uses is compiled, and it says how far it is.

What is left to compile after all of it takes minutes to find out and a cold cache; that is looked at by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optsched.cli import warm_up_command as compile_all
from optsched.compiled import Function, njit
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.solvers.method import METHODS

pytestmark = pytest.mark.release


def total(values: Any) -> float:
    s = 0.0
    for k in range(values.size):
        s += values[k]
    return s


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> tuple[Function, Function]:
    first, second = njit(total), njit(total)

    def steps() -> Any:
        yield "the first", lambda: first(np.ones(2))
        yield "the second", lambda: second(np.ones(2))

    monkeypatch.setattr(compile_all, "_steps", steps)
    return first, second


def test_it_compiles_what_small_runs_would_interpret_and_says_how_far_it_is(
    command: Any, two_steps: tuple[Function, Function]
) -> None:
    done = command("warm-up")
    assert done.code == 0
    assert [line for line in done.err.splitlines() if "compil" not in line] == [
        "optsched: 1/2 the first",
        "optsched: 2/2 the second",
    ]
    assert done.out.startswith("compiled the code of 2 steps in ")
    assert all(function.signatures for function in two_steps)


def test_it_can_be_quiet(command: Any, two_steps: tuple[Function, Function]) -> None:
    done = command("warm-up", "--quiet")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)


def test_every_policy_placement_bound_and_exact_method_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[str, set[str]] = {"policies": set(), "methods": set(), "bounds": set()}
    monkeypatch.setattr("optsched.policies.simulate.simulate", lambda instance, policy: used["policies"].add(policy))
    monkeypatch.setattr("optsched.solvers.solve", lambda instance, model, time_limit: used["methods"].add(model))
    monkeypatch.setattr(compile_all, "_proved", lambda *asked: used["bounds"].add(asked[2]))
    steps = dict(compile_all._steps())
    for what, step in steps.items():
        if what.startswith(("policy ", "bounds, ", "exact methods, ")):
            step()
    assert {f"placement {name}" for name in PLACEMENTS.names()} <= set(steps)
    assert used["policies"] == set(POLICIES.names())
    assert used["methods"] == {None, *METHODS.names()}
    assert used["bounds"] >= {"gang", "gang-nonpreemptive", "gpu-sharing"}
