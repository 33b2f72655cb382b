"""What `import optsched` offers: names that exist, that a type checker knows, and errors that can be caught."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import optsched as osd

ROOT = Path(osd.__file__).resolve().parent


def names_for_type_checkers() -> dict[str, str]:
    """Name -> module, of the imports that only a type checker sees."""
    found = {}
    for node in ast.parse((ROOT / "__init__.py").read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                found |= {each.name: str(line.module) for each in line.names}
    return found


def test_type_checkers_and_the_loader_know_the_same_names_from_the_same_modules() -> None:
    loaded = {name: f"optsched.{home}" for name, home in osd._HOMES.items()}
    assert names_for_type_checkers() == {**dict.fromkeys(osd._NAMESPACES, "optsched"), **loaded}
    assert sorted(osd.__all__) == sorted({*osd._HOMES, *osd._NAMESPACES})
    assert set(osd.__all__) <= set(dir(osd))


@pytest.mark.parametrize("name", osd.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(osd, name) is not None


def test_a_misspelt_name_is_an_error_that_names_the_right_one() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'solv': did you mean solve\?"):
        osd.solv  # noqa: B018


def test_a_misspelt_name_is_a_type_error(tmp_path: Path) -> None:
    # Only the package's face is read, not what stands behind it: the names are the question, and it is quick.
    snippet = tmp_path / "snippet.py"
    snippet.write_text("import optsched as osd\nosd.solve\nosd.plot.gantt\nosd.solv\n")
    options = ("--follow-imports=skip", "--no-incremental", "--config-file=", "--cache-dir", str(tmp_path / "cache"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(snippet), str(ROOT / "__init__.py")],
        capture_output=True,
        text=True,
        cwd=ROOT.parent,
    )
    wrong = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(wrong) == 1, done.stdout + done.stderr
    assert "snippet.py:4" in wrong[0]
    assert '"solv"' in wrong[0]


def test_the_import_is_quick_since_it_loads_nothing() -> None:
    code = (
        "import json, sys; before = set(sys.modules); import optsched;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    assert [name for name in modules if name.startswith("optsched")] == ["optsched"]
    # of the standard library few, and no other: ten milliseconds, which is not asserted since machines are busy at times
    assert len(modules) <= 60
    assert {name.partition(".")[0] for name in modules} <= {*sys.stdlib_module_names, "optsched"}


def exceptions() -> list[type[BaseException]]:
    """Every exception class that a module of the package defines."""
    for module in pkgutil.walk_packages([str(ROOT)], "optsched."):
        source = Path(str(module.module_finder.path), f"{module.name.rpartition('.')[2]}.py")
        if source.is_file() and "Error)" in source.read_text():
            importlib.import_module(module.name)
    found: list[type[BaseException]] = [osd.OptschedError]
    for each in found:
        found += [kind for kind in each.__subclasses__() if kind not in found]
    # what only a command raises is its own affair: nobody who imports the package meets it
    return [each for each in found if each.__module__.startswith("optsched.") and ".cli" not in each.__module__]


def test_every_exception_is_exported() -> None:
    assert {each.__name__ for each in exceptions()} - set(osd.__all__) == set()
    assert len(exceptions()) >= 9


def test_input_errors_are_value_errors_too() -> None:
    assert issubclass(osd.InputError, ValueError)
    assert issubclass(osd.RowErrors, ValueError)
    with pytest.raises(ValueError, match="there is no policy named 'fifi'"):
        osd.simulate(osd.Instance([osd.Job("a", duration=1)], "1x1"), "fifi")


@pytest.mark.parametrize(
    "read",
    [
        osd.Certificate.load,
        osd.read_throughputs,
        lambda path: osd.Schedule.load(path, osd.Instance([], "1x1")),
        lambda path: osd.plot.plot_file(path, "out.png"),
        osd.Instance.load,
    ],
)
@pytest.mark.parametrize("name", ["none.json", "none.parquet"])
def test_a_missing_file_is_still_called_missing(read: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    # readers turn the ValueErrors of JSON into "not a JSON document": not those that say more
    with pytest.raises(osd.InputError, match=f"{name}: no such file$"):
        read(tmp_path / name)


def test_dir_shows_what_is_public() -> None:
    assert [name for name in dir(osd) if not name.startswith("__")] == sorted(osd.__all__)


@pytest.mark.parametrize("name", osd._NAMESPACES)
def test_dir_of_a_namespace_shows_no_modules(name: str) -> None:
    package = getattr(osd, name)
    assert dir(package) == sorted(package.__all__)
    assert not [each for each in dir(package) if inspect.ismodule(getattr(package, each))]
