"""Convergence and prices: the lines against what a solve reported, what a run noted, and strong duality."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.solvers.session import Progress
from optsched.solvers.solve import solve

pytestmark = pytest.mark.release


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
    said = [text.get_text() for text in osd.plot.convergence(solution).axes[0].texts]
    assert [text.rsplit(" ", 1)[0] for text in said] == ["best schedule", "proven bound"]
    with pytest.raises(InputError, match="neither a value nor a bound"):
        osd.plot.convergence(dataclasses.replace(solution, value_exact=None, bound_exact=None))


def test_prices_of_a_run_and_of_the_program_share_time_and_colours() -> None:
    small = osd.generate("hetero-small", seed=3, jobs=6, cluster="1x2:V100+1x2:K80", span=0.3)
    run = osd.simulate(small, "hadar-commit:round=4")
    best = osd.solve_program(small, "hadar-primal:rounds=6,round=4")
    price, sold, program = osd.plot.prices(run, best).axes
    values, edges, _ = price.patches[0].get_data()  # type: ignore[attr-defined]
    assert values.tolist() == run.notes["hadar_prices"][:, 0].tolist()
    assert (edges[1] - edges[0], price.get_yscale()) == (4, "log")
    assert sold.patches[1].get_data()[0].max() == run.notes["hadar_sold"][:, 1].max() / 2  # type: ignore[attr-defined]
    assert price.get_xlim() == sold.get_xlim() == program.get_xlim()

    # strong duality: all prices times two GPUs a node, and the payoffs, are the optimum
    drawn = {tuple(patch.get_edgecolor()): patch.get_data() for patch in program.patches}  # type: ignore[attr-defined]
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
