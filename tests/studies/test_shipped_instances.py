"""The shipped instances: their files, their recipes; the proofs of their optima run in `make study`.

The small version of the ratio baseline (`evaluation/test_ratio_baseline.py`) holds every policy against every optimum.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from optsched.check.referee import check_schedule, schedule_value
from optsched.io.index import LibraryEntry, shipped
from optsched.io.sources import load, made
from optsched.problem.instance import Instance
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.solve import solve
from optsched.studies.make_library import prove, recipes

SHIPPED = {each.name: each for each in shipped()}
PROVED = {name: each for name, each in SHIPPED.items() if each.optimum is not None}
# their speed depends on the placement
PLACED = [name for name, each in PROVED.items() if each.recipe == "ddl-small"]
RECIPES = {recipe.entry.name: recipe for recipe in recipes() if recipe.entry.file}


def of(name: str) -> tuple[LibraryEntry, Instance]:
    return SHIPPED[name], load(name)


def test_there_are_at_least_forty_with_two_proofs_each() -> None:
    assert len(PROVED) >= 40
    assert all(len(set(each.proved_by)) >= 2 for each in PROVED.values())
    assert all(6 <= load(name).n <= 20 for name in PROVED if name not in PLACED)
    assert len(PLACED) >= 20
    assert all(4 <= load(name).n <= 7 for name in PLACED)
    assert {"gang-modes", "mode-branching"} <= set.intersection(*(set(PROVED[name].proved_by) for name in PLACED))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_recipe_makes_the_instance_again(name: str) -> None:
    entry, instance = of(name)
    again = made(RECIPES[name].entry)
    assert again.digest == instance.digest
    assert again.recipe == instance.recipe
    assert (entry.recipe, entry.seed) == (RECIPES[name].entry.recipe, RECIPES[name].entry.seed)
    assert instance.objective in (entry.objective, None)


SOME = 4  # every fourth by default
WHOLE = [
    name for name, each in PROVED.items() if each.schedule_class != "kv-cache"
]  # requests have no list schedules of gangs
FEW_OR_ALL = [name if k % SOME == 0 else pytest.param(name, marks=pytest.mark.study) for k, name in enumerate(WHOLE)]


@pytest.mark.release
@pytest.mark.parametrize("name", FEW_OR_ALL)
def test_list_schedules_are_feasible_and_not_better_than_the_optimum(name: str) -> None:
    entry, instance = of(name)
    if name in PLACED:
        schedule = best_placed_schedule(instance, entry.objective)
    else:
        schedule = best_list_schedule(instance, entry.objective, budget=1_000_000)
    assert check_schedule(instance, schedule, preemptive=False) == []
    assert schedule_value(instance, schedule, entry.objective) >= Fraction(entry.optimum or 0)


@pytest.mark.release
@pytest.mark.parametrize("name", [name for name in PROVED if load(name).n <= 8])
def test_solve_finds_the_optimum_of_the_smallest(name: str) -> None:
    entry, instance = of(name)
    solution = solve(instance)
    assert (solution.status, solution.value) == ("optimal", entry.optimum)


@pytest.mark.study
@pytest.mark.parametrize("name", PROVED)
def test_the_optimum_is_proved_again_by_two_methods(name: str) -> None:
    entry, instance = of(name)
    again = prove(RECIPES[name], instance)
    assert again.value == again.bound
    assert set(again.proved_by) >= set(RECIPES[name].methods)
    assert again.value == entry.optimum
