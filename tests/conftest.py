"""What every test shares: the command line, the place of the public data, and hypothesis' settings."""

from __future__ import annotations

import gc
import json
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from examples import explored
from hypothesis import HealthCheck, settings

# CI machines are shared and slow: no deadlines. By default derandomised, so that a failure is the same failure tomorrow;
# `make study` explores: five times as many, every time others, and what reproduces a failure is printed.
settings.register_profile(
    "optsched", deadline=None, max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", settings.get_profile("optsched"), max_examples=60, derandomize=False, print_blob=True
)
settings.load_profile("optsched")


LONG = ("release", "study", "bench")
# `make compiled` also runs these tests of `make unit`, with every function compiled at its first call.
COMPILED_TOO = (
    "tests/frozen/",
    *(f"tests/simulation/test_{name}.py" for name in ("sharing", "engine", "iterations", "decisions")),
)
gc.disable()  # until all is imported and collected
gc.set_threshold(20_000)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several processes one runs a file, so that what its tests share is computed once; a study is too long for that."""
    if os.environ.get("OPTSCHED_COMPILED"):
        for item in items:
            others = any(map(item.get_closest_marker, (*LONG, "compiled")))
            if item.nodeid.startswith(COMPILED_TOO) and not others and "bounds" not in item.name:
                item.add_marker(pytest.mark.compiled(at_first_call=True))
    if not explored():
        for item in items:
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture
def prices_for_few_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds by prices over time are looked for however few the jobs are."""
    from optsched.bounds import priced_deadlines, priced_time

    for module in (priced_time, priced_deadlines):
        monkeypatch.setattr(module, "FEWEST_JOBS", 1)


@cache
def price_of_users() -> float:
    from optsched.compiled import function

    return function.PRICE


def pytest_collection_finish() -> None:
    from optsched.bounds import fast_machine

    fast_machine.priority_run.interpreted = False  # half a million calls; compiling it takes a second
    gc.collect()
    gc.freeze()  # what was imported and collected stays: it need not be looked through again and again
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a compilation is worth in units of interpreted work.

    Compiling takes longer than all small runs together: they are interpreted for longer than for users. Long tests have the
    price of users. The tests `COMPILED_TOO` compile all in ``make compiled``.
    """
    from optsched.compiled import function

    usual = price_of_users()  # before it is changed
    function.PRICE = usual * (1 if any(map(item.get_closest_marker, LONG)) else 80)
    compiled = item.get_closest_marker("compiled")
    if compiled is not None and compiled.kwargs.get("at_first_call"):
        function.PRICE = -1


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public traces and proven optima; tests that need it skip where it is absent."""
    place = os.environ.get("OPTSCHED_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("OPTSCHED_DATA does not name the folder of public traces and proven optima")
    return Path(place)


class Outcome(NamedTuple):
    """What a command did, as a script sees it."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def shown(self) -> str:
        """What is on stdout; it succeeded."""
        assert self.code == 0, self.err
        return self.out

    @property
    def words(self) -> str:
        """The same on one line, however it was folded."""
        return " ".join(self.shown.split())

    @property
    def document(self) -> Any:
        """The one document on stdout; it succeeded."""
        return json.loads(self.shown)

    @property
    def value(self) -> float:
        """Of the first run of its document."""
        return float(self.document["runs"][0]["value"])

    @property
    def refusal(self) -> str:
        """What is on stderr about bad input, and nothing is on stdout: of rows a summary, and a line each."""
        assert (self.code, self.out) == (2, ""), self
        assert "Traceback" not in self.err
        return self.err

    @property
    def mistake(self) -> str:
        """The same where it is one line."""
        assert self.refusal.count("\n") == 1, self.err
        return self.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``optsched ARGUMENTS``, in this process."""
    from optsched.cli import main  # the tests that need no command line do not wait for it

    def call(*arguments: object) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what the command line has to say, it says itself
            with pytest.raises(SystemExit) as stopped:
                main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def screen(command: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """The same with ``COLUMNS``; None: it is not set."""

    def call(columns: int | None, *arguments: object) -> Outcome:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        return command(*arguments)

    return call


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """``written(content, name)``: the file; what is no text and no bytes as JSON."""

    def write(content: Any, name: str = "given.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two machines' worth of gangs; the optimum of sum C_j is 3 + 5 + 9 = 17 (b and c beside each other, then a)."""
    from optsched.problem.instance import Instance, Job

    path = tmp_path / "small.json"
    jobs = [Job("a", gpus=2, duration=4), Job("b", duration=3), Job("c", duration=5)]
    Instance(jobs, "1x2", name="small", objective="total_completion_time").save(path)
    return path
