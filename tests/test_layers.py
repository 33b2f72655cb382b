"""A module imports from its own floor or from below, never upward, and floors have no circles between packages."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "optsched"
# From the bottom up; a package stands for all its modules.
FLOORS = [
    {
        "errors",
        "registry",
        "files",
        "parameters",
        "compiled",
        "epoch",
        "heap",
        "progress",
        "json_text",
        "parquet",
        "table",
        "html",
        "rounding",
        "parquet_reader",
    },
    {
        "cluster",
        "epoch",
        "job_table",
        "instance",
        "instance_file",
        "instance_source",
        "objectives",
        "policy",
        "profile",
        "gpu_names",
        "throughputs",
        "forking",
        "eligibility",
        "contention",
        "transfers",
        "task_policy",
        "task_log",
        "interference",
        "scaling",
        "sharing_policy",
        "elastic",
    }
    | {"schedule", "schedule_file"},
    {"rates", "traces", "bounds", "check", "claim", "feasibility", "metrics", "schedule_tables"}
    | {"case", "tolerance", "speed_rules", "below_bound"}
    | {"task_check", "task_claim", "residency_check", "transferred_bytes", "sharing_check", "elastic_check"},
    {"simulation", "models"},
    {"placement", "prediction", "offline", "sources"},
    {"online"},
    {"ratios"},
    {"plot", "report", "report_files", "html_views"},
    {"studies"},
    {
        "cli",
        "cli_run",
        "cli_files",
        "cli_lists",
        "cli_options",
        "cli_names",
        "cli_output",
        "cli_interrupt",
        "cli_layout",
        "cli_warm_up",
    }
    | {"cli_tables", "cli_study", "catalogue", "warm_up", "__init__", "__main__"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def files() -> list[Path]:
    return [path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts]


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports anywhere, except for the sake of types only."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "optsched":
            parts = node.module.split(".")[1:]
            found.update([parts[0]] if parts else [name.name for name in node.names])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in found if name in FLOOR}


def test_every_module_has_a_floor() -> None:
    assert {room(path) for path in files()} <= set(FLOOR)


@pytest.mark.parametrize("level", range(len(FLOORS) - 1))
def test_nothing_imports_upward(level: int) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in files()
        if FLOOR[room(path)] == level
        for other in sorted(imported_rooms(path))
        if FLOOR[other] > level
    ]
    assert wrong == []


def test_rooms_of_one_floor_import_each_other_in_one_direction() -> None:
    ties = defaultdict(set)
    for path in files():
        ties[room(path)] |= imported_rooms(path) - {room(path)}
    assert [(a, b) for a in ties for b in sorted(ties[a]) if a < b and a in ties.get(b, set())] == []
