"""A picture is shown by IPython where pyplot was never asked for one; `tests/site` looks at every notebook that draws."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.release


@pytest.mark.release
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
