"""A project of somebody else, in a folder of its own, tested by a pytest of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from optsched.io.sources import load
from regression.project import FILES


class Keeper:
    """A plugin of inner sessions that remembers what they import: they forget all, and numpy is not imported twice."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        project = str(config.rootpath)
        for name, module in sys.modules.items():
            if not str(getattr(module, "__file__", None)).startswith(project):
                self.modules[name] = module

    def restore(self) -> None:
        for name, module in self.modules.items():
            sys.modules.setdefault(name, module)


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """Asked for before `pytester`, which forgets everything at its end."""
    remembered = Keeper()
    yield remembered
    remembered.restore()


@pytest.fixture
def bare(keeper: Keeper, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """A session of the tests in a folder that is still empty; no other plugin than ours takes part."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file changed within a second may look as it did

    def run(*arguments: str) -> pytest.RunResult:
        for file in pytester.path.glob("*.py"):  # another test may have had a module of that name
            sys.modules.pop(file.stem, None)
        options = ("-p", "optsched.pytest_plugin", "-p", "no:cacheprovider")
        result = pytester.runpytest_inprocess(*options, *arguments, plugins=[keeper])
        keeper.restore()
        return result

    return run


@pytest.fixture
def project(keeper: Keeper, pytester: pytest.Pytester) -> pytest.Pytester:
    """The project of somebody else."""
    for name, text in FILES.items():
        (pytester.path / name).write_text(text)
    cases = pytester.mkdir("cases")
    for name in ("rigid-06-1", "rigid-06-2"):
        load(name).save(cases / f"{name}.json")
    return pytester


@pytest.fixture
def session(project: pytest.Pytester, bare: Callable[..., pytest.RunResult]) -> Callable[..., pytest.RunResult]:
    """A session of its tests."""
    return bare
