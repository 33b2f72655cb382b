"""The small size of a study, run once for all tests of its file, which names it in ``STUDY``."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from optsched.cli.study_tables import reproduction_view
from optsched.studies.study_file import STUDIES, Reproduction


@pytest.fixture(scope="module")
def done(request: pytest.FixtureRequest) -> Reproduction:
    """On one seed."""
    return STUDIES.get(request.module.STUDY).run(1, small=True, workers=1)


@pytest.fixture(scope="module")
def document(done: Reproduction) -> Any:
    """As a file holds it."""
    return json.loads(json.dumps(done.to_json(), allow_nan=False))


@pytest.fixture(scope="module")
def shown(done: Reproduction) -> str:
    """As a wide terminal shows it."""
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(reproduction_view(done))
    return console.export_text()
