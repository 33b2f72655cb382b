"""What a test asks of ratios: each question passes, and each fails, naming the instance, for its own reason."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guarantees.theorems import false_theorem, filed
from refusals import one_line

from optsched.errors import InputError
from optsched.evaluation.suite_ratios import ratios
from optsched.problem.instance import Instance, Job
from optsched.regression import baseline_file
from optsched.regression.guard import GuardedRatio, GuardSettings, guarded
from optsched.regression.guarded_subject import guarded_subject

pytestmark = pytest.mark.release


@pytest.fixture
def settings(tmp_path: Path) -> GuardSettings:
    (tmp_path / "test_a.py").touch()
    return GuardSettings("test_a.py::test_b", tmp_path, tmp_path / "baseline.json", tmp_path / "failed")


def one_by_one(instance: Instance) -> dict[str, float]:
    now, starts = 0.0, {}
    for job in instance.jobs:
        starts[job.id] = now = max(now, job.arrival)
        now += job.duration or 0
    return starts


def failure(guard: GuardedRatio, question: str, *arguments: Any) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        getattr(guard, question)(*arguments)
    return str(caught.value).splitlines()


def test_ratios_are_those_of_the_command(settings: GuardSettings) -> None:
    guard = guarded(guarded_subject("sjf"), "rigid-small", settings=settings)
    (row,) = ratios("rigid-small", "sjf").policies
    assert guard.ratios == row
    assert guard.worst == row.worst
    assert guard.at_most(Fraction(2)) is guard


def test_a_limit_holds_exactly_where_the_theorem_is_tight(settings: GuardSettings) -> None:
    guard = guarded(guarded_subject("list"), "blocked-long-job:m=3", settings=settings)
    guard.at_most(Fraction(5, 3)).keeps_guarantee()
    lines = failure(guard, "at_most", Fraction(5, 3) - Fraction(1, 10**6))
    assert "is 1.66666667 (makespan 5, 3 is a certified bound, " in lines[0]
    assert lines[0].endswith("more than 1.66666567")
    written = Path(lines[1].rpartition(" ")[2])
    assert Instance.load(written).n == 7
    assert lines[2] == "replay: pytest test_a.py::test_b --ratio-instance=blocked-long-job:m=3"
    assert lines[3].startswith("or: optsched ratio ")


def test_a_ratio_to_a_bound_says_so(settings: GuardSettings) -> None:
    jobs = [Job(str(k), arrival=k % 3, gpus=1 + k % 3, duration=3 + k % 4) for k in range(9)]
    guard = guarded(guarded_subject(one_by_one), [Instance(jobs, "1x4", name="mine")], "total_flow_time", settings)
    lines = failure(guard, "at_most", 1.5)
    assert "the optimum may be larger" in lines[0]
    assert len(lines) == 3  # a function has no command


def test_without_a_ratio_no_limit_is_kept(settings: GuardSettings) -> None:
    late = Instance([Job("a", duration=5, due=9), Job("b", duration=1, due=1)], "1x1", name="late")
    guard = guarded(guarded_subject("fifo"), [late], "total_weighted_tardiness", settings)
    assert guard.measured[0].row.ratio is None
    assert "no ratio: the bound on late is 0, nothing to divide by" in failure(guard, "at_most", 9)[0]

    def forgets(instance: Instance) -> Any:
        from optsched.problem.schedule import Schedule, Segment

        return Schedule.from_segments(instance, [Segment(0, ((0, 0),), 0, 5, 5)])

    lazy = guarded(guarded_subject(forgets), [late], "makespan", settings)
    assert "no ratio: on late job 'b' never finishes" in failure(lazy, "at_most", 9)[0]


@pytest.mark.parametrize(
    "limit",
    ["1.2", None, True, 0.99, -1, 0, float("nan"), float("inf"), 10**400, [2], 1j],
    ids=lambda each: str(each)[:9],
)
def test_a_limit_is_a_number_that_a_ratio_can_reach(settings: GuardSettings, limit: Any) -> None:
    guard = guarded(guarded_subject("sjf"), "rigid-06-1", settings=settings)
    with one_line("at_most", "(expected: a finite number >= 1)"):
        guard.at_most(limit)
    for fine in (2, 2.0, Fraction(3, 2), Decimal("1.5"), np.float32(1.5), np.int64(2)):
        guard.at_most(fine)


def test_a_guard_knows_whether_something_was_asked(settings: GuardSettings) -> None:
    def sjf() -> GuardedRatio:
        return guarded(guarded_subject("sjf"), "rigid-06-1", settings=settings)

    assert not sjf().asked
    assert sjf().at_most(2).asked
    assert sjf().keeps_guarantee.__self__.asked is False
    for name in ("ratios", "worst", "mean"):
        guard = sjf()
        assert getattr(guard, name)
        assert guard.asked


ONE = Instance([Job("a", duration=1)], "1x1", name="one")


@pytest.mark.parametrize("over", [[], "", " ", None, 5, {}, b"one", ["rigid-06-1"], [ONE, "one"]], ids=str)
def test_what_is_no_suite_is_one_line(settings: GuardSettings, over: Any) -> None:
    with one_line("suite", "expected"):
        guarded(guarded_subject("sjf"), over, settings=settings)


def test_no_instance_is_left_out_for_its_name(settings: GuardSettings) -> None:
    with one_line("suite = 'one': two instances have one name"):
        guarded(guarded_subject("sjf"), [ONE, Instance([Job("a", duration=2)], "1x1", name="one")], settings=settings)
    ONE.save(settings.root / "one.json")
    for over in (ONE, [ONE], iter([ONE]), Path("one.json"), "one.json"):
        assert len(guarded(guarded_subject("sjf"), over, settings=settings).measured) == 1
    with one_line("objective = ['makespan']: not an objective"):
        guarded(guarded_subject("sjf"), ONE, ["makespan"], settings)  # type: ignore[arg-type]


def test_a_run_that_never_ends_is_in_no_baseline(settings: GuardSettings) -> None:
    def forgets(instance: Instance) -> Any:
        from optsched.problem.schedule import Schedule

        return Schedule.from_segments(instance, [])

    for update in ("", "all", "lower"):
        lazy = guarded(guarded_subject(forgets), ONE, settings=dataclasses.replace(settings, update=update))
        assert "no value to compare: on one job 'a' never finishes" in failure(lazy, "no_worse_than_baseline")[0]
        assert "entry" not in lazy.record


def test_a_theorem_is_held_against_anybody_by_name(settings: GuardSettings) -> None:
    mine = guarded(guarded_subject(one_by_one), "blocked-long-job:m=3", settings=settings)
    assert failure(mine, "keeps_guarantee")[0].startswith("one_by_one on blocked-long-job:m=3: no theorem is about it")
    lines = failure(mine, "keeps_guarantee", "graham-list")
    assert "breaks the guarantee 'graham-list'" in lines[0]
    assert len(lines) == 3
    listed = guarded(guarded_subject("fifo"), "blocked-long-job:m=3", settings=settings)
    listed.keeps_guarantee("graham-list").keeps_guarantee("lpt", like="list:by=longest")
    assert listed.record["guarantee"] == "lpt: 1 open"  # 5 is more than 11/9 times 3, a schedule that preempts
    elsewhere = guarded(guarded_subject("fifo"), "rigid-small", settings=settings)
    assert "the theorem graham-list applies to no instance" in failure(elsewhere, "keeps_guarantee", "graham-list")[0]
    with pytest.raises(InputError, match="the theorem is not about it"):
        listed.keeps_guarantee("lpt", like="srtf")


def test_a_theorem_that_is_violated_is_found_without_its_name(settings: GuardSettings) -> None:
    with filed(false_theorem()):
        guard = guarded(guarded_subject("list"), "blocked-long-job:m=3", settings=settings)
        assert "list breaks the guarantee 'false'" in failure(guard, "keeps_guarantee")[0]


def write(path: Path, document: dict[str, Any], changed: dict[str, Any]) -> None:
    ratios = [each["ratio"] for each in changed["instances"].values()]
    changed |= {"worst": max(ratios), "mean": sum(ratios) / len(ratios)}
    path.write_text(json.dumps(document))


def test_the_baseline_is_that_of_the_test(settings: GuardSettings) -> None:
    def sjf(**changes: Any) -> GuardedRatio:
        return guarded(guarded_subject("sjf"), "rigid-small", settings=dataclasses.replace(settings, **changes))

    (entry,) = sjf(update="all").no_worse_than_baseline().record["entry"].items()
    kept = {settings.test: dict([entry])}
    assert baseline_file.update(settings.baseline, kept, settings.root) == 1
    assert baseline_file.update(settings.baseline, kept, settings.root) == 0
    assert sjf().no_worse_than_baseline().record["before"] == 1.11538462
    assert "no entry of this test" in failure(sjf(test="test_a.py::test_c"), "no_worse_than_baseline")[0]

    document = json.loads(settings.baseline.read_text())
    then = document["tests"][settings.test][entry[0]]
    then["instances"]["rigid-06-1"]["ratio"] = 1.1
    write(settings.baseline, document, then)
    worse = sjf()
    said = failure(worse, "no_worse_than_baseline")[0]
    assert "the worst ratio rose from 1.1000 to 1.1154, on the instance rigid-06-1" in said
    assert "rose from" in failure(sjf(only="rigid-06-1"), "no_worse_than_baseline")[0]
    assert "entry" not in sjf(only="rigid-08-1").no_worse_than_baseline().record
    del then["instances"]["rigid-08-1"]
    write(settings.baseline, document, then)
    assert "the baseline has other instances (rigid-08-1)" in failure(worse, "no_worse_than_baseline")[0]


def test_whoever_fails_says_on_which_instance(settings: GuardSettings) -> None:
    def stumbles(instance: Instance) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        guarded(guarded_subject(stumbles), "rigid-small", settings=settings)
    (note,) = caught.value.__notes__
    assert "stumbles failed on an instance of rigid-small" in note
    assert "--ratio-instance=rigid-06-1" in note
    assert len(list(settings.folder.iterdir())) == 1


def test_nobody_passes_on_instances_that_are_not_for_him(settings: GuardSettings) -> None:
    with pytest.raises(InputError, match="no instance of rigid-small is for it"):
        guarded(guarded_subject("sjf-bsbf"), "rigid-small", settings=settings)
    with pytest.raises(InputError, match="no instance of transfers-small is for it"):
        guarded(guarded_subject(one_by_one), "transfers-small", settings=settings)
