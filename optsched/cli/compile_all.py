"""`warm_up`: compile everything now, for images and CI, so that no run ever waits for the compiler.

What numba compiles is kept on disk (`optsched.compiled`). Nothing here lists what is compiled: every registered placement,
policy, bound and exact method is used once, on small instances of every kind, with interpreting switched off. A new policy
is warmed up because it is registered. What only large numbers reach (sums beyond 128 bits, sorting by wide densities) is
left to the run that meets them: seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from optsched.compiled import FUNCTIONS, Function, without_interpreting
from optsched.errors import OptschedError

Step = tuple[str, Callable[[], None]]


def warm_up(progress: Callable[[str, int, int], None] | None = None) -> int:
    """Compile every function that some run may need; the number of steps taken.

    ``progress(what, done, of)`` is called before every step. A minute or two of CPU on a fresh install, seconds after that.
    """
    todo = list(_steps())
    with without_interpreting(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for done, (what, step) in enumerate(todo):
            if progress is not None:
                progress(what, done, len(todo))
            step()
    return len(todo)


def _steps() -> Iterator[Step]:
    from optsched.policies import POLICIES
    from optsched.policies.placements import PLACEMENTS
    from optsched.simulation.entry_points import compile_all

    kinds = _instances()
    yield "the engine of policies in plain Python", compile_all
    for name in PLACEMENTS.names():
        yield f"placement {name}", partial(_prepare, PLACEMENTS.get(name)())
    for name in POLICIES.names():
        for kind, instance in kinds.items():
            yield f"policy {name}, {kind}", partial(_run, name, instance)
    for kind, instance in kinds.items():
        yield f"bounds, {kind}", partial(_bound, instance)
        yield f"exact methods, {kind}", partial(_solve, instance)
    yield "strong bounds", partial(_proved, kinds["durations"], "total_flow_time", "gang", strong=True)
    yield "predictors", partial(_run, "a-srpt:predictor=forest", kinds["stage profiles"])
    yield "rules of one form", _prepare_all


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
    for rule in (placement, placement.shared):
        place = getattr(rule, "place", None)
        if isinstance(place, Function):
            place.prepare()


def _prepare_all() -> None:
    for function in FUNCTIONS:
        function.prepare()


def _attempt(attempt: Callable[[], Any]) -> None:
    # Not every policy, bound and method is for every kind of instance: that is what its error says.
    try:
        attempt()
    except OptschedError:
        return


def _run(policy: str, instance: Any) -> None:
    from optsched.policies.simulate import simulate

    _attempt(lambda: simulate(instance, policy))


def _bound(instance: Any) -> None:
    from optsched.bounds.certificate import classes_of
    from optsched.problem.objectives import OBJECTIVES

    for schedule_class in classes_of(instance):
        for objective in OBJECTIVES.names():
            _attempt(partial(_proved, instance, objective, schedule_class))


def _proved(instance: Any, objective: str, schedule_class: str, *, strong: bool = False) -> None:
    from optsched.bounds import bound

    bound(instance, objective, schedule_class, strong=strong).verify(instance)


def _solve(instance: Any) -> None:
    from optsched.solvers import solve
    from optsched.solvers.method import METHODS

    for model in (None, *METHODS.names()):
        _attempt(partial(solve, instance, model=model, time_limit=5.0))
