"""Help, names and completion: what a newcomer sees first, and what it must not cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from optsched.bounds.certificate import KINDS as CERTIFICATES
from optsched.classes import CLASSES
from optsched.cli.catalogue import catalogue
from optsched.cli.catalogue_entry import described_parameters, description
from optsched.cli.completion import names
from optsched.cli.listed_kinds import KINDS
from optsched.cli.options import DEFAULT_POLICIES
from optsched.io.sources import load


@pytest.fixture
def out(screen: Any) -> Any:
    """Stdout of a command that succeeds and has nothing to say on stderr, but that it compiles on a cold cache."""

    def call(*arguments: str) -> str:
        done = screen(100, *arguments)
        assert all(line.startswith("optsched: compil") for line in done.err.splitlines()), done.err
        shown: str = done.shown
        return shown

    return call


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]], ids=str)
def test_help_of_the_program_has_lines_and_examples(out: Any, arguments: list[str]) -> None:
    text = out(*arguments)
    assert len(text.splitlines()) > 20
    for line in ("optsched run cluster-week -p fifo -p srtf", "fifo, sjf, srtf", "--install-completion"):
        assert line in text


def test_no_summary_of_a_command_is_cut_at_80_columns(screen: Any) -> None:
    commands = screen(80, "--help").out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert len(commands) == 19
    assert all(line.rstrip().endswith((".", "?")) and "..." not in line for line in commands), commands


def test_a_bare_list_names_every_kind_with_examples(out: Any) -> None:
    text = out("list")
    for kind in KINDS:
        assert f"\n  {kind} " in text
    assert "optsched list policies" in text


COMMANDS = (
    "run advise score solve bound verify ratio attack generate convert fit reproduce sweep plot library check-policy "
    "list"
)


@pytest.mark.parametrize("name", COMMANDS.split())
def test_every_command_knows_h_and_shows_examples_to_copy(screen: Any, name: str) -> None:
    about = screen(80, name, "-h").shown.partition("Arguments:")[0].partition("\n")[2].splitlines()
    shown = [k for k, line in enumerate(about) if f"optsched {name} " in line]
    for line in about[shown[0] : shown[-1] + 1]:  # a line each, none of them broken
        assert line.startswith(f"  optsched {name} "), line
        assert line.count("optsched ") == 1, line
    assert not about[shown[-1] + 1].strip(), about


def test_options_have_types_as_people_write_them(out: Any) -> None:
    text = out("run", "--help")
    for written in ("-o, --output DIR", "--limit N", "--seed S", "--cluster NODESxGPUS", "--throughputs FILE"):
        assert written in text
    for command in ("solve", "bound", "generate", "convert"):
        assert "-o, --output FILE" in out(command, "--help")


def test_the_default_policies_are_those_that_the_help_names(out: Any) -> None:
    shown = " ".join(out("run", "--help").split())
    assert DEFAULT_POLICIES in shown
    for kind in ("gang", "gpu-sharing", "task-sharing"):
        assert ", ".join(CLASSES.get(kind).policies(load("rigid-06-1"))) in DEFAULT_POLICIES


def test_parameters_of_a_policy_and_of_a_recipe(out: Any) -> None:
    text = out("list", "policies", "a-srpt")
    for part in ("beta", "predictor", "perfect", "Guarantee"):
        assert part in text
    assert "-pa-srpt:virtual_alpha=min,beta=1.0" in "".join(text.split())
    text = out("list", "recipes", "philly-like")
    for part in ("arrivals", "one of bursty, poisson", "where the jobs run", "--set"):
        assert part in text
    assert "[jobs=1000" in " ".join(out("list", "recipes").split())
    (entry,) = json.loads(out("list", "recipes", "philly-like", "--json"))["recipes"]
    assert {"name": "jobs", "default": "1000"}.items() <= entry["parameters"][0].items()


@pytest.mark.parametrize(
    ("kind", "name", "parameter", "default", "legal"),
    [
        ("policies", "makespan-rounds", "restart", "10.0", "a finite number of seconds >= 0"),
        ("policies", "makespan-rounds", "fill", "true", "true or false"),
        ("policies", "srtf", "restart", "0.0", "a finite number of seconds >= 0"),  # judged when it runs
        ("policies", "adadual", "theta", "0.0", "a number > 0, or 0 for b / (2 (b + eta))"),
        ("families", "blocked-transfers", "eta", "0.2745", "a finite number >= 0"),
        ("policies", "list", "by", "given", "orders: given, shortest, longest, widest, narrowest, largest, due"),
        (
            "policies",
            "spjf",
            "predictor",
            "perfect",
            "predictors: boosting, conformal, forest, global-mean, group-mean, last-two, noisy, perfect, shrinkage, "
            "user-limit",
        ),
        ("placements", "lwf", "kappa", "1", "an integer >= 1"),
        ("predictors", "noisy", "error", "2.0", "a factor from 1 to 1e+06"),
        ("models", "hadar-primal", "rounds", "0", "an integer >= 1, or 0 for as many as needed"),
        ("models", "gpu-mapping", "job", "", "text"),
        ("spaces", "typed", "gpus", "2", "an integer >= 1; an even number: half of each type"),
        ("methods", "search", "tolerance", "0.01", "a number from 0 to below 1"),
    ],
)
def test_a_parameter_has_its_default_and_what_is_legal(
    out: Any, kind: str, name: str, parameter: str, default: str, legal: str
) -> None:
    (entry,) = json.loads(out("list", kind, name, "--json"))[kind]
    shown = {shown["name"]: shown for shown in entry["parameters"]}[parameter]
    assert shown["default"] == default
    assert shown["meaning"] == legal or shown["meaning"].endswith(f" ({legal})")


def test_a_parameter_shows_its_description_from_the_docstring(out: Any) -> None:
    (entry,) = json.loads(out("list", "policies", "srtf", "--json"))["policies"]
    (restart,) = entry["parameters"]
    assert restart["meaning"] == "Overhead of every resumption, in seconds (a finite number of seconds >= 0)"
    assert "Parameters" not in entry["about"]
    assert entry["about"].startswith("**Problem**")


def test_a_family_shows_its_parameters_in_the_table_only(out: Any) -> None:
    (entry,) = json.loads(out("list", "families", "sand", "--json"))["families"]
    assert entry["parameters"][0]["meaning"] == "Number of machines (an integer >= 2)"
    assert entry["about"].startswith("m (m - k) grains unit jobs")
    assert "Parameters" not in entry["about"]


def test_the_section_of_parameters_names_several_at_once() -> None:
    def make() -> None:
        """Make it.

        Text.

        Parameters
        ----------
        first, second
            Two ``numbers``,
            in seconds.
        third
            Another one.

        Raises
        ------
        InputError
            Never.
        """

    numbers = "Two numbers, in seconds."
    assert described_parameters(make) == {"first": numbers, "second": numbers, "third": "Another one."}
    assert description(make) == "Text."


def test_a_dialect_tells_its_columns_and_nothing_of_parameters(out: Any) -> None:
    assert "timestamp, duration, num_gpus" in out("list", "dialects", "philly")
    for kind, name in (("dialects", "philly"), ("bounds", "critical-job"), ("models", "disjunctive")):
        text = out("list", kind, name)
        assert "parameter" not in text
        assert "written as" not in text


def test_a_theorem_tells_its_problem_its_proof_and_where_it_is_tight(out: Any) -> None:
    told = " ".join(out("list", "guarantees", "lpt").split())
    assert "P || C_max: the longest job first <= (4/3 - 1/(3m)) OPT" in told
    assert "problem P || C_max objective makespan against the best schedule without preemption" in told
    assert "status proved here source Graham 1969" in told
    assert "exactly optsched ratio three-last:m=4 -p list:by=longest" in told
    assert "pairing the longest with the shortest" in told
    (entry,) = json.loads(out("list", "guarantees", "lpt", "--json"))["guarantees"]
    assert entry["facts"]["policies"] == "list"
    assert entry["about"].startswith("Take a counterexample")
    (faster,) = json.loads(out("list", "guarantees", "srpt-faster", "--json"))["guarantees"]
    assert faster["facts"]["against"] == "the best schedule on machines of speed 1, which may preempt"


def test_an_unknown_name_of_a_kind_is_told_with_near_matches(command: Any) -> None:
    assert "did you mean srtf" in command("list", "policies", "srft").mistake


def test_every_kind_of_bound_that_a_result_names_is_listed() -> None:
    assert {name for name, _ in catalogue("bounds")} == {name for name, _ in CERTIFICATES.items()}


@pytest.mark.parametrize("kind", ["policies", "placements", "recipes", "dialects", "instances"])
def test_names_for_completion_are_those_of_the_registries(kind: str) -> None:
    assert names(kind) == sorted(name for name, _ in catalogue(kind))


def complete(words: str, position: int) -> list[str]:
    asked = {"_OPTSCHED_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    script = "import sys; from optsched.cli import main; sys.argv[0] = 'optsched'; main()"
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True)
    return done.stdout.split()


def test_names_are_completed() -> None:
    assert "ddl-05-1" in complete("optsched run ddl-", 2)
    assert complete("optsched run ddl-05-1 -p srtf+cons", 4) == ["srtf+consolidated"]


HEAVY = ("numpy", "numba", "polars", "scipy", "rich.table")
AT_SIGHT = {
    "--help": 0,
    "list": 0,
    "run none.json": 2,
    "run philly:none.csv --cluster 2x2 -p srtf": 2,
    "solve none.parquet": 2,
    "verify x.json --instance none.json": 2,
}


def test_what_is_wrong_at_sight_is_told_before_engines_are_imported(tmp_path: Path) -> None:
    # one process for all: what one of them imported would be there after it, too
    script = (
        "import sys\nfrom optsched.cli import main\nfor words in sys.argv[1:]:\n    try:\n        main(words.split())\n"
        "    except SystemExit as stopped:\n        print(stopped.code, 'numba' in sys.modules, 'of', words)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *AT_SIGHT], cwd=tmp_path, capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if " of " in line and line[0].isdigit()]
    assert told == [f"{code} False of {words}" for words, code in AT_SIGHT.items()], done.stderr


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    script = f"import sys, optsched.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
