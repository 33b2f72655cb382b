"""Bad input is refused in one line that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from optsched.errors import InputError


@contextmanager
def one_line(*told: str, begins: object = "", match: str | None = None) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """What is done within raises an `InputError` of one line, which begins so, has all that is told, and matches."""
    with pytest.raises(InputError, match=match) as caught:
        yield caught
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(str(begins))
    for each in told:
        assert each in line
