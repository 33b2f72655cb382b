"""``make pages``: puts into README.md and docs/ what their blocks print now, and draws their pictures again.

With names of pages, only these.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from optsched.guarantees.describe import page
from pages.page import ROOT, Page, name_of, page_files
from pages.picture import DRAWN, difference, draw
from pages.player import WIDTH, play, same, tidy

THEOREMS = ROOT / "docs" / "guarantees.md"


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
    if not sys.argv[1:]:
        stale = not THEOREMS.exists() or THEOREMS.read_text(encoding="utf-8") != page()
        THEOREMS.write_text(page(), encoding="utf-8")
        print(name_of(THEOREMS), "written" if stale else "is up to date", flush=True)
    for picture in DRAWN:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            drawn = draw(picture, Path(folder))
            stale = not picture.exists() or difference(drawn, picture) > 0
            if stale:
                shutil.copyfile(drawn, picture)
            print(name_of(picture), "drawn" if stale else "is up to date", flush=True)


if __name__ == "__main__":
    main()
