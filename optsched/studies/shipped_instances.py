"""The shipped instances: their recipes and seeds, and the proof of their optima by two independent methods.

``python -m optsched.studies.shipped_instances FOLDER`` makes every instance again, proves its optimum and writes the
files and ``index.toml``. Two methods that share no formulation must return the same value as ``optimal``; otherwise
nothing is written. `make study` proves the optima of the files as they stand; the tests check value and bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.errors import OptschedError
from optsched.guarantees.optimum import stating
from optsched.io.traces.generate import generate
from optsched.problem.files import write_atomic
from optsched.problem.instance import Instance
from optsched.problem.instance_file import short_number
from optsched.solvers.solve import solve

MINUTES = 10.0  # a method that needs longer does not count as one


@dataclass(frozen=True)
class ShippedRecipe:
    """One shipped instance before it is made: name, recipe, seed, parameters, objective, methods that prove it."""

    name: str
    problem: str
    recipe: str
    seed: int
    parameters: dict[str, Any]
    methods: tuple[str, ...]
    objective: str | None = None

    def make(self) -> Instance:
        """The instance, without its optimum."""
        instance = generate(self.recipe, self.seed, **self.parameters)
        return instance.replace(name=self.name, objective=self.objective or instance.objective)


def _family(
    name: str,
    problem: str,
    recipe: str,
    methods: tuple[str, ...],
    members: Iterable[tuple[int, int]],
    objective: str | None = None,
    **parameters: Any,
) -> Iterator[ShippedRecipe]:
    # one instance for every (jobs, seed)
    for n, seed in members:
        own = {"jobs": n, **parameters}
        yield ShippedRecipe(f"{name}-{n:02d}-{seed}", problem, recipe, seed, own, methods, objective)


def recipes() -> Iterator[ShippedRecipe]:
    """Every small instance that is shipped: 70, in families."""
    slots, rigid = ("time-indexed", "cp-sat"), ("rigid-time-indexed", "cp-sat")
    members: tuple[tuple[int, int], ...] = ((6, 1), (8, 1), (8, 2), (10, 1), (12, 1), (15, 1), (20, 1))
    yield from _family("single", "1|r_j|sum C_j", "machines", ("time-indexed", "positional"), members)
    members = ((6, 1), (7, 1), (8, 1), (8, 2), (9, 1), (10, 1), (12, 1))
    yield from _family("single-weighted", "1|r_j|sum w_j C_j", "machines", slots, members, heaviest=10)
    members = ((6, 1), (8, 1), (8, 2), (10, 1))
    yield from _family("tardiness", "1||sum w_j T_j", "tardiness", slots, members, longest=20, tightness=0.8)
    for m, members in ((2, ((6, 1), (8, 1), (10, 1))), (3, ((8, 1), (8, 2), (10, 1), (12, 1))), (4, ((12, 1),))):
        problem = f"P{m}|r_j|sum w_j C_j"
        yield from _family(f"machines-{m}", problem, "machines", slots, members, machines=m, longest=20, heaviest=10)
    members = ((6, 1), (6, 2), (8, 1), (8, 2), (8, 3), (10, 1), (10, 2), (12, 1), (12, 2), (15, 1))
    yield from _family("rigid", "P8|r_j,size_j|sum C_j", "rigid", rigid, members, longest=20)
    members = ((6, 1), (8, 1), (8, 2), (10, 1), (12, 1))
    problem = "P8|r_j,size_j|sum w_j C_j"
    yield from _family("rigid-weighted", problem, "rigid", rigid, members, longest=15, heaviest=10)
    members = ((6, 1), (8, 1), (10, 1), (12, 1))
    yield from _family("rigid-makespan", "P8|r_j,size_j|C_max", "rigid", rigid, members, "makespan", longest=15)
    members, wide = ((8, 1), (8, 2), (8, 3)), "uniform:low=3,high=8"
    yield from _family("wide-gangs", "P8|size_j|sum C_j", "rigid", rigid, members, longest=12, span=0, sizes=wide)
    for n, rows in DDL.items():
        for seed, nodes, gpus in rows:
            problem = f"P{nodes * gpus}|r_j,size_j,p_j(placement)|sum C_j"
            methods = ("gang-modes", "mode-branching")
            yield from _family("ddl", problem, "ddl-small", methods, ((n, seed),), nodes=nodes, gpus=gpus)


# Distributed training on a few nodes, jobs: (seed, nodes, GPUs of a node).
DDL = {
    4: ((1, 2, 4), (2, 2, 3), (3, 3, 2), (4, 2, 2)),
    5: ((1, 3, 3), (2, 3, 4), (3, 2, 4), (4, 2, 3), (5, 3, 2), (6, 2, 2)),
    6: ((1, 3, 3), (2, 3, 4), (3, 2, 4), (4, 2, 3), (5, 3, 2), (6, 2, 2), (7, 3, 3)),
    7: ((1, 3, 4), (2, 2, 2), (3, 2, 3), (5, 2, 2), (6, 2, 2)),
}

# The instance of `make run`: a week of a 64-GPU cluster near its capacity.
CLUSTER_WEEK = ShippedRecipe(
    "cluster-week",
    "P64|r_j,size_j,(pmtn)|sum C_j - r_j",
    "poisson",
    2,
    {
        "jobs": 1000,
        "cluster": "8x8",
        "load": 0.9,
        "gpus": "adadual",
        "duration": "lognormal:mean=7200,sigma=1.5",
        "whole": True,
    },
    (),
    "total_flow_time",
)


# Distributed training of well-known networks on 64 GPUs: NVLink inside a node, 10 Gbit/s between nodes.
DDL_CLUSTER = ShippedRecipe(
    "ddl-cluster",
    "P64|r_j,size_j,p_j(placement)|sum C_j",
    "ddl-cluster",
    1,
    {"nic": 12.5e9},  # 100 Gbit/s; with 10 the worst speed is 277 times the best, and no factor says anything
    (),
    "total_completion_time",
)
# Iterations task by task: all-reduces of 160 jobs on the network interfaces of 16 nodes of four GPUs, 10 GbE.
CONTENTION_CLUSTER = ShippedRecipe(
    "contention-cluster", "P64|r_j,size_j,tasks,contention|sum C_j - r_j", "ada-srsf", 1, {}, (), "total_flow_time"
)
# Training jobs with batch sizes on 16 GPUs of 11 GB that two jobs may share, each then 1.3 times as long.
SHARING_CLUSTER = ShippedRecipe(
    "sharing-cluster",
    "P16|r_j,size_j,two a GPU|sum C_j - r_j",
    "sharing-cluster",
    1,
    {"jobs": 60, "nodes": 4, "mix": "testbed", "memory": 11e9, "load": 2.0},
    (),
    "total_flow_time",
)
# All speed models together: stage graphs, table speeds, scalings and durations on 64 GPUs of three types, two jobs a GPU,
# and jobs that span nodes slow each other down.
ALL_FOUR = ShippedRecipe(
    "all-four",
    "P64|r_j,size_j,p_j(placement,type,batch),two a GPU,contention|sum C_j - r_j",
    "all-four",
    1,
    {},
    (),
    "total_flow_time",
)
# Shipped without a proof: too large for one.
UNPROVED = (CLUSTER_WEEK, DDL_CLUSTER, CONTENTION_CLUSTER, SHARING_CLUSTER, ALL_FOUR)


def prove(instance: Instance, methods: tuple[str, ...]) -> dict[str, float]:
    """The optimal value as every method finds it; `OptschedError` unless all prove optimality and agree."""
    values = {}
    for method in methods:
        solution = solve(instance, model=method, time_limit=60 * MINUTES)
        if solution.status != "optimal" or solution.value is None:
            raise OptschedError(f"{instance.name}: {method} ends as {solution.status}, not optimal")
        values[method] = float(solution.value)
    if len(set(values.values())) != 1:
        raise OptschedError(f"{instance.name}: the methods disagree: {values}")
    return values


def build(folder: Path) -> None:
    """Make, prove and write every shipped instance and the index."""
    entries = []
    for recipe in (*recipes(), *UNPROVED):
        instance = recipe.make()
        if recipe.methods:
            value = next(iter(prove(instance, recipe.methods).values()))
            optimum = stating(short_number(value), str(instance.objective), "gang-nonpreemptive", *recipe.methods)
            instance = instance.replace(optimum=optimum)
        instance.save(folder / f"{recipe.name}.json")
        entries.append(_entry(recipe, instance))
        print(recipe.name, instance.optimum and instance.optimum["value"], flush=True)
    header = (
        "# The shipped instances: made by optsched from the recipe and seed given, with the proof of the optimum named\n"
        "# (class of schedules: rigid gangs on exclusive GPUs, no preemption).\n\n"
    )
    write_atomic(folder / "index.toml", header + "\n".join(entries))


def _entry(recipe: ShippedRecipe, instance: Instance) -> str:
    lines = {
        "name": recipe.name,
        "file": f"{recipe.name}.json",
        "problem": recipe.problem,
        "objective": instance.objective or "total_flow_time",
        "recipe": recipe.recipe,
        "seed": recipe.seed,
        "licence": "Apache-2.0",
        "digest": instance.digest,
    }
    if instance.optimum:
        lines["optimum"] = instance.optimum["value"]
        lines["proved_by"] = list(recipe.methods)
    shown = [f"{key} = {_toml(value)}" for key, value in lines.items()]
    return "[[instance]]\n" + "\n".join(shown) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
