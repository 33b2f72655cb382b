"""What makes Pyomo build fast: terms made once and shared, and no garbage collection in between.

Measured on a time-indexed model of 62k columns and 430k nonzeros: with ``sum`` or ``quicksum`` 1.1 s; with rows as
``LinearExpression(list of finished terms)`` 0.26 s; without the collector, which finds nothing to collect in a model
that is only growing, 0.10 s (most of it Pyomo's variables).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr import MonomialTermExpression

from optsched.problem.arrays import Floats, Ints

P = ParamSpec("P")
T = TypeVar("T")


def terms(coefficients: Ints | Floats, variables: Iterable[Any]) -> list[Any]:
    """``coefficient * variable`` for every pair, to be shared by rows (a row is a slice of the list)."""
    return list(map(MonomialTermExpression, zip(coefficients.tolist(), variables, strict=True)))


def collector_paused(build: Callable[P, T]) -> Callable[P, T]:
    """Decorator: run ``build`` with Python's garbage collector paused."""

    @wraps(build)
    def paused(*args: P.args, **kwargs: P.kwargs) -> T:
        with PauseGC():
            return build(*args, **kwargs)

    return paused
