"""A picture is shown: by IPython where pyplot was never asked for one, and in every notebook that draws."""

from __future__ import annotations

import base64
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from optsched.plot.canvas import png_of
from optsched.plot.gantt import gantt
from optsched.problem.schedule import Schedule

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def looked_at() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_conftest", NOTEBOOKS / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_and_axes_show_themselves_without_pyplot() -> None:
    # As a kernel does before anybody asked pyplot for a figure: nobody has told IPython how figures are shown.
    code = (
        "import sys, optsched as osd; from IPython.core.formatters import DisplayFormatter;"
        "s = osd.Schedule.from_starts('rigid-06-1', range(0, 600, 100)); ax = osd.plot.gantt(s);"
        "shown = [DisplayFormatter().format(each)[0] for each in (ax, ax.figure, osd.plot.overview(s))];"
        "assert all(each['image/png'].startswith(b'\\x89PNG') for each in shown), shown;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def cell(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_a_cell_that_draws_and_shows_nothing_is_named(looked_at: ModuleType, gangs: Schedule) -> None:
    picture = {"data": {"image/png": base64.b64encode(png_of(gantt(gangs))).decode()}}
    text = {"data": {"text/plain": "<Figure size 1650x442 with 1 Axes>"}}
    draws = "osd.plot.gantt(run).figure"
    assert looked_at.missing_pictures({"cells": [cell(draws, text, picture), cell("1 + 1", text)]}) == []
    [wrong] = looked_at.missing_pictures({"cells": [cell("x = 1"), cell(draws, text)]})
    assert wrong == f"cell 2 draws, and shows no picture: {draws}"
    assert looked_at.missing_pictures({"cells": [cell("plt.show()")]})


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_has_cells_that_draw(path: Path, looked_at: ModuleType) -> None:
    # the marks by which drawing cells are known are those that the notebooks use
    cells = [each for each in json.loads(path.read_text())["cells"] if each["cell_type"] == "code"]
    empty = [{**each, "source": "".join(each["source"]), "outputs": []} for each in cells]
    assert len(looked_at.missing_pictures({"cells": empty})) >= 3
