"""The policy `slurm`: its rules one by one, and the starts of workloads that ran on real Slurm."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from optsched.check.properties import broken_properties
from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from policies.slurm_runs import LOGS, Log, judged

Row = tuple[float, float, float, int]  # submission, run time, limit, GPUs


def starts(rows: list[Row], cluster: str = "1x8", **settings: object) -> list[float]:
    jobs = [Job(str(k), arrival=r, duration=p, walltime=e, gpus=q) for k, (r, p, e, q) in enumerate(rows)]
    text = "slurm:" + ",".join(f"{name}={value}" for name, value in settings.items())
    return simulate(Instance(jobs, cluster), text.rstrip(":")).jobs["start"].to_list()


HEAD: list[Row] = [(0, 100, 180, 6), (1, 30, 120, 6)]  # the second waits for the first, and leaves 2 GPUs over


def test_reservations_take_whole_nodes() -> None:
    narrow: Row = (2, 20, 600, 2)
    assert starts([*HEAD, narrow]) == [0, 100, 100]  # started by the main loop, which knows no reservations
    assert starts([*HEAD, narrow], whole="false") == [0, 100, 30]
    assert starts([*HEAD, (2, 20, 180, 2)]) == [0, 100, 100]  # at 30 it may end at 210, after 180
    assert starts([*HEAD, (2, 20, 120, 2)]) == [0, 100, 30]


def test_reservations_begin_and_end_at_whole_minutes_of_the_clock() -> None:
    rows: list[Row] = [*HEAD, (2, 20, 120, 2)]  # from 30 to 150 by its limit; the head is planned for 180
    assert starts(rows, second=30) == [0, 100, 30]  # the step of 180 begins at 150
    assert starts(rows, second=20) == [0, 100, 30]
    assert starts(rows, second=40) == [0, 100, 100]
    assert starts(rows, first=31) == [0, 100, 31]
    assert starts(rows, first=31, second=30) == [0, 100, 100]  # it would end at 151
    assert starts(rows, first=31, second=30, resolution=0) == [0, 100, 31]


def test_limits_are_rounded_up_to_minutes() -> None:
    for limit, start in {60: 30, 61: 130}.items():
        assert starts([(0, 100, 100, 6), (1, 30, 60, 8), (2, 20, limit, 2)])[2] == start  # 100 s are 2 min


def test_the_main_loop_lets_nobody_pass_and_cycles_come_later() -> None:
    assert starts([(0, 100, 120, 6), (1, 30, 60, 8), (2, 5, 60, 1), (31, 5, 60, 1)]) == [0, 100, 30, 60]
    # a job that is submitted in the second of a cycle misses it
    assert starts([(0, 100, 120, 6), (1, 30, 60, 8), (30, 5, 60, 1)], interval=20) == [0, 100, 50]


def test_a_head_beyond_the_window_has_no_reservation() -> None:
    rows: list[Row] = [(0, 150, 2 * 86400, 6), (1, 20, 60, 8), (2, 300, 5 * 86400, 2)]
    assert starts(rows) == [0, 330, 30]  # starved for 180 s after the first job ended
    assert starts(rows, window=3 * 86400) == [0, 150, 170]


def test_depth_one_is_easy() -> None:
    rows: list[Row] = [(0, 200, 240, 16), (1, 20, 120, 24), (2, 20, 120, 32), (3, 60, 600, 8)]
    assert starts(rows, "4x8") == [0, 200, 220, 240]
    assert starts(rows, "4x8", depth=1) == [0, 200, 220, 30]  # it leaves the head three nodes


def test_a_blocked_job_closes_its_nodes_alone() -> None:
    cluster = Cluster((NodeGroup(count=1, gpus=8, gpu="a"), NodeGroup(count=1, gpus=8, gpu="b")))
    kinds: list[tuple[str, ...] | None] = [("a",), ("a",), ("b",), None]
    jobs = [
        Job(str(k), arrival=k, duration=200, walltime=240, gpus=4 + k % 2 * 4, gpu_types=t) for k, t in enumerate(kinds)
    ]
    run = simulate(Instance(jobs, cluster), "slurm")
    # the last job may use both nodes, one of which is closed, and gets no whole node in the plan before 400 s
    assert run.jobs["start"].to_list() == [0, 200, 2, 202]
    assert run.notes["backfilled"].tolist() == [0, 0, 0, 0]


def test_priorities() -> None:
    rows: list[Row] = [(0, 100, 120, 8), (1, 10, 60, 2), (2, 10, 60, 8)]
    assert starts(rows) == [0, 100, 110]
    assert starts(rows, size=1000) == [0, 110, 100]
    assert starts(rows, size=1000, age=2_000_000, max_age=1000) == [0, 100, 110]
    jobs = [Job(str(k), arrival=min(k, 2), duration=50, gpus=8, user=user) for k, user in enumerate("aabb")]
    for text, order in {"slurm": [0, 50, 100, 150], "slurm:fair=1000": [0, 100, 50, 150]}.items():
        assert simulate(Instance(jobs, "1x8"), text).jobs["start"].to_list() == order


def test_a_cycle_considers_so_many_jobs() -> None:
    rows: list[Row] = [(0, 100, 120, 6), (1, 30, 60, 8), (2, 30, 60, 8), (3, 5, 60, 1)]
    assert starts(rows)[3] == 30
    assert starts(rows, tested=2)[3] == 160


def test_the_head_is_not_delayed_by_limits() -> None:
    source = random.Random(3)
    for _ in range(15):
        now, rows = 0, list[Row]()
        for _ in range(source.randint(5, 15)):
            now += source.choice([0, 7, 40, 100])
            lasts = source.randint(5, 300)
            rows.append((now, lasts, 60 * (lasts // 60 + source.choice([1, 2, 10])), source.randint(1, 8)))
        jobs = [Job(str(k), arrival=r, duration=p, walltime=e, gpus=q) for k, (r, p, e, q) in enumerate(rows)]
        instance = Instance(jobs, "1x8")
        for settings in ("depth=1", "depth=1,whole=false,resolution=0"):
            run = simulate(instance, f"slurm:{settings}")
            assert broken_properties(instance, run.schedule, "head-not-delayed") == []


def test_illegal_parameters_are_one_line() -> None:
    for text in ("interval=0", "depth=0", "depth=some", "tested=0", "age=-1", "resolution=-1", "max_age=0"):
        with pytest.raises(InputError, match=text.partition("=")[0]):
            simulate("rigid-06-1", f"slurm:{text}")


# What the rules do not give: how the job really began.
UNEXPLAINED = {
    "s-22.05": {
        "e11begin": "the end of --begin is no event for the main loop: the next cycle starts the job",
        "e7arr_1": "the job before it ended at 49 s, and the cycle at 50 s came before the main loop",
    },
    "s-24.11": {"e11begin": "as above"},
    "s-26.05-easy": {"e11begin": "as above"},
    "s2-26.05-easy": {"f16B": "behind a het job, which waits at the head", "f16C": "the same"},
    # a waiting het job stops the main loop of 24.11.5 for all jobs behind it
    "s2-24.11": dict.fromkeys(("f17y", "f18B", "f2C", "f17x", "f1D", "f2D", "f16B", "f16C"), "het job"),
}
STARTS = {"s-22.05": 42, "s-24.11": 46, "s-26.05-easy": 46, "s2-26.05-easy": 18, "s2-24.11": 18}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_starts_of_real_slurm(data_dir: Path, log: Log) -> None:
    _, found, seen, _ = judged(data_dir / "slurm" / "sched", log)
    assert len(seen) == STARTS[log.name]
    assert {name for name, right in found.items() if not right} == set(UNEXPLAINED[log.name])


def test_rules_that_the_starts_need(data_dir: Path) -> None:
    def missed(settings: str) -> Counter[str]:
        runs = {log.name: judged(data_dir / "slurm" / "sched", log, settings)[1] for log in LOGS}
        return Counter(
            {name: sum(not right for right in found.values()) - len(UNEXPLAINED[name]) for name, found in runs.items()}
        )

    assert +missed(",resolution=0") == {"s-22.05": 3, "s-26.05-easy": 3}
    assert +missed(",resolution=0,whole=false") == {"s-22.05": 3, "s-26.05-easy": 4, "s2-26.05-easy": 1}
    assert +missed(",window=10d")["s-24.11"] == 2
