"""Pages of the studies: the claims of each paper, the measured results and the reasons for differences.

All numbers are computed from the record of a study, ``docs/measured/NAME.json``, by the code of `optsched reproduce`; none
is written by hand. `make study-pages` measures again.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from catalogue import plain

from optsched.cli.study_tables import SCALES, cell, tables_text
from optsched.studies.claims import Claim
from optsched.studies.experiment import RunOutcome
from optsched.studies.figures import OF_NUMBERS, draw
from optsched.studies.findings import change_text, findings
from optsched.studies.record import StudyRecord, read_record
from optsched.studies.study_file import METHOD, STUDIES

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "docs" / "measured"
# ratio to a bound: the measure in its numerator
OVER_BOUND = {"total_time_ratio": "total_time", "fork_ratio": "total_time", "jct_ratio": "mean_jct"}
CODE = ("optsched/plot", "optsched/studies")  # a picture is kept until this code or the record changes


def record_of(study: str) -> StudyRecord:
    """Read the record of a study from `docs/measured`."""
    return read_record(MEASURED / f"{study}.json")


def pages(kept: Path) -> dict[str, str | bytes]:
    """Return the files of the studies by name: for each study a page, its pictures and a file of all its tables."""
    found: dict[str, str | bytes] = {}
    for name in STUDIES.names():
        record, pictures = record_of(name), figures(name, kept)
        found[f"papers/{name}.md"] = page(record, pictures)
        found[f"papers/{name}-tables.txt"] = tables_text(record.reproduction)
        found |= {f"papers/{name}-{file}": content for file, content in pictures.items()}
    return found


def figures(study: str, kept: Path) -> dict[str, bytes]:
    """Return the pictures of means and intervals by file name; pictures of single runs would need the runs."""
    sources = [*sorted(path for place in CODE for path in (ROOT / place).glob("*.*")), MEASURED / f"{study}.json"]
    sources = [path for path in sources if path.suffix in (".py", ".json") or path.name == f"{study}.toml"]
    folder = kept / hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    if not folder.exists():
        done = record_of(study).reproduction
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as place:  # all pictures of a study, or none
            draw([figure for figure in done.figures if figure["kind"] in OF_NUMBERS], done.outcomes, Path(place))
            Path(place).rename(folder)
            Path(place).mkdir()
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))}


def page(record: StudyRecord, pictures: dict[str, bytes]) -> str:
    """Return the page of a study."""
    done = record.reproduction
    parts = [
        f"# {done.study.document['title']}, claimed and measured",
        f"{_sentence(done.study.summary)}. The paper: {done.study.document['paper']}.",
        _conditions(record),
        "## Claims and measurements\n\n" + _claims(done.claims),
        "## Figures\n\n" + _about_figures(),
        *(_figure(record, figure) for figure in done.figures if figure["file"] in pictures),
        f"## Experiments\n\nAll measures of all rows: {{download}}`{done.study.name}-tables.txt`.",
        *(_experiment(outcome) for outcome in done.outcomes),
        f"## Method\n\n{_sentence(plain(done.study.document.get('method', METHOD)))}.\n",
    ]
    return "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n" + "\n\n".join(parts)  # its tables are wide


def listed() -> str:
    """Return the list of the papers' pages and a table of all claims, for their parent page."""
    pages = [f"* [{study.document['title']}](papers/{name}.md)" for name, study in STUDIES.items()]
    rows = [
        "",
        *pages,
        "",
        "## Claimed and measured",
        "",
        "| paper | claim | published | measured | verdict |",
        "|---|---|---|---|---|",
    ]
    for name, study in STUDIES.items():
        link = f"[{study.document['title'].partition(':')[0]}](papers/{name}.md)"
        for claim in record_of(name).reproduction.claims:
            cells = (link, plain(claim.label), claim.published, claim.spread, plain(claim.verdict))
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def _conditions(record: StudyRecord) -> str:
    done = record.reproduction
    seeds = f"seeds 1 to {len(done.seeds)}" if len(done.seeds) > 1 else "seed 1"
    own = {outcome.seeds[-1] for outcome in done.outcomes} - {done.seeds[-1]}
    more = f" (some experiments use another number of seeds: {', '.join(map(str, sorted(own)))})" if own else ""
    named = f" --seeds {len(done.seeds)}" if not own and len(done.seeds) != done.study.seeds(done.small) else ""
    command = f"optsched reproduce {done.study.name}{' --small' * done.small}{named} -o {done.study.name}"
    size = "small size (few and small workloads, for a quick look)" if done.small else "full size"
    return (
        f"**Measured** with optsched {record.version} on {record.date}: {size}, {seeds}{more}, {record.runs:,} runs. The "
        f"workloads are generated; they are not those of the paper. This command gives the same numbers:\n\n"
        f"```sh\n{command}\n```"
    )


