"""`Stage` and `Profile`, and files with interference and scalings: what they refuse, round trips, digests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import networkx as nx
import pytest
from hypothesis import given, strategies as st
from refusals import one_line
from speeds.random_profiles import profiles

from optsched.errors import InputError, RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.instance_file import json_schema
from optsched.problem.interference import Interference
from optsched.problem.profile import Profile, Stage
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.duration import paces
from optsched.speeds.stage_graph import stage_graph
from problem.documents import Change, put

CLUSTER = Cluster((NodeGroup(4, 2, nic_bandwidth=8e9, intra_bandwidth=1e11),))
CHAIN = Profile.of_stages([Stage(2, 0.1, 0.2, 1e9, 1e6, "conv"), Stage(1, 0.05, 0.1, name="fc")], micro_batches=4)
DIAMOND = Profile(tuple(Stage(1, 0.5, 1.0) for _ in range(4)), ((0, 1, 10.0), (0, 2, 20.0), (1, 3, 30.0), (2, 3, 40.0)))
TWO = Instance(
    [Job("a", iterations=10, gpus=3, profile="chain"), Job("b", duration=7, gpus=2)],
    CLUSTER,
    profiles={"chain": CHAIN, "diamond": DIAMOND},
)


def test_a_profile_without_edges_of_its_own_is_a_chain_of_activations() -> None:
    stages = [Stage(1, 1.0, 2.0, activations=a) for a in (5.0, 6.0, 7.0)]
    chain = Profile.of_stages(stages)
    assert chain.edges == ((0, 1, 5.0), (1, 2, 6.0))
    assert (chain.gpus, chain.depth, chain.order) == (3, 3, (0, 1, 2))
    assert stages[0].compute == 3
    assert Profile.of_stages(stages, edges=[(0, 2), (1, 2, 9)]).edges == ((0, 2, 5.0), (1, 2, 9.0))
    assert Profile.of_stages(stages, edges=[]).edges == ()


def test_depth_counts_the_stages_of_the_longest_path() -> None:
    assert (DIAMOND.depth, DIAMOND.gpus) == (3, 4)
    assert Profile(DIAMOND.stages).depth == 1
    late = Profile(DIAMOND.stages, ((3, 2, 0.0), (2, 0, 0.0), (3, 0, 0.0), (0, 1, 0.0)))
    assert (late.depth, late.order) == (4, (3, 2, 0, 1))


@given(profiles())
def test_depth_and_order_agree_with_the_graph(profile: Profile) -> None:
    graph = stage_graph(profile)
    assert profile.depth == nx.dag_longest_path_length(graph, weight=None, default_weight=1) + 1
    place = {s: k for k, s in enumerate(profile.order)}
    assert sorted(place) == list(range(len(profile.stages)))
    assert all(place[s] < place[u] for s, u, _ in profile.edges)


@pytest.mark.parametrize("replicas", [0, -1, 1.0, True, None, "2"])
def test_replicas_are_at_least_one(replicas: Any) -> None:
    with pytest.raises(InputError, match=r"replicas = .*an integer from 1 "):
        Stage(replicas, 1.0, 1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e-9, "1", None, True])
@pytest.mark.parametrize(
    ("field", "unit"),
    [("forward", "seconds"), ("backward", "seconds"), ("parameters", "bytes"), ("activations", "bytes")],
)
def test_times_and_sizes_are_finite_and_not_negative(field: str, unit: str, value: Any) -> None:
    fields = {"forward": 1.0, "backward": 1.0, field: value}
    with pytest.raises(InputError, match=rf"{field} = .*a finite number of {unit} >= 0"):
        Stage(1, **fields)


@pytest.mark.parametrize("micro_batches", [0, -2, 1.5, True, "4"])
def test_micro_batches_are_at_least_one_or_none(micro_batches: Any) -> None:
    with pytest.raises(InputError, match=r"micro_batches = .*an integer >= 1, or none"):
        Profile(CHAIN.stages, CHAIN.edges, micro_batches)


def test_a_profile_needs_a_stage_and_a_stage_that_computes() -> None:
    with pytest.raises(InputError, match="a profile needs a stage"):
        Profile(())
    with pytest.raises(InputError, match=r"forward = 0: an iteration takes no time"):
        Profile((Stage(2, 0.0, 0.0, parameters=1e9), Stage(1, 0.0, 0.0)))
    assert Profile((Stage(2, 0.0, 0.0), Stage(1, 0.0, 1e-9))).gpus == 3


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (0, 1)], r"edges = \[0, 1\]: an edge is given twice \(expected: each pair once\)"),
        ([(0, 4)], r"edges = \[0, 4\]: .*two different stages of 0..3"),
        ([(-1, 0)], r"edges = \[-1, 0\]: .*two different stages"),
        ([(2, 2)], r"edges = \[2, 2\]: .*two different stages"),
        ([(0, 1, float("nan"))], r"edges = \[0, 1, nan\]: .*a finite number of bytes >= 0"),
        ([(0, 1, float("inf"))], r"edges = \[0, 1, inf\]: .*a finite number of bytes >= 0"),
        ([(0, 1, -1.0)], r"edges = \[0, 1, -1.0\]: .*bytes >= 0"),
        ([(0,)], r"edges = \[0\]: .*\[from, to\] or \[from, to, bytes\]"),
        ([(0, 1.0)], r"edges = \[0, 1.0\]: .*\[from, to\]"),
        ([(0, 1, 2.0, 3.0)], r"edges = \[0, 1, 2.0, 3.0\]: .*\[from, to\]"),
        ([(0, 1), (1, 2), (2, 0)], "the stages form a cycle"),
    ],
)
def test_edges_that_are_not_legal(edges: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Profile.of_stages(DIAMOND.stages, edges)


def test_a_cycle_is_named_along_its_edges() -> None:
    stages = [Stage(1, 1.0, 1.0, name=name) for name in ("in", "left", "", "right", "out")]
    edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (3, 4, 1.0)]
    with pytest.raises(InputError) as refused:
        Profile.of_stages(stages, edges)
    named = str(refused.value).split("cycle: ")[1].split(" (expected")[0].split(" -> ")
    position = {"left": 1, "2": 2, "right": 3}
    walk = [position[name] for name in named]
    assert walk[0] == walk[-1]
    assert len(walk) == 4
    assert {(s, u) for s, u, _ in edges} >= set(itertools.pairwise(walk))


@given(profiles())
def test_json_round_trip_of_a_profile(profile: Profile) -> None:
    assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile


def test_json_leaves_out_what_is_absent() -> None:
    assert CHAIN.to_json() == {
        "stages": [
            {"name": "conv", "replicas": 2, "forward": 0.1, "backward": 0.2, "parameters": 1e9, "activations": 1e6},
            {"name": "fc", "replicas": 1, "forward": 0.05, "backward": 0.1},
        ],
        "micro_batches": 4,
    }
    assert DIAMOND.to_json()["edges"] == [[0, 1, 10.0], [0, 2, 20.0], [1, 3, 30.0], [2, 3, 40.0]]
    assert Profile((Stage(1, 1.0, 1.0), Stage(1, 1.0, 1.0))).to_json()["edges"] == []


# In instances


def test_a_job_with_iterations_asks_for_them_and_one_with_a_duration_for_seconds() -> None:
    assert TWO.profiled.tolist() == [True, False]
    assert TWO.work.tolist() == [10, 7]
    assert [TWO.jobs_at(kind).tolist() for kind in ("profiles", "duration")] == [[0], [1]]
    both = Instance([Job("c", iterations=10, duration=3, gpus=1, profile="chain")], CLUSTER, profiles={"chain": CHAIN})
    assert both.work.tolist() == [3]  # its duration counts, and so its gang is its own affair


def test_a_missing_profile_is_named_with_its_job() -> None:
    jobs = [Job("x", duration=1), Job("y", iterations=5, gpus=3, profile="chian")]
    with pytest.raises(
        InputError, match=r"profile = 'chian': job 'y' has no duration.*profiles of the instance: chain"
    ):
        paces(Instance(jobs, CLUSTER, profiles={"chain": CHAIN}))


def test_a_gang_has_one_gpu_for_each_replica() -> None:
    jobs = [
        Job("x", duration=1),
        Job("y", iterations=5, gpus=2, profile="chain"),
        Job("z", iterations=5, profile="chain"),
    ]
    with pytest.raises(RowErrors) as refused:
        Instance(jobs, CLUSTER, profiles={"chain": CHAIN})
    assert [(p.row, p.field, p.value) for p in refused.value.problems] == [(2, "gpus", 2), (3, "gpus", 1)]
    assert "row 2, gpus = 2: invalid (expected: 3, the replicas of the profile 'chain')" in str(refused.value)


def test_the_digest_covers_the_profiles_that_are_used_and_no_other() -> None:
    slower = Profile.of_stages([Stage(2, 0.1, 0.3, 1e9, 1e6, "conv"), CHAIN.stages[1]], micro_batches=4)
    assert TWO.replace(profiles={"chain": slower, "diamond": DIAMOND}).digest != TWO.digest
    other_edge = Profile(CHAIN.stages, ((0, 1, 2e6),), 4)
    assert TWO.replace(profiles={"chain": other_edge}).digest != TWO.digest
    assert TWO.replace(profiles={"chain": Profile(CHAIN.stages, CHAIN.edges)}).digest != TWO.digest
    assert TWO.replace(profiles={"diamond": CHAIN, "chain": CHAIN}).digest == TWO.digest
    assert TWO.replace(profiles={"chain": CHAIN}).digest == TWO.digest


STAGE = ("profiles", "chain", "stages", 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(*STAGE, "forward", to=...), "profiles.chain.stages.1.forward: missing (expected: a value)"),
        (put(*STAGE, "forward", to=-1), "profiles.chain.stages.1.forward = -1"),
        (put(*STAGE, "forward", to="fast"), "profiles.chain.stages.1.forward = 'fast'"),
        (put(*STAGE, "replicas", to=0), "profiles.chain.stages.1.replicas = 0"),
        (put(*STAGE, "forwards", to=1), "profiles.chain.stages.1.forwards = 1"),
        (put("profiles", "chain", "stages", to=[]), "profiles.chain.stages"),
        (put("profiles", "chain", "edges", to=[[0, 5]]), "profiles.chain: edges = [0, 5]: invalid"),
        (put("profiles", "chain", "edges", to=[[0, 1], [1, 0]]), "profiles.chain: edges: the stages form a cycle"),
        (put("profiles", "chain", "edges", to=[[0, 1, "x"]]), "profiles.chain.edges.0"),
        (put("profiles", "chain", "micro_batches", to=0), "profiles.chain.micro_batches = 0"),
    ],
)
def test_a_bad_profile_in_a_file_gives_one_clear_line(
    written: Callable[..., Path], change: Change, message: str
) -> None:
    path = written(change(TWO.to_json()))
    with one_line(begins=f"{path}, {message}"):
        Instance.load(path)


# -- Instance files with interference, scaling profiles and batch sizes: round trips, digests, mistakes -------------------


GPUS = Cluster((NodeGroup(count=2, gpus=2, gpu_memory=100.0),))
TABLE = Interference(1.5, ("net", "m"), ((1.25, None), (None, 1 / 3 + 1)), "by hand")
SYNC = {"within": 0.01, "within_growth": 0.001, "across": 0.05, "across_growth": 0.02, "overlap": 1.7}
BATCH = {"most_local": 48, "memory": 20.0, "memory_per_sample": 1.5, "iterations": ((64, 1000.0), (128, 600.5))}
MEASURED = MeasuredSteps(((2, 32.0, 0.2, 0.01), (11, 32.0, 0.3, 0.1)), ((1, 2, 32.0, 0.2, 0.01),))
NET = Scaling(0.1, 0.002, **SYNC, **BATCH, measured=MEASURED)
JOBS = [
    Job("a", gpus=2, iterations=100, profile="net", batch_size=128),
    Job("b", arrival=3, iterations=50, profile="net", batch_size=7, gpu_memory=50.0),
    Job("c", duration=5, model="m", gpu_memory=10),
]
WHOLE = Instance(JOBS, GPUS, "shares", scalings={"net": NET, "spare": Scaling(0, 1)}, interference=TABLE)


INTEGERS = TWO.replace(profiles={"chain": Profile((Stage(2, 1, 2, 1000), Stage(1, 3, 4)), ((0, 1, 7),))})


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize("instance", [TWO, INTEGERS, WHOLE], ids=["profiles", "of whole numbers", "shares"])
def test_round_trip(instance: Instance, suffix: str, tmp_path: Path) -> None:
    instance.save(tmp_path / f"i{suffix}")
    read = Instance.load(tmp_path / f"i{suffix}")
    for part in ("profiles", "scalings", "interference", "jobs", "digest"):
        assert getattr(read, part) == getattr(instance, part), part
    assert read.gpu_memory.tolist() == instance.gpu_memory.tolist()
    assert [read.sub_batches(j) for j in range(read.n)] == [instance.sub_batches(j) for j in range(read.n)]
    read.save(tmp_path / f"again{suffix}")
    assert Instance.load(tmp_path / f"again{suffix}").to_json() == instance.to_json()


def test_a_sub_batch_says_how_much_memory_a_job_needs() -> None:
    # 64 samples a GPU in two steps of 32: 20 + 1.5 x 32 of 100 bytes; the second job states its own
    assert WHOLE.gpu_memory.tolist() == [68, 50, 10]


def test_it_is_what_the_schema_says() -> None:
    jsonschema.validate(json.loads(json.dumps(WHOLE.to_json())), json_schema())


@given(
    st.floats(1, 1e6), st.lists(st.lists(st.none() | st.floats(1, 1e6), min_size=3, max_size=3), min_size=3, max_size=3)
)
def test_any_table_survives_a_file(ratio: float, rows: list[list[float | None]]) -> None:
    table = Interference(ratio, ("x", "y", "z ü"), tuple(map(tuple, rows)))
    assert Interference.from_json(json.loads(json.dumps(table.to_json()))) == table


def changed(**changes: Any) -> str:
    return WHOLE.replace(**changes).digest


def test_the_digest_changes_with_what_decides_a_value() -> None:
    other = [
        changed(interference=None),
        changed(interference=Interference(1.6, TABLE.kinds, TABLE.ratios)),
        changed(interference=Interference(1.5, TABLE.kinds, ((1.26, None), (None, 4 / 3)))),
        changed(interference=Interference(1.5, TABLE.kinds, ((1.25, 9.0), (9.0, 4 / 3)))),
        changed(jobs=[Job("a", gpus=2, iterations=100, profile="net", batch_size=126), *JOBS[1:]]),
        changed(scalings={"net": Scaling(0.1, 0.003, memory=20, memory_per_sample=1.5)}),
    ]
    assert len({WHOLE.digest, *other}) == len(other) + 1


def test_the_digest_ignores_what_decides_nothing() -> None:
    assert changed(interference=Interference(1.5, TABLE.kinds, TABLE.ratios, "elsewhere")) == WHOLE.digest
    more = ("net", "m", "nobody"), ((1.25, None, 2.0), (None, 4 / 3, 2.0), (2.0, 2.0, 2.0))
    assert changed(interference=Interference(1.5, *more)) == WHOLE.digest
    assert changed(scalings={"net": NET}) == WHOLE.digest
    one_way = Interference(1.5, TABLE.kinds, ((1.25, 3.0), (None, 4 / 3)))  # None in one direction keeps both apart
    assert changed(interference=one_way) == WHOLE.digest


DOCUMENT: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}]},
    "jobs": [{"id": "a", "iterations": 3, "profile": "net", "batch_size": 4}],
    "scalings": {"net": {"compute": 1, "per_sample": 1, "memory": 2, "memory_per_sample": 1}},
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"interference": {"ratio": 0.9}}, r"interference\.ratio = 0\.9"),
        ({"interference": {"ratio": "2"}}, r"interference\.ratio = '2'"),
        ({"interference": {"kinds": ["a"], "ratios": [[1, 1]]}}, "not a square table"),
        ({"interference": {"kinds": ["a"], "ratios": [[0]]}}, r"interference\.ratios\['a', 'a'\] = 0"),
        ({"interference": {"kinds": ["a", "a"], "ratios": [[1, 1], [1, 1]]}}, "a kind is given twice"),
        ({"interference": {"xi": 2}}, r"interference\.xi"),
        ({"scalings": {"net": {"compute": -1, "per_sample": 1}}}, r"scalings\.net\.compute = -1"),
        ({"scalings": {"net": {"compute": 0, "per_sample": 0}}}, "an iteration takes no time"),
        ({"scalings": {"net": {"compute": 1, "per_sample": 1, "overlap": 0.5}}}, r"scalings\.net\.overlap"),
        ({"jobs": [{"iterations": 3, "profile": "net"}]}, r"job 1 .*, batch_size.*missing"),
        ({"jobs": [{"iterations": 3, "profile": "net", "batch_size": 0}]}, r"job 1 .*, batch_size = 0"),
        (
            {"scalings": {"net": {"compute": 1, "per_sample": 1, "memory": 9.5, "memory_per_sample": 1}}},
            r"job 1 .*, gpu_memory = 10\.5: net does not fit .*sub-batch 1",
        ),
    ],
)
def test_mistakes(change: dict[str, Any], told: str, written: Callable[..., Path]) -> None:
    path = written({**DOCUMENT, **change})
    with pytest.raises(InputError, match=told) as error:
        Instance.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value) or isinstance(error.value, RowErrors)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_ratios_are_finite(number: str, written: Callable[..., Path]) -> None:
    for part in (f'{{"ratio": {number}}}', f'{{"kinds": ["a"], "ratios": [[{number}]]}}'):
        path = written(json.dumps(DOCUMENT)[:-1] + f', "interference": {part}}}')
        with pytest.raises(InputError, match="interference"):
            Instance.load(path)


# -- The memory of jobs at scaling profiles: of the largest sub-batch that the gang has room for, anew on every cluster -----


SIMPLE = {"net": Scaling(1, 1, memory=10, memory_per_sample=1)}  # sub-batch m needs 10 + m bytes


def cluster(*groups: tuple[int, float | None, str]) -> Cluster:
    return Cluster(tuple(NodeGroup(gpus=1, count=count, gpu_memory=memory, gpu=gpu) for count, memory, gpu in groups))


def job(gpus: int = 1, **more: object) -> Job:
    return Job("a", gpus=gpus, iterations=1, profile="net", batch_size=64 * gpus, **more)


def needs(where: Cluster, one: Job) -> float:
    return float(Instance([one], where, scalings=SIMPLE).gpu_memory[0])


def test_the_room_is_that_of_the_gang() -> None:
    mixed = cluster((2, 80.0, "A100"), (4, 30.0, "P100"))
    assert needs(mixed, job(2)) == 74
    assert needs(mixed, job(3)) == 10 + 16  # two GPUs of 80 bytes do not hold three replicas
    assert needs(mixed, job(1, gpu_types=("p100",))) == 26
    assert needs(mixed, job(2, gpu_memory=70.0)) == 70
    assert needs(cluster((1, None, "A100"), (4, 30.0, "P100")), job()) == 74


def test_what_no_gang_has_room_for_is_refused() -> None:
    mixed = cluster((2, 80.0, "A100"), (4, 10.5, "P100"))
    with pytest.raises(RowErrors, match=r"net does not fit.*the 10.5 bytes that 3 GPUs of 2x1:A100\+4x1:P100 have"):
        needs(mixed, job(3))
    with pytest.raises(RowErrors, match="the gang is larger than the cluster"):
        needs(mixed, job(7))
    with pytest.raises(RowErrors, match="the gang is larger than the cluster"):
        needs(mixed, job(3, gpu_types=("A100",)))


def test_another_cluster_or_profile_decides_anew() -> None:
    small = Instance([job()], cluster((1, 30.0, "P100")), scalings=SIMPLE)
    assert [each.size for each in small.sub_batches(0)] == [16, 8, 4, 2, 1]
    large = small.with_cluster(cluster((1, 80.0, "A100")))
    assert [each.size for each in large.sub_batches(0)] == [64, 32, 16, 8, 4, 2, 1]
    assert large.with_cluster(small.cluster).digest == small.digest != large.digest
    leaner = small.replace(scalings={"net": Scaling(1, 1, memory=5, memory_per_sample=0.25)})
    assert leaner.gpu_memory.tolist() == [21]
    assert small.job(0).gpu_memory is None  # stated by nobody, written to no file
    assert small.to_json()["jobs"][0].get("gpu_memory") is None
