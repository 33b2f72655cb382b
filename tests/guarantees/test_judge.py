"""Verdicts: true theorems hold, false ones are found out; a stated optimum is believed where it is proved."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from invariance.clocks import on_another_clock

from guarantees.theorems import false_theorem, filed
from optsched.bounds import bound
from optsched.check.referee import check_schedule, schedule_value
from optsched.evaluation.evaluate import evaluate
from optsched.evaluation.optimum_bounds import KNOWN, OptimumBounds
from optsched.evaluation.report import Report
from optsched.guarantees.completion_times import SRPT
from optsched.guarantees.judge import Judgement, chosen, judge, judgements
from optsched.guarantees.list_scheduling import GRAHAM, LPT, blocked_long_job, three_last
from optsched.guarantees.optimum import is_proved, proved_here
from optsched.io.index import shipped
from optsched.io.sources import load
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.solvers.solve import solve


def three_units(**optimum: object) -> Instance:
    """Three unit jobs on two machines: 2 without preemption, 3/2 with; no bound is above 3/2 and whole numbers give 2."""
    stated = {"objective": "makespan", "class": "gang-nonpreemptive", "value": 2, "proved_by": ["by hand"]}
    jobs = [Job(name, duration=1) for name in "abc"]
    return proved_here(Instance(jobs, "1x2", objective="makespan", optimum={**stated, **optimum} if optimum else None))


def test_a_factor_that_is_too_small_is_violated() -> None:
    instance = blocked_long_job(3)  # 5 against 3
    with filed(false_theorem()):
        report = evaluate(instance, ["list"])
    (violation,) = report.violations
    assert (violation.id, violation.policy, violation.holds) == ("false", "list", False)
    assert "1.66667 times" in violation.findings[0]
    assert "list" in violation.complaint
    assert "false" in violation.complaint
    (line,) = report.lines
    assert line.guarantee == violation  # it is shown before the theorem that holds
    assert line.to_json()["guarantee"] == {
        "id": "false",
        "objective": "makespan",
        "ratio": 1.2,
        "value": 5.0,
        "bound": 3.0,
        "holds": False,
    }
    assert "list breaks the guarantee 'false'" in violation.complaint
    assert evaluate(instance, ["list"]).violations == []


def test_a_better_run_of_another_policy_refutes_it() -> None:
    # Nothing is stated: list gives 5; only the run by the longest first shows that 3 can be had.
    instance = blocked_long_job(3).replace(optimum=None)
    theorem = false_theorem(ratio=lambda policy, run: Fraction(3, 2))
    policy, run = specify("list").policy, simulate(instance, "list")
    assert judge(theorem, policy, run, OptimumBounds(instance, [run])).holds is None
    better = simulate(instance, "list:by=longest")
    assert judge(theorem, policy, run, OptimumBounds(instance, [run, better])).holds is False


def test_an_optimum_with_preemption_is_none_without() -> None:
    # LPT on three unit jobs and two machines: 2, and 2 is optimal without preemption. A run that preempts (3/2) proves
    # nothing about that: against it the ratio would be 4/3, more than 4/3 - 1/6.
    instance = three_units(**{"class": "gang", "value": 1.5})
    run = simulate(instance, "list:by=longest")
    policy = specify("list:by=longest").policy
    assert judge(LPT, policy, run, OptimumBounds(instance, [run])).holds is None
    everywhere = dataclasses.replace(LPT, schedule_class="gang")
    assert judge(everywhere, policy, run, OptimumBounds(instance, [run])).holds is False


def test_a_job_that_is_late_for_the_proof_is_named() -> None:
    instance = blocked_long_job(3)
    run = simulate(instance, "list")
    assert GRAHAM.audit(None, run) == []
    # The same schedule, but the long job waits ten seconds more than any list would have it.
    late = dataclasses.replace(run.schedule, start=run.schedule.start + 0.0, end=run.schedule.end + 0.0)
    (row,) = [s for s in range(len(late)) if late.job[s] == instance.n - 1]
    late.start[row] += 10
    late.end[row] += 10
    wrong = dataclasses.replace(run, schedule=late)
    judgement = judge(GRAHAM, None, wrong, OptimumBounds(instance.replace(optimum=None), [wrong]))
    assert judgement.holds is False
    assert any(
        f"job '{instance.n - 1}' completes at 15 s after the first arrival, 10 s after 5" in finding
        for finding in judgement.findings
    )


def test_whole_numbers_are_judged_exactly_and_others_up_to_rounding() -> None:
    instance = blocked_long_job(3)
    run = simulate(instance, "list")
    proven = OptimumBounds(instance, [run])
    just_below = Fraction(5, 3) - Fraction(1, 10**12)
    assert judge(false_theorem(ratio=lambda p, r: just_below), None, run, proven).holds is False
    assert judge(false_theorem(ratio=lambda p, r: float(just_below)), None, run, proven).holds is True
    assert judge(false_theorem(ratio=lambda p, r: 5 / 3 - 1e-6), None, run, proven).holds is False


def test_a_theorem_must_give_a_finite_ratio() -> None:
    instance = blocked_long_job(2)
    run = simulate(instance, "list")
    with pytest.raises(ValueError, match="false"):
        judge(false_theorem(ratio=lambda p, r: float("inf")), None, run, OptimumBounds(instance, [run]))


def test_broken_assumptions_and_policies_without_theorem_give_none() -> None:
    released = Instance([Job("a", duration=1), Job("b", arrival=1, duration=2)], "1x2", objective="makespan")
    wide = Instance([Job("a", gpus=2, duration=1)], "1x2", objective="makespan")
    flat = Instance([Job("a", duration=1)], "1x2", objective="makespan")
    for instance, policy in ((released, "list"), (wide, "tiresias"), (flat, "tiresias"), (flat, "srtf:restart=1")):
        (line,) = evaluate(instance, [policy]).lines
        assert line.guarantee is None
        assert line.to_json()["guarantee"] is None
    one = Instance([Job("a", duration=1)], "1x1", objective="total_completion_time")
    found = {text: evaluate(one, [text]).lines[0].guarantee for text in ("srtf", "srtf:restart=1")}
    assert found["srtf"] is not None
    assert found["srtf:restart=1"] is None


def test_a_placement_that_lets_gangs_wait_breaks_the_assumption() -> None:
    instance = three_units()
    for placement, kept in (("count", True), ("first-fit", True), ("random", True), ("consolidated", False)):
        spec = specify(f"list+{placement}")
        assert GRAHAM.applies(spec.policy, spec.placement, instance) is kept, placement
    mixed = Instance([Job("a", duration=1, gpu_types=("V100",))], "1x1:V100+1x1:P100", objective="makespan")
    spec = specify("list")
    assert any("every GPU" in text for text in GRAHAM.assumptions(spec.policy, spec.placement, mixed))


def test_the_guarantee_is_on_its_own_objective() -> None:
    # On one machine SRPT is also optimal for flow time, but the theorem filed speaks of completion times: 10 + 2 against 9.
    instance = Instance([Job("a", duration=3), Job("b", arrival=1, duration=1)], "1x1", objective="total_flow_time")
    (line,) = evaluate(instance, ["srtf"]).lines
    assert line.value == 4 + 1
    assert line.guarantee is not None
    assert line.guarantee.to_json() == {
        "id": "srpt-one-machine",
        "objective": "total_completion_time",
        "ratio": 1.0,
        "value": 6.0,
        "bound": 6.0,
        "holds": True,
    }


def test_of_several_theorems_the_one_of_the_objective_and_then_the_strongest_is_shown() -> None:
    instance = three_last(3)
    spec = specify("list:by=longest")
    run = simulate(instance, spec)
    judged = judgements(spec, run, OptimumBounds(instance, [run]))
    assert [j.id for j in judged] == ["graham-list", "lpt"]
    shown = chosen(judged, "makespan")
    assert shown is not None
    assert shown.id == "lpt"
    other = Judgement("other", "total_flow_time", 9.0, 1.0, 1.0, None)
    assert chosen([*judged, other], "total_flow_time") == other
    wrong = Judgement("wrong", "total_flow_time", 9.0, 1.0, 1.0, False)
    assert chosen([*judged, wrong], "makespan") == wrong
    assert chosen([], "makespan") is None


def test_a_job_that_never_finishes_breaks_any_guarantee() -> None:
    instance = three_units()
    run = simulate(instance, "list")
    keep = run.schedule.job != 2
    cut = {name: getattr(run.schedule, name)[keep] for name in ("job", "start", "end", "work")}
    pairs = keep.repeat(run.schedule.gangs)
    gpus = {name: getattr(run.schedule, name)[pairs] for name in ("gpu_node", "gpu_index")}
    offset = run.schedule.gpu_offset[: keep.sum() + 1]
    unfinished = dataclasses.replace(run, schedule=dataclasses.replace(run.schedule, gpu_offset=offset, **cut, **gpus))
    judgement = judge(GRAHAM, None, unfinished, OptimumBounds(instance, [unfinished]))
    assert (judgement.holds, judgement.value) == (False, None)
    assert "job 'c' never finishes" in judgement.complaint


def test_bounds_on_flow_and_completion_time_serve_each_other_exactly() -> None:
    instance = Instance([Job("a", arrival=0.1, duration=0.3), Job("b", arrival=0.7, duration=0.2)], "1x1")
    for first, second in (
        ("total_flow_time", "total_completion_time"),
        ("total_completion_time", "total_flow_time"),
        ("total_weighted_flow_time", "total_weighted_completion_time"),
    ):
        proven = OptimumBounds(instance)
        certificate = proven.certificate(first)
        assert certificate is not None
        released = Fraction(0.1) + Fraction(0.7)
        expected = certificate.value + (released if "flow" in first else -released)
        assert proven.lower(second) == expected
        assert proven.lower(first) == certificate.value
    run = simulate(instance, "srtf")
    proven = OptimumBounds(instance, [run])
    value, upper = schedule_value(instance, run.schedule, "total_flow_time"), proven.upper("total_flow_time", "gang")
    assert upper is not None
    assert value <= upper <= value + Fraction(1, 10**15)  # what the sums of times have lost is not on its side
    assert proven.upper("total_flow_time", "gang-nonpreemptive") in (None, proven.upper("total_flow_time", "gang"))
    assert SRPT.schedule_class == "gang"


# -- what an instance states of its optimum: proved by the index, this process, files beside it ---------------------------


LATE = 1.7e9


def stated(instance: Instance, value: Any, schedule_class: str = "gang-nonpreemptive") -> Instance:
    return instance.replace(
        optimum={"objective": instance.objective, "class": schedule_class, "value": value, "proved_by": ["somebody"]}
    )


def trap() -> Instance:
    """A long job, then a short one: without preemption SJF takes 18 + 9, at best 11 + 2, with it 11 + 2."""
    return Instance(
        [Job("long", duration=9), Job("short", arrival=1, duration=1)], "1x1", "trap", "total_completion_time"
    )


def report_of(instance: Instance, path: Path, *policies: str) -> Report:
    instance.save(path)
    return evaluate(load(path), policies or ("sjf",))


@pytest.mark.parametrize("clock", [0.0, LATE])
def test_a_stated_value_is_no_bound_and_no_optimum(tmp_path: Path, clock: float) -> None:
    instance = on_another_clock(load("rigid-06-1"), clock + 1)  # no instance of the index
    best = solve(instance).value
    assert best is not None
    for value in (best, best - 0.5):
        report = report_of(stated(instance, value), tmp_path / "i.json")
        (line,) = report.lines
        assert line.bound is not None
        assert line.bound.kind != KNOWN
        assert f"states an optimum of {value:.12g}" in report.note
        proven = OptimumBounds(load(tmp_path / "i.json"))
        assert proven.upper("total_completion_time", "gang-nonpreemptive") is None
    assert report_of(instance, tmp_path / "i.json").note == ""


def test_what_the_index_proves_is_known_by_the_digest(tmp_path: Path) -> None:
    for each in [each for each in shipped() if each.optimum is not None][::9]:
        instance = load(each.name)
        assert each.digest == instance.digest
        assert is_proved(instance)
        assert instance.optimum is not None
        assert not is_proved(stated(instance, instance.optimum["value"] - 0.5))
        assert not is_proved(stated(instance, instance.optimum["value"], "gang"))
        assert not is_proved(on_another_clock(instance, 1.0))
        instance.replace(name="other").save(tmp_path / "other.json")
        assert is_proved(load(tmp_path / "other.json"))
        assert OptimumBounds(instance).upper(each.objective, "gang-nonpreemptive") == instance.optimum["value"]


def test_what_this_process_proved_is_known() -> None:
    instance = stated(trap(), 13)
    assert not is_proved(instance)
    assert is_proved(proved_here(instance))
    assert not is_proved(stated(trap(), 12))
    assert not is_proved(proved_here(trap()))


@pytest.mark.parametrize("clock", [0.0, LATE])
def test_a_certificate_and_a_schedule_beside_the_file_prove_an_optimum(tmp_path: Path, clock: float) -> None:
    # SJF misses the optimum of the class gang, 12, which SRTF reaches: nothing says so unless its schedule lies beside.
    path, instance = tmp_path / "i.json", on_another_clock(trap(), clock)
    alone = report_of(instance, path)
    assert [line.bound.exact for line in alone.lines if line.bound] == [False]
    best = simulate(instance, "srtf")
    assert check_schedule(instance, best.schedule) == []
    best.schedule.save(tmp_path / "i.schedule.json")
    bound(instance).save(tmp_path / "i.certificate.json")
    (line,) = evaluate(load(path), ["sjf"]).lines
    assert line.bound is not None
    assert (line.bound.exact, line.bound.ratio_to) == (True, "optimum")
    assert line.bound.value == pytest.approx(float(schedule_value(instance, best.schedule, "total_completion_time")))
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang") == schedule_value(
        instance, best.schedule, "total_completion_time"
    )
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang-nonpreemptive") is None


def test_proofs_beside_the_file_that_do_not_hold_are_named_and_not_used(tmp_path: Path) -> None:
    path, instance = tmp_path / "i.json", trap()
    instance.save(path)
    simulate(instance, "srtf").schedule.save(tmp_path / "i.schedule.json")
    document = json.loads((tmp_path / "i.schedule.json").read_text())
    document["segments"][-1]["end"] -= 2
    (tmp_path / "i.schedule.json").write_text(json.dumps(document))
    (tmp_path / "i.certificate.json").write_text("{")
    report = evaluate(load(path), ["sjf"])
    assert [line.bound.exact for line in report.lines if line.bound] == [False]
    assert "i.schedule.json" in report.note
    assert "i.certificate.json" in report.note
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang") is None
