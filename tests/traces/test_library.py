"""The instance library: its index, its proofs, and what becomes of files that people submit."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.errors import InputError, OptschedError
from optsched.io import index
from optsched.io.index import LibraryEntry, entries, entry, extracted, instances_folder, write_index, write_proofs
from optsched.io.library import ROUNDING, BestKnown, best_known, library
from optsched.io.sources import load, made
from optsched.io.submission import check_submission
from optsched.problem.objectives import get_objective
from optsched.studies import make_library as study
from optsched.studies.make_library import accept, assemble, check, prove, prove_all, recipes

EVERY = entries()
LONG = {each.name for each in EVERY if each.certificate == "priced-gangs" and each.jobs > 10}  # seconds to verify
FEW = {each.name for k, each in enumerate(EVERY) if k % 20 == 0 or "rounding" in str(each.proved_by)} - LONG
SOME = [each if each.name in FEW else pytest.param(each, marks=pytest.mark.study) for each in EVERY]
MEGABYTES = 5  # in the wheel
NAME = "gangs-8-10-11"


def test_hundreds_of_instances_of_all_kinds_and_sizes() -> None:
    assert len(EVERY) >= 400
    suites = {each.suite for each in EVERY}
    assert suites >= {"single-c", "single-wt", "parallel-wc", "gangs-8", "gangs-16", "gangs-32", "gangs-64", "graphs"}
    assert suites >= {"types", "types-utility", "shared-pairs", "shared-gpus", "contention", "all-four-small"}
    beside = [each for each in EVERY if not each.file]
    assert (min(each.jobs for each in beside), max(each.jobs for each in beside)) == (6, 1000)
    assert {each.gpus for each in EVERY if each.suite.startswith("gangs-")} == {8, 16, 32, 64}
    assert sum(each.solved for each in EVERY) >= 250


def test_the_index_is_what_the_recipes_say() -> None:
    planned = {each.entry.name: each.entry for each in recipes()}
    assert [each.name for each in EVERY] == list(planned)
    for each in EVERY:
        same = ("suite", "problem", "schedule_class", "recipe", "seed", "parameters", "file")
        assert [getattr(each, key) for key in same] == [getattr(planned[each.name], key) for key in same]


def test_intervals_contain_what_they_must() -> None:
    for each in EVERY:
        sign = -1 if get_objective(each.objective).gain else 1
        chain = [number for number in (each.certified, each.bound, each.value) if number is not None]
        assert all(sign * a <= sign * b + float(ROUNDING) * abs(b) for a, b in pairwise(chain)), each
        assert each.certificate, each
        assert each.solved == (bool(each.proved_by) and each.value == each.bound), each
        assert each.seconds is not None


@pytest.mark.parametrize("each", SOME, ids=lambda each: each.name)
def test_digest_schedule_certificate_and_index_agree(each: LibraryEntry) -> None:
    instance = load(each.name)
    assert (instance.digest, instance.name, instance.n) == (each.digest, each.name, each.jobs)
    assert instance.optimum is None or instance.optimum["value"] == each.optimum
    found = check(each)
    assert found.certificate is not None
    assert (found.value is None) == (each.value is None)


@pytest.mark.parametrize("field", ["certified", "value", "bound"])
def test_an_index_that_says_something_else_is_an_error(field: str) -> None:
    known = entry(NAME)
    with pytest.raises(OptschedError, match=f"{NAME}: the index says"):
        check(replace(known, **{field: getattr(known, field) - 1}))


def test_the_archives_are_small_enough_for_a_wheel() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in Path(str(instances_folder())).rglob("*"):
            archive.write(path)
    assert len(out.getvalue()) <= MEGABYTES * 2**20


def test_the_frame_and_its_choices() -> None:
    frame = library()
    assert frame.height == len(EVERY)
    assert frame["gap"].drop_nulls().min() == 0.0
    solved, unsolved = library("gangs-8", solved=True), library("gangs-8", solved=False)
    assert solved["solved"].all()
    assert not unsolved["solved"].any()
    assert solved.height + unsolved.height == library("gangs-8").height
    with pytest.raises(InputError, match="did you mean gangs-8"):
        library("gang-8")
    with pytest.raises(InputError, match="did you mean gangs-8-10-14"):
        best_known("gangs-8-10-1")


def test_a_recipe_that_makes_another_instance_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(entry("gangs-8-10-11"), seed=12)
    monkeypatch.setattr("optsched.io.sources.entries", lambda: (known,))
    with pytest.raises(OptschedError, match="makes another instance here"):
        load(known.name)


# --- submissions -------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The schedule and the certificate that the library has of `NAME`."""
    found = {path.name.split(".")[1]: path for path in extracted(entry(NAME), tmp_path)}
    assert set(found) == {"schedule", "certificate"}
    return found


