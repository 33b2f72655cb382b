"""The page of layers shows the layers and imports that exist, and every file that it names."""

from __future__ import annotations

import re

from sources import ROOT, one_process

from pages import layers
from pages.page import ROOT as PROJECT, Page

pytestmark = one_process


def test_the_page_of_layers_is_written_from_the_imports() -> None:
    text = layers.PAGE.read_text(encoding="utf-8")
    assert text == layers.rewritten(text), "make pages writes it"


def test_the_table_has_every_package_and_its_imports() -> None:
    rows = [row.split(" | ") for row in layers.table().splitlines()[2:]]
    assert {row[1].strip("`") for row in rows} == {layers.shown(name) for name in layers.SHOWN}
    imports = {row[1].strip("`"): row[-1] for row in rows}
    assert "`problem/`" in imports["speeds/"]
    assert imports["errors"] == "- |"


def test_files_on_the_page_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)", Page(layers.PAGE).prose)
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.rglob(name)) and not (PROJECT / name).exists()] == []
