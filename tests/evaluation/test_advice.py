"""`advise`: candidates, savings and their intervals, who loses, promises and other clusters, on logs done by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.advice.advice import advise
from optsched.evaluation.advice.advice_row import promises_to_waiting
from optsched.evaluation.advice.candidate_runs import _bare, _dressed
from optsched.evaluation.advice.candidates import candidates, with_restart
from optsched.evaluation.advice.fairness import fairness
from optsched.evaluation.advice.savings import queued_by_job, savings
from optsched.evaluation.advice.sentences import at_most
from optsched.evaluation.advice.what_if import change_of, default_changes
from optsched.evaluation.report import queued_hours
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.simulation.knowledge import NOT_STATED, Knowledge

WEEK = 7 * 86400
FIVE = [(0, 4, 10, 3), (1, 5, 5, 4), (2, 6, 8, 1), (2, 3, 9, 1), (3, 2, 2, 1)]  # arrival, duration, walltime, gang


def five(walltimes: bool = True, weeks: int = 1, **more: Any) -> Instance:
    """The third log by hand of the sheet on backfilling, once a week; it ran first come, first served."""
    starts, users = (0, 4, 9, 9, 9), ("ann", "bob", "ann", "bob", "<b>eve")
    jobs = [
        Job(
            f"{week}-{j}", WEEK * week + r, q, p, user=users[j], walltime=e if walltimes else None,
            ran=((WEEK * week + starts[j], WEEK * week + starts[j] + p),), **more,
        )
        for week in range(weeks)
        for j, (r, p, e, q) in enumerate(FIVE)
    ]  # fmt: skip
    return Instance(jobs, "1x4", name="five")


def test_the_schedule_that_ran_comes_first_and_the_others_by_queued_hours() -> None:
    advice = advise(five(), what_if=())
    assert advice.base.policy == "as logged"
    assert advice.base.line.value == 43
    values = {row.policy: row.line.value for row in advice.rows}
    assert (values["fifo"], values["fifo:skip=true"], values["easy"], values["conservative"]) == (43, 30, 39, 39)
    gains = [row.saving.gpu_hours for row in advice.rows[1:] if row.saving is not None]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) == len(advice.rows) - 1
    for row in advice.rows[1:]:
        assert row.saving is not None
        assert row.saving.gpu_hours == pytest.approx(queued_hours(advice.base.line.run) - queued_hours(row.line.run))
        assert row.saving.gpu_hours == pytest.approx(row.line.queued_avoided)
    knowledge = {row.policy: row.knowledge for row in advice.rows}
    assert [knowledge[name] for name in ("as logged", "fifo", "easy", "sjf")] == [
        NOT_STATED,
        Knowledge.NON_CLAIRVOYANT,
        Knowledge.USER_LIMITS,
        Knowledge.CLAIRVOYANT,
    ]
    assert knowledge["wcs-duration:predictor=shrinkage+count"] == Knowledge.PREDICTED
    assert knowledge == {row["policy"]: row["knowledge"] for row in advice.to_json()["candidates"]}
    perfect = advise(five(), "wcs-duration", only=True, what_if=()).rows[1]  # the predictor is the durations
    assert (perfect.knowledge, perfect.perfectly_predicted, perfect.clairvoyant) == ("predicted", True, True)
    best = advice.best
    assert best is not None
    assert best.policy == "fifo:skip=true"


def test_the_sentence_names_easy_or_else_the_best_policy() -> None:
    assert advise(five(), what_if=()).sentence.endswith("; EASY with your users' limits would have avoided 4 of them")
    without = advise(five(walltimes=False), what_if=())
    assert without.sentence.endswith("; fifo:skip=true would have avoided 13 of them")
    assert "easy:walltime=exact" in [row.policy for row in without.rows]
    plain = advise("rigid-12-1", objective="total_flow_time", what_if=())
    assert plain.sentence.startswith("under fifo the jobs of these ")
    assert plain.base.saving is None


def test_candidates_suit_the_log_and_state_the_cost_of_restarts() -> None:
    texts = [specification.text for specification in candidates(five(), ["unified:resize=false"], restart=90)]
    assert texts[0] == "fifo"
    assert {"srtf:restart=90", "tiresias:restart=90", "unified:resize=false,restart=90"} <= set(texts)
    assert with_restart("srtf:restart=5+consolidated", 90) == "srtf:restart=5+consolidated"
    assert with_restart("easy", 90) == "easy"
    assert [c.text for c in candidates(five(), ["sjf", "easy+first-fit"], only=True)] == ["sjf", "easy+first-fit"]
    nodes = Instance([Job("a", 0, 2, 1), Job("b", 0, 1, 1)], "2x2")
    assert {"fifo", "fifo+consolidated", "easy:walltime=exact"} <= {c.text for c in candidates(nodes)}
    assert [c.text for c in candidates(nodes, ["sjf"], ["buddy"], only=True)] == ["sjf+buddy"]
    with pytest.raises(InputError, match="no policy is named"):
        candidates(five(), only=True)


def test_an_interval_is_the_resampled_sum_over_weeks() -> None:
    rng = np.random.default_rng(3)
    arrival = np.sort(rng.uniform(0, 6 * WEEK, 60))
    base, other = rng.uniform(0, 9, 60), rng.uniform(0, 9, 60)
    [saving] = savings(base, [other], arrival, draws=50, seed=7)
    assert saving.gpu_hours == pytest.approx(float((base - other).sum()))
    drawn = np.random.default_rng(7).integers(0, 6, size=(50, 6))
    by_week = [sum((base - other)[arrival // WEEK == week]) for week in range(6)]
    sums = sorted(sum(by_week[week] for week in row) for row in drawn)
    assert (saving.low, saving.high) == pytest.approx(tuple(np.quantile(sums, [0.025, 0.975])))
    assert savings(base, [other], arrival, draws=50, seed=8) != [saving]
    [short] = savings(base, [other], arrival / 6 * 2)
    assert (short.low, short.high) == (None, None)
    alike = advise(five(weeks=4), only=True, policies=["easy"], what_if=())  # every week is the same
    saving = alike.rows[1].saving
    assert saving is not None
    assert saving.low == pytest.approx(saving.gpu_hours)
    assert saving.high == pytest.approx(saving.gpu_hours)
    assert alike.weeks == 4


def test_queued_hours_by_job_add_up_to_those_of_the_run() -> None:
    for policy in ("srtf:restart=7", "tiresias:restart=3"):
        run = simulate(osd.load("cluster-week", limit=100), policy)
        assert run.preemptions > 0
        assert queued_by_job(run.schedule).sum() == pytest.approx(queued_hours(run))


def test_who_loses_by_hand() -> None:
    instance = five()
    before, after = np.array([1.0, 4.0, 2.0, 2.0, 3.0]), np.array([2.0, 1.0, 2.0, 3.0, 9.0])
    stay, conservative = np.array([4.0, 50.0, 12.0, 12.0, 40.0]), np.array([1.0, 40.0, 12.0, 48.0, 10.0])
    found = fairness(instance, before, after, stay, conservative)
    assert (found.by, found.people, found.worse, found.longest_stay) == ("user", 3, 2, 4.0)
    assert [(x.name, x.jobs, x.before, x.after) for x in found.losers] == [("<b>eve", 1, 3, 9), ("ann", 2, 1.5, 2)]
    assert found.share_worse == pytest.approx(2 / 3)
    single = fairness(Instance([Job("a", 0, 1, 1), Job("b", 0, 1, 1)], "1x4"), before[:2], after[:2], stay[:2])
    assert (single.by, single.worse, single.longest_stay) == ("job", 1, None)


def test_slowdowns_of_users_are_added_up_in_the_order_of_the_jobs() -> None:
    """The sums of Polars by group depend on its threads, in the last digit."""
    rng = np.random.default_rng(0)
    users, before = rng.integers(0, 14, 10_000), rng.exponential(size=10_000)
    jobs = Instance([Job(str(k), 0, 1, 1, user=str(user)) for k, user in enumerate(users.tolist())], "1x1")
    for loser in fairness(jobs, before, 2 * before, before).losers:
        mine = before[users == int(loser.name)]
        assert loser.before == np.cumsum(mine)[-1] / mine.size


def test_promises_by_hand() -> None:
    # promised at submission 10, 15 and 15; started at 8, 13 and 4
    found = promises_to_waiting(simulate(five(), "conservative"))
    assert found is not None
    assert (found.wait.size, found.share_kept, found.late_at(0.5), found.late_at(1)) == (3, 1.0, -2, -2)
    assert promises_to_waiting(simulate(five(), "fifo")) is None
    late = five().replace(jobs=five().table.with_columns(walltime=five().table["duration"] / 2))
    broken = promises_to_waiting(simulate(late, "conservative"))
    assert broken is not None
    assert broken.share_kept < 1
    assert broken.late_at(1) > 0


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("gpus=+10%", "10x8", "11x8"),
        ("gpus=-10%", "10x8", "9x8"),
        ("gpus=+10%", "3x8", "4x8"),  # at least one node
        ("gpus=-10%", "1x8", "1x7"),
        ("gpus=+10%", "8x4:V100+4x4:P100+4x4:K80", "9x4:V100+5x4:P100+4x4:K80"),
        ("gpus=+50%", "4x8:V100+2x4:P100", "6x8:V100+3x4:P100"),
        ("nodes = -1", "4x8:V100+2x4:P100", "3x8:V100+2x4:P100"),
        ("nodes=+2", "4x8", "6x8"),
        ("cluster=16x4", "8x8", "16x4"),
    ],
)
def test_changes_of_the_cluster(text: str, before: str, after: str) -> None:
    assert change_of(text, Cluster.parse(before)).cluster.spec == after


@pytest.mark.parametrize("text", ["more", "gpus=10%", "nodes=-2", "gpus=+2", "gpus=-100%", "nodes=+1.5", "cluster=8"])
def test_impossible_changes_are_one_line(text: str) -> None:
    with pytest.raises(InputError) as error:
        change_of(text, Cluster.parse("1x4"))
    assert len(str(error.value).splitlines()) == 1


def test_a_change_names_what_the_log_counts() -> None:
    cluster = Cluster.parse("1x100")
    assert change_of("Processors=+10%", cluster, "processor").cluster.spec == "1x110"
    assert change_of("nodes=-10%", Cluster.parse("10x8"), "processor").cluster.spec == "9x8"
    with pytest.raises(InputError, match=r"not a change of the cluster \(expected: processors=\+10%"):
        change_of("gpus=+10%", cluster, "processor")
    log = Instance([Job("a", 0, 1, 1)], "1x4", recipe={"kind": "trace", "parameters": {"counts": "CPU"}})
    assert [change.text for change in default_changes(log)] == ["cpus=+10%", "cpus=-10%"]


def test_another_cluster_is_compared_job_by_job() -> None:
    advice = advise(five(), ["easy"], only=True, what_if=("cluster=1x8", "gpus=-25%"))
    wide, narrow = advice.what_ifs
    assert (wide.run.policy, wide.misfits, queued_hours(wide.run)) == (
        "easy",
        0,
        pytest.approx(3 / 3600),
    )  # two narrow jobs wait until 4
    assert narrow.misfits == 1  # the gang of four
    base = queued_by_job(advice.base.line.run.schedule)
    assert narrow.saving is not None
    assert narrow.saving.gpu_hours == pytest.approx(base[[0, 2, 3, 4]].sum() - queued_hours(narrow.run))

    assert narrow.queued_before == pytest.approx(base[[0, 2, 3, 4]].sum())
    assert narrow.queued_before == pytest.approx(queued_hours(narrow.run) + narrow.saving.gpu_hours)


@pytest.mark.parametrize(
    ("text", "before", "label"),
    [
        ("gpus=+10%", "10x8", "gpus=+10%"),
        ("gpus=+10%", "96x8", "gpus=+10%"),  # 10.4 %
        ("gpus=+10%", "2x8", "gpus=+10% (rounded: +50 %)"),
        ("gpus=-10%", "2x8", "gpus=-10% (rounded: -50 %)"),
        ("gpus=-10%", "1x8", "gpus=-10% (rounded: -12.5 %)"),
        ("nodes=-1", "2x8", "nodes=-1"),
        ("cluster=1x8", "2x8", "cluster=1x8"),
    ],
)
def test_a_label_has_the_true_percentage(text: str, before: str, label: str) -> None:
    assert change_of(text, Cluster.parse(before)).label == label


@pytest.mark.parametrize(
    ("cluster", "gang", "texts"),
    [
        ("10x8", 1, ["gpus=+10%", "gpus=-10%"]),
        ("2x8", 1, ["nodes=+1", "nodes=-1"]),
        ("2x8", 16, ["nodes=+1"]),  # no job fits on one node
        ("1x4", 1, ["gpus=+10%", "gpus=-10%"]),
        ("1x1", 1, ["gpus=+10%"]),  # no GPU would be left
    ],
)
def test_the_default_changes_are_those_that_can_be(cluster: str, gang: int, texts: list[str]) -> None:
    instance = Instance([Job("a", 0, gang, 1)], cluster)
    assert [change.text for change in default_changes(instance)] == texts
    assert [entry.change.text for entry in advise(instance, "fifo", only=True).what_ifs] == texts


def test_a_text_is_one_change_and_one_placement() -> None:
    advice = advise(five(), "easy", only=True, placements="count", what_if="cluster=1x8")
    assert [entry.change.text for entry in advice.what_ifs] == ["cluster=1x8"]


def test_other_clusters_run_under_a_policy_that_could_be_deployed() -> None:
    jobs = [Job("a", 0, 1, 4, ran=((0, 4),)), Job("b", 0, 1, 2, ran=((4, 6),))]  # fifo avoids nothing, srtf does
    advice = advise(Instance(jobs, "1x1"), ["fifo", "srtf"], only=True)
    assert advice.best is None
    assert [entry.run.policy for entry in advice.what_ifs] == ["fifo"]
    assert advise(Instance(jobs, "1x1"), ["srtf"], only=True).what_ifs[0].run.policy == "srtf:restart=60"


def test_the_bound_of_the_log_is_that_of_score() -> None:
    jobs = [Job("a", 0, 1, 4, ran=((2, 6),))]
    log = Instance(jobs, "1x1")
    advice, score = advise(log, what_if=()), osd.score(log)
    assert advice.score.line.bound == score.line.bound  # though fifo reaches it
    assert advice.sentence.startswith(score.sentence)


def test_spans_of_idle_gpus_come_with_a_warning() -> None:
    hour = 3600.0
    jobs = [Job("a", 0, 4, hour, ran=((0, hour),)), Job("b", 1, 4, hour, ran=((3 * hour, 4 * hour),))]
    advice = advise(Instance(jobs, "1x4"), what_if=())
    [warning] = [line for line in advice.details if "idle" in line]
    assert warning.startswith("Once for more than an hour the next job waited although it fitted (8 idle GPU-hours)")
    assert advice.to_json()["idle_spans"] == {"count": 1, "gpu_hours": 8}
    assert not any("idle" in line for line in advise(five(), what_if=()).details)


def test_candidates_that_tie_are_named_together() -> None:
    jobs = [Job("a", 0, 1, 4, walltime=5, ran=((2, 6),)), Job("b", 0, 1, 4, walltime=5, ran=((6, 10),))]
    two = advise(Instance(jobs, "1x1"), ["fifo", "fifo:skip=true"], only=True, what_if=())
    assert any("fifo and fifo:skip=true avoid most, and equally much: " in line for line in two.details)
    assert len(two.tied) == 2
    many = advise(Instance(jobs, "1x1"), ["fifo", "easy", "easy-sjbf", "conservative", "slurm"], only=True)
    assert any("5 candidates (fifo, " in line and ", ...) avoid most" in line for line in many.details)
    assert len(advise(five(), ["easy", "fifo:skip=true"], only=True, what_if=()).tied) == 1


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0.91341, 0.91341, "0.913"),
        (0.9, 0.91341, "0.900"),
        (61.511, 80.2, "61.6"),
        (0.0, 0.0, "0"),
        (2e6, 2e6, "2 million"),
    ],
)
def test_a_part_is_never_more_than_the_whole_as_it_is_shown(part: float, whole: float, text: str) -> None:
    assert at_most(part, whole) == text


def test_a_busy_cluster_comes_with_a_warning() -> None:
    jobs = [Job(str(k), k, 4, 1, ran=((k, k + 1),)) for k in range(20)]
    busy = advise(Instance(jobs, "1x4"), what_if=())
    assert busy.utilization == pytest.approx(1)
    assert "100 % in use" in busy.details[-1]
    assert not any("in use" in line for line in advise(five(), what_if=()).details)


def test_jobs_that_never_ran_are_left_out() -> None:
    queued = Job("never", 1, 1, 5)
    advice = advise(Instance([*five().jobs, queued], "1x4"), ["easy"], only=True, what_if=())
    assert advice.left_out == ("never",)
    assert advice.instance.n == 5


def test_the_document_is_json_and_complete() -> None:
    document = json.loads(json.dumps(advise(five()).to_json(), allow_nan=False))
    assert document["base"] == "as logged"
    assert {entry["policy"] for entry in document["candidates"]} >= {"as logged", "easy", "conservative"}
    assert [entry["cluster"] for entry in document["what_if"]] == ["1x5", "1x3"]
    assert document["bootstrap"] == {"weeks": 1, "draws": 200, "seed": 0}
    assert osd.advise is advise


def test_a_run_is_the_same_after_its_way_between_processes() -> None:
    for instance in (five(weeks=2), Instance([Job("a", 100, 1, 7), Job("b", 100, 1, 9)], "1x1")):
        here, text = refereed(instance, specify("easy")), "easy"
        sent = _dressed(_bare(instance, text), instance)
        assert (sent.policy, sent.knowledge, sent.preemptions) == (here.policy, here.knowledge, here.preemptions)
        assert np.array_equal(sent.schedule.start, here.schedule.start)
        assert np.array_equal(sent.notes["promised"], here.notes["promised"], equal_nan=True)
        assert sent.value() == here.value()


@pytest.mark.study
def test_a_year_of_kth_has_the_golden_sentence(data_dir: Path) -> None:
    log = osd.load(f"swf:{data_dir / 'swf' / 'KTH-SP2.swf'}", walltimes="cut")
    advice = advise(log, workers=2)
    assert advice.sentence == (
        "the jobs of these 11 months (1996-09-23 to 1997-08-29) took 690.5 million job-seconds from submission to "
        "completion, at most 2.73 times the best possible; at most 437.1 million of them were avoidable; EASY with your "
        "users' limits would have avoided 242.0 million of them"
    )
    values = {row.policy: row.line.value for row in advice.rows}
    assert values["easy"] == 448_506_807
    assert (values["easy-sjbf"], values["conservative"], values["fifo:skip=true"]) == (
        421_281_702,
        461_570_023,
        415_243_928,
    )
    kept = {row.policy: row.promises.share_kept for row in advice.rows if row.promises is not None}
    assert kept == {"easy": 1, "easy-sjbf": 1, "conservative": 1}


@pytest.mark.study
def test_a_month_of_philly_does_not_depend_on_the_number_of_processes(data_dir: Path, tmp_path: Path) -> None:
    rows = (data_dir / "philly" / "philly.csv").read_text().splitlines(keepends=True)
    file = tmp_path / "october.csv"
    file.write_text("".join([rows[0], *(row for row in rows if row.startswith("2017-10"))]))
    month = osd.load(f"philly:{file}", cluster="80x8")

    def numbers(workers: int) -> Any:
        document = advise(month, workers=workers).to_json()
        for candidate in document["candidates"]:
            del candidate["seconds"]
        return document

    assert numbers(1) == numbers(2)
