"""Tools that make Pyomo build models fast: terms made once and shared, and a paused garbage collector.

Measured on a time-indexed model of 62k columns and 430k nonzeros: ``sum`` or ``quicksum`` take 1.1 s; rows as
``LinearExpression(list of finished terms)`` take 0.26 s; without the collector, which finds nothing to collect in a model
that only grows, they take 0.10 s (most of it for Pyomo's variables).
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
    """Return ``coefficient * variable`` for every pair; rows share the terms as slices of the list.

    Parameters
    ----------
    coefficients
        Coefficients, i64 or f64, one for each variable.
    variables
        Variables of Pyomo.
    """
    return list(map(MonomialTermExpression, zip(coefficients.tolist(), variables, strict=True)))


def collector_paused(build: Callable[P, T]) -> Callable[P, T]:
    """Decorate ``build`` so that it runs with Python's garbage collector paused.

    Parameters
    ----------
    build
        The function.
    """

    @wraps(build)
    def paused(*args: P.args, **kwargs: P.kwargs) -> T:
        with PauseGC():
            return build(*args, **kwargs)

    return paused
