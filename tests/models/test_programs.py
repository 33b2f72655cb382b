"""Every formulation is reachable: by `formulate`, by `solve_program` and ``solve --model``; it agrees with others."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
from examples import few
from invariance.examples import examples
from packing_value import packing_value
from random_transfers import random_transfers

import optsched as osd
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.classes.task_sharing.problem.transfers import transfer_instance, transfers_of
from optsched.classes.task_sharing.solvers.transfer_search import transfer_optimum
from optsched.cli.listed_kinds import KINDS
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models import FORMULATIONS, hadar_rounds
from optsched.models.program import PROGRAMS
from optsched.problem.instance import Instance
from optsched.solvers.formulate import formulate, is_program
from optsched.solvers.round_packing import pack_rounds
from optsched.solvers.solve_program import solve_program
from optsched.speeds.duration import solo_times

MODELS = Path(osd.__file__).resolve().parent.parent / "models"


def hetero(seed: int) -> Instance:
    return generate("hetero-small", seed, jobs=4)


def of_pairs(seed: int) -> Instance:
    """Gangs of two on nodes of two: what forks."""
    rng = np.random.default_rng(seed)
    jobs = [osd.Job(f"j{k}", gpus=2, duration=float(p)) for k, p in enumerate(rng.integers(2, 9, 3))]
    return Instance(jobs, "2x2")


def sent(seed: int) -> Instance:
    return transfer_instance(random_transfers(3, seed))


EXAMPLES: dict[str, Callable[[int], Instance]] = {
    "gpu-sharing": lambda seed: generate("sharing-small", seed, jobs=2),
    "link-contention": sent,
    "gpu-mapping": lambda seed: examples(seed)["staged"],
    "hadar-e-forking": of_pairs,
    "kv-time-indexed": lambda seed: request_instance([1, 2, 1], [3, 2, 4], 6),
}


def example(name: str, seed: int = 1) -> Instance:
    return EXAMPLES.get(name, hetero)(seed)


@pytest.mark.parametrize("name", PROGRAMS.names())
def test_every_program_is_solved_on_an_instance(name: str) -> None:
    found = solve_program(example(name), name)
    assert found.status == "optimal"
    assert found.value is not None
    assert found.size.rows > 0
    assert found.size.columns > 0
    assert json.loads(json.dumps(found.to_json()))["model"] == name
    assert type(formulate(example(name), name)).__name__ in ("ConcreteModel", "Problem")


@pytest.mark.parametrize("name", FORMULATIONS.names())
def test_every_formulation_of_schedules_is_made(name: str) -> None:
    formulation, instance = FORMULATIONS.get(name), osd.load("single-06-1")
    objective = sorted(formulation.objectives)[0]
    if formulation.applies(instance, objective) is None:
        assert type(formulate(instance, name, objective)).__name__ in ("ConcreteModel", "Problem")
    else:
        with pytest.raises(InputError, match="does not apply"):
            formulate(instance, name, objective)


def test_every_file_that_names_a_formulation_has_registered_it() -> None:
    """But for those that need what no instance has: modes of gangs, an order of a queue."""
    named = {
        line.split('"')[1]
        for path in MODELS.glob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("NAME = ")
    }
    assert named - {"makespan-modes", "worst-for-an-order"} <= set(PROGRAMS.names()) | set(FORMULATIONS.names())
    assert len(named) > 12


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_the_primal_and_the_dual_of_hadar_have_one_value(seed: int) -> None:
    primal, dual = solve_program(hetero(seed), "hadar-primal"), solve_program(hetero(seed), "hadar-dual")
    assert primal.value == pytest.approx(dual.value, rel=1e-9)
    assert primal.opposite is not None
    assert primal.opposite.value == pytest.approx(primal.value, rel=1e-9)
    assert primal.gap == pytest.approx(0, abs=1e-9)
    listed = packing_value(PROGRAMS.get("hadar-primal").data(hetero(seed).relative).packing)
    assert primal.value == pytest.approx(listed, abs=1e-9)
    for found in (primal, dual):  # every price is that of one device: nodes of this recipe have two
        nodes = hetero(seed).cluster.node_gpus
        worth = sum(k * nodes[int(name.split("node ")[1].split(",")[0])] for name, k in prices(found).items())
        payoffs = sum(value for name, value in found.duals.items() if name.startswith("payoff of "))
        assert worth + payoffs == pytest.approx(found.value, rel=1e-9)


def prices(found: Any) -> dict[str, float]:
    return {name: value for name, value in found.duals.items() if name.startswith("price of ")}


@pytest.mark.parametrize("seed", range(4))
def test_two_formulations_of_the_best_rounds_agree(seed: int) -> None:
    text = ":rounds=3"
    packing, cells = (solve_program(hetero(seed), name + text) for name in ("hadar-packing", "hadar-offline"))
    assert packing.value == pytest.approx(cells.value, rel=1e-7)
    assert packing.value <= solve_program(hetero(seed), "hadar-primal" + text).value + 1e-9  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(4))
def test_shares_that_end_together_end_when_the_fluid_does(seed: int) -> None:
    fluid, rate = solve_program(hetero(seed), "hadar-makespan"), solve_program(hetero(seed), "gavel-makespan")
    assert rate.value is not None
    assert fluid.value is not None
    assert 1 / rate.value >= fluid.value - 1e-9  # a job has no more than all of the time
    # a price is the slope of the optimum in what there is
    value = solve_program(hetero(seed), "gavel-max-min")
    assert set(value.duals) == {f"price of {name}" for name in ("V100", "K80")}
    assert min(value.duals.values()) >= -1e-12


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (osd.Job("a", duration=1.0, weight=0.0), r"weight of a = 0.0: invalid \(expected: a number > 0\)"),
        (osd.Job("a", duration=1.0, gpus=3), "gpus of a = 3: no GPU type holds it"),
    ],
)
def test_what_shares_of_time_cannot_do_is_said(job: osd.Job, message: str) -> None:
    with pytest.raises(InputError, match=message):
        formulate(osd.Instance([job], "1x2:V100+1x2:K80"), "gavel-max-min")
    with pytest.raises(InputError, match="jobs = 0"):
        formulate(osd.Instance([], "1x2:V100+1x2:K80"), "gavel-max-min")


@pytest.mark.parametrize("seed", range(3))
def test_transfers_come_back_from_their_instance(seed: int) -> None:
    problem = transfers_of(sent(seed))
    assert solve_program(sent(seed), "link-contention").value == pytest.approx(
        transfer_optimum(problem).value, rel=1e-6
    )


def test_a_mapping_takes_what_a_job_takes_alone() -> None:
    instance = example("gpu-mapping")
    job = instance.job(int(instance.jobs_at("profiles")[0]))
    found = solve_program(instance, f"gpu-mapping:job={job.id}")
    assert found.value is not None
    assert found.value * float(job.iterations or 0) == pytest.approx(
        solo_times(instance).seconds[instance.ids.index(job.id)], rel=1e-6
    )


def test_gpu_sharing_is_still_a_method_of_solve() -> None:
    assert not is_program("gpu-sharing")
    instance = example("gpu-sharing")
    instance = instance.replace(jobs=instance.table.with_columns(arrival=instance.arrival + 1000))
    best = osd.solve(instance, "total_completion_time", model="gpu-sharing")
    assert best.value is not None
    assert best.value > 1000 * instance.n
    assert solve_program(instance, "gpu-sharing").value == pytest.approx(best.value, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hadar-prime", "did you mean hadar-primal"),
        ("hadar-primal:turns=3", "unknown parameter of the model hadar-primal.*rounds"),
        ("hadar-primal:rounds=-1", "rounds = -1.*an integer >= 1"),
        ("hadar-primal:round=nan", "seconds > 0"),
        ("gpu-mapping:job=nobody", "no job with stages"),
        ("link-contention", "no transfer"),
        ("positional", "does not apply"),
    ],
)
def test_what_cannot_be_formulated_is_said_in_one_line(text: str, message: str) -> None:
    instance = osd.Instance([osd.Job("a", gpus=2, duration=3.7, arrival=0.123)], "1x2:V100+1x2:K80")
    with pytest.raises(InputError, match=message) as caught:
        formulate(instance, text)
    assert "\n" not in str(caught.value)


def test_too_many_schedules_are_no_model_and_are_solved_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate("hadar-60", 0, jobs=20)
    monkeypatch.setattr(hadar_rounds, "MOST_SCHEDULES", 2_000)
    with pytest.raises(InputError, match="too many schedules to enumerate"):
        formulate(instance, "hadar-primal:rounds=40")
    primal, packing = (solve_program(instance, f"{name}:rounds=40") for name in ("hadar-primal", "hadar-packing"))
    assert primal.opposite is not None
    assert packing.value <= primal.value <= primal.opposite.value  # type: ignore[operator]
    assert primal.gap < 1e-6
    assert packing.gap < 0.05
    nodes = instance.cluster.node_gpus
    worth = sum(k * nodes[int(name.split("node ")[1].split(",")[0])] for name, k in prices(primal).items())
    payoffs = sum(value for name, value in primal.duals.items() if name.startswith("payoff of "))
    assert worth + payoffs == pytest.approx(primal.opposite.value, rel=1e-9)


def test_rounds_of_a_given_length_are_enough() -> None:
    found = solve_program(hetero(1), "hadar-packing:round=1")
    # nobody is left out: every job is worth something whenever it ends
    problem = PROGRAMS.get("hadar-packing").data(hetero(1).relative, round=1.0).problem
    assert found.value == pytest.approx(pack_rounds(problem).chosen_value)
    assert all(pack_rounds(problem).chosen)


# --- the command line ----------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "h.json"
    hetero(1).save(path)
    return path


def test_solve_prints_the_value_the_dual_and_the_prices(file: Path, screen: Callable[..., Any]) -> None:
    shown = screen(100, "solve", file, "--model", "hadar-primal:rounds=3")
    assert shown.code == 0
    assert "its dual hadar-dual" in shown.out
    assert "price of V100, node 0" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100
    document = json.loads(screen(None, "solve", file, "--model", "hadar-primal:rounds=3", "--json").out)
    assert document["status"] == "optimal"
    assert document["dual"]["value"] == pytest.approx(document["value"], rel=1e-9)
    assert {"rows", "columns", "nonzeros", "solver", "seconds", "bound", "gap"} <= set(document)
    assert document["duals"]


@pytest.mark.parametrize("option", [("--objective", "makespan"), ("-o", "s.json")])
def test_solve_has_no_schedule_to_write_and_no_objective_to_choose(
    file: Path, option: tuple[str, str], screen: Callable[..., Any]
) -> None:
    refused = screen(None, "solve", file, "--model", "hadar-dual", *option)
    assert refused.code == 2
    assert "not with this model" in refused.err
    assert refused.err.count("\n") == 1


def test_list_models_shows_them_all(screen: Callable[..., Any]) -> None:
    shown = screen(200, "list", "models").out
    assert all(f"│{name} " in shown for name in [*PROGRAMS.names(), *FORMULATIONS.names()])


@pytest.mark.parametrize(
    ("ended", "said"), [("optimal_inaccurate", "feasible"), ("user_limit", "limit"), ("optimal", "optimal")]
)
def test_a_convex_program_is_optimal_only_where_the_solver_says_so(
    ended: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, asked = cp.Problem.solve, dict[str, Any]()

    def ends(self: Any, **options: Any) -> Any:
        asked.update(options)
        value = solve(self, solver=options["solver"])
        self._status = ended
        return value

    monkeypatch.setattr(cp.Problem, "solve", ends)
    found = solve_program(hetero(1), "gavel-proportional", time_limit=60)
    assert (found.status, found.value is None, bool(found.duals)) == (said, said == "limit", said == "optimal")
    assert found.bound is None  # nothing was proved
    assert asked["time_limit"] == 60


def constraints_of(model: Any) -> set[str]:
    """Names of families of constraints: Pyomo's components, CVXPY's labels."""
    if isinstance(model, cp.Problem):
        return {constraint.label or "without a label" for constraint in model.constraints}
    return {rows.local_name for rows in model.component_objects(pyo.Constraint) if len(rows)}


@pytest.mark.parametrize("name", sorted({*PROGRAMS.names(), *FORMULATIONS.names()}))
def test_what_list_says_of_a_model_is_what_is_in_the_model(name: str, screen: Callable[..., Any]) -> None:
    facts = json.loads(screen(80, "list", "models", name, "--json").out)["models"][0]["facts"]
    listed = {each for head in facts if re.match(r"\([1-9]\d*\) ", head) for each in re.findall(r"[a-z]\w+", head)}
    instances = [example(name)]
    if name in FORMULATIONS:
        instances += [osd.load("single-06-1"), osd.load("rigid-06-1")]
    built = set[str]()
    for instance in instances:
        for objective in FORMULATIONS.get(name).objectives if name in FORMULATIONS else [None]:
            with contextlib.suppress(InputError):  # what is not for this instance or objective
                built |= constraints_of(formulate(instance, name, objective))
    # deadlines, memory of spread gangs ...: rows that these instances do not have
    assert built <= listed, built - listed
    assert listed - built <= {"due", "deadlines", "apart", "alone", "finish", "fixed"}
    assert {"sets", "variables", "(0) objective", "optimum", "in Python"} <= set(facts)
    assert f'osd.formulate(SOURCE, "{name}")' in facts["in Python"]
    shown = screen(80, "list", "models", name).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "(0) objective" in shown


def test_every_model_has_a_line_of_its_own() -> None:
    lines: dict[str, list[str]] = {}
    for name, line in KINDS["models"].lines():
        lines.setdefault(line, []).append(name.removesuffix("-cvxpy"))  # one program in two languages
    assert [each for each in lines.values() if len(set(each)) > 1] == []
    assert not any(".;" in line for line in lines)
