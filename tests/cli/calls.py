"""``optsched`` called in this process: its exit code, and the one line that it says of a mistake."""

from __future__ import annotations

import warnings

import pytest

from optsched.cli import main


def call(*arguments: object) -> int:
    """The exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the command line has to say, it says itself
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """What is on stderr: one line, and nothing on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    return err
