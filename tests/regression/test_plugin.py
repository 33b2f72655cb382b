"""The plugin in a project of somebody else: it passes, catches a regression, updates the baseline; in processes, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.problem.instance import Instance, Job
from regression.project import SCHEDULERS, WORSE

pytestmark = pytest.mark.release

Session = Callable[..., pytest.RunResult]


def baseline(project: pytest.Pytester, name: str = "ratio-baseline.json") -> Any:
    return json.loads((project.path / name).read_text())


def damage(project: pytest.Pytester, *names: str) -> None:
    for name in names:
        (project.path / name).write_text(WORSE[name])


def test_without_a_baseline_it_fails_and_says_how_to_make_one(project: pytest.Pytester, session: Session) -> None:
    result = session()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*ratio-baseline.json has no entry of this test for*: run pytest --ratio-update"])
    assert not (project.path / "ratio-baseline.json").exists()


def test_it_is_updated_passes_and_catches_a_regression(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update").assert_outcomes(passed=2)
    kept = baseline(project)
    policy = kept["tests"]["test_ratios.py::test_policy"]["shortest on cases, total_completion_time"]
    assert policy["worst_instance"] == "cases/rigid-06-1.json"
    assert policy["worst"] == policy["instances"]["cases/rigid-06-1.json"]["ratio"] == pytest.approx(174 / 156)
    session("--ratio-compare-fail=0%").assert_outcomes(passed=2)

    damage(project, "schedulers.py")
    result = session()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*shortest on cases: the worst ratio rose from 1.1154 to 1.*, on the instance cases/rigid-06-?.json",
            "E *instance cases/rigid-*, written to .optsched/ratio-failures/shortest-rigid-*.json",
            "E *replay: pytest test_ratios.py::test_policy --ratio-instance=cases/rigid-*.json",
        ]
    )
    assert baseline(project) == kept

    session("--ratio-compare-fail=100%").assert_outcomes(passed=2)
    session("--ratio-update").assert_outcomes(passed=2)
    session().assert_outcomes(passed=2)
    assert baseline(project)["tests"].keys() == kept["tests"].keys()
    assert baseline(project) != kept


def test_an_update_that_only_lowers(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update=lower").assert_outcomes(passed=2)  # what is new is written
    kept = baseline(project)
    damage(project, "schedulers.py")
    result = session("--ratio-update=lower", "--ratio-compare-fail=100%", "test_ratios.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*shortest on cases: the worst ratio rose from 1.1154 to 1.*"])
    assert baseline(project) == kept
    session("--ratio-update", "test_ratios.py").assert_outcomes(passed=2)
    worse = baseline(project)
    assert worse != kept
    (project.path / "schedulers.py").write_text(SCHEDULERS)
    session("--ratio-update=lower").assert_outcomes(passed=2)
    assert baseline(project) == kept


def test_a_regression_of_a_command_is_replayed_as_it_says(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update").assert_outcomes(passed=2)
    damage(project, "alone.py")
    result = session("test_ratios.py::test_command")
    result.assert_outcomes(failed=1)
    # Only the failure itself: where CI is set, pytest's summary at the end says the whole message again.
    lines = [line.removeprefix("E").strip() for line in result.outlines if line.startswith("E ")]
    (replay,) = [line.removeprefix("replay: pytest ") for line in lines if line.startswith("replay: ")]
    (again,) = [line for line in lines if line.startswith("or: ")]
    written = next(Path(word) for word in again.split() if word.endswith(".json") and "schedule" not in word)
    assert Instance.load(project.path / written).n >= 6
    alone = session(*replay.split())
    alone.assert_outcomes(failed=1)
    alone.stdout.fnmatch_lines(["*alone *cases*1.*"])
    fine = session("test_ratios.py::test_policy", "--ratio-instance=cases/rigid-06-2.json")
    fine.assert_outcomes(passed=1)


def test_the_summary_is_a_table(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update").stdout.fnmatch_lines(["ratio-baseline.json: 2 entries changed"])
    result = session("--ratio-update")
    result.stdout.fnmatch_lines(
        [
            "*= competitive ratios =*",
            "policy *suite *objective *worst *on *mean *limit *test",
            "shortest *cases *total_completion_time *1.1154 *rigid-06-1.json *1.0* 2.0000 *test_ratios.py::test_policy",
            "alone *cases *5.0000 *test_ratios.py::test_command",
            "ratio-baseline.json: 0 entries changed",
        ]
    )
    session().stdout.fnmatch_lines(["shortest *1.1154 *none *test_ratios.py::test_policy"])


def test_a_project_says_where_its_files_are(project: pytest.Pytester, session: Session) -> None:
    project.makeini("[pytest]\nratio_baseline = kept/ratios.json\nratio_failures = failed\n")
    project.mkdir("kept")
    session("--ratio-update", "-k", "policy").assert_outcomes(passed=1, deselected=1)
    assert list(baseline(project, "kept/ratios.json")["tests"]) == ["test_ratios.py::test_policy"]
    damage(project, "schedulers.py")
    session("-k", "policy").assert_outcomes(failed=1, deselected=1)
    assert len(list((project.path / "failed").glob("shortest-rigid-*.json"))) == 1


def test_tests_that_do_not_run_or_fail_keep_their_entries(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update").assert_outcomes(passed=2)
    kept = baseline(project)["tests"]
    damage(project, "alone.py", "schedulers.py")
    text = (project.path / "test_ratios.py").read_text()
    (project.path / "test_ratios.py").write_text(text.replace("at_most(5)", "at_most(1)"))
    session("--ratio-update").assert_outcomes(passed=1, failed=1)
    now = baseline(project)["tests"]
    assert now["test_ratios.py::test_command"] == kept["test_ratios.py::test_command"]
    assert now["test_ratios.py::test_policy"] != kept["test_ratios.py::test_policy"]
    (project.path / "test_ratios.py").rename(project.path / "test_renamed.py")
    session("--ratio-update", "-k", "policy").assert_outcomes(passed=1, deselected=1)
    assert list(baseline(project)["tests"]) == ["test_renamed.py::test_policy"]


ZERO = """
import os