@pytest.fixture
def worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of `NAME` alone, with the first list schedule that comes, no proof by search and the weakest certificate."""
    folder = tmp_path / "library"
    folder.mkdir()
    poor = BestKnown(entry(NAME), load(NAME))
    poor.offer(osd.simulate(NAME, "fifo").schedule, "fifo")
    poor.offer_certificate(osd.bound(NAME, schedule_class="gang"))
    write_proofs(poor.entry.suite, {path.name: path.read_bytes() for path in poor.save(folder)}, folder)
    write_index([poor.settled({}).row(1.0)], folder)
    (folder / "recipes.toml").write_bytes(instances_folder().joinpath("recipes.toml").read_bytes())
    for module in (index, study):
        monkeypatch.setattr(module, "instances_folder", lambda: folder)
    return folder


def changed(path: Path, **parts: Any) -> Path:
    document = json.loads(path.read_text()) | parts
    path.write_text(json.dumps(document))
    return path


def test_what_the_library_has_is_as_good_as_itself(files: dict[str, Path]) -> None:
    for kind, path in files.items():
        found = check_submission(path)
        assert (found.kind, found.violations, found.improves, found.closes) == (kind, (), False, False)
    assert "equals the best value known" in check_submission(files["schedule"]).verdict


def test_tampered_files_are_refused(files: dict[str, Path], command: Any) -> None:
    segments = json.loads(files["schedule"].read_text())["segments"]
    last = max(range(len(segments)), key=lambda s: segments[s]["start"])
    segments[last] |= {"start": segments[last]["start"] - 5, "end": segments[last]["end"] - 5}
    found = check_submission(changed(files["schedule"], segments=segments))
    assert {each.rule for each in found.violations} <= {"capacity", "arrival"} != set()
    assert not found.improves
    done = command("library", "check", files["schedule"])
    assert done.code == 1
    assert f"{found.violations[0].rule}: " in done.err
    value = Fraction(json.loads(files["certificate"].read_text())["value"]) + 1
    found = check_submission(changed(files["certificate"], value=f"{value.numerator}/{value.denominator}"))
    assert [each.rule for each in found.violations] == ["value"]


def test_a_preemptive_schedule_is_none_of_the_class(tmp_path: Path) -> None:
    osd.simulate(NAME, "srtf").schedule.save(tmp_path / "srtf.json")
    assert "preemption" in {each.rule for each in check_submission(tmp_path / "srtf.json").violations}


def test_certificates_of_other_classes_and_objectives(tmp_path: Path, files: dict[str, Path]) -> None:
    path = tmp_path / "proof.json"
    osd.bound(NAME, schedule_class="forking").save(path)
    found = check_submission(path)  # a larger class: it holds here, too, and is weaker
    assert (found.violations, found.improves) == ((), False)
    assert "does not reach" in found.verdict
    osd.bound(NAME, "makespan").save(path)
    assert [each.rule for each in check_submission(path).violations] == ["objective"]
    utility = "types-utility-06-11"
    osd.bound(utility, "total_utility", "gang-nonpreemptive").save(path)
    assert [each.rule for each in check_submission(path).violations] == ["class"]


def test_files_of_no_instance_of_the_library(tmp_path: Path) -> None:
    other = osd.generate("rigid", seed=77, jobs=5)
    osd.simulate(other, "fifo").schedule.save(tmp_path / "other.json")
    with pytest.raises(InputError, match="no such instance"):
        check_submission(tmp_path / "other.json")
    (tmp_path / "none.json").write_text("[]")
    with pytest.raises(InputError, match="states no instance"):
        check_submission(tmp_path / "none.json")


def test_a_better_schedule_and_a_better_bound_are_recognised_and_taken(files: dict[str, Path], worse: Path) -> None:
    optimum = 233  # by two methods
    found = check_submission(files["schedule"])
    assert (found.improves, found.closes, found.value) == (True, False, optimum)
    assert "improves the best value known" in accept(files["schedule"], worse)
    assert (entry(NAME).value, entry(NAME).found_by, entry(NAME).solved) == (optimum, "submitted", False)
    assert best_known(NAME).value == optimum
    before = entry(NAME).bound
    assert "improves the best certified bound known" in accept(files["certificate"], worse)
    assert (entry(NAME).bound or 0) > (before or 0)
    assert entry(NAME).certified == entry(NAME).bound
    with pytest.raises(InputError, match="not taken: the schedule holds"):
        accept(files["schedule"], worse)


def test_a_schedule_below_what_a_search_proved_says_so(files: dict[str, Path], worse: Path) -> None:
    wrong = replace(entry(NAME), bound=300)
    write_index([wrong], worse)
    assert "REFUTES" in check_submission(files["schedule"]).verdict


# --- made again --------------------------------------------------------------------------------------------------------


@pytest.mark.release
def test_made_again_from_nothing_and_resumed(tmp_path: Path, worse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some, work = [each for each in recipes() if each.entry.name == NAME], tmp_path / "work"
    some = [replace(each, methods=("rigid-time-indexed",), seconds=600) for each in some]
    prove_all(some, work)
    monkeypatch.setattr(study, "prove", lambda *_: pytest.fail("it was proved already"))
    prove_all(some, work)
    (row,) = assemble(some, work, worse)
    assert (row.value, row.solved, row.found_by) == (233, True, "rigid-time-indexed")
    archive = (worse / "proofs" / "gangs-8.zip").read_bytes()
    assert assemble(some, tmp_path / "nothing", worse) == [row]  # what the library has is kept
    assert (worse / "proofs" / "gangs-8.zip").read_bytes() == archive
    monkeypatch.setattr(study, "in_library", lambda *_: pytest.fail("of another suite"))
    assert assemble(some, tmp_path / "nothing", worse, suite="rigid") == [index.entry(NAME)]
    assert (worse / "proofs" / "gangs-8.zip").read_bytes() == archive


def test_methods_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = next(each for each in recipes() if each.entry.name == "rigid-06-1")
    true = osd.solve(made(asked.entry), model="rigid-time-indexed")
    false = replace(true, schedule=None, model="liar", value_exact=Fraction(1))
    answers = iter([true, false])
    monkeypatch.setattr(study, "solve", lambda *_, **__: next(answers))
    with pytest.raises(OptschedError, match="the methods disagree"):
        prove(replace(asked, methods=("one", "two")), made(asked.entry))


@pytest.mark.parametrize("arguments", [(), ("list", "gangs-8"), ("list", "--open")], ids=str)
def test_tables_fit_in_eighty_columns(screen: Any, arguments: tuple[str, ...]) -> None:
    done = screen(80, "library", *arguments)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "gangs-8" in done.out


def test_json_and_mistakes_of_the_command(command: Any, files: dict[str, Path]) -> None:
    rows = command("library", "list", "gangs-8", "--solved", "--json").document["instances"]
    assert {row["suite"] for row in rows} == {"gangs-8"}
    assert all(row["solved"] for row in rows)
    document = command("library", "check", files["certificate"], "--json").document
    assert (document["instance"], document["holds"], document["improves"]) == (NAME, True, False)
    for wrong in (("make",), ("check",), ("list", "gang-8")):
        assert command("library", *wrong).mistake
