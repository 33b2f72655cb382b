"""`plot_file`: pictures of files and of proofs, and one clear line where there is none."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from plot.drawn import words
from refusals import one_line

import optsched as osd
from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.plot import gantt, overview, plot_file, save
from optsched.plot.plot_file import PLOTS
from optsched.plot.timeline import Timeline
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.solvers.session import Progress
from optsched.solvers.solve import solve

# -- `plot_file`: pictures of files, and one clear line where there is none -----------------------------------------------


pytestmark = pytest.mark.release

MAGIC = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.mark.parametrize(
    ("suffix", "stored"), [(".png", ".json"), (".svg", ".parquet"), (".pdf", ".json"), (".PNG", ".parquet")]
)
def test_a_schedule_becomes_a_picture(gangs: Schedule, tmp_path: Path, suffix: str, stored: str) -> None:
    gangs.save(tmp_path / f"s{stored}")
    plot_file(tmp_path / f"s{stored}", tmp_path / f"p{suffix}")
    plot_file(tmp_path / f"s{stored}", tmp_path / f"q{suffix}", gangs.instance)
    alone, whole = ((tmp_path / f"{name}{suffix}").read_bytes() for name in "pq")
    assert alone.startswith(MAGIC[suffix.lower()])
    assert whole.startswith(MAGIC[suffix.lower()])
    assert alone != whole  # arrivals, waiting jobs and idle GPUs
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"s{stored}", f"p{suffix}", f"q{suffix}"])


@pytest.mark.parametrize("stored", [".json", ".parquet"])
def test_the_file_alone_shows_the_nodes_and_gpus_that_appear(gangs: Schedule, tmp_path: Path, stored: str) -> None:
    gangs.save(tmp_path / f"s{stored}")
    timeline = Timeline.read(tmp_path / f"s{stored}", gangs.instance.digest)
    assert timeline.ids == ("a", "b", "c")
    assert timeline.node_names == ("node 0", "node 1")
    assert timeline.node_gpus.tolist() == [4, 3]
    assert timeline.start.tolist() == gangs.start.tolist()
    ax = gantt(timeline)
    assert [c.get_label() for c in ax.collections] == ["_floor", "_blocks", "_overhead"]


def of_one_segment(**changes: Any) -> dict[str, Any]:
    row = {"job": "a", "gpus": [[0, 0]], "start": 0, "end": 5, "work": 5} | changes
    return {"format": "optsched-schedule/1", "instance": "x", "policy": "", "segments": [row]}


def test_unused_nodes_are_left_out_and_keep_their_numbers(written: Any) -> None:
    timeline = Timeline.read(written(of_one_segment(gpus=[[7, 1]])), "x")
    assert (timeline.node_names, timeline.node_gpus.tolist()) == (("node 7",), [2])
    assert timeline.name == "1 job, 2 GPUs"


def test_a_result_becomes_bars(tmp_path: Path, written: Any) -> None:
    inst = Instance([Job(f"j{k}", arrival=k, duration=4 - k % 3) for k in range(6)], "1x2")
    plot_file(written(evaluate(inst, ["fifo", "srtf"]).to_json()), tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_the_same_file_gives_the_same_bytes(gangs: Schedule, tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        save(overview(gangs), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_large_runs_show_nodes_above_busy_gpus_and_waiting_jobs(tmp_path: Path) -> None:
    inst = Instance([Job(f"{k}", arrival=k, gpus=8, duration=50) for k in range(60)], "21x8")
    schedule = simulate(inst, "fifo").schedule
    figure = overview(schedule)
    image, shades, busy, waiting = figure.axes
    assert len(image.images) == 1
    assert busy.get_ylabel().startswith("busy of 168 GPUs")
    assert waiting.get_ylabel() == "waiting jobs"
    assert shades.get_ylabel() == "busy GPUs of a node"
    assert image.get_xlim() == busy.get_xlim() == waiting.get_xlim()
    schedule.save(tmp_path / "s.parquet")
    alone = overview(Timeline.read(tmp_path / "s.parquet", inst.digest))
    assert len(alone.axes) == 3


@pytest.mark.parametrize("name", ["p.gif", "p", "p.json", "p.png.txt"])
def test_other_suffixes_are_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"format of a picture.*\.png, \.svg, \.pdf"):
        plot_file(tmp_path / "absent.json", tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.json", None, "no such file"),
        ("f.parquet", None, "no such file"),
        ("f.json", b"{ torn", "not a JSON document"),
        ("f.json", b"\xff\xfe", "not a JSON document"),
        ("f.json", b"[1]", "not a file that can be drawn .*result.json"),
        ("f.json", b"{}", r"not a file that can be drawn .*optsched-schedule/1"),
        ("f.json", b'{"format": "optsched-instance/1"}', "format optsched-instance/1 cannot be drawn"),
        ("f.parquet", b"PAR1 torn", "not a Parquet file"),
        ("f.json", b'{"format": "optsched-schedule/1", "instance": "x"}', "not a schedule file"),
        ("f.json", b'{"format": "optsched-schedule/1", "instance": "x", "segments": []}', "the schedule is empty"),
        ("f.json", b'{"format": "optsched-schedule/1", "instance": "x", "segments": [3]}', "a segment is invalid"),
        ("f.json", b'{"format": "optsched-schedule/1", "segments": [3]}', "f.json"),
        ("f.json", b'{"objective": "makespan", "runs": []}', "no runs to draw"),
    ],
)
def test_files_that_cannot_be_drawn(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with one_line(match=message, begins=tmp_path / name):
        plot_file(tmp_path / name, tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": float("nan")}, "finite numbers of seconds"),
        ({"start": 9}, "an end before its start"),
        ({"gpus": [[0, -1]]}, "below 0"),
        ({"gpus": [[0, 10**9]]}, "too large to draw"),
        ({"gpus": [[0, 0, 0]]}, "a segment is invalid"),
        ({"job": ["a"]}, "a segment is invalid"),
        ({"work": None}, "finite numbers of seconds"),
    ],
)
def test_segments_that_cannot_be_drawn(tmp_path: Path, written: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plot_file(written(of_one_segment(**change)), tmp_path / "p.png")


def test_a_schedule_of_another_instance_is_refused(gangs: Schedule, tmp_path: Path) -> None:
    gangs.save(tmp_path / "s.json")
    with pytest.raises(InputError, match="another instance"):
        plot_file(tmp_path / "s.json", tmp_path / "p.png", gangs.instance.with_cluster("3x4"))


def test_a_gpu_that_the_instance_lacks_names_the_file(gangs: Schedule, tmp_path: Path) -> None:
    gangs.save(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text().replace("[1, 2]", "[5, 2]")
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(InputError, match=r"s\.json: segment 1 \(of 4\) has a GPU that the cluster 2x4:V100 does not"):
        plot_file(tmp_path / "s.json", tmp_path / "p.png", gangs.instance)


def test_a_place_that_cannot_be_written(gangs: Schedule, tmp_path: Path) -> None:
    gangs.save(tmp_path / "s.json")
    with pytest.raises(InputError, match="cannot write"):
        plot_file(tmp_path / "s.json", tmp_path / "absent" / "p.png")


def test_a_table_that_is_no_schedule(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="not a file that can be drawn"):
        plot_file(tmp_path / "t.parquet", tmp_path / "p.png")


def test_every_kind_of_file_says_what_it_is() -> None:
    assert {"result", "schedule", "tasks", "robustness"} <= set(PLOTS.names())
    assert all(plot.what for _, plot in PLOTS.items())


# -- Convergence and prices: the lines against what a solve reported, what a run noted, and strong duality ----------------


def test_a_solution_keeps_the_interval_as_it_shrank_and_the_picture_shows_it() -> None:
    seen: list[Progress] = []
    solution = solve("rigid-08-2", "total_completion_time", progress=seen.append)
    trace = solution.trace
    assert {event.interval for event in trace} == {event.interval for event in seen}
    assert all(a.seconds <= b.seconds for a, b in pairwise(trace))
    assert all(not a.incumbent < b.incumbent and not a.bound > b.bound for a, b in pairwise(trace))
    assert trace[-1].incumbent == solution.value

    best, bound = osd.plot.convergence(solution).axes[0].lines
    assert np.asarray(best.get_ydata()).tolist() == pytest.approx([*(e.incumbent for e in trace), solution.value])
    assert np.asarray(bound.get_ydata()).tolist() == pytest.approx(
        [*(e.bound for e in trace), solution.bound], nan_ok=True
    )


def test_a_trace_is_on_the_logs_clock() -> None:
    jobs = [osd.Job(f"{k}", arrival=1000 + k, duration=3 + k % 2) for k in range(4)]
    solution = solve(osd.Instance(jobs, "1x1"), "total_completion_time")
    assert solution.trace[-1].incumbent == solution.value
    assert all(event.incumbent > 4000 for event in solution.trace)


def test_many_reports_are_thinned_and_keep_their_ends() -> None:
    from optsched.problem.objectives import get_objective
    from optsched.solvers.solve_state import MOST_REPORTS, SolveState

    instance = osd.load("rigid-06-1")
    state = SolveState(instance, get_objective("total_completion_time"))
    for bound in range(3 * MOST_REPORTS):
        state.raise_bound(float(bound), "solver")
        state.report()
    assert len(state.trace) <= MOST_REPORTS
    assert (state.trace[0].bound, state.trace[-1].bound) == (0, 3 * MOST_REPORTS - 1)


def test_what_is_not_closed_names_both_ends_and_nothing_is_refused() -> None:
    jobs = [osd.Job(str(k), arrival=k / 7, gpus=1 + k % 2, duration=1 + k / 3, gpu_types=("V100",)) for k in range(15)]
    instance = osd.Instance(jobs, "1x2:V100+1x1:K80")  # no exact method knows such times where types count
    solution = solve(instance, "total_completion_time")
    said = words(osd.plot.convergence(solution).axes[0].texts)
    assert [text.rsplit(" ", 1)[0] for text in said] == ["best schedule", "proven bound"]
    with pytest.raises(InputError, match="neither a value nor a bound"):
        osd.plot.convergence(dataclasses.replace(solution, value_exact=None, bound_exact=None))


def test_prices_of_a_run_and_of_the_program_share_time_and_colours() -> None:
    small = osd.generate("hetero-small", seed=3, jobs=6, cluster="1x2:V100+1x2:K80", span=0.3)
    run = osd.simulate(small, "hadar:round=4")
    best = osd.solve_program(small, "hadar-primal:rounds=6,round=4")
    price, sold, program = osd.plot.prices(run, best).axes
    values, edges, _ = price.patches[0].get_data()
    assert values.tolist() == run.notes["hadar_prices"][:, 0].tolist()
    assert (edges[1] - edges[0], price.get_yscale()) == (4, "log")
    assert sold.patches[1].get_data()[0].max() == run.notes["hadar_sold"][:, 1].max() / 2
    assert price.get_xlim() == sold.get_xlim() == program.get_xlim()

    # strong duality: all prices times two GPUs a node, and the payoffs, are the optimum
    drawn = {tuple(patch.get_edgecolor()): patch.get_data() for patch in program.patches}
    paid = 2 * sum(values.sum() for values, *_ in drawn.values())
    payoffs = sum(value for name, value in best.duals.items() if name.startswith("payoff"))
    assert paid + payoffs == pytest.approx(best.value)
    assert set(drawn) == {tuple(patch.get_edgecolor()) for patch in price.patches}
    assert osd.plot.prices(best).axes[0].get_xlabel() == "round"


def test_what_has_no_prices_is_refused() -> None:
    with pytest.raises(InputError, match=r"fifo.*no prices"):
        osd.plot.prices(osd.simulate("rigid-06-1", "fifo"))
    gavel = osd.solve_program(osd.generate("hetero-small", seed=1), "gavel-max-min")
    with pytest.raises(InputError, match="no prices of rounds"):
        osd.plot.prices(gavel)


# -- A picture is shown by IPython where pyplot was never asked for one; `tests/site` looks at every notebook that draws.


@pytest.mark.release
def test_figures_and_axes_show_themselves_without_pyplot() -> None:
    # As a kernel does before anybody asked pyplot for a figure: nobody has told IPython how figures are shown.
    code = (
        "import sys, optsched as osd; from IPython.core.formatters import DisplayFormatter;"
        "s = osd.Schedule.from_starts('rigid-06-1', range(0, 600, 100)); ax = osd.plot.gantt(s);"
        "shown = [DisplayFormatter().format(each)[0] for each in (ax, ax.figure, osd.plot.overview(s))];"
        "assert all(each['image/png'].startswith(b'\\x89PNG') for each in shown), shown;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