import optsched as osd


class Slow:
    name, knowledge = "slow", "clairvoyant"

    def decide(self, view):
        until = float(os.environ.get("WAIT", 0))
        if view.now < until:
            yield osd.Wake(until)
            return
        for job in sorted(view.waiting, key=lambda j: -view.duration(j)):
            if view.fits(job):
                yield osd.Start(job)


def test_slow(competitive_ratio):
    competitive_ratio(Slow(), suite="zero.json").no_worse_than_baseline()
"""


def test_a_regression_is_caught_where_the_optimum_is_zero(
    pytester: pytest.Pytester, bare: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("a", duration=10, due=100), Job("b", duration=5, due=5)]
    (pytester.path / "test_zero.py").write_text(ZERO)
    Instance(jobs, "1x1", name="zero", objective="total_weighted_tardiness").save(pytester.path / "zero.json")
    bare("--ratio-update").assert_outcomes(passed=1)  # a, then b: 10 late
    bare().assert_outcomes(passed=1)
    monkeypatch.setenv("WAIT", "100000")
    result = bare()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *total_weighted_tardiness rose from 10 to 199920, on the instance zero.json*",
            "slow *zero.json: 199920, bound 0*",
        ]
    )
    monkeypatch.delenv("WAIT")
    Instance([*jobs, Job("c", duration=1)], "1x1", name="zero", objective="total_weighted_tardiness").save(
        pytester.path / "zero.json"
    )
    result = bare()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *: the instance zero.json is not that of the baseline (digest *"])


ASKED = """
import pytest

NAMES = dict(suite="cases", objective="makespan")


def test_nothing(competitive_ratio):
    competitive_ratio("fifo", **NAMES)


def test_one_of_two(competitive_ratio):
    competitive_ratio("fifo", **NAMES).at_most(9)
    competitive_ratio("sjf", **NAMES)


