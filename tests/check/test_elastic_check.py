"""The referee of elastic schedules: valid ones pass, also from files; every forgery is caught under its rule."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation.elastic_instances import elastic_instance

from optsched.check.referee import check_file, check_schedule
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule, Segment
from optsched.speeds.goodput_rates import Goodputs

Rows = list[Segment]
SPLIT = Scaling(0.0, 1.0, iterations=((2, 10.0), (4, 6.0)))
# j0 does its 30 iterations of 2 samples on three places; "rigid" holds its gang of 2; "typed" may use node 1 alone
JOBS = [
    Job("j0", 5, 2, iterations=30, profile="m", batch_size=2),
    Job("rigid", 0, 2, 10),
    Job("typed", 0, 1, iterations=6, profile="m", batch_size=2, gpu_types=("B",)),
]
INSTANCE = Instance(JOBS, "1x4:A+1x2:B", scalings={"m": SPLIT})


def places(node: int, *gpus: int) -> tuple[tuple[int, int], ...]:
    return tuple((node, k) for k in gpus)


def valid() -> Rows:
    # batch 2 on one GPU: 2 s; batch 4: 4 s, worth 10 / 6. On two GPUs half of it; on three two samples on each, on four one
    return [
        Segment(0, places(0, 0), 5.0, 15.0, 5.0),
        Segment(0, places(0, 0, 1), 15.0, 25.0, 10.0),
        Segment(0, places(0, 0, 1, 2, 3), 25.0, 34.0, 15.0),
        Segment(1, places(0, 2, 3), 0.0, 10.0, 10.0),
        Segment(2, places(1, 0, 1), 0.0, 6.0, 6.0),
    ]


def found(rows: Rows, schedule_class: str = "elastic", preemptive: bool = True) -> set[str]:
    schedule = Schedule.from_segments(INSTANCE, rows)
    broken = check_schedule(INSTANCE, schedule, schedule_class=schedule_class, preemptive=preemptive)
    return {violation.rule for violation in broken}


def test_the_valid_one_is_valid_and_only_as_an_elastic_schedule() -> None:
    assert found(valid()) == set()
    assert found(valid(), "gang") == {"gang"}


def edit(s: int, **changes: object) -> Callable[[Rows], Rows]:
    return lambda rows: [replace(row, **changes) if k == s else row for k, row in enumerate(rows)]  # type: ignore[arg-type]


FORGED: dict[str, tuple[Callable[[Rows], Rows], set[str]]] = {
    "too fast by a millionth": (edit(2, end=34.0 - 9e-6), {"rate"}),
    "too fast on one GPU": (edit(0, work=5.001), {"rate", "work"}),
    "the speed of four GPUs on three": (edit(2, gpus=places(0, 0, 1, 2)), {"rate"}),
    "the speed of two GPUs on one": (edit(1, gpus=places(0, 0)), {"rate"}),
    "a rigid job on one GPU": (edit(3, gpus=places(0, 2)), {"gang"}),
    "a rigid job on three GPUs": (edit(3, gpus=places(0, 1, 2, 3)), {"gang"}),
    "no GPUs": (edit(0, gpus=()), {"gang"}),
    "more GPUs than samples": (edit(2, gpus=(*places(0, 0, 1, 2, 3), (1, 0)), start=25.0, end=34.0), {"gang"}),
    "two places at once": (
        lambda rows: [
            *rows[:1],
            replace(rows[1], work=5.0, end=20.0),
            Segment(0, places(1, 0, 1), 15.0, 20.0, 5.0),
            *rows[2:4],
            replace(rows[4], start=20.0, end=26.0),
        ],
        {"gang"},
    ),
    "a GPU twice": (edit(1, gpus=places(0, 0, 0)), {"capacity"}),
    "a GPU of another job": (edit(0, gpus=places(0, 2)), {"capacity"}),
    "no such GPU": (edit(0, gpus=places(0, 4)), {"capacity"}),
    "no such node": (edit(0, gpus=places(7, 0)), {"capacity"}),
    "before the arrival": (edit(0, start=4.0), {"arrival"}),
    "not all of the work": (edit(2, work=14.0), {"work"}),
    "too much work": (lambda rows: [*rows, Segment(0, places(0, 0), 50.0, 60.0, 1.0)], {"work"}),
    "negative work": (
        lambda rows: (
            [edit(2, work=15.0)(rows)[k] for k in range(5)]
            + [Segment(0, places(0, 0), 50.0, 60.0, 1.0), Segment(0, places(0, 0), 60.0, 70.0, -1.0)]
        ),
        {"work"},
    ),
    "a job is missing": (lambda rows: rows[:4], {"completeness"}),
    "not a number": (edit(0, work=float("nan")), {"completeness"}),
    "the wrong type of GPU": (edit(4, gpus=places(0, 1), end=12.0), {"type"}),
    "ends before it starts": (edit(0, start=15.0, end=5.0), {"rate"}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forgeries(name: str) -> None:
    forge, rules = FORGED[name]
    assert rules <= found(forge(valid())), name


def test_an_elastic_schedule_may_be_forbidden_to_preempt() -> None:
    assert found(valid(), preemptive=False) == {"preemption"}


def test_files_say_that_they_are_elastic(tmp_path: Path) -> None:
    schedule = Schedule.from_segments(INSTANCE, valid())
    for name in ("a.json", "a.parquet"):
        schedule.save(tmp_path / name, elastic=True, objective="makespan", value=34)
        assert check_file(tmp_path / name, INSTANCE).holds
        schedule.save(tmp_path / name)
        assert {v.rule for v in check_file(tmp_path / name, INSTANCE).violations} == {"gang"}
    document = json.loads((tmp_path / "a.json").read_text()) | {"elastic": "yes"}
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(Exception, match="elastic"):
        check_file(tmp_path / "a.json", INSTANCE)


@pytest.mark.parametrize("seed", range(4))
def test_runs_pass_and_faster_ones_do_not(seed: int) -> None:
    instance = elastic_instance(seed, memory=seed % 3 == 1, measured=seed % 3 == 2)
    run = simulate(instance, "goodput:round=7,restart=2")
    assert check_schedule(instance, run.schedule, schedule_class="elastic") == []
    rows, goodputs = list(run.schedule.segments()), Goodputs(instance)
    for s in range(len(rows)):
        if rows[s].work == 0:
            continue
        on = tuple(Counter(node for node, _ in rows[s].gpus).items())
        needed = rows[s].work / goodputs.rate(rows[s].job, on)
        forged = edit(s, end=rows[s].start + needed * (1 - 1e-6))(rows)
        rules = {
            v.rule for v in check_schedule(instance, Schedule.from_segments(instance, forged), schedule_class="elastic")
        }
        assert rules == {"rate"}
