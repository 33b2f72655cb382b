"""Compiled steps of policies run as the Python that they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest


@contextlib.contextmanager
def interpreted(*modules: ModuleType) -> Iterator[None]:
    """Run the steps that these modules call through `optsched.compiled.entry` as Python, also if they are compiled."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for module in modules:
            patch.setattr(module, "entry", lambda function: getattr(function, "py_func", function))
        yield
