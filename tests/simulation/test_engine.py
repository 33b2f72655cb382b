"""The compiled engine against the reference simulator: the same segments, exactly; and what the engine promises itself."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few
from policies.levels import whole_job_policies

from optsched.compiled import without_interpreting
from optsched.errors import InputError, SimulationError
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import names_nodes, simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation import engine
from optsched.simulation.engine import run_policy
from optsched.simulation.placement import Placement, compiled
from optsched.simulation.policy import Order
from optsched.simulation.run import Run
from simulation.instances import HOMOGENEOUS, MIXED, history, random_instance, reference_history, replayed
from simulation.plain_policies import Ordered

VARIANTS = {
    "fifo": ["", ":skip=true"],
    "list": ["", ":by=shortest", ":by=longest", ":by=widest", ":by=narrowest", ":by=largest", ":by=due"],
    "srtf": ["", ":restart=2"],
    "srtf-gpu": ["", ":restart=1"],
    "tiresias": [
        ":threshold=24",
        ":threshold=24,restart=2",
        ":threshold=24,starvation=2",
        ":threshold=48,starvation=0.5,restart=1",
        ":threshold=24,round=6",
        ":threshold=24,round=4,starvation=1,restart=2",
    ],
    "wspt": ["", ":gpus=true"],
}
SPECS = [name + variant for name in whole_job_policies() for variant in VARIANTS.get(name, [""])]
ORDERED = [spec for spec in SPECS if callable(getattr(specify(spec).policy, "order", None))]


def run(instance: Instance, spec: str) -> Run:
    chosen = specify(spec)
    return run_policy(instance, chosen.policy, chosen.placement, name=spec)


def assert_same(instance: Instance, policy: Any, placement: str, *, by_count: bool = False) -> None:
    nodes = placement != "count"
    mine = history(run_policy(instance, policy, PLACEMENTS.get(placement)()), nodes=nodes)
    other = reference_history(replayed(instance, policy, placement, by_count=by_count), nodes=nodes)
    for j in range(instance.n):
        assert mine[j] == other[j], f"{instance.name} on {instance.cluster.spec}, {policy}+{placement}, job {j}"


# -- the reference agrees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", ["count", "first-fit", "consolidated"])
@pytest.mark.parametrize("spec", ORDERED)
def test_the_reference_agrees_segment_by_segment(spec: str, placement: str) -> None:
    for seed in few(range(12), 4):
        cluster = MIXED if seed % 3 == 0 else HOMOGENEOUS[seed % len(HOMOGENEOUS)]
        assert_same(random_instance(seed, cluster), specify(spec).policy, placement)


@pytest.mark.parametrize(
    "spec", [spec for spec in ORDERED if run(random_instance(0, "1x1"), spec).schedule_class == "gang"]
)
def test_eviction_is_service_in_order_when_only_gpus_count(spec: str) -> None:
    for seed in few(range(100, 130), 10):
        cluster = HOMOGENEOUS[2 + seed % 3]
        assert_same(random_instance(seed, cluster, jobs=20), specify(spec).policy, "count", by_count=True)


@pytest.mark.parametrize("placement", ["count", "consolidated"])
@pytest.mark.parametrize("seed", few(range(8), 3))
def test_any_order_of_any_kind_agrees(seed: int, placement: str) -> None:
    # Rules that no registered policy has: several thresholds, keys that grow, strict with rounds, eighths of seconds.
    rng = np.random.default_rng(seed)
    base = random_instance(300 + seed, "2x4", jobs=10)
    jobs = [
        Job(str(j), arrival=rng.integers(0, 80) / 8, gpus=int(base.gpus[j]), duration=rng.integers(1, 80) / 8)
        for j in range(base.n)
    ]
    instance = Instance(jobs, base.cluster, base.name)
    for rule in (
        {"preemptive": True, "thresholds": (3.0, 6.0, 24.0), "starvation": 1.5},
        {"preemptive": True, "slope": rng.integers(-2, 3, base.n) / 2.0, "restart": 0.125},
        {"preemptive": True, "slope": np.ones(base.n), "thresholds": (12.0,), "round": 0.75},
        {"skip": False, "round": 1.5},
        {"skip": True, "round": 2.0, "thresholds": (6.0,)},
    ):
        order = Order(key=rng.integers(0, 4, base.n).astype(float), **rule)  # type: ignore[arg-type]
        assert_same(instance, Ordered(lambda jobs, order=order: order), placement)


# way: what comes before the program, the program's manager, what is true of it at the end
WAYS = {
    "compiled": ("", "compiled.without_interpreting()", "any(f.signatures for f in compiled.FUNCTIONS)"),
    "interpreted": (
        "compiled.PRICE = float('inf')",
        "contextlib.nullcontext()",
        "compiled.FUNCTIONS and not any(f.signatures for f in compiled.FUNCTIONS)",
    ),
    "without numba": ("", "contextlib.nullcontext()", "not compiled.FUNCTIONS"),
}


def printed(program: str, folder: Path) -> dict[str, str]:
    """By way; that the program ran in that way is made sure of. Modules of the tests can be imported."""
    here = Path(__file__).parent.parent
    found = {}
    for way, (before, manager, after) in WAYS.items():
        head = f"import contextlib\nimport optsched.compiled.function as compiled\n{before}\nwith {manager}:\n"
        script = folder / f"{way.replace(' ', '_')}.py"
        script.write_text(f"{head}{textwrap.indent(program, '    ')}\nassert {after}\n")
        environment = {
            **os.environ,
            "NUMBA_DISABLE_JIT": "1" if way == "without numba" else "0",
            "PYTHONPATH": f"{here}:{here.parent}",
            "PYTHONWARNINGS": "ignore",  # numpy warns that random numbers overflow, as they must
        }
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{way}: {done.stderr}"
        found[way] = done.stdout
    return found


@pytest.mark.release
def test_interpreted_and_compiled_runs_are_the_same(tmp_path: Path) -> None:
    program = (
        "from simulation.instances import MIXED, random_instance\n"
        "from simulation.test_engine import run\n"
        "for spec in ('fifo', 'srtf:restart=2+consolidated', 'tiresias:threshold=24,round=4,starvation=1+random'):\n"
        "    for seed in (1, 3):\n"
        "        made = run(random_instance(seed, MIXED), spec)\n"
        "        print(spec, seed, made.schedule.completion.tolist(), made.schedule.gpu_node.tolist(), made.events)\n"
        "from simulation.task_instances import ran, random_task_instance\n"
        "from simulation.test_iterations import told\n"
        "for spec in ('ada-srsf+list', 'leader-first+lwf:kappa=2'):\n"
        "    for seed in (0, 6):\n"
        "        print(spec, seed, told(ran(random_task_instance(seed), spec)))\n"
    )
    compiled, *others = printed(program, tmp_path).values()
    assert others == [compiled, compiled]
    assert compiled.count("\n") == 6 + 4


# -- small and large ------------------------------------------------------------------------------------------------------


def delay_alone(spec: str, seconds: float, gpus: int, cluster_gpus: int) -> float:
    """Of a job of so many seconds, until a machine alongside has done its part, or the clock shows its duration."""
    policy: Any = specify(spec).policy
    on_one_machine = seconds * gpus / cluster_gpus
    if policy.name == "a-srpt":
        return 0.0 if policy.overtake == math.inf else float(policy.beta * on_one_machine)
    if policy.name == "random-alpha-points":  # the first draw, by inversion
        share = 1.0 - float(np.random.Generator(np.random.PCG64(policy.seed)).random())
        return math.log1p(share * math.expm1(policy.largest)) * on_one_machine
    if policy.name == "alpha-points":
        return float(policy.alpha * on_one_machine)
    return seconds if policy.name == "delayed-spt" else 0.0


@pytest.mark.parametrize(
    ("spec", "placement"),
    [(spec, PLACEMENTS.names()[k % len(PLACEMENTS.names())]) for k, spec in enumerate(SPECS)],  # in turn
)
def test_no_jobs_and_one_job(spec: str, placement: str) -> None:
    one = Instance([Job("a", arrival=4, gpus=3, duration=5)], "2x4")
    policy = specify(spec).policy
    text = spec if names_nodes(policy) else f"{spec}+{placement}"
    nothing = simulate(one.head(0), text)
    assert (len(nothing.schedule), nothing.events, nothing.unfinished, nothing.value("makespan")) == (0, 0, [], 0)
    assert nothing.metrics["jobs"] == 0
    alone = simulate(one, text)
    if alone.schedule_class == "forking":  # two copies, after the overhead of the round
        assert alone.schedule.start.tolist() == [4, 4]
        assert alone.schedule.completion.tolist() == [4 + 10 + 5 / 2]
        return
    started = 4 + delay_alone(spec, 5, 3, 8)  # rounds begin with the first arrival
    assert alone.schedule.start.tolist() == [started]
    assert alone.schedule.completion.tolist() == [started + 5]


@pytest.mark.release
@pytest.mark.parametrize("placement", ["count", "heavy-edge", "random"])
@pytest.mark.parametrize(
    "spec", [*(pytest.param(spec, marks=pytest.mark.study) for spec in ("fifo", "tiresias:threshold=100")), "srtf"]
)
def test_ten_thousand_gpus(spec: str, placement: str) -> None:
    rng = np.random.default_rng(5)
    jobs = [
        Job(str(j), arrival=int(r), gpus=int(g), duration=int(d))
        for j, (r, g, d) in enumerate(
            zip(
                rng.integers(0, 50, 150),
                rng.choice([1, 8, 64, 1000, 10_000], 150),
                rng.integers(1, 30, 150),
                strict=True,
            )
        )
    ]
    with without_interpreting():
        large = run(Instance(jobs, "1250x8"), f"{spec}+{placement}")
        single = run(Instance(jobs[:30], "10000x1"), f"{spec}+{placement}")
    assert large.unfinished == []
    assert single.unfinished == []
    assert single.schedule.gpu_node.max() == 9999


def test_the_log_grows_as_far_as_preemptions_go() -> None:
    # Every arrival preempts two jobs: 6,002 segments although the log begins with room for about 2 n.
    long = [Job(name, duration=5000, gpus=2) for name in ("a", "b")]
    jobs = [*long, *(Job(str(j), arrival=2 * j + 1, duration=1, gpus=4) for j in range(2000))]
    thrashed = run(Instance(jobs, "1x4"), "srtf+first-fit")
    assert thrashed.preemptions == 4000
    assert len(thrashed.schedule) == 6002
    assert thrashed.schedule.completion[:2].tolist() == [7000, 7000]
    assert thrashed.metrics["gpu_hours"]["overhead"] == 0


@compiled
def _one_node(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    for p in range(free.size):
        if eligible[p] and free[p] >= gpus:
            out_node[0] = p
            out_count[0] = gpus
            return 1
    return 0


ONE_NODE = Placement("one-node", _one_node)  # it has not room for every gang in an idle cluster


@pytest.mark.parametrize(
    "spec", ["fifo", "fifo:skip=true", "srtf", "spjf:predictor=group-mean", "a-srpt:tau=0,overtake=inf", "setf"]
)
def test_jobs_that_never_fit_are_unfinished_and_named_and_hold_up_nobody(spec: str) -> None:
    jobs = [Job("first", gpus=2, duration=3), Job("wide", gpus=5, duration=1), Job("late", arrival=1, duration=1)]
    made = run_policy(Instance(jobs, "2x4"), specify(spec).policy, ONE_NODE)
    assert made.unfinished == ["wide"]
    assert (made.metrics["unfinished"], made.metrics["finished"]) == (1, 2)
    assert np.isnan(made.value("total_flow_time"))
    assert np.isnan(made.value("makespan"))
    assert made.schedule.completion[0] == 3


# -- time -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0.1, 0.3, 0.7, 1 / 3, 7.7])
def test_every_round_ends_although_its_length_has_no_exact_float(period: float) -> None:
    # One job a round and only one GPU: the k-th job starts at the k-th end of a round after the one before is done.
    first = Job("first", duration=period / 4)  # rounds begin with its arrival
    jobs = [Job(str(j), arrival=period * j + period / 2, duration=period / 4) for j in range(200)]
    made = run(Instance([first, *jobs], "1x1"), f"tiresias:round={period!r}")
    rounds = made.schedule.start / period
    assert np.allclose(rounds, np.arange(201), rtol=1e-12)


def test_work_that_is_shorter_than_the_rounding_of_time_is_done_too() -> None:
    jobs = [Job("tiny", arrival=2**40, duration=1e-9), Job("usual", arrival=2**40, duration=1)]
    for spec in ("fifo", "srtf"):
        made = run(Instance(jobs, "1x1"), spec)
        assert made.unfinished == []
        assert made.schedule.completion[0] > 2**40
        assert made.schedule.received.tolist() == [1e-9, 1]


# -- what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": [0.0]}, "ordered: key: invalid (expected: one number for each of 2 jobs)"),
        ({"key": [[0.0, 1.0]]}, "ordered: key"),
        ({"key": [0.0, np.nan]}, "ordered: key"),
        ({"slope": [1.0]}, "ordered: slope"),
        ({"slope": [1.0, np.nan]}, "ordered: slope"),
        ({"restart": -1.0}, "ordered: restart = -1.0"),
        ({"restart": np.inf}, "ordered: restart = inf"),
        ({"round": np.nan}, "ordered: round = nan"),
        ({"starvation": -2.0}, "ordered: starvation = -2.0"),
        ({"thresholds": (0.0,)}, "ordered: threshold = 0.0"),
        ({"thresholds": (5.0, 5.0)}, "ordered: threshold = (5.0, 5.0)"),
        ({"thresholds": (np.nan,)}, "ordered: threshold = nan"),
        ({"thresholds": np.nan}, "ordered: threshold = nan"),
        ({"thresholds": "ab"}, "ordered: threshold = 'ab'"),
        ({"thresholds": (1.0, "x")}, "ordered: threshold"),
        ({"key": ["a", "b"]}, "ordered: key"),
        ({"key": [10**400, 1]}, "ordered: key"),
        ({"slope": ["a", "b"]}, "ordered: slope"),
        ({"round": "x"}, "ordered: round = 'x'"),
        ({"restart": 10**400}, "ordered: restart = 1000"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_illegal_order_is_one_line(changes: dict[str, Any], what: str) -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=1)], "1x1")
    order = Order(**{"key": np.zeros(2), **changes})
    with pytest.raises(InputError) as caught:
        run_policy(instance, Ordered(lambda jobs, order=order: order), PLACEMENTS.get("count")())
    assert str(caught.value).startswith(what)
    assert "\n" not in str(caught.value)


def test_keys_may_be_infinite() -> None:
    jobs = [Job("a", duration=1), Job("b", duration=1), Job("c", duration=1)]
    order = Order(key=np.array([np.inf, 0.0, -np.inf]), preemptive=True)
    made = run_policy(Instance(jobs, "1x1"), Ordered(lambda jobs, order=order: order), PLACEMENTS.get("count")())
    assert made.schedule.completion.tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    "jobs", [[Job("a", iterations=5, profile="p")], [Job("a", duration=1), Job("b", iterations=5, profile="p")]]
)
def test_jobs_without_a_known_speed_are_an_input_error(jobs: list[Job]) -> None:
    with pytest.raises(InputError, match=r"profile = 'p': job '.' has no duration"):
        run(Instance(jobs, "1x1"), "fifo")


@pytest.mark.parametrize(
    "spec",
    [
        # Eight GPUs reach the threshold after 3 s, all overhead of the restart; starvation brings them back for ever.
        "tiresias:threshold=24,restart=3,starvation=1",
        "gavel:policy=max_min_fairness_perf,round=10,restart=20",  # the jobs take turns, round by round
    ],
)
def test_jobs_that_stop_each_other_before_their_restart_is_over_are_found_out(spec: str) -> None:
    jobs = [Job("a", gpus=8, duration=900), Job("b", gpus=8, duration=900)]
    with pytest.raises(
        SimulationError, match="2,000 segments in a row did no work to speak of, jobs are stopped before their restart"
    ):
        run(Instance(jobs, "1x8"), spec)


# -- progress -------------------------------------------------------------------------------------------------------------


def test_progress_is_reported_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SLICE", 1_000)
    jobs = [Job(str(j), arrival=j, duration=1) for j in range(4_000)]
    instance, seen = Instance(jobs, "1x1"), []
    chosen = specify("fifo")
    made = run_policy(
        instance, chosen.policy, chosen.placement, progress=lambda done, total: seen.append((done, total))
    )
    assert len(seen) >= 2
    assert seen == sorted(seen)
    assert seen[-1] == (4_000, 4_000)
    assert made.schedule.completion.tolist() == list(range(1, 4_001))
