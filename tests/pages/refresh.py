"""``make pages``: update the program output in README.md and docs/, the generated pages, and the pictures.

Names of pages as arguments restrict the update to these pages.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from optsched.guarantees.describe import page
from pages import layers, ranks
from pages.page import ROOT, Page, name_of, page_files
from pages.picture import DRAWN, difference, draw
from pages.player import WIDTH, play, same, tidy

THEOREMS = ROOT / "docs" / "guarantees.md"

# Pages that the program writes, whole or in part: the present text -> the text that is right.
WRITTEN: dict[Path, Callable[[str], str]] = {
    THEOREMS: lambda _: page(),
    layers.PAGE: layers.rewritten,
    ranks.PAGE: ranks.rewritten,
}


def refresh(page: Page) -> bool:
    """Was anything stale?"""
    text, stale = page.text, False
    for played in reversed(list(play(page, Path.cwd()))):
        if played.said is not None and not same(played.printed, played.said.text):
            text = text[: played.said.start] + tidy(played.printed) + text[played.said.end :]
            stale = True
    if stale:
        page.path.write_text(text, encoding="utf-8")
    return stale


def main() -> None:
    os.environ["COLUMNS"] = WIDTH
    asked = sys.argv[1:] or [name_of(path) for path in page_files()]
    for path in (path for path in page_files() if name_of(path) in asked):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(name_of(path), "written" if refresh(Page(path)) else "is up to date", flush=True)
    for path in (path for path in WRITTEN if name_of(path) in asked):
        text = path.read_text(encoding="utf-8")
        right = WRITTEN[path](text)
        path.write_text(right, encoding="utf-8")
        print(name_of(path), "written" if right != text else "is up to date", flush=True)
    for picture in [] if sys.argv[1:] else DRAWN:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            drawn = draw(picture, Path(folder))
            stale = not picture.exists() or difference(drawn, picture) > 0
            if stale:
                shutil.copyfile(drawn, picture)
            print(name_of(picture), "drawn" if stale else "is up to date", flush=True)


if __name__ == "__main__":
    main()
