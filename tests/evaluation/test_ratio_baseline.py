"""No ratio of any policy on any shipped suite is worse than under version control, and this check can fail."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from guarantees.theorems import false_theorem, filed

from optsched.errors import InputError
from optsched.evaluation import ratio_baseline as baseline
from optsched.evaluation.evaluate import measure
from optsched.evaluation.measured_ratio import BoundShown, MeasuredRatio
from optsched.evaluation.suite_ratios import PolicyRatios, RatioTable, ratios
from optsched.evaluation.suites import Suite, suite
from optsched.guarantees.judge import violated
from optsched.policies.simulate import serves, specify


@pytest.mark.study
def test_no_ratio_is_worse_than_the_baseline_and_every_guarantee_is_kept() -> None:
    table, known = baseline.measured(), baseline.load()
    assert baseline.worse(table, known) + baseline.gone(table, known) == []


SMALL = 40  # jobs: the clusters are for the study (their schedules are frozen in tests/frozen)
PARTS = 4  # of the small instances, so that several processes share them


@pytest.mark.release
@pytest.mark.parametrize("part", range(PARTS))
def test_no_ratio_on_a_small_instance_is_worse_and_every_guarantee_is_kept(part: int) -> None:
    small = [(name, instance) for name, instance in suite("all").instances() if instance.n <= SMALL]
    assert len(small) > 60
    known, policies_of_all = baseline.load()["policies"], baseline.measurable()
    assert known.keys() >= set(policies_of_all), "a new policy: python -m optsched.evaluation.ratio_baseline --write"
    for k, (name, instance) in enumerate(small[part::PARTS]):
        # every second policy, and the others on the next instance
        names = policies_of_all[k % 2 :: 2]
        policies = [each for each in map(specify, names) if serves(each.policy, instance)]
        for each in measure(instance, policies, name=name):
            then, now = known[each.policy]["instances"][name], baseline.kept(each.ratio)
            assert then is None or (now is not None and now <= baseline.WORSE * then), (each.policy, name)
            assert violated(each.judged) == []


SHIPPED = {
    "one": Suite("one", ("one-1", "one-2")),
    "two": Suite("two", ("two-1",)),
    "all": Suite("all", ("one-1", "one-2", "two-1")),
}


def table(**values: float) -> RatioTable:
    """``first`` on three instances of optimum 100 with these values."""
    given = {"one-1": 110.0, "one-2": 120.0, "two-1": 150.0, **{k.replace("_", "-"): v for k, v in values.items()}}
    bound = BoundShown(100.0, "known-optimum", "gang-nonpreemptive", True)
    rows = tuple(MeasuredRatio(name, "makespan", "first", value, bound) for name, value in given.items())
    return RatioTable("all", (PolicyRatios("first", rows),))


@pytest.fixture
def known() -> dict[str, Any]:
    return baseline.document(table(), SHIPPED)


def test_the_document(known: dict[str, Any]) -> None:
    first = known["policies"]["first"]
    assert first["instances"] == {"one-1": 1.1, "one-2": 1.2, "two-1": 1.5}
    assert first["suites"]["one"] == {"worst": 1.2, "worst_instance": "one-2", "mean": 1.15, "without": 0}
    assert first["suites"]["all"]["mean"] == pytest.approx(3.8 / 3)


def test_within_one_percent_is_no_worse(known: dict[str, Any]) -> None:
    assert baseline.worse(table(), known, SHIPPED) == []
    assert baseline.worse(table(one_2=121.1, two_1=120), known, SHIPPED) == []


def test_a_worse_worst_names_policy_suite_and_instance(known: dict[str, Any]) -> None:
    found = baseline.worse(table(two_1=152), known, SHIPPED)
    assert found == [
        "first on the suite two: the worst ratio rose from 1.5000 to 1.5200, on the instance two-1",
        "first on the suite two: the mean ratio rose from 1.5000 to 1.5200, on the instance two-1",
        "first on the suite all: the worst ratio rose from 1.5000 to 1.5200, on the instance two-1",
    ]  # the mean of all rises by half a percent


def test_a_worse_mean_names_the_instance_that_grew_most(known: dict[str, Any]) -> None:
    found = baseline.worse(table(one_1=119), known, SHIPPED)
    assert found == [
        "first on the suite one: the mean ratio rose from 1.1500 to 1.1950, on the instance one-1",
        "first on the suite all: the mean ratio rose from 1.2667 to 1.2967, on the instance one-1",
    ]


def test_a_ratio_that_is_lost_is_worse(known: dict[str, Any]) -> None:
    found = baseline.worse(table(two_1=float("nan")), known, SHIPPED)
    assert "first on the suite two: no ratio any more on the instance two-1" in found


def test_policies_and_instances_must_be_known(known: dict[str, Any]) -> None:
    second = RatioTable("all", (dataclasses.replace(table().policies[0], policy="second"),))
    assert baseline.worse(second, known, SHIPPED) == [f"second is not in the baseline: run {baseline.COMMAND}"]
    assert baseline.gone(second, known) == [f"first is in the baseline, and no longer a policy: run {baseline.COMMAND}"]
    assert baseline.gone(table(), known) == []
    more = {**SHIPPED, "three": Suite("three", ("two-1",))}
    (found,) = baseline.worse(table(), known, more)
    assert "three" in found
    assert baseline.COMMAND in found


def test_the_real_baseline_doctored_is_found_out() -> None:
    small = ratios("wide-gangs", "sjf")
    shipped = {"wide-gangs": Suite("wide-gangs", tuple(each.instance for each in small.policies[0].measured))}
    doctored = baseline.document(small, shipped)
    assert baseline.worse(small, doctored, shipped) == []
    part = copy.deepcopy(doctored)
    part["policies"]["sjf"]["suites"]["wide-gangs"]["worst"] /= 1.02
    (found,) = baseline.worse(small, part, shipped)
    assert found.startswith("sjf on the suite wide-gangs: the worst ratio rose")


def test_a_violated_guarantee_fails_whatever_the_ratios() -> None:
    with filed(false_theorem(ratio=lambda policy, run: 0.5)):
        small = ratios("tardiness-06-1", "wspt")
    shipped = {"tardiness": Suite("tardiness", ("tardiness-06-1",))}
    (found,) = baseline.worse(small, baseline.document(small, shipped), shipped)
    assert found.startswith("wspt breaks the guarantee 'false'")
    assert "tardiness-06-1" in found


def test_the_command_writes_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baseline, "suites", lambda: SHIPPED)
    monkeypatch.setattr(baseline, "measured", table)
    path = tmp_path / "baseline.json"
    assert baseline.main(["--write", "--file", str(path)]) == 0
    assert baseline.load(path) == baseline.document(table(), SHIPPED)
    assert baseline.main(["--file", str(path)]) == 0
    monkeypatch.setattr(baseline, "measured", lambda: table(two_1=200))
    assert baseline.main(["--file", str(path)]) == 1
    assert "on the instance two-1" in capsys.readouterr().err
    path.write_text("{}")
    with pytest.raises(InputError, match="format"):
        baseline.load(path)
    path.write_text("{")
    with pytest.raises(InputError, match="truncated"):
        baseline.load(path)
