"""A class of schedules is an object in a registry: few conditionals on a class are left outside its folder."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from sources import ROOT, files, imported, one_process, tree

pytestmark = one_process
FOLDER = ROOT / "classes"
MOST = 20  # conditionals on a class of schedules, or on the kind of an instance, outside the registry and the folders
CLASSES = {"gang", "gang-nonpreemptive", "gpu-sharing", "forking", "elastic", "task-sharing", "sharing"}
# What stands for a class or a kind of instance in a condition.
NAMES = {
    *("FORKING", "ELASTIC", "SHARING", "EXCLUSIVE", "TASK_SHARING", "GPU_SHARING", "PREEMPTIVE", "NONPREEMPTIVE"),
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
        if FOLDER not in path.parents and path != ROOT / "__init__.py"  # which names what users import
        for name in imported(path)
        if name.startswith(folders)
    ]
    assert wrong == []


TOY = """
import json, sys
import optsched as osd
from optsched.classes import classes_of
from optsched.registry import add_class_folder

osd.bound("rigid-06-1")  # whatever has been searched before
add_class_folder("paced")
jobs = [osd.Job(str(k), duration=3.0 + k) for k in range(5)]
instance, folder = osd.Instance(jobs, "1x4", objective="makespan"), sys.argv[1]
run = osd.simulate(instance, "paced-fifo")
report = osd.evaluate(instance, ["paced-fifo", "fifo"])
crowd = osd.simulate(instance, "fifo").schedule
run.schedule.save(f"{folder}/paced.json", paced=True)
crowd.save(f"{folder}/crowd.json", paced=True)
bound = osd.bound(instance, "makespan", "paced")
bound.verify(instance)
flow = osd.bound(instance, "total_flow_time", "paced")
from optsched.check.referee import check_file
from optsched.contract.levels import level_of
from optsched.cli import main
from optsched.policies.simulate import specify
print(json.dumps({
    "class": run.schedule_class,
    "classes": classes_of(instance),
    "makespan": run.value(),
    "bounds": [line.bound.to_json() for line in report.lines],
    "referee": [each.rule for each in osd.check_schedule(instance, crowd, schedule_class="paced")],
    "files": [check_file(f"{folder}/{name}.json", instance).holds for name in ("paced", "crowd")],
    "bound": [bound.kind, bound.schedule_class, float(bound.value)],
    "flow": flow.schedule_class,
    "level": level_of(specify("paced-fifo").policy).name,
}))
main(["list", "bounds", "--json"])
"""


def test_a_class_is_added_as_one_folder(tmp_path: Path) -> None:
    """A run, the referee, a bound and the list know it; nothing else is changed."""
    path = os.pathsep.join([str(ROOT.parent), str(ROOT.parent / "tests")])
    told = subprocess.run(
        [sys.executable, "-c", TOY, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    first, _, listed = told.stdout.partition("\n")
    found = json.loads(first)
    assert found["class"] == "paced"
    assert "paced" in found["classes"]
    assert found["makespan"] >= 40
    paced, plain = found["bounds"]
    assert (paced["kind"], paced["class"], paced["value"]) == ("paced-starts", "paced", 43.0)
    assert plain["class"] == "gang"
    assert plain["value"] < 10
    assert set(found["referee"]) == {"arrival"}
    assert found["files"] == [True, False]
    assert found["bound"] == ["paced-starts", "paced", 43.0]
    assert found["flow"] == "gang"  # a bound for gangs is valid for the smaller class
    assert found["level"] == "whole jobs"
    assert any(bound["name"] == "paced-starts" for bound in json.loads(listed)["bounds"])