def _claims(claims: list[Claim]) -> str:
    rows = ["| claimed | published | measured | verdict | why |", "|---|---|---|---|---|"]
    for one in claims:
        claimed = f"{plain(one.claim)} ({plain(one.source)})"
        rows.append(f"| {claimed} | {one.published} | {one.spread} | {plain(one.verdict)} | {plain(one.why)} |")
    rows += [
        "",
        "*Measured* gives the smallest and the largest value over rivals and columns. *Reached* means that the published "
        "number is reached or exceeded.",
    ]
    rows += ["", "For each rival, the ratio of geometric means over the seeds, with the number of columns:", ""]
    rows += ["| claim | compared | measured |", "|---|---|---|"]
    for one in claims:
        for part in one.measured.split("; ") if one.experiments else ():
            pair, _, told = part.partition(": ")
            rows.append(f"| {plain(one.label)} | {plain(pair)} | {plain(told)} |")
    return "\n".join(rows)


def _about_figures() -> str:
    return (
        "Claims come from the abstracts. The papers' figures are not compared, because their workloads are not public. "
        "Below each picture are the claims that it shows. Bars and bands are 95 % intervals."
    )


def _figure(record: StudyRecord, figure: dict[str, object]) -> str:
    done = record.reproduction
    shown = [outcome for outcome in done.outcomes if outcome.experiment.name in figure["experiments"]]
    names = {outcome.experiment.name for outcome in shown}
    rows = [f"### {plain(str(figure['title']))}", f"![{figure['title']}]({done.study.name}-{figure['file']})"]
    about = [
        claim for claim in done.claims if names & set(claim.experiments) and claim.measure in _shown_by(figure, shown)
    ]
    rows += [
        f"* Claimed: {plain(claim.claim)}. Measured: {claim.spread} ({plain(claim.verdict)}). Why: {plain(claim.why)}."
        for claim in about
    ] or ["* Claimed: the abstract has no number for this."]
    rows += [f"* Result: {plain(findings(outcome)[0])}." for outcome in shown]
    rows.append("* Experiments: " + ", ".join(f"[{name}](#{name})" for name in names))
    return "\n\n".join(rows[:2]) + "\n\n" + "\n".join(rows[2:])


def _shown_by(figure: dict[str, object], shown: list[RunOutcome]) -> set[str]:
    """Return the measures that a picture shows, directly or divided by their bounds."""
    if figure["y"] == "change":
        return {outcome.experiment.measurement.compared for outcome in shown}
    return {str(figure["y"]), OVER_BOUND.get(str(figure["y"]), "")}


def _experiment(outcome: RunOutcome) -> str:
    e = outcome.experiment
    measure = e.measurement.measures[e.measurement.compared]
    scale, unit = SCALES["short" if e.short and measure.unit == "s" else measure.unit]
    heads = [e.across, *e.columns]
    lines = [f"| {' | '.join(map(plain, heads))} |", "|" + "---|" * len(heads)]
    for row in e.rows:
        cells = []
        for column in e.columns:
            text = cell(outcome.estimate(row, column, e.measurement.compared), scale)
            against = "" if row == e.reference else f"<br>{change_text(outcome.changes[row, column])}"
            cells.append(text + plain(against.replace("<br>", "\n")).replace("\n", "<br>"))
        lines.append(f"| {plain(row)} | {' | '.join(cells)} |")
    told = "\n".join(f"* {plain(said)}" for said in findings(outcome))
    question = e.question if e.question.endswith(("?", ".", "!")) else e.question + "."
    seeds = f"{len(outcome.seeds)} workload{'s' * (len(outcome.seeds) > 1)}"
    return (
        f"### {e.name}\n\n{plain(question)} Cells: {measure.head}{unit}, mean over {seeds}; below it the change relative to "
        f"{plain(e.reference)}.\n\n" + "\n".join(lines) + f"\n\n{told}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
