"""Backfilling: golden starts by hand, an independent slow form, its properties, and the compiled form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from simulation.instances import MIXED, random_instance

from optsched.errors import InputError, KnowledgeError
from optsched.policies.backfill import ReservingPolicy
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Knowledge
from optsched.simulation.promised_starts import promised_starts
from optsched.simulation.run import Run

from .backfill_reference import Row, conservative, delayed_heads, easy, idle_heads, instance_of, starts_of

# (r, p, e, q) on four GPUs; starts, and the total flow time
BY_HAND = [
    (
        [(0, 10, 10, 3), (1, 10, 10, 4), (2, 5, 5, 1), (3, 20, 20, 1), (4, 8, 12, 1)],
        {
            "fifo": ([0, 10, 20, 20, 20], 113),
            "easy": ([0, 10, 2, 20, 20], 95),
            "easy-sjbf": ([0, 10, 2, 20, 20], 95),
            "conservative": ([0, 10, 2, 20, 20], 95),
            "fifo:skip=true": ([0, 27, 2, 7, 10], 89),
        },
    ),
    (
        [(0, 10, 10, 3), (1, 5, 5, 3), (2, 10, 10, 4), (3, 30, 30, 1)],
        {
            "easy": ([0, 10, 33, 3], 95),
            "fifo:skip=true": ([0, 10, 33, 3], 95),
            "backfill:depth=2": ([0, 10, 15, 25], 99),
            "conservative": ([0, 10, 15, 25], 99),
            "fifo": ([0, 10, 15, 25], 99),
        },
    ),
    (
        [(0, 4, 10, 3), (1, 5, 5, 4), (2, 6, 8, 1), (2, 3, 9, 1), (3, 2, 2, 1)],
        {
            "easy": ([0, 8, 2, 13, 4], 39),
            "conservative": ([0, 8, 2, 13, 4], 39),
            "fifo:skip=true": ([0, 8, 2, 4, 4], 30),
            "fifo": ([0, 4, 9, 9, 9], 43),
        },
    ),
]


@pytest.mark.parametrize(
    ("rows", "spec", "starts", "flow"),
    [(rows, spec, starts, flow) for rows, found in BY_HAND for spec, (starts, flow) in found.items()],
)
def test_starts_by_hand(rows: list[Row], spec: str, starts: list[float], flow: float) -> None:
    run = simulate(instance_of(rows, 4), spec)
    assert starts_of(run) == starts
    assert run.value("total_flow_time") == flow


M = 4


@st.composite
def logs(draw: st.DrawFn, most: int = 9) -> list[Row]:
    """Few values, so that ends, shadows and submissions fall together."""
    spread = draw(st.sampled_from([0, 3, 12]))
    rows = []
    for _ in range(draw(st.integers(2, most))):
        p = draw(st.integers(1, 6))
        rows.append(
            (draw(st.integers(0, spread)), p, p + draw(st.sampled_from([0, 0, 1, 3, 9])), draw(st.integers(1, M)))
        )
    return sorted(rows, key=lambda row: row[0])


@settings(max_examples=examples(200))
@given(rows=logs())
def test_it_is_the_slow_form(rows: list[Row]) -> None:
    instance = instance_of(rows, M)
    assert starts_of(simulate(instance, "easy")) == easy(rows, M)
    assert starts_of(simulate(instance, "easy-sjbf")) == easy(rows, M, by_length=True)
    run = simulate(instance, "conservative")
    starts, promised = conservative(rows, M)
    assert (starts_of(run), run.notes["promised"].tolist()) == (starts, promised)


def exact(rows: list[Row]) -> list[Row]:
    return [(r, p, p, q) for r, p, _, q in rows]


@settings(max_examples=examples(100))
@given(rows=logs(14))
def test_properties_of_every_run(rows: list[Row]) -> None:
    instance = instance_of(rows, M)
    for spec in ("easy", "easy-sjbf"):  # P1, and what the head is promised is kept
        run = simulate(instance, spec)
        assert delayed_heads(rows, starts_of(run), M)[0] == 0
        kept = promised_starts(run)
        assert kept is not None
        assert kept.kept[np.isfinite(kept.wait)].all()
    for spec in ("easy:walltime=exact", "conservative:walltime=exact", "fifo:skip=true"):  # P4
        assert idle_heads(exact(rows), starts_of(simulate(instance, spec)), M) == 0
    kept = promised_starts(simulate(instance, "conservative"))  # P5
    assert kept is not None
    assert (kept.share, kept.share_kept) == (1.0, 1.0)
    kept = promised_starts(simulate(instance, "conservative:walltime=exact"))  # P2
    assert kept is not None
    assert (kept.late == 0).all()


def test_first_fit_breaks_the_first_property() -> None:
    """... or the test above could not fail."""
    rows = BY_HAND[0][0]
    assert delayed_heads(rows, starts_of(simulate(instance_of(rows, 4), "fifo:skip=true")), 4) == (1, 3)


class Watched(ReservingPolicy):
    """Conservative backfilling in plain Python that keeps all its reservations."""

    name, _depth = "watched", -1

    def accelerator(self, jobs: Any) -> Any:
        return None

    def decide(self, view: Any) -> Iterator[Any]:
        yield from super().decide(view)
        self.history = [*getattr(self, "history", []), dict(self._start)]


@settings(max_examples=examples(60))
@given(rows=logs(12))
def test_no_reservation_moves_to_a_later_time(rows: list[Row]) -> None:
    policy = Watched()
    simulate(instance_of(rows, M), policy)
    for before, after in zip(policy.history, policy.history[1:], strict=False):
        assert all(after[job] <= start for job, start in before.items())


# -- the compiled form ----------------------------------------------------------------------------------------------------


def in_python(instance: Instance, spec: str) -> Run:
    """The run of the same policy without its compiled form."""
    chosen = specify(spec)
    chosen.policy.__dict__["accelerator"] = lambda jobs: None
    return run_policy(instance.relative, chosen.policy, chosen.placement, name=spec).on_clock(instance)


def with_limits(instance: Instance, seed: int) -> Instance:
    """Limits of all kinds: none, exact, too long, and jobs that run longer."""
    rng = np.random.default_rng([seed, 3])
    factor = rng.choice([np.nan, 1, 1.25, 3, 0.4], size=instance.n, p=[0.15, 0.3, 0.2, 0.2, 0.15]).tolist()
    jobs = [
        dataclasses.replace(job, walltime=None if np.isnan(times) else float(job.duration) * times, user=f"u{j % 3}")
        for j, (job, times) in enumerate(zip(instance.jobs, factor, strict=True))
    ]
    return Instance(jobs, instance.cluster, instance.name)


FORMS = [
    *("easy", "easy-sjbf+consolidated", "conservative", "conservative+first-fit", "easy:forecast=true"),
    *("backfill:depth=3,by=sjf+consolidated", "backfill:depth=2,believe=double,forecast=true+buddy"),
    *("backfill:depth=all,believe=double+lwf", "conservative:walltime=exact", "easy:unlimited=5,walltime=exact"),
    *("easy-sjbf:walltime=noisy/error=3", "conservative:walltime=noisy/error=3", "conservative:unlimited=3"),
    *("conservative:walltime=noisy/error=3,believe=double", "easy:walltime=user-limit"),
]


@pytest.mark.parametrize("spec", FORMS)
def test_the_compiled_form_decides_the_same(spec: str) -> None:
    for seed in range(examples(24)):
        base = random_instance(900 + seed, MIXED if seed % 3 == 0 else ["1x8", "2x4", "4x3"][seed % 3])
        instance = with_limits(base, seed)
        plain, compiled = in_python(instance, spec), simulate(instance, spec)
        assert plain.schedule.completion.tolist() == compiled.schedule.completion.tolist(), instance.name
        assert starts_of(plain) == starts_of(compiled)
        late, same = promised_starts(plain), promised_starts(compiled)
        assert late is not None
        assert same is not None
        assert np.array_equal(late.late, same.late, equal_nan=True)
        assert compiled.unfinished == plain.unfinished


def test_rounding_makes_no_second_instant() -> None:
    """Ends at 0.1 + 0.2 and at 0.3 are one time; what is reserved for it starts then, with what was promised behind it."""
    rows = [(0, 0.3, 0.3, 1), (0, 0.1, 0.1, 1), (0.1, 0.2, 0.2, 1), (0.1, 0.4, 0.4, 2), (0.1, 1, 1, 2)]
    run = simulate(instance_of(rows, 2), "conservative")
    assert starts_of(run)[3] == pytest.approx(0.3)
    assert starts_of(run)[4] == pytest.approx(0.7)
    kept = promised_starts(run)
    assert kept is not None
    assert kept.share_kept == 1.0


def test_a_forecast_changes_no_decision_and_promises_every_job_a_start() -> None:
    instance = instance_of(BY_HAND[1][0], 4)
    run, plain = simulate(instance, "easy:forecast=true"), simulate(instance, "easy")
    assert starts_of(run) == starts_of(plain) == [0, 10, 33, 3]
    made = promised_starts(run)
    assert made is not None
    assert made.wait.tolist() == [0, 9, 13, 0]
    assert made.late.tolist() == [0, 0, 18, 0]  # job 3 started at once, and job 2 had been promised 15
    assert (made.share, made.share_kept, made.mean_late, made.late_at(1.0)) == (1, 0.75, 4.5, 18)
    assert plain.notes["promised"].tolist()[:3] == [pytest.approx(np.nan, nan_ok=True), 10, 33]  # of heads alone
    assert promised_starts(simulate(instance, "fifo")) is None


# -- beliefs --------------------------------------------------------------------------------------------------------------


def test_what_is_believed_of_a_job_beyond_its_limit() -> None:
    """Job 0 runs for 20 and is believed to take 4. At 6 job 2 ends before the head starts, by belief, or does not."""
    behind = [(1, 5, 5, 4), (6, 3, 3, 1), (7, 1, 1, 1)]
    said, silent = instance_of([(0, 20, 4, 3), *behind], 4), instance_of([(0, 20, None, 3), *behind], 4)
    assert starts_of(simulate(said, "easy")) == [0, 20, 25, 7]  # at 6: until 7, at 7: until 8
    assert starts_of(simulate(silent, "easy:unlimited=4")) == [0, 20, 25, 7]
    assert starts_of(simulate(silent, "easy:unlimited=4,believe=double")) == [0, 20, 6, 9]  # at 6: until 12
    assert starts_of(simulate(said, "easy:believe=double")) == [0, 20, 25, 7]  # no longer than the limit
    assert starts_of(simulate(said, "easy:walltime=exact")) == [0, 20, 6, 9]


def test_a_job_without_a_limit_takes_a_year_or_what_is_said() -> None:
    rows: list[Row] = [(0, 9, 9, 3), (1, 5, 5, 4), (2, 3, None, 1)]
    assert starts_of(simulate(instance_of(rows, 4), "easy")) == [0, 9, 14]
    assert starts_of(simulate(instance_of(rows, 4), "easy:unlimited=7")) == [0, 9, 2]
    assert starts_of(simulate(instance_of(rows, 4), "easy:unlimited=8")) == [0, 9, 14]


def test_the_last_two_runs_of_the_user() -> None:
    jobs = [
        Job(str(j), arrival=10 * j, duration=[4, 6, 1, 9][j], walltime=[8, 8, 3, 20][j], user="u") for j in range(4)
    ]
    jobs += [Job(name, arrival=at, duration=2, user="v") for name, at in (("early", 1), ("late", 35))]
    run = simulate(
        Instance([*jobs, Job("y", arrival=36, duration=2, walltime=7)], "1x4"), "easy:walltime=last-two/prior=50"
    )
    assert run.predicted is not None
    assert run.predicted.tolist() == [8, 8, 3, 3.5, 50, 3.5, 7]


def test_what_each_form_may_know() -> None:
    assert specify("easy").policy.knowledge is Knowledge.USER_LIMITS
    assert specify("easy:walltime=exact").policy.knowledge is Knowledge.CLAIRVOYANT
    assert specify("conservative:walltime=last-two").policy.knowledge is Knowledge.PREDICTED
    blind = specify("easy").policy
    blind.knowledge = Knowledge.NON_CLAIRVOYANT
    instance = instance_of(BY_HAND[0][0], 4)
    with pytest.raises(KnowledgeError, match="a non-clairvoyant policy asked for walltimes"):
        simulate(instance, blind)
    blind.__dict__["accelerator"] = lambda jobs: None
    with pytest.raises(KnowledgeError, match="a non-clairvoyant policy asked for the walltime of a job"):
        simulate(instance, blind)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("backfill:depth=0", "backfill: depth = '0': .*a whole number >= 1, or all"),
        ("backfill:depth=some", "a whole number >= 1, or all"),
        ("backfill:by=age", "backfill: by = 'age': .*fifo or sjf"),
        ("backfill:depth=all,by=sjf", "with depth=all every job has a reservation"),
        ("easy:walltime=truth", "easy: walltime = 'truth': unknown .*user, exact, or a predictor: .*last-two"),
        ("easy:believe=hope", "next-second or double"),
        ("conservative:unlimited=0", "conservative: unlimited = 0"),
        ("conservative:forecast=true", "unknown parameter of the policy conservative"),
    ],
)
def test_illegal_parameters(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        specify(spec)


def test_on_several_nodes_the_placement_has_the_last_word() -> None:
    """From 1 on two GPUs are free, on two nodes: the head waits for a node, and no GPU is given to the job behind it."""
    rows: list[Row] = [(0, 1, 1, 1), (0, 9, 9, 1), (0, 4, 4, 1), (1, 1, 1, 2), (2, 1, 1, 1)]
    instance = instance_of(rows, 4).replace(cluster="2x2")
    for spec in ("easy", "conservative"):
        assert starts_of(simulate(instance, f"{spec}+consolidated")) == [0, 0, 0, 4, 4]
        assert starts_of(simulate(instance, spec)) == [0, 0, 0, 1, 2]
    assert starts_of(simulate(instance, "fifo:skip=true+consolidated")) == [0, 0, 0, 4, 2]
