"""What CONTRIBUTING.md says of new things: each of its files, put into the tree, is found by its name and works."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from install.archives import ROOT
from install.environments import run

pytestmark = [pytest.mark.release, pytest.mark.xdist_group("install")]

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = {
    block.partition("\n")[0].removeprefix("# "): block
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
CHECK = """
import json, optsched as osd
from optsched.bounds import BOUNDS
from optsched.models import FORMULATIONS
from optsched.policies import POLICIES
log = osd.load("minutes:log.csv", cluster="1x4")
certificate = BOUNDS.get("last-arrival").build(log, "makespan", "gang")
certificate.verify(log)
from optsched.speeds.kinds.operations import Operations
job = osd.Job("a", gpus=2, iterations=3, profile="net")
osd.Instance([job], "1x2:V100+1x2:K80", operations={"net": Operations(3.14e13)}).save("made.json")
made = osd.load("made.json")
run = osd.simulate(made, "fifo")
lower = osd.bound(made, "makespan")
lower.verify(made)
assert osd.check_schedule(made, run.schedule) == []
model = FORMULATIONS.get("alone").build(log, "total_completion_time")
found = {
    "widest-first": list(osd.simulate(log, "widest-first").schedule.completion),
    "last-arrival": float(certificate.value),
    "alone": model.nvariables(),
    "operations": [run.schedule.completion.tolist(), float(lower.value)],
    "listed": "widest-first" in POLICIES.names(),
}
print(json.dumps(found))
"""


def test_the_page_shows_one_of_each() -> None:
    assert [str(Path(name).parent) for name in FILES] == [
        "optsched/policies",
        "optsched/bounds",
        "optsched/speeds/kinds",
        "models",
        "optsched/io/traces",
    ]
    assert not any((ROOT / name).exists() for name in FILES)


def test_each_is_one_new_file(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "optsched"
    shutil.copytree(tree, copy, symlinks=True)
    for name, text in FILES.items():
        (copy / name).write_text(text, encoding="utf-8")
    (tmp_path / "log.csv").write_text("width,submitted,minutes\n2,0,1\n4,0,2\n")
    done = run([sys.executable, "-c", CHECK], tmp_path, path=copy, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "widest-first": [180, 120],
        "last-arrival": 0,
        "alone": 2,
        "operations": [[3], 3],
        "listed": True,
    }


def test_the_commands_of_the_page_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    goals = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {goal for words in re.findall(r"`make ([a-z -]+)`", PAGE) for goal in words.split()}
    assert len(named) >= 7
    assert named <= goals


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (ROOT / target).exists(), target
