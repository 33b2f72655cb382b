"""Pages made from the registries: catalogues of registered objects, and the table of the instance library.

A registered policy, bound, formulation, ... appears on the site without further work.
"""

from __future__ import annotations

import inspect
import itertools
import re
from html import escape
from typing import Any

from mathematics import in_docstring, marked, shown, tex

import optsched
from optsched.bounds import BOUNDS, Bound
from optsched.bounds.certificate import KINDS as CERTIFICATES, Kind
from optsched.cli.catalogue import catalogue, entry
from optsched.cli.catalogue_entry import Entry, description
from optsched.cli.listed_kinds import KINDS
from optsched.cli.wording import gap_text
from optsched.guarantees import GUARANTEES
from optsched.guarantees.speed import SPEED_THEOREMS
from optsched.io.traces.dialect import DIALECTS
from optsched.models import FORMULATIONS
from optsched.models.program import PROGRAMS
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.predictors import PREDICTORS
from optsched.simulation.policy import uses_of
from optsched.solvers.method import METHODS

ONE_PAGE_EACH = ("policies", "models")
ON_THEIR_OWN_PAGE = {"guarantees", "families", "lower-bounds", "studies"}  # docs/guarantees.md, docs/papers.md
DOCUMENTED = {"policies": POLICIES, "placements": PLACEMENTS, "predictors": PREDICTORS}
PARAMETERS = "\n\n| parameter | default | meaning and legal values |\n|---|---|---|\n"


def pages() -> dict[str, str]:
    """Return the text of every page by file name."""
    found = {}
    for kind in (kind for kind in KINDS if kind not in ON_THEIR_OWN_PAGE):
        found[f"catalogue/{kind}.md"] = _table(kind) if kind in ONE_PAGE_EACH else _all(kind)
        if kind in ONE_PAGE_EACH:
            found |= {f"catalogue/{kind}/{name}.md": f"# {name}\n\n{_about(kind, name)}" for name, _ in catalogue(kind)}
    return found


def listed() -> str:
    """Return the list of all catalogues and of the API, for their parent page."""
    kinds = (kind for kind in KINDS if kind not in ON_THEIR_OWN_PAGE)
    rows = [f"* [{kind.capitalize()}](catalogue/{kind}.md): {KINDS[kind].summary}" for kind in kinds]
    return "\n".join(["* [API](api/index.md): all public names of `optsched` by task, and the view", *rows, ""])


# --- catalogues -------------------------------------------------------------------------------------------------------


