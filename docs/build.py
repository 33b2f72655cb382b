"""``make docs``: the documentation site, in build/docs/html.

The sources are collected in build/docs/source: the pages of docs/ with adapted links, the notebooks, CONTRIBUTING.md and
CHANGELOG.md, and the pages that `_ext` writes from the registries (`catalogue.py`, `api_pages.py`), from the records of
the studies (`study_pages.py`) and from all pictures (`gallery.py`). Pages are plain Markdown and readable without a site:
the list of links of a page with subpages *is* its table of contents.

``--fresh`` removes what earlier builds have kept. ``--check`` plays the pages with pictures and compares what they print
with what they show, as `tests/pages` does for all other pages.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BUILT = ROOT / "build" / "docs"
SOURCE, HTML = BUILT / "source", BUILT / "html"
SECTIONS = (
    "index",
    "how-to",
    "guide",
    "reference",
    "papers",
    "notebooks",
    "design/index",
)  # pages whose links make up the tree of the site
BLOB = "https://github.com/optsched/optsched/blob/main/"
PLACED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(DOCS / "_ext")]


def pages(check: bool = False) -> dict[str, str | bytes]:
    """Return the content of every source by name: pages with their pictures, files of the root, catalogues.

    ``check``: play all pages with pictures, and compare what they print with what they show (see `illustrated`).
    """
    import api_pages
    import catalogue
    import gallery
    import study_pages
    from mathematics import marked

    from optsched.guarantees.describe import page as theorems

    found: dict[str, str | bytes] = {}
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).as_posix()
        found[name], drawn = illustrated(name, linked(path.read_text(encoding="utf-8"), name), check)
        found |= drawn
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        found[PLACED[name]] = linked((ROOT / name).read_text(encoding="utf-8"), "../" + name)
    # the page of all theorems, here with formulas
    found["guarantees.md"] = linked(theorems(lambda text: marked(text, plain=catalogue.plain)), "guarantees.md")
    for name, text in {**catalogue.pages(), **api_pages.pages()}.items():
        found.setdefault(name, text)  # a page written by hand takes precedence
    found |= study_pages.pages(BUILT / "drawn")
    found["reference.md"] += catalogue.listed()
    found["papers.md"] += study_pages.listed()
    found["library.md"] += catalogue.library()
    found["cite.md"] += gallery.bibtex(ROOT / "CITATION.cff")
    found["index.md"] = cards(found["index.md"])
    found["library.csv"] = (ROOT / "instances" / "index.csv").read_bytes()
    found["notebooks.md"] += "".join(f"* [{title(path)}](notebooks/{path.name})\n" for path in notebooks())
    found["gallery.md"] += gallery.shown(found, {path.stem: title(path) for path in notebooks()})
    for section in SECTIONS:
        tree = re.findall(r"^\* \[([^]]+)\]\(([^)#:]+)\.(?:md|ipynb)\)", found[section + ".md"], re.MULTILINE)
        # the bar at the top uses the names of the landing page, other lists the headings
        shown = {page: f"{text} <{page}>" if section == "index" else page for text, page in reversed(tree)}
        entries = "\n".join(reversed(shown.values()))
        found[section + ".md"] += f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    return found


def cards(text: str) -> str:
    """Return the landing page with its list of links as cards."""
    return re.sub(r"((?:^\* \[.*\n)+)", r"```{container} cards\n\1```\n", text, count=1, flags=re.MULTILINE)


def linked(text: str, name: str) -> str:
    """Return the page with links to other pages of the site, or to the repository for files that are no pages."""
    folder = (DOCS / name).resolve().parent

    def link(match: re.Match[str]) -> str:
        place, mark, fragment = match[1].partition("#")
        if "://" in place or not place:
            return match[0]
        target = (folder / place).resolve().relative_to(ROOT).as_posix()
        if target in PLACED:
            target = PLACED[target]
        elif target.startswith("docs/") and target.endswith((".md", ".png")):
            target = target.removeprefix("docs/")
        elif not target.endswith(".ipynb"):
            return f"]({BLOB}{target})"
        return f"]({os.path.relpath(target, Path(name.removeprefix('../')).parent)}{mark}{fragment})"

    text = re.sub(r"\[README\]\((?:\.\./)+README\.md\) \| ", "", text)
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if k % 2 else re.sub(r"\]\(([^)\s]+)\)", link, part) for k, part in enumerate(parts))


def illustrated(name: str, text: str, check: bool = False) -> tuple[str, dict[str, bytes]]:
    """Return the page with the pictures that its blocks draw, each after its block.

    The page is played as in the tests. Pictures are kept until the page or the drawing code changes; ``check`` plays the
    page in any case. Raises ValueError if a block does not print what the page shows.
    """
    from pages.page import Page
    from pages.player import WIDTH, difference, play

    from optsched.plot.canvas import ShownFigure, png_of

    page = Page(DOCS / name)
    if not page.draws:
        return text, {}
    drawing = [path.read_bytes() for path in sorted((ROOT / "optsched" / "plot").glob("*.py"))]
    kept = BUILT / "drawn" / hashlib.sha256(b"".join([page.text.encode(), *drawing])).hexdigest()[:16]
    if check or not kept.exists():
        os.environ["COLUMNS"] = WIDTH
        figures: list[ShownFigure] = []
        begun = ShownFigure.__init__

        def noted(figure: ShownFigure, *given: object, **options: object) -> None:
            begun(figure, *given, **options)
            figures.append(figure)

        ShownFigure.__init__ = noted
        made = {}
        try:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                for played in play(page, Path(folder)):
                    if difference(played):
                        raise ValueError(f"docs/{name}: {difference(played)}")
                    for k, figure in enumerate(figures):
                        made[f"{page.blocks.index(played.block)}-{k}.png"] = png_of(figure)
                    figures.clear()
        finally:
            ShownFigure.__init__ = begun
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)  # all pictures of a page, or none
        for file, content in made.items():
            (kept / file).write_bytes(content)
    found = {}
    for at, k in sorted((tuple(map(int, path.stem.split("-"))) for path in kept.iterdir()), reverse=True):
        block, stem = page.blocks[at], f"drawn/{name.removesuffix('.md').replace('/', '-')}-{at}-{k}.png"
        shown = rf"^```{block.language}\n{re.escape(block.text)}```\n+(```text\n.*?^```\n)?"  # with what it prints
        end = re.search(shown, text, re.MULTILINE | re.DOTALL).end()
        text = f"{text[:end]}\n![Picture drawn by the code above]({'../' * name.count('/')}{stem})\n\n{text[end:]}"
        found[stem] = (kept / f"{at}-{k}.png").read_bytes()
    return text, found


def notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def title(notebook: Path) -> str:
    """Return the first heading of a notebook."""
    import json

    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = (line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"])
    return next(line.removeprefix("# ").strip() for line in lines if line.startswith("# "))


def assemble(check: bool = False) -> None:
    """Write the sources that have changed, and remove those that no longer exist."""
    contents = {name: text.encode() if isinstance(text, str) else text for name, text in pages(check).items()}
    contents |= {f"notebooks/{path.name}": path.read_bytes() for path in notebooks()}
    contents |= {path.name: path.read_bytes() for path in DOCS.glob("*.png")}
    for path in [*SOURCE.rglob("*")]:
        if path.is_file() and path.relative_to(SOURCE).as_posix() not in contents:
            path.unlink()
            (HTML / path.relative_to(SOURCE)).with_suffix(".html").unlink(missing_ok=True)
    for name, content in contents.items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def main() -> int:
    """Build the site; return 1 if Sphinx warns."""
    from sphinx.cmd.build import main as sphinx

    began = time.perf_counter()
    if "--fresh" in sys.argv[1:]:
        shutil.rmtree(BUILT, ignore_errors=True)
    assemble("--check" in sys.argv[1:])
    options = ["-W", "--keep-going", "-q", "-c", str(DOCS), "-d", str(BUILT / "doctrees")]
    failed = sphinx([*options, str(SOURCE), str(HTML)])
    files = [path for path in HTML.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    count = sum(path.suffix == ".html" for path in files)
    print(f"{HTML.relative_to(ROOT)}: {count} pages, {size:.1f} MB, {time.perf_counter() - began:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
