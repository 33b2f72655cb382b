"""`Run`: what it counts, and that its conservation checks notice what they are for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from examples import few

from optsched.compiled import without_interpreting
from optsched.errors import SimulationError
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.ordered import ordered_loop
from optsched.simulation.policy import Knowledge, Order
from optsched.simulation.records import FINISHED_RUN, FREE
from optsched.simulation.run import Run, RunLog, result, run_log, schedule_of
from optsched.simulation.state import State, grown, new_state
from simulation.instances import HOMOGENEOUS, random_instance


def run(instance: Instance, spec: str) -> Run:
    chosen = specify(spec)
    return run_policy(instance, chosen.policy, chosen.placement, name=spec)


@pytest.mark.parametrize("seed", few(range(10), 3))
def test_events_are_arrivals_and_completions_and_preemptions_are_segments_too_many(seed: int) -> None:
    instance = random_instance(700 + seed, HOMOGENEOUS[seed % 5])
    for spec in ("fifo", "sjf", "srtf:restart=1"):
        made = run(instance, spec)
        assert made.events == 2 * instance.n
        assert made.preemptions == len(made.schedule) - instance.n
        assert made.instance is instance
        assert made.value("total_completion_time") == made.schedule.completion.sum()
        assert made.value() == made.metrics["total_flow_time"]
        assert made.seconds >= 0


def test_a_run_names_its_policy_its_knowledge_and_its_class_of_schedules() -> None:
    instance = Instance([Job("a", duration=1)], "1x1", objective="makespan")
    assert (run(instance, "fifo").policy, run(instance, "fifo").knowledge) == ("fifo", Knowledge.NON_CLAIRVOYANT)
    assert run(instance, "sjf").knowledge is Knowledge.CLAIRVOYANT
    assert run(instance, "sjf").schedule_class == "gang-nonpreemptive"
    assert run(instance, "srtf").schedule_class == "gang"  # it might have preempted: the bound must hold for that too
    assert run(instance, "sjf+random").schedule.policy == "sjf+random"
    assert run(instance, "sjf").value() == 1


def test_changes_of_level_and_ends_of_rounds_are_events() -> None:
    instance = Instance([Job("a", duration=10)], "1x1")
    assert run(instance, "tiresias:threshold=4").events == 3
    late = Instance([Job("first", duration=1), Job("a", arrival=1.5, duration=10)], "1x1")
    assert run(late, "tiresias:threshold=4,round=2").events == 2 + 4


def finished_state() -> tuple[State, Instance]:
    instance = Instance([Job("a", gpus=2, duration=3), Job("b", arrival=1, duration=2)], "2x2")
    chosen = specify("fifo+first-fit")
    state, site = new_state(instance, Order(key=instance.arrival), chosen.placement)
    assert ordered_loop(site)(chosen.placement.place, state, site, 1000) == FINISHED_RUN
    return state, instance


def run_of(log: RunLog, instance: Instance) -> Run:
    return result(log, schedule_of(log, instance, False, "x"), Knowledge.CLAIRVOYANT, False)


def test_an_untouched_state_passes() -> None:
    state, instance = finished_state()
    assert run_of(run_log(state), instance).schedule.completion.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("tamper", "what"),
    [
        (lambda s: s.segments["work"].__setitem__(0, 2.5), "job 'a': 0.5 units of work were lost or invented"),
        (lambda s: s.jobs["left"].__setitem__(1, 1.0), "job 'b': 1 units of work were lost or invented"),
        (lambda s: s.pools.__setitem__((FREE, 0), 1), "GPUs are still held"),
        (lambda s: s.engine["free"].__setitem__(0, 3), "GPUs are still held"),
        (lambda s: s.engine["active"].__setitem__(0, 1), "GPUs are still held"),
    ],
)
def test_lost_work_and_lost_gpus_are_noticed(tamper: Callable[[State], None], what: str) -> None:
    state, instance = finished_state()
    tamper(state)
    with pytest.raises(SimulationError, match=what):
        run_of(run_log(state), instance)


def test_a_gpu_given_twice_is_noticed_when_gpus_are_named() -> None:
    state, instance = finished_state()
    state.parts["count"][:] = 2
    state.parts["pool"][:] = 0
    with pytest.raises(Exception, match="does not fit at 1 s: more GPUs in use than there are"):
        run_of(run_log(state), instance)


def test_a_grown_log_keeps_what_it_held() -> None:
    state, _ = finished_state()
    larger = grown(state)
    for old, new in ((state.segments, larger.segments), (state.parts, larger.parts)):
        assert new.size == 2 * old.size
        assert np.array_equal(new[: old.size], old)
    assert larger.engine is state.engine


@pytest.mark.release
def test_a_run_takes_320_bytes_a_job_beside_its_instance() -> None:
    jobs = 40_000
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], jobs), np.ceil(rng.lognormal(7.0, 1.5, jobs))
    gaps = rng.exponential(float(gpus @ duration) / jobs / 512 / 0.9, jobs)
    table = pl.DataFrame({"arrival": np.floor(np.cumsum(gaps)), "gpus": gpus, "duration": duration})
    instance = Instance(table, "64x8")
    with without_interpreting():
        simulate(instance, "sjf")  # what is computed once an instance, and compiled
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            made = simulate(instance, "fifo")
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert made.schedule.gpu_node.size > 3 * jobs
    assert (peak - before) / jobs < 320  # the schedule included, with a little for what does not grow with the jobs
    assert (kept - before) / jobs < 128