def test_two_of_one_name(competitive_ratio):
    for policy in ("fifo", "sjf"):
        competitive_ratio(policy, name="mine", suite="cases").no_worse_than_baseline()


def test_for_itself(competitive_ratio):
    assert competitive_ratio("fifo", **NAMES).worst < 9


@pytest.fixture
def guard(competitive_ratio):
    return competitive_ratio("fifo", **NAMES)


def test_of_a_fixture(guard):
    guard.no_worse_than_baseline()


def test_that_skips(guard):
    pytest.skip("not here")
"""


def test_who_measures_and_asks_nothing_fails(project: pytest.Pytester, session: Session) -> None:
    (project.path / "test_ratios.py").write_text(ASKED)
    result = session("--ratio-update")
    result.assert_outcomes(passed=2, failed=3, skipped=1)
    said = "competitive_ratio('{}', suite='cases') was measured and nothing asked: call .at_most(LIMIT), .keeps_guarantee() "
    for policy in ("fifo", "sjf"):
        assert any(line.startswith(said.format(policy)) for line in result.outlines)
    result.stdout.fnmatch_lines(["*two measurements of this test are both 'mine on cases, *': give each a name="])
    assert list(baseline(project)["tests"]) == ["test_ratios.py::test_of_a_fixture"]


def test_stale_entries_are_named_and_removed(project: pytest.Pytester, session: Session) -> None:
    tests = project.path / "test_ratios.py"
    text = tests.read_text()
    more = """

class TestMore:
    def test_more(self, competitive_ratio):
        competitive_ratio("fifo", **SUITE).no_worse_than_baseline()
