"""A class of schedules is an object in a registry: few conditionals on a class are left outside its folder."""

from __future__ import annotations

import ast
from pathlib import Path

from sources import ROOT, files, imported, one_process, tree

pytestmark = one_process
FOLDER = ROOT / "classes"
MOST = 20  # conditionals on a class of schedules, or on the kind of an instance, outside the registry and the folders
CLASSES = {"gang", "gang-nonpreemptive", "gpu-sharing", "forking", "elastic", "task-sharing", "sharing"}
# What stands for a class or a kind of instance in a condition.
NAMES = {
    *("GANG", "FORKING", "ELASTIC", "SHARING", "EXCLUSIVE", "TASK_SHARING", "GPU_SHARING"),
    *("GANG_CLASSES", "EXCLUSIVE_CLASSES", "GPU_SHARING_CLASSES", "TASK_SHARING_CLASSES", "ELASTIC_CLASSES"),
    *("SHARED_CLASSES", "SCHEDULE_CLASSES", "ALONE_TOO"),
    *("SharedRun", "ElasticRun", "ForkedRun", "SharedSchedule", "TaskSchedule", "TaskPolicy"),
    *("at_task_level", "shares_gpus", "resizes", "forking", "elastic", "sharing", "interference"),
}
ATTRIBUTES = {
    *("at_task_level", "interference", "elastic", "forking", "sharing", "SHARING", "WIDTHS", "COPIES"),
}


def is_counted(path: Path) -> bool:
    """Tell if a file is neither of the registry and the folders of the classes nor of the stand-alone verifier."""
    verifies = "verifier" in path.parts or path.name.startswith(("verify_", "word_"))
    return FOLDER not in path.parents and not verifies


def mentions_a_class(condition: ast.AST) -> bool:
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CLASSES)
        or (isinstance(node, ast.Name) and node.id in NAMES)
        or (isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES)
        for node in ast.walk(condition)
    )


def conditions(source: ast.Module) -> list[ast.expr]:
    """Return the conditions of statements, expressions and comprehensions, and other comparisons and logical expressions."""
    found: list[ast.expr] = []
    for node in ast.walk(source):
        match node:
            case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
                found.append(node.test)
            case ast.comprehension():
                found.extend(node.ifs)
            case ast.Match():
                found.append(node.subject)
    inside = {id(node) for condition in found for node in ast.walk(condition)}
    for node in ast.walk(source):
        logical = isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        if logical and id(node) not in inside:
            assert isinstance(node, ast.expr)
            found.append(node)
            inside |= {id(part) for part in ast.walk(node)}
    return found


def test_few_conditionals_on_a_class_are_outside_its_folder() -> None:
    counted = [
        f"{path.relative_to(ROOT)}:{condition.lineno}: {ast.unparse(condition)}"
        for path in files()
        if is_counted(path)
        for condition in conditions(tree(path))
        if mentions_a_class(condition)
    ]
    assert len(counted) <= MOST, "\n".join([str(len(counted)), *counted])


def test_no_file_outside_the_folders_imports_from_them() -> None:
    folders = tuple(f"optsched.classes.{path.name}." for path in FOLDER.iterdir() if path.is_dir())
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files()
        if FOLDER not in path.parents
        for name in imported(path)
        if name.startswith(folders)
    ]
    assert wrong == []
