"""What the tests of readers share: write a file, read it in a dialect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.problem.cluster import Cluster

Reader = Callable[..., TraceRead]


@pytest.fixture
def read(written: Callable[..., Path]) -> Reader:
    """``read("philly", text, cluster="8x8", ...)``: the text as a file, read in that dialect."""

    def read_text(
        dialect: str, text: str, *, cluster: Cluster | str | None = "8x8", name: str = "log.csv", **options: Any
    ) -> TraceRead:
        where = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
        return DIALECTS.get(dialect).read(written(text, name), cluster=where, **options)

    return read_text
