"""The classical theorems, and the inequalities of their proofs, against exhaustive optima."""

from __future__ import annotations

from fractions import Fraction

from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.check.referee import schedule_value
from optsched.guarantees.judge import judge
from optsched.guarantees.list_scheduling import GRAHAM, LPT
from optsched.guarantees.proven import Proven
from optsched.guarantees.srpt import SRPT
from optsched.policies.simulate import simulate
from optsched.policies.specification import specify
from optsched.problem.instance import Instance, Job

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def at_once(p: list[int], m: int) -> Instance:
    return Instance([Job(f"{j}", duration=length) for j, length in enumerate(p)], f"1x{m}", objective="makespan")


@settings(max_examples=examples(40))
@given(lengths, st.integers(1, 4), st.sampled_from(["list", "list:by=shortest", "fifo", "sjf", "wspt"]))
def test_list_scheduling(p: list[int], m: int, text: str) -> None:
    instance, spec = at_once(p, m), specify(text)
    assert GRAHAM.applies(spec.policy, spec.placement, instance)
    run = simulate(instance, spec)
    assert GRAHAM.audit(spec.policy, run) == []
    ratio = GRAHAM.ratio(spec.policy, run)
    best = optimum(instance, "makespan")
    assert schedule_value(instance, run.schedule, "makespan") <= ratio * best
    assert (
        judge(GRAHAM, spec.policy, run, Proven(instance, [run])).holds is True
    )  # its proof uses only volume and p_max


@settings(max_examples=examples(40))
@given(lengths, st.integers(1, 4))
def test_longest_first(p: list[int], m: int) -> None:
    instance, spec = at_once(p, m), specify("list:by=longest")
    assert LPT.applies(spec.policy, spec.placement, instance)
    assert not LPT.applies(specify("list").policy, spec.placement, instance)
    run = simulate(instance, spec)
    ratio = LPT.ratio(spec.policy, run)
    assert schedule_value(instance, run.schedule, "makespan") <= ratio * optimum(instance, "makespan")
    assert judge(LPT, spec.policy, run, Proven(instance, [run])).holds is not False


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=4))
def test_srpt_is_optimal_on_one_machine(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(f"{j}", arrival=r, duration=p) for j, (r, p) in enumerate(rows)], "1x1")
    for text in ("srtf", "srtf-gpu"):
        spec = specify(text)
        run = simulate(instance, spec)
        value = schedule_value(instance, run.schedule, SRPT.objective)
        assert value == preemptive_optimum(instance, SRPT.objective)
        assert judge(SRPT, spec.policy, run, Proven(instance, [run])).holds is True


times = st.floats(0, 1e6, allow_nan=False).map(abs)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(times, st.floats(0.01, 1e5)), min_size=1, max_size=12))
def test_srpt_holds_up_to_rounding_with_real_times(rows: list[tuple[float, float]]) -> None:
    instance = Instance([Job(f"{j}", arrival=r, duration=p) for j, (r, p) in enumerate(rows)], "1x1")
    spec = specify("srtf")
    run = simulate(instance, spec)
    others = [simulate(instance, text) for text in ("srtf-gpu", "sjf")]
    judgement = judge(SRPT, spec.policy, run, Proven(instance, [run, *others]))
    assert judgement.holds is True
    assert judgement.bound is not None
    assert Fraction(judgement.bound) <= Proven(instance).lower(SRPT.objective)  # type: ignore[operator]
