"""Layers of packages: a module imports from its own layer or from below, and there are no circles."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from sources import ROOT, files, imported, one_process, tree

pytestmark = one_process
# From the bottom up: packages, modules at the root, and packages within packages that are on a layer of their own.
LAYERS = [
    {"errors", "registry", "compiled", "rounding", "intervals", "progress", "deadline", "verifier", "measure"},
    {"problem", "online", "classes"},
    {"speeds"},
    {"bounds", "check"},
    {"simulation", "models"},
    {"io", "solvers", "policies.placements", "policies.predictors"},
    {"policies"},
    {"guarantees"},
    {"evaluation", "adversary", "contract"},
    {"plot", "report", "regression"},
    {"sweeps", "studies"},
    {"cli", "pytest_plugin", "__init__", "__main__"},
]
FOLDERS = [path.name for path in (ROOT / "classes").iterdir() if path.is_dir()]
for packages in LAYERS[1:]:
    packages |= {f"classes.{name}.{package}" for name in FOLDERS for package in packages}
LAYER = {package: level for level, packages in enumerate(LAYERS) for package in packages}
AT_THE_ROOT = 10  # modules, fewer than


def package_of(parts: list[str]) -> str:
    """Return the package of a dotted name below the root; a name that the root itself gives is of ``__init__``.

    The folder of a class of schedules mirrors the packages: ``classes.NAME.bounds`` has the layer of ``bounds``.
    """
    if parts[0] == "classes" and len(parts) > 2 and package_of(parts[2:]) != "__init__":
        return f"classes.{parts[1]}.{package_of(parts[2:])}"
    for depth in (2, 1):
        if ".".join(parts[:depth]) in LAYER:
            return ".".join(parts[:depth])
    return "__init__"


def package(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return package_of(parts) if len(parts) > 1 else parts[0]


def within(path: Path) -> list[list[str]]:
    """Dotted names below the package that a file imports."""
    return [name.split(".")[1:] for name in imported(path) if name.startswith("optsched.")]


def test_every_module_has_a_package() -> None:
    assert {package(path) for path in files()} <= set(LAYER)


def test_few_modules_are_at_the_root() -> None:
    assert len(list(ROOT.glob("*.py"))) < AT_THE_ROOT


@pytest.mark.parametrize("level", range(len(LAYERS) - 1))
def test_nothing_imports_upward(level: int) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {'.'.join(parts)}"
        for path in files()
        if LAYER[package(path)] == level
        for parts in within(path)
        if LAYER[package_of(parts)] > level and parts != ["__version__"]
    ]
    assert wrong == []


def test_no_packages_import_each_other_in_a_circle() -> None:
    """Of any length."""
    graph = nx.DiGraph()
    for path in files():
        graph.add_edges_from((package(path), package_of(parts)) for parts in within(path) if parts != ["__version__"])
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert list(nx.simple_cycles(graph)) == []


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {module(path) for path in files()}
    graph = nx.DiGraph()
    for path in files():
        for parts in within(path):
            for name in (".".join(parts), ".".join(parts[:-1])):
                if name in known:
                    graph.add_edge(module(path), name)
                    break
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    graph.remove_nodes_from([""])

    assert [cycle for cycle in nx.strongly_connected_components(graph) if len(cycle) > 1] == []


def test_no_file_name_occurs_twice() -> None:
    """Check that the name of a file alone says where a reader must look."""
    times = Counter(path.stem for path in files() if path.stem not in ("__init__", "__main__"))
    assert [name for name, count in times.items() if count > 1] == []


def test_one_name_is_one_thing() -> None:
    """No two public classes bear one name."""
    defined: dict[str, list[str]] = {}
    for path in files():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append(module(path))
    assert {name: where for name, where in defined.items() if len(where) > 1} == {}


def test_guarantees_run_and_solve_nothing() -> None:
    """They state and judge; `optsched.evaluation` runs policies and methods."""
    runs = ("policies.simulate.simulate", "simulation.engine", "solvers.solve")
    wrong = [
        f"{path.relative_to(ROOT)} imports {'.'.join(parts)}"
        for path in (ROOT / "guarantees").glob("*.py")
        for parts in within(path)
        if f"{'.'.join(parts)}.".startswith(tuple(f"{name}." for name in runs))
    ]
    assert wrong == []


def test_a_run_is_a_straight_fall_from_the_command_to_the_engine() -> None:
    fall = ("cli.run_command", "evaluation.evaluate", "policies.simulate", "simulation.engine")
    for above, below in pairwise(fall):
        path = ROOT.joinpath(*above.split(".")).with_suffix(".py")
        assert any(".".join(parts).startswith(f"{below}.") for parts in within(path)), (above, below)
