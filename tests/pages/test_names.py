"""No page promises what does not exist: links, commands, options, policies, names of the library, goals of make."""

from __future__ import annotations

import re
import shlex
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import typer.main

import optsched
from optsched.cli import app
from optsched.cli.listed_kinds import KINDS
from optsched.policies.simulate import names_a_class, specify
from optsched.simulation.policy import Use, uses_of
from pages.page import README, ROOT, Block, Page, logical_lines, name_of, page_files

EVERY = pytest.mark.parametrize("page", [*map(Page, page_files())], ids=lambda page: name_of(page.path))
GOALS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def commands() -> dict[str, set[str]]:
    """Every command of the program with its options; those of the program itself under the empty name."""
    program: Any = typer.main.get_command(app)
    found = {name: {word for each in one.params for word in each.opts} for name, one in program.commands.items()}
    return {"": {word for each in program.params for word in each.opts} | {"--help"}, **found}


def unknown(line: str) -> list[str]:
    """What a line that calls ``optsched`` or ``make`` asks for and does not exist; upper case stands for anything."""
    program, *words = shlex.split(line)
    if program == "make":
        return [word for word in words if word not in GOALS and "=" not in word]
    name = words.pop(0) if words and not words[0].startswith("-") else ""
    if name.isupper():
        return []
    if name not in commands():
        return [name]
    options = [word for word in words if word.startswith("-")]
    missing = [word for word in options if word not in commands()[name] | {"--help", "-h"}]
    if name == "list" and words and words[0] not in KINDS and words[0] != "KIND":
        missing += words[:1]
    for before, word in pairwise(words):
        if before == "-p" and not word.isupper() and not names_a_class(word):  # a page's own class is run with the page
            specify(word)
    return missing


@EVERY
def test_commands_and_options_exist(page: Page) -> None:
    for line in page.commands:
        assert unknown(line) == [], line


def test_what_does_not_exist_is_found() -> None:
    assert unknown("optsched counsel cluster-week") == ["counsel"]
    assert unknown("optsched run cluster-week --sweep") == ["--sweep"]
    assert unknown("optsched list attacks") == ["attacks"]
    assert unknown("make coffee") == ["coffee"]
    with pytest.raises(optsched.InputError):
        unknown("optsched run cluster-week -p no-such-policy")


@EVERY
def test_names_of_the_library_exist(page: Page) -> None:
    names = set(re.findall(r"\bosd\.(\w+)", page.text))
    assert names <= {*optsched.__all__, "plot"}
    assert page.path == README or names or page.commands or not page.blocks  # a list of links


@EVERY
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        if "://" in link:
            assert link.startswith("https://github.com/optsched/optsched"), link
            continue
        place, _, fragment = link.partition("#")
        target = (page.path.parent / place).resolve() if place else page.path
        assert target.exists(), link
        assert not fragment or fragment in Page(target).anchors, link


def test_every_page_is_found_from_the_first_one() -> None:
    found = [README]
    for path in found:
        linked = [
            (path.parent / link.partition("#")[0]).resolve() for link in Page(path).links if link.partition("#")[0]
        ]
        found += [each for each in dict.fromkeys(linked) if each in page_files() and each not in found]
    assert len(found) >= 12
    assert set(found) == set(page_files())
    for path in page_files():
        up = "../" * (len(path.relative_to(ROOT).parts) - 1)
        assert path == README or f"{up}README.md" in Page(path).links, name_of(path)


@EVERY
def test_files_named_in_prose_exist(page: Page) -> None:
    for name in re.findall(r"`((?:optsched|models|instances|notebooks|tests|docs)/[\w./*-]*)`", page.prose):
        assert list(ROOT.glob(name.rstrip("/"))), name


@EVERY
def test_no_table_shows_policies_that_do_not_differ(page: Page) -> None:
    for block in page.blocks:
        ratios = re.findall(r"│ +<?= (\d+\.\d+) │", block.text)
        assert block.language != "text" or len(ratios) < 2 or len(set(ratios)) > 1, block.text


@EVERY
def test_a_ratio_that_a_snippet_prints_is_shown_or_says_to_what_it_is(page: Page) -> None:
    for block, after in pairwise([*page.blocks, Block("text", "", 0, 0)]):
        if block.language == "python" and "osd.compare(" in block.text and '"ratio"' in block.text:
            assert '"ratio_to"' in block.text or (after.language == "text" and after.text), block.text


def classes(line: str) -> set[str]:
    """The classes of schedules that the policies of a command make: those that fork jobs make one of their own."""
    chosen = [specify(word).policy for before, word in pairwise(shlex.split(line)) if before == "-p"]
    return {"forking" if Use.COPIES in uses_of(policy) else "gang" for policy in chosen}


def runs_of_several_classes(page: Page) -> list[tuple[str, Block, set[str]]]:
    """What stands before, what is shown after, and the classes, of every command that runs policies of several ones."""
    found, before = [], 0
    for block, after in pairwise([*page.blocks, Block("text", "", 0, 0)]):
        lines = logical_lines(block.text) if block.language == "bash" else []
        several = [classes(line) for line in lines if line.startswith("optsched run ")]
        found += [(page.text[before : block.start], after, each) for each in several if len(each) > 1]
        before = block.end
    return found


@EVERY
def test_runs_of_several_classes_are_shown_beside_bounds_of_their_own(page: Page) -> None:
    for before, after, several in runs_of_several_classes(page):
        assert after.language == "text", "a ratio that nobody sees needs no words"
        assert all(f"class {each}" in " ".join(after.text.split()) for each in several)
        assert "bound of its own class" in " ".join(before.split())


def test_there_are_pages_of_whom_that_is_asked() -> None:
    assert any(runs_of_several_classes(Page(path)) for path in page_files())


@EVERY
def test_a_block_is_of_a_kind_that_is_known(page: Page) -> None:
    kinds = {block.language for block in page.blocks}
    assert kinds <= {"bash", "python", "text", "sh", "json", "bibtex", "dockerfile", "yaml"}
    assert page.text.count("```") == 2 * len(page.blocks)  # no fence that names no language