def _table(kind: str) -> str:
    rows = [f"# {kind.capitalize()}\n\n{_sentence(KINDS[kind].summary)}; `optsched list {kind}` prints the same.\n"]
    policies = kind == "policies"
    more = " knowledge | guarantees |" if policies else ""
    rows.append(f"| name | |{more}\n|---|---|{'---|' * more.count('|')}")
    for name, text in catalogue(kind):
        proven = ", ".join(f"[{theorem.id}](../guarantees.md#{theorem.id})" for theorem in _theorems(name))
        known = f" {_knowledge(name)} | {proven} |" if policies else ""
        rows.append(f"| [`{name}`]({kind}/{name}.md) | {_text(text.partition(' [')[0])} |{known}")
    tree = "\n".join(f"{kind}/{name}" for name, _ in catalogue(kind))
    return "\n".join([*rows, f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"])


def _all(kind: str) -> str:
    parts = [f"# {kind.capitalize()}\n\n{_sentence(KINDS[kind].summary)}; `optsched list {kind}` prints the same.\n"]
    names = [name for name, _ in catalogue(kind)]
    details = [_about(kind, name) for name in names]
    if not any("\n" in each.strip() for each in details):
        rows = [f"| `{name}` | {each.strip()} |" for name, each in zip(names, details, strict=True)]
        return "\n".join([*parts, "| name | |\n|---|---|", *rows, ""])
    return "\n".join([*parts, *(f"## {name}\n\n{each}" for name, each in zip(names, details, strict=True))])


def _about(kind: str, name: str) -> str:
    each = entry(kind, name)
    parts = [_text(each.text.partition(" [")[0])]
    if kind == "policies":
        uses = ", ".join(sorted(uses_of(POLICIES.get(name)))) or "nothing special"
        parts.append(f"\n\n[Knowledge](../../glossary.md#knowledge): {_knowledge(name)}. Uses: {uses}.")
    if kind == "bounds":
        bound: Bound | Kind = BOUNDS.get(name) if name in BOUNDS else CERTIFICATES.get(name)
        objectives = ", ".join(sorted(bound.objectives or ())) or "sums of costs"
        parts.append(f"; {objectives}; classes {', '.join(bound.classes)}")
    parts.append(_parameters(each))
    facts = () if kind == "policies" else each.facts  # a policy's facts are above, with links
    parts += [f"\n\n* {head}: {_row(fact) if head.startswith('(') else _text(fact)}" for head, fact in facts]
    if kind == "policies":
        return "".join([*parts, _documentation(kind, name), _guaranteed(name), "\n"])
    return "".join(parts) + _documentation(kind, name) + "\n"


def _parameters(each: Entry) -> str:
    if not each.parameters:
        return ""
    rows = [f"| `{one.name}` | `{one.default or ' '}` | {plain(one.meaning)} |" for one in each.parameters]
    written = f"\n\n```text\n{each.written}\n```" if each.written else ""
    return PARAMETERS + "\n".join(rows) + written


def _theorems(policy: str) -> list[Any]:
    every = [theorem for registry in (GUARANTEES, SPEED_THEOREMS) for _, theorem in registry.items()]
    return [theorem for theorem in every if policy in theorem.policies]


def _guaranteed(policy: str) -> str:
    rows = [f"* [{t.id}](../../guarantees.md#{t.id}): {_text(t.statement)}" for t in _theorems(policy)]
    return "\n\n## Guarantees\n\n" + (
        "\n".join(rows) or "No guarantee is known. Runs are still compared with certified bounds."
    )


def _knowledge(policy: str) -> str:
    return str(POLICIES.get(policy)().knowledge)  # it may depend on the parameters: these are the defaults


def _documentation(kind: str, name: str) -> str:
    """Return the docstring of an entry, or that of its module for formulations and dialects."""
    if kind in DOCUMENTED:
        text = description(DOCUMENTED[kind].get(name))
    elif kind == "models":
        made = FORMULATIONS.get(name).build if name in FORMULATIONS else None
        made = made or (METHODS.get(name).run if name in METHODS else PROGRAMS.get(name).build)
        text = _mathematics(inspect.getdoc(inspect.getmodule(made)) or "")
    elif kind == "dialects":
        text = inspect.getdoc(inspect.getmodule(DIALECTS.get(name).reader)) or ""
    else:
        text = ""
    return f"\n\n{_rst(text)}" if text.strip() else ""


def _mathematics(text: str) -> str:
    """Return the docstring of a formulation: indented parts are literal blocks, and every label begins a paragraph."""
    parts = []
    for part in text.split("\n\n"):
        apart = all(line.startswith("    ") for line in part.splitlines())
        if apart and not (parts and parts[-1].endswith("::")):
            part = "::\n\n" + part
        elif not apart:
            part = re.sub(r"^([A-Z][A-Za-z-]*(?:, [^:\n]+)?): ", r"\n**\1:** ", part, flags=re.MULTILINE)
        parts.append(part.strip("\n"))
    return "\n\n".join(parts)


def _rst(text: str) -> str:
    return rst("\n".join(no_substitutions(with_formulas(text.strip().splitlines()))))


def rst(text: str) -> str:
    """Return a part of a page in reStructuredText, the language of docstrings."""
    return f"```{{eval-rst}}\n{text}\n```\n"


def with_formulas(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with marked formulas; literal blocks and examples are unchanged."""
    found, block, table = [], None, False
    for at, line in enumerate(lines):
        deep = len(line) - len(line.lstrip())
        if block is not None and line.strip() and deep <= block:
            block = None
        if at == 0 or not lines[at - 1].strip():  # a paragraph with rules is a table; its columns must not move
            part = itertools.takewhile(str.strip, lines[at:])
            table = any(re.fullmatch(r"\s*[=+][=+ -]{2,}", each) for each in part)
        if block is None and not table and ">>>" not in line and not re.match(r"\s*\S+ : ", line):
            found.append(_marked(line))
        else:
            found.append(line)
        if block is None and line.rstrip().endswith("::"):
            block = deep
    return found


def _marked(line: str) -> str:
    # bold and italic text contains no formula
    parts = re.split(r"(\*{1,2}[^* ](?:[^*]*[^* ])?\*{1,2})", line)
    return "".join(part if k % 2 else marked(part, in_docstring) for k, part in enumerate(parts))


def readable(lines: list[str]) -> list[str]:
    """Return the lines of a docstring for napoleon.

    |x| is an absolute value, and text after ``name :`` is a description, not a type. Two empty lines end a section
    before an example or a sentence that does not belong to it.
    """
    drawn = no_substitutions(with_formulas(lines))
    # the name of a parameter, alone on its line, is no formula
    name = re.compile(r"\*{0,2}\w+(?:, \*{0,2}\w+)*")
    lines = [line if name.fullmatch(line) else formula for line, formula in zip(lines, drawn, strict=True)]
    told = [re.sub(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : ", r"\1\n    ", line) for line in lines]
    example = next((at for at, line in enumerate(told) if line.startswith(">>>")), len(told))
    if example < len(told) and {"Raises", "Parameters"} & set(told[:example]) and "Examples" not in told[:example]:
        told[example:example] = ["Examples", "--------"]
    return re.sub(r"\n\n(?=[^\s>].*(?:$|\n(?! |-{3})))", "\n\n\n", "\n".join(told)).split("\n")


def no_substitutions(lines: list[str]) -> list[str]:
    return [re.sub(r"(?<![\w`])\|(?=\S)([^|]*)\|", r"\|\1\|", line) if line[:4].strip() else line for line in lines]


def _text(text: str) -> str:
    """Return a sentence with marked formulas."""
    return marked(text, plain=plain)


def _row(text: str) -> str:
    """Return a row of a formulation: a formula and, after a wide gap, its index set."""
    parts = [part.strip() for part in re.split(r" {3,}", text) if part.strip()]
    if len(parts) > 1 and parts[1] == "or":  # objectives to choose from
        return " or ".join(_formula(part) for part in parts if part != "or")
    if parts[0] in ("min", "max") and len(parts) > 1:
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    return ", ".join([_formula(parts[0]), *map(_text, parts[1:])])


def _formula(text: str) -> str:
    latex = tex(text)
    return f"${latex}$" if shown(latex) else plain(text)


def plain(text: str) -> str:
    # escape what Markdown would read as marks, or as the border of a cell
    return re.sub(r"([|*_<\[\]])", r"\\\1", text)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- the instance library ---------------------------------------------------------------------------------------------


def library() -> str:
    """Return the index as a table with filters, for the end of its page; without a script it shows all rows."""
    every = optsched.library()
    suites = "".join(f"<option>{escape(name)}</option>" for name in every["suite"].unique(maintain_order=True))
    heads = "".join(f"<th>{name}</th>" for name in HEADS)
    return "\n".join(
        [
            "\n## All instances\n\n{download}`Download the table <library.csv>` with recipes, digests and parameters.\n",
            "```{raw} html",
            '<script src="_static/library.js" defer></script>',
            '<form id="library-filters" hidden onsubmit="return false">',
            '<input name="text" type="search" placeholder="words" aria-label="words in a row">',
            f'<select name="suite" aria-label="suite"><option value="">every suite</option>{suites}</select>',
            '<select name="solved" aria-label="solved"><option value="">solved and open</option>'
            '<option value="yes">solved</option><option value="no">open</option></select>',
            '<input name="from" type="number" min="0" placeholder="jobs from" aria-label="jobs from">',
            '<input name="to" type="number" min="0" placeholder="to" aria-label="jobs to">',
            '<span id="library-count" aria-live="polite"></span></form>',
            f'<div class="library-scroll"><table id="library" class="table"><thead><tr>{heads}</tr></thead><tbody>',
            *map(_library_row, every.iter_rows(named=True)),
            "</tbody></table></div>\n```\n",
        ]
    )


HEADS = ("instance", "problem", "jobs", "value", "bound", "gap", "proved by", "certificate", "CPU s")


def _library_row(row: dict[str, Any]) -> str:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.10g}"

    found = dict.fromkeys(filter(None, (row["found_by"], row["bound_by"])))
    by = "<br>".join(map(escape, row["proved_by"].split("; ") if row["solved"] else ["open; best results by:", *found]))
    numbers = (str(row["jobs"]), number(row["value"]), number(row["bound"]), gap_text(row["gap"]))
    cells = [
        f"<td>{escape(row['name'])}</td>",
        f"<td>{escape(row['problem'])}, {row['objective']}, {row['class']}</td>",
    ]
    cells += [f'<td class="number">{text}</td>' for text in numbers]
    cells += [f"<td>{by}</td>", f"<td>{row['certificate']}: {number(row['certified'])}</td>"]
    cells.append(f'<td class="number">{number(row["seconds"])}</td>')
    solved = "yes" if row["solved"] else "no"
    about = f'data-suite="{escape(row["suite"])}" data-solved="{solved}" data-jobs="{row["jobs"]}"'
    return f"<tr {about}>{''.join(cells)}</tr>"