"""
    tests.write_text(text + more)
    session("--ratio-update").assert_outcomes(passed=3)
    kept = baseline(project)
    for part in (["-k", "policy"], ["test_ratios.py::test_policy"], ["test_ratios.py::TestMore::test_more"], ["--co"]):
        result = session(*part)
        assert result.ret == pytest.ExitCode.OK
        assert "stale entry" not in result.stdout.str()

    # renamed, and no longer compared
    less = text.replace(".at_most(5).no_worse_than_baseline()", ".at_most(5)")
    tests.write_text(less + more.replace("test_more", "test_other"))
    stale = [
        "ratio-baseline.json: stale entry test_ratios.py::TestMore::test_more, 'fifo on *': the test is gone (*)",
        "ratio-baseline.json: stale entry test_ratios.py::test_command, 'alone on *': the test passes without *",
    ]
    result = session("-k", "policy or command")
    result.assert_outcomes(passed=2, deselected=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(stale)
    result = session("test_ratios.py::TestMore", "-k", "nothing")
    result.stdout.fnmatch_lines(stale[:1])
    result.stdout.no_fnmatch_line("*stale*test_command*")
    assert baseline(project) == kept

    result = session("--ratio-update", "-k", "command")
    result.stdout.fnmatch_lines(["ratio-baseline.json: 2 entries changed"])
    assert result.ret == pytest.ExitCode.OK
    assert list(baseline(project)["tests"]) == ["test_ratios.py::test_policy"]
    tests.unlink()
    (project.path / "test_none.py").touch()
    session().stdout.fnmatch_lines(["*stale entry test_ratios.py::test_policy, *the test is gone*"])


def test_a_baseline_of_the_first_format_is_read(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update", "-k", "policy").assert_outcomes(passed=1, deselected=1)
    now = baseline(project)
    then = json.loads(json.dumps(now).replace("ratios/2", "ratios/1"))
    for entry in (one for labels in then["tests"].values() for one in labels.values()):
        entry["instances"] = {name: each["ratio"] for name, each in entry["instances"].items()}
    (project.path / "ratio-baseline.json").write_text(json.dumps(then))
    result = session("-k", "policy")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["ratio-baseline.json: instances without digests, * is not seen: pytest --ratio-update"]
    )
    session("--ratio-update", "-k", "policy").stdout.fnmatch_lines(["ratio-baseline.json: 1 entry changed"])
    assert baseline(project) == now


def test_what_is_no_baseline_is_an_error_of_one_line(project: pytest.Pytester, session: Session) -> None:
    (project.path / "ratio-baseline.json").write_text('{"format": "another/1"}')
    result = session("-k", "policy")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*ratio-baseline.json, format = 'another/1': invalid*optsched-guarded-ratios/2*"])
    result = session("-k", "policy", "--ratio-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*ratio-baseline.json, format = 'another/1': invalid*"])


@pytest.mark.parametrize("share", ["1", "x%", "-1%", "nan%", "%"])
def test_a_tolerance_is_a_percentage(share: str, session: Session) -> None:
    result = session(f"--ratio-compare-fail={share}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*not a tolerance (expected: a number >= 0 and %, such as 1%)*"])


def test_several_processes_write_one_baseline(project: pytest.Pytester, session: Session) -> None:
    session("--ratio-update").assert_outcomes(passed=2)
    one = baseline(project)
    with (project.path / "test_ratios.py").open("a") as file:
        file.write("\n\ndef test_too_much(competitive_ratio):\n    competitive_ratio(Shortest(), **SUITE).at_most(1)\n")
    gone = {"test_ratios.py::test_gone": one["tests"]["test_ratios.py::test_policy"]}
    (project.path / "ratio-baseline.json").write_text(json.dumps({**one, "tests": gone}))
    written = [
        "--ratio-report=made/all.json",
        "--ratio-report=all.md",
        "--ratio-badge=badge.json",
        "--junitxml=all.xml",
    ]
    result = session("-p", "xdist", "-n", "2", "--ratio-update", *written)
    result.assert_outcomes(passed=2, failed=1)
    assert baseline(project) == one
    result.stdout.fnmatch_lines(
        ["E *written to .optsched/*", "*competitive ratios*", "* *1.1154 *", "*: 3 entries changed"]
    )
    rows = json.loads((project.path / "made" / "all.json").read_text())["ratios"]
    assert [(each["test"].partition("::")[2], each["outcome"]) for each in rows] == [
        ("test_command", "passed"),
        ("test_policy", "passed"),
        ("test_too_much", "failed"),
    ]
    assert (project.path / "all.md").read_text().startswith("### Competitive ratios: 2 of 3 tests passed\n")
    assert json.loads((project.path / "badge.json").read_text())["message"] == "3.380 at worst"
    assert (project.path / "all.xml").read_text().count('<property name="ratio" value=') == 3


@pytest.mark.study
def test_several_processes_find_a_regression(project: pytest.Pytester, session: Session) -> None:
    session("-p", "xdist", "-n", "2", "--ratio-update").assert_outcomes(passed=2)
    session("-p", "xdist", "-n", "2").assert_outcomes(passed=2)
    damage(project, "alone.py", "schedulers.py")
    tests = project.path / "test_ratios.py"
    tests.write_text(tests.read_text() + "\n\ndef test_new():\n    pass\n")
    kept = baseline(project)
    kept["tests"]["test_ratios.py::test_gone"] = kept["tests"]["test_ratios.py::test_policy"]
    (project.path / "ratio-baseline.json").write_text(json.dumps(kept))
    result = session("-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=1, failed=2)
    assert [line.partition(",")[0] for line in result.outlines if "stale entry" in line] == [
        "ratio-baseline.json: stale entry test_ratios.py::test_gone"
    ]
    assert len(list((project.path / ".optsched" / "ratio-failures").iterdir())) == 2


def test_a_project_that_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_empty.py").write_text(
        "import sys\n\n\ndef test_light():\n"
        "    loaded = {name for name in sys.modules if name.partition('.')[0] == 'optsched'}\n"
        "    assert loaded == {'optsched', 'optsched.pytest_plugin'}\n"
        "    assert not {'numpy', 'numba', 'polars', 'scipy', 'rich'} & set(sys.modules)\n"
    )
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "optsched.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "competitive ratios" not in done.stdout
