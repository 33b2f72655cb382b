"""Files that commands are asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def gavel(written: Callable[..., Path]) -> Callable[..., str]:
    """``gavel((model, steps, gpus, arrival), ...)``: the SOURCE of such a trace."""
    row = "{}\tpython3 x\tdir\t--n\t1\t{}\t{}\t1\t-1\t{}\n"
    return lambda *jobs: f"gavel:{written(''.join(row.format(*job) for job in jobs), 't.trace')}"
