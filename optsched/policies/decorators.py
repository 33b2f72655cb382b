"""A function with parameters as a policy: `queue_order` for whole jobs, `task_order` for jobs that have tasks."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order, OrderedPolicy
from optsched.simulation.task_policy import TaskJobs, TaskOrder, TaskPolicy

P = ParamSpec("P")


def queue_order(
    name: str, knowledge: Knowledge, **members: Any
) -> Callable[[Callable[Concatenate[KnownJobs, P], Order]], Callable[P, OrderedPolicy]]:
    """Decorator: a function from `KnownJobs` to an `Order` becomes the policy ``name``.

    Its other parameters, which have defaults, are those of the policy: what bears the function's name by then is a frozen
    dataclass with these fields, the function's docstring, and ``order(jobs)``. ``members``: what else the class has, as
    ``default_placement``, ``uses`` or ``__post_init__``.
    """
    return _registering("order", name, {"knowledge": knowledge, **members})


def task_order(
    name: str, knowledge: Knowledge, **members: Any
) -> Callable[[Callable[Concatenate[TaskJobs, P], TaskOrder]], Callable[P, TaskPolicy]]:
    """Decorator: a function from `TaskJobs` to a `TaskOrder` becomes the policy ``name``, as with `queue_order`."""
    return _registering("tasks", name, {"knowledge": knowledge, **members})


def _registering(method: str, name: str, members: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    def registered(row: Callable[..., Any]) -> Any:
        _, *parameters = inspect.signature(row).parameters.values()

        def answer(self: Any, jobs: Any) -> Any:
            return row(jobs, **{each.name: getattr(self, each.name) for each in parameters})

        kind = dataclasses.make_dataclass(
            row.__name__,
            [(each.name, each.annotation, dataclasses.field(default=each.default)) for each in parameters],
            namespace={"name": name, method: answer, "__doc__": row.__doc__, **members},
            frozen=True,
        )
        kind.__module__, kind.__qualname__ = row.__module__, row.__qualname__  # where a pickle looks for it
        return POLICIES.register(name)(kind)

    return registered
