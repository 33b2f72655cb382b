"""No bound of any kind is above a schedule that chance makes: on GPU types, in copies, on shared GPUs, of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from examples import studied

from bounds import cases, shared_cases, task_cases, typed_cases
from bounds.task_cases import task_instance
from bounds.typed_cases import objective_value
from optsched.problem.instance import Instance

OBJECTIVES = (*cases.OBJECTIVES, "total_utility")
LAST_BITS = 1 + Fraction(1, 2**51)  # seconds alone are one rounded product in every bound of the house
ROUNDING = 1 + Fraction(1, 10**9)  # searches add up floats
World = tuple[Callable[[np.random.Generator], Instance], Callable[..., list[Fraction]], str]
pytestmark = pytest.mark.usefixtures("prices_for_few_jobs")


def on_shared_gpus(instance: Instance, rng: np.random.Generator) -> list[Fraction]:
    return shared_cases.random_completions(instance, rng, preempt=bool(rng.random() < 0.5))


def of_tasks(instance: Instance, rng: np.random.Generator) -> list[Fraction]:
    return task_cases.random_completions(instance, rng, float(rng.choice([1, 0.9, 0.5])))


TYPED = typed_cases.typed_instance
WORLDS: dict[str, World] = {
    "gang": (TYPED, typed_cases.random_completions, "gang"),
    "gang-nonpreemptive": (TYPED, partial(typed_cases.random_completions, preempt=False), "gang-nonpreemptive"),
    "forking": (TYPED, partial(typed_cases.random_completions, forking=True), "forking"),
    "gpu-sharing": (shared_cases.rich, on_shared_gpus, "gpu-sharing"),
    "tasks": (task_instance, of_tasks, "task-sharing"),
    "measured": (partial(task_instance, measured=True), of_tasks, "task-sharing"),
}


def below_schedules(world: str, seed: int, count: int, schedules: int) -> tuple[Counter[str], int]:
    """(Bounds by kind, on how many instances a schedule reaches the best of them), with an objective an instance."""
    draw, complete, schedule_class = WORLDS[world]
    rng, kinds, reached = np.random.default_rng([seed, [*WORLDS].index(world)]), Counter[str](), 0
    for k in range(count):
        instance, objective = draw(rng), OBJECTIVES[k % len(OBJECTIVES)]
        if any(each.forward + each.backward == 0 for each in (instance.tasks or {}).values()):
            objective = "makespan"  # who takes no time has no share, nor utility
        values = [objective_value(instance, objective, complete(instance, rng)) for _ in range(schedules)]
        if schedule_class == "gpu-sharing" and instance.n <= 3 and objective != "total_utility":
            values.append(Fraction(shared_cases.best_at_events(instance, objective)) * ROUNDING)
        # utility is bounded from above: of that and the values the negatives
        sign = -1 if objective == "total_utility" else 1
        best, found = min(sign * value for value in values), cases.certificates(instance, objective, schedule_class)
        for certificate in found:
            certificate.verify(instance)
            kinds[certificate.kind] += 1
            slack = LAST_BITS if best > 0 else 1 / LAST_BITS
            assert sign * certificate.value <= best * slack, (certificate.to_json(), instance.to_json())
        reached += max((sign * each.value for each in found), default=best) >= best * (1 - sign * (ROUNDING - 1))
    return kinds, reached


@pytest.mark.parametrize(("seed", "count", "schedules"), [(1, 27, 4), studied(1, 600, 6)])
@pytest.mark.parametrize("world", WORLDS)
def test_never_above_a_schedule_and_not_below_all_for_no_reason(
    world: str, seed: int, count: int, schedules: int
) -> None:
    kinds, reached = below_schedules(world, seed, count, schedules)
    assert kinds["priced-time"] > count / 25
    assert reached >= count / 5
