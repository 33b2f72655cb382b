"""Gallery of the site: a thumbnail of every picture, and executed copies of the notebooks.

Pictures of pages and studies are known before the build, those of notebooks only after they ran. So the thumbnails are
made, and put into the page, at the end of the build.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

WIDTH = 420  # pixels of a thumbnail, for 210 on a screen
OF_A_NOTEBOOK = 2  # pictures of each notebook
CAPTION = re.compile(r"osd\.plot\.(\w+)\(|(optsched plot)\b")
PLACE = re.compile(r'<a class="shot" href="([^"]*)"( data-[^>]*)>.*?</a>', re.DOTALL)


def setup(app: Any) -> dict[str, bool]:
    """Connect to the events of Sphinx: the end of a build, and the page of every notebook."""
    app.connect("html-page-context", _link_to_copy, priority=950)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def shown(sources: dict[str, str | bytes], notebooks: dict[str, str]) -> str:
    """Return the gallery of the pages (name -> text) and of the notebooks (name -> title)."""
    parts = ["", "## Pictures of the pages", *_of_pages(sources, ""), "", "## Studies of four papers"]
    parts += [*_of_pages(sources, "papers/"), "", "## Notebooks", ""]
    shots = [
        _shot(f"notebooks/{name}.html", title, f' data-notebook="{name}" data-picture="{k}"')
        for name, title in notebooks.items()
        for k in range(OF_A_NOTEBOOK)
    ]
    return "\n".join([*parts, _grid(shots)])


def _of_pages(sources: dict[str, str | bytes], folder: str) -> list[str]:
    shots = []
    for name, text in sources.items():
        if (
            isinstance(text, str)
            and name.endswith(".md")
            and name.startswith(folder)
            and folder.count("/") == name.count("/")
        ):
            heading = re.search(r"^# (.*)$", text, re.MULTILINE)
            for file, what in _pictures(text):
                caption = what if folder or heading is None else f"{what} ({heading[1]})"
                shots.append(_shot(name.removesuffix(".md") + ".html", caption, f' data-from="_images/{file}"'))
    return ["", _grid(shots)]


def _pictures(text: str) -> list[tuple[str, str]]:
    """Return file and caption of the pictures of a page in order; the caption is its text, or the function that draws it."""
    found, before = [], 0
    for group in re.finditer(r"(?:!\[[^\]]*\]\([^)]+\.png\)\s*)+", text):
        pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+\.png)\)", group[0])
        calls = [function or command for function, command in CAPTION.findall(text[before : group.start()])]
        calls = [call for call in calls if call not in ("save",)][-len(pictures) :] or ["drawn"]
        for k, (said, file) in enumerate(pictures):
            drawn = said == "Picture drawn by the code above"
            found.append((Path(file).name, calls[min(k, len(calls) - 1)] if drawn else said))
        before = group.end()
    return found


def _shot(page: str, caption: str, of: str) -> str:
    return f'<a class="shot" href="{page}"{of}><span>{html.escape(caption)}</span></a>'


def _grid(shots: list[str]) -> str:
    inner = "\n".join(shots)
    return f'```{{raw}} html\n<div class="gallery">\n{inner}\n</div>\n```\n'


def _link_to_copy(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if page.startswith("notebooks/"):
        name = page.removeprefix("notebooks/")
        link = (
            f'<p class="executed"><a href="executed/{name}.ipynb" download>Download this notebook with results</a></p>'
        )
        context["body"] = link + context["body"]


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    copies = site / "notebooks" / "executed"
    copies.mkdir(parents=True, exist_ok=True)
    _copy_executed(Path(app.srcdir) / "notebooks", Path(app.config.nb_execution_cache_path), copies)
    page = site / "gallery.html"
    text = PLACE.sub(lambda place: _with_thumbnail(site, place), page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def _copy_executed(sources: Path, cache: Path, copies: Path) -> None:
    """Copy the notebooks with their outputs from the build."""
    import nbformat
    from jupyter_cache import get_cache

    kept = get_cache(cache.resolve())
    for path in sorted(sources.glob("*.ipynb")):
        _, executed = kept.merge_match_into_notebook(nbformat.read(path, as_version=4))
        nbformat.write(executed, copies / path.name)


def _with_thumbnail(site: Path, place: re.Match[str]) -> str:
    """Return a place of the gallery with its picture; places without a picture stay empty and are hidden."""
    given = dict(re.findall(r'data-(\w+)="([^"]*)"', place[2]))
    if "from" in given:
        picture = site / given["from"]
    else:
        body = (site / place[1]).read_text(encoding="utf-8")
        pictures = re.findall(r'src="\.\./(_images/[^"]+\.png)"', body)
        at = int(given["picture"])
        if at >= len(pictures):
            return f'<a class="shot" href="{place[1]}"{place[2]}></a>'
        picture = site / pictures[at]
    caption = re.search(r"<span>.*?</span>", place[0], re.DOTALL)
    name = _thumbnail(picture, site / "_images" / "small")
    image = f'<img src="_images/small/{name}" alt="">'
    return f'<a class="shot" href="{place[1]}"{place[2]}>{image}{caption[0] if caption else ""}</a>'


def _thumbnail(picture: Path, folder: Path) -> str:
    from PIL import Image

    folder.mkdir(exist_ok=True)
    made = folder / picture.name
    if not made.exists() or made.stat().st_mtime < picture.stat().st_mtime:
        with Image.open(picture) as image:
            small = image.convert("RGB")
            small.thumbnail((WIDTH, WIDTH))
            small.quantize(64).save(made)
    return picture.name


def bibtex(file: Path) -> str:
    """Return the BibTeX entry of `CITATION.cff`, for the page on citing."""
    import yaml

    import optsched

    cff = yaml.safe_load(file.read_text(encoding="utf-8"))
    authors = " and ".join(
        "{" + author["name"] + "}" if "name" in author else f"{author['family-names']}, {author['given-names']}"
        for author in cff["authors"]
    )
    fields = {
        "title": "{" + cff["title"] + "}",
        "author": authors,
        "version": optsched.__version__,
        "url": cff["repository-code"],
        "license": cff["license"],
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"\n```bibtex\n@software{{optsched,\n{lines}\n}}\n```\n"
