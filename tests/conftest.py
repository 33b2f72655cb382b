"""What every test shares: the place of the public data, and hypothesis' settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# CI machines are shared and slow: no deadlines; derandomised, so that a failure is the same failure tomorrow.
settings.register_profile(
    "optsched", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("optsched")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public traces and proven optima; tests that need it skip where it is absent."""
    place = os.environ.get("OPTSCHED_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("OPTSCHED_DATA does not name the folder of public traces and proven optima")
    return Path(place)
