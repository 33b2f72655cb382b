"""The site is built once, as ``make docs`` builds it, and what its pages with pictures print is compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages.page import ROOT
from site_browser import STARTED


@pytest.fixture(scope="session", autouse=True)
def browser_ends() -> Iterator[None]:
    """All tests share one browser, which ends with them."""
    yield
    STARTED.close()


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the site; a warning of Sphinx, a cell that fails, or a page that shows other output fails all tests."""
    pytest.importorskip("myst_nb", reason="the extra optsched[docs] is not installed")
    built = subprocess.run([sys.executable, "docs/build.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    print(built.stdout)
    return ROOT / "build" / "docs" / "html"
