"""``optsched warm-up``: compile all code now, for images and CI, so that no later run waits for the compiler.

numba's machine code is kept on disk (`optsched.compiled`). The command uses every registered placement, policy, bound and
exact method once, on small instances of every kind, with interpreting switched off. A new policy is compiled because it is
registered. Code that only large numbers reach (sums beyond 128 bits, sorting by wide densities) is compiled in the run that
needs it, within seconds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

from optsched.cli.options import option
from optsched.cli.output import say, write
from optsched.errors import OptschedError


def warm_up(quiet: Annotated[bool, option("--quiet,-q", "print no line for each step")] = False) -> None:
    """Compile all code now, so that no later run waits.

    Meant for images and CI. It takes minutes, once a machine.

    \f
    Parameters
    ----------
    quiet
        Print no line for each step.
    """
    from optsched.compiled import without_interpreting

    begun, todo = time.perf_counter(), list(_steps())
    with without_interpreting(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (what, step) in enumerate(todo, 1):
            if not quiet:
                say(f"{number}/{len(todo)} {what}")
            step()
    write(f"compiled the code of {len(todo)} steps in {time.perf_counter() - begun:.0f} s; it is kept for later runs\n")


def _steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    from optsched.compiled import FUNCTIONS, Function
    from optsched.policies import POLICIES
    from optsched.policies.placements import PLACEMENTS
    from optsched.policies.simulate import simulate
    from optsched.simulation.entry_points import compile_all

    kinds = _instances()
    yield "the engine of policies in plain Python", compile_all
    for name in PLACEMENTS.names():
        yield f"placement {name}", partial(_prepare, PLACEMENTS.get(name)())
    for name in POLICIES.names():
        for kind, instance in kinds.items():
            yield f"policy {name}, {kind}", partial(_attempt, partial(simulate, instance, name))
    for kind, instance in kinds.items():
        yield f"bounds, {kind}", partial(_bound, instance)
        yield f"exact methods, {kind}", partial(_solve, instance)
    yield "strong bounds", partial(_proved, kinds["durations"], "total_flow_time", "gang", strong=True)
    yield "bounds of logs", partial(_log_prices, kinds["durations"])
    yield "predictors", partial(_attempt, partial(simulate, kinds["stage profiles"], "a-srpt:predictor=forest"))
    yield "rules with one form", lambda: list(map(Function.prepare, FUNCTIONS))


def _instances() -> dict[str, Any]:
    from optsched.io.sources import load
    from optsched.io.traces.generate import generate

    return {
        "durations": load("rigid-06-1"),
        "weights and due dates": generate("tardiness", seed=1, jobs=5),
        "one machine": load("single-06-1"),
        "stage profiles": load("ddl-05-1"),
        "GPU types": generate("hetero-small", seed=1),
        "shared GPUs": load("rigid-06-1", interference=1.5),
        "scaling profiles": load("sharing-cluster", limit=6),
        "tasks": load("contention-cluster", limit=4),
    }


def _prepare(placement: Any) -> None:
    from optsched.compiled import Function

    for rule in (placement, placement.shared):
        place = getattr(rule, "place", None)
        if isinstance(place, Function):
            place.prepare()


def _attempt(attempt: Callable[[], Any]) -> None:
    # An error says that a policy, bound or method is not for this kind of instance.
    try:
        attempt()
    except OptschedError:
        return


def _bound(instance: Any) -> None:
    from optsched.classes import classes_of
    from optsched.problem.objectives import OBJECTIVES

    for schedule_class in classes_of(instance):
        for objective in OBJECTIVES.names():
            _attempt(partial(_proved, instance, objective, schedule_class))


def _proved(instance: Any, objective: str, schedule_class: str, *, strong: bool = False) -> None:
    from optsched.bounds import bound

    bound(instance, objective, schedule_class, strong=strong).verify(instance)


def _log_prices(instance: Any) -> None:
    from optsched.bounds.priced_log import jobs_of
    from optsched.bounds.priced_log_search import best_log_prices

    best_log_prices(jobs_of(instance, "total_flow_time"))


def _solve(instance: Any) -> None:
    from optsched.solvers import solve
    from optsched.solvers.method import METHODS

    for model in (None, *METHODS.names()):
        _attempt(partial(solve, instance, model=model, time_limit=5.0))
